# `make demo` and `make test` need nothing but a Debian or Ubuntu machine and root.

SCENARIO ?= scenarios/quickstart.toml
MINUTES ?= 30
WAKEAI := target/release/wakeai
# Tests of the kernel parts mostly wait, so more of them run at a time than there are cores.
TEST_THREADS ?= 4
# What `make` builds is mostly built once. Incremental compilation would make that slower, and twice as large.
export CARGO_INCREMENTAL ?= 0
# The duration of each target of `make fuzz`.
SECONDS ?= 60

.PHONY: help deps build demo test test-python test-release test-guests test-radio test-guests-quickstart test-arm64 test-packetdrill test-faults test-field test-peers test-probe soak fuzz bench validation figures site ns3 ns3-reference bench-ns3 lint clean test-operator static test-static dist test-dist deb test-deb

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 24

deps: ## install the packages that are missing
	@scripts/deps

build: deps ## target/release/wakeai
	cargo build --release --locked --bin wakeai

demo: build ## install, build, run $(SCENARIO) on the real TCP stack, and write a report
	$(WAKEAI) lab $(SCENARIO) --out target/demo --force
	$(WAKEAI) report target/demo -o target/demo/report.html

test: deps ## install, build, and run the tests (kernel tests need root)
	RUST_TEST_THREADS=$(TEST_THREADS) scripts/tests

test-python: deps ## the tests of the Python package, in a virtual environment under target/
	scripts/python-tests

test-release: deps ## what takes longer than make test: a Dask cluster, reports and site in Chromium, tutorials, the papers' figures
	@scripts/deps apt-packages-release
	@scripts/site
# It also builds the program for the Python tests, as make test has built it: cargo build would build its crates anew, with fewer features.
	cargo test --locked --workspace --test report -- --include-ignored
	scripts/python-tests -m release
	cargo test --locked --workspace --test metrics -- --include-ignored --nocapture prometheus_holds

test-operator: deb ## the operator's tutorial, from Debian's package to the fleet in one table (minutes; root)
	cargo test --locked -p wakeai-tests --test operator -- --include-ignored

test-guests: deps ## the program, the algorithms and Wi-Fi on each kernel of README's list, under qemu (minutes)
	WAKEAI_REQUIRE_KERNEL=1 cargo test --locked --workspace --test guest -- \
		--ignored --nocapture --skip inside_ --skip quickstart_ --skip static_program_ --skip _on_arm64
	cargo test --locked --workspace --test virtual_lab -- --ignored --nocapture --test-threads=2

test-radio: deps ## the medium under mac80211_hwsim, hostapd and wpa_supplicant in guests (minutes)
	@scripts/deps apt-packages-radio
	WAKEAI_REQUIRE_KERNEL=1 cargo test --locked --workspace --test radio -- --ignored --nocapture --test-threads=2

test-guests-quickstart: deps ## the quickstart on each of these kernels that runs Wakeai (many minutes)
	WAKEAI_REQUIRE_KERNEL=1 cargo test --locked --workspace --test guest -- --ignored --nocapture quickstart_

static: ## the program without shared libraries, for x86-64 and arm64: target/dist (minutes; root to install packages)
	@scripts/static

test-static: ## the static x86-64 program in guests without shared libraries, with each kernel of README's list (minutes)
	@scripts/test-static

dist: ## what a release gives to others, with checksums and bills of materials: target/dist (many minutes)
	@scripts/dist

test-dist: ## make dist in two directories: the same bytes (twice as many minutes)
	@scripts/test-dist

test-arm64: ## kernel parts, static program and Android module in an arm64 kernel under qemu (minutes; root)
	scripts/arm64-guest

deb: deps ## Debian's package: target/debian/wakeai_VERSION_ARCHITECTURE.deb (minutes)
	@scripts/deps apt-packages-deb
	@scripts/deb

test-deb: deb ## the package in clean chroots of Debian 12 and 13, and under systemd in guests (minutes; root)
	@scripts/test-deb

test-packetdrill: ## our algorithms beside the kernel's: make test-packetdrill PACKETDRILL=DIR (root)
	@scripts/packetdrill "$(PACKETDRILL)"

test-faults: deps ## kill -9 after every step of agent, use and lab (minutes; root)
	WAKEAI_REQUIRE_KERNEL=1 cargo test --locked -p wakeai-tests --test faults -- --include-ignored --nocapture --test-threads=1

test-field: deps ## wakeai field on machines that are hosts of a lab: faults, six stations beside the lab, forty machines (minutes; root)
	WAKEAI_REQUIRE_KERNEL=1 cargo test --locked --workspace --test field -- --include-ignored --nocapture --test-threads=1

test-peers: deps ## 1 GB to serve, tusd, nginx and Apache, with kills and cuts; others' clients to serve (minutes; root; needs Go)
	@scripts/test-peers

test-probe: deps ## the probes of every buffer and standard in the lab (minutes; root)
	WAKEAI_REQUIRE_KERNEL=1 cargo test --locked -p wakeai-tests --test probe -- --include-ignored --nocapture --test-threads=1

soak: deps ## memory, files and map entries of agents under churn for MINUTES=30 (root)
	WAKEAI_REQUIRE_KERNEL=1 SOAK_MINUTES=$(MINUTES) cargo test --locked -p wakeai-tests --test soak -- --include-ignored --nocapture

fuzz: deps ## libFuzzer: make fuzz SECONDS=900 TARGET=presence; without TARGET all (needs cargo-fuzz)
	@scripts/fuzz $(SECONDS) $(TARGET)

bench: deps ## benchmarks: ratios measured side by side in one run
	cargo bench --locked --workspace

validation: build ## docs/reference/validation.md from runs (as root also from runs of the lab)
	cargo run --release --locked --quiet -p wakeai-validation -- page

figures: deps ## docs/guides/papers.md and target/figures: the papers' figures and tables beside ours (minutes)
	WAKEAI_PYTHON_PROFILE=release scripts/python-env
	target/venv-python/bin/python validation/papers --out target/figures --guide docs/guides/papers.md

site: ## target/site/html: the documentation as a site, with all its references checked
	@scripts/site

ns3: ## our ns-3 program, with Debian's ns-3
	@scripts/deps apt-packages-ns3
	$(MAKE) --no-print-directory -C validation/ns3

ns3-reference: ns3 ## add the missing figures of ns-3 to validation/ns3/reference.json (hours)
	validation/ns3/reference

bench-ns3: build ns3 ## simulated seconds per CPU second, beside ns-3
	cargo build --release --locked --quiet -p wakeai-validation
	target/release/wakeai-validation bench

lint: ## formatting, lints and licences, as CI checks them
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	@if cargo deny --version >/dev/null 2>&1; then cargo deny --locked check licenses sources bans; \
	else echo 'lint: SKIPPED deny.toml: cargo-deny is missing (cargo install --locked cargo-deny)'; fi

clean: ## remove what was built
	cargo clean
