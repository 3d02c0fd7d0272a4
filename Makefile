# `make demo` and `make test` need nothing but a Debian or Ubuntu machine and root.

SCENARIO ?= scenarios/quickstart.toml
WAKEAI := target/release/wakeai

.PHONY: help deps build demo test bench lint clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 10

deps: ## install the packages that are missing
	@scripts/deps

build: deps ## target/release/wakeai
	cargo build --release --locked --bin wakeai

demo: build ## install, build, and run $(SCENARIO) on the real TCP stack
	$(WAKEAI) lab $(SCENARIO)

test: deps ## install, build, and run every test (kernel tests need root)
	cargo test --locked --workspace
	cargo run --locked --quiet -p wakeai-scenario --example fuzz_scenarios -- 1000000

bench: deps ## benchmarks: ratios measured side by side in one run
	cargo bench --locked --workspace

lint: ## formatting and lints, as CI checks them
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings

clean: ## remove what was built
	cargo clean
