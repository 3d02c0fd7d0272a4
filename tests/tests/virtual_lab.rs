//! `wakeai lab --kernel`: the lab in guests. `make test-guests` runs these tests, which boot kernels of Debian under
//! qemu, and need its archive.

#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;

use serde_json::Value;
use wakeai_guest::{GuestError, Store};
use wakeai_tests::{program, stderr, stdout};

/// A short run with and without agents.
const SCENARIO: &str = r#"
name = "two"
duration = "3s"
warmup = "1s"
[access_point]
standard = "802.11n"
[wired]
delay = "10ms"
[[stations]]
name = "tablet"
count = 2
max = "50Mbit/s"
[[flows]]
from = "tablet"
to = "server"
[[conditions]]
name = "default"
[[conditions]]
name = "airtime"
law = "airtime"
"#;

/// The kernels of all these tests.
fn cache() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("virtual-lab");
    fs::create_dir_all(&path).unwrap();
    path
}

/// A directory with the scenario in `two.toml`.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("two.toml"), SCENARIO).unwrap();
    directory
}

/// `wakeai lab two.toml` with these options, in `directory`.
fn lab(directory: &Path, options: &[&str]) -> Command {
    let mut lab = Command::new(program());
    lab.args(["lab", "two.toml"]).args(options).current_dir(directory);
    lab.env("XDG_CACHE_HOME", cache()).stdin(Stdio::null());
    lab
}

/// Processes that compute until this is dropped.
struct Busy(Vec<Child>);

impl Busy {
    fn with(loops: usize) -> Self {
        let busy = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        Self((0..loops).map(|_| busy()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A directory with an emulator whose thread for devices is woken a thousand times a second: lines arrive at its monitor. Each
/// time it looks whether the guest sleeps, and then advances the guest's clock.
fn restless_emulator() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let script = "#!/bin/sh\n\
                  PATH=${PATH#*:}\n\
                  [ \"$1\" = --version ] && exec qemu-system-x86_64 \"$@\"\n\
                  lines=$(dirname \"$0\")/$$\n\
                  mkfifo \"$lines\"\n\
                  (while echo; do sleep 0.001; done) >\"$lines\" 2>&- &\n\
                  exec qemu-system-x86_64 \"$@\" -monitor stdio <\"$lines\"\n";
    let emulator = place.path().join("qemu-system-x86_64");
    wakeai_tests::write_program(&emulator, script);
    place
}

/// The result in a directory of `--out`, without the real time that its runs took.
fn result(out: &Path) -> Value {
    let text = fs::read_to_string(out.join("result.json")).unwrap();
    let mut result: Value = serde_json::from_str(&text).unwrap();
    for run in result["runs"].as_array_mut().unwrap() {
        run.as_object_mut().unwrap().remove("wall_s").unwrap();
    }
    result
}

/// One clear line, with the exit status.
fn refused(output: &Output, status: i32, words: &[&str]) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(status), "{said}");
    let last = said.lines().rfind(|line| line.starts_with("wakeai: ")).unwrap_or_default();
    for word in words {
        assert!(last.contains(word), "{word}: {said}");
    }
    assert_eq!(stdout(output), "");
}

#[test]
#[ignore = "boots a kernel four times: minutes"]
fn a_run_is_the_same_bit_for_bit_beside_busy_loops() {
    let work = directory();
    let cores = std::thread::available_parallelism().unwrap().get();
    let mut results = Vec::new();
    let restless = restless_emulator();
    let own = std::env::var("PATH").unwrap();
    let path = format!("{}:{own}", restless.path().display());
    for (out, loops, path) in [("quiet", 0, &own), ("busy", 2 * cores, &path)] {
        let _busy = Busy::with(loops);
        let options = ["--kernel", "6.12", "--out", out, "--jobs", "2"];
        let found = lab(work.path(), &options).env("PATH", path).output().unwrap();
        assert!(found.status.success(), "{}", stderr(&found));
        assert!(stdout(&found).contains(" on Linux 6.12."), "{}", stdout(&found));
        assert!(stderr(&found).contains("a factor of "), "{}", stderr(&found));
        results.push(work.path().join(out));
    }
    let [quiet, busy] = [&results[0], &results[1]];
    let (first, second) = (result(quiet), result(busy));
    assert_eq!(first, second);
    for run in first["runs"].as_array().unwrap() {
        assert!(run["total_goodput_mbps"].as_f64().unwrap() > 5.0, "{run}");
        assert!(run["lateness"]["releases"].as_u64().unwrap() > 500, "{run}");
        assert_eq!(run["packets_digest"].as_str().unwrap().len(), 16);
    }
    let digests =
        ["kernel_digest", "image_digest"].map(|key| first["guest"][key].as_str().unwrap().len());
    assert_eq!(digests, [64, 64]);
    for table in ["samples", "events", "goodput", "flows"] {
        let bytes = |out: &Path| fs::read(out.join(format!("{table}.parquet"))).unwrap();
        assert!(bytes(quiet) == bytes(busy), "{table}");
    }
    let log = fs::read_to_string(quiet.join("agents/airtime-0/tablet1.log")).unwrap();
    assert!(!log.is_empty());
}

/// An upload of CUBIC and one of `wakeai_bbr` over a wire of 20 Mbit/s with 100 packets of queue, which hold it for 60 ms.
const BOTTLENECK: &str = r#"
name = "two"
duration = "8s"
warmup = "3s"
[access_point]
standard = "802.11n"
[wired]
rate = "20Mbit/s"
delay = "10ms"
queue = 100
[[stations]]
name = "tablet"
count = 1
max = "19Mbit/s"
[[flows]]
from = "tablet"
to = "server"
algorithm = "wakeai_cubic"
[[conditions]]
name = "cubic"
[[conditions]]
name = "bbr"
set = { "flows.1.algorithm" = "wakeai_bbr" }
"#;

#[test]
#[ignore = "boots a kernel twice: a minute"]
fn bbr_fills_a_path_whose_queue_it_leaves_to_cubic() {
    let work = directory();
    fs::write(work.path().join("two.toml"), BOTTLENECK).unwrap();
    let found = lab(work.path(), &["--kernel", "6.12", "--json", "--jobs", "2"]).output().unwrap();
    assert!(found.status.success(), "{}", stderr(&found));
    let report: Value = serde_json::from_slice(&found.stdout).unwrap();
    let figures = |condition: &str| {
        let runs = report["runs"].as_array().unwrap();
        let run = runs.iter().find(|run| run["condition"] == condition).unwrap();
        let rtt = run["rtt_ms"]["p50"].as_f64().unwrap();
        (run["total_goodput_mbps"].as_f64().unwrap(), rtt)
    };
    let ((cubic, cubics_rtt), (bbr, bbrs_rtt)) = (figures("cubic"), figures("bbr"));
    assert!(bbr > 0.95 * cubic, "{bbr} and {cubic} Mbit/s");
    // Without a queue the RTT is 20 ms.
    let (cubics_queue, bbrs_queue) = (cubics_rtt - 20.0, bbrs_rtt - 20.0);
    assert!(bbrs_queue < 0.6 * cubics_queue, "{bbrs_queue} and {cubics_queue} ms");
}

#[test]
#[ignore = "boots a kernel: a minute"]
fn nobody_runs_the_lab_and_leaves_nothing() {
    let work = directory();
    fs::set_permissions(work.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // The program is copied, because nobody may not enter the directory where it was built.
    let own = wakeai_tests::program_in(work.path());
    let home = work.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new("setpriv");
    if nix::unistd::geteuid().is_root() {
        command.args(["--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]);
    }
    command.arg("--").arg(&own).args([
        "lab",
        "two.toml",
        "--conditions",
        "default",
        "--json",
        "--kernel",
        "6.1",
    ]);
    command.current_dir(work.path()).env("TMPDIR", &home).env("HOME", "/nonexistent");
    let found = command.env_remove("XDG_CACHE_HOME").output().unwrap();
    assert!(found.status.success(), "{}", stderr(&found));
    let report: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(report["runs"].as_array().unwrap().len(), 1);
    assert!(report["guest"]["kernel"].as_str().unwrap().starts_with("6.1."));
    let left: Vec<_> =
        fs::read_dir(&home).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 1, "the cache of kernels alone: {left:?}");
}

#[test]
#[ignore = "boots a kernel: seconds"]
fn full_guest_memory_is_named() {
    let work = directory();
    let found = lab(work.path(), &["--kernel", "6.12", "--memory", "96"]).output().unwrap();
    refused(&found, 1, &["the guest's memory of 96 MB is full", "--memory"]);
}

#[test]
#[ignore = "fetches a kernel: a minute"]
fn two_that_fill_one_cache_fetch_a_kernel_once() {
    let place = tempfile::tempdir().unwrap();
    let fetched = Mutex::new(0);
    let fetch = || {
        let store = Store::at(place.path().join("kernels"));
        store.kernel_of_suite("6.1", "bookworm", &|said| {
            *fetched.lock().unwrap() += usize::from(said.starts_with("fetching"));
        })
    };
    let found: Vec<Result<_, GuestError>> = std::thread::scope(|scope| {
        let both = [scope.spawn(fetch), scope.spawn(fetch)];
        both.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let images: Vec<_> = found.into_iter().map(|kernel| kernel.unwrap().image).collect();
    assert_eq!(images[0], images[1]);
    assert_eq!(fetched.into_inner().unwrap(), 1);
    let kept = fs::read_dir(place.path().join("kernels")).unwrap().flatten();
    let mut kept: Vec<_> = kept.map(|entry| entry.file_name().into_string().unwrap()).collect();
    kept.sort();
    assert!(
        matches!(&kept[..], [release, lock] if release.starts_with("6.1.") && lock == "lock"),
        "{kept:?}"
    );
}

#[test]
#[ignore = "needs apt and qemu"]
fn an_archive_that_is_not_reached_is_named() {
    let (work, cache) = (directory(), tempfile::tempdir().unwrap());
    let mut offline = lab(work.path(), &["--kernel", "6.12"]);
    offline.env("WAKEAI_DEBIAN_MIRROR", "http://127.0.0.1:9/debian");
    let found = offline.env("XDG_CACHE_HOME", cache.path()).output().unwrap();
    refused(
        &found,
        1,
        &["cannot fetch Linux 6.12", "http://127.0.0.1:9/debian", "check the network"],
    );
}

#[test]
#[ignore = "needs apt, qemu and this machine's package lists"]
fn lists_that_debian_has_not_signed_are_refused() {
    let (work, cache) = (directory(), tempfile::tempdir().unwrap());
    let mirror = work.path().join("mirror");
    let mut changed = 0;
    for suite in ["stable", "stable-backports"] {
        let place = mirror.join("debian/dists").join(suite);
        fs::create_dir_all(&place).unwrap();
        // A list that Debian has signed, with one letter changed.
        let lists = fs::read_dir("/var/lib/apt/lists").unwrap().flatten().map(|entry| entry.path());
        let own = lists.into_iter().find(|path| path.to_string_lossy().ends_with("_InRelease"));
        let text = fs::read_to_string(own.expect("`apt-get update` has fetched lists")).unwrap();
        let forged = text.replacen("Origin: Debian", "Origin: Dabian", 1);
        changed += usize::from(forged != text);
        fs::write(place.join("InRelease"), forged).unwrap();
    }
    assert_eq!(changed, 2);
    let mut forged = lab(work.path(), &["--kernel", "6.12"]);
    forged.env("WAKEAI_DEBIAN_MIRROR", format!("file:{}/debian", mirror.display()));
    let found = forged.env("XDG_CACHE_HOME", cache.path()).output().unwrap();
    refused(&found, 1, &["cannot fetch Linux 6.12", "not what Debian has signed"]);
}

#[test]
#[ignore = "needs apt, qemu and its archive"]
fn a_full_disk_is_named_and_the_cache_stays_as_it_was() {
    let (work, cache) = (directory(), tempfile::tempdir().unwrap());
    let script = "mount -t tmpfs -o size=20m none \"$XDG_CACHE_HOME\" && \"$@\"; status=$?; \
                  ls -A \"$XDG_CACHE_HOME/wakeai/kernels\" >&2; exit $status";
    let lab = lab(work.path(), &["--kernel", "6.1"]);
    let mut full = Command::new("unshare");
    full.args(["--mount", "--map-root-user", "sh", "-c", script, "sh"]).arg(lab.get_program());
    full.args(lab.get_args()).current_dir(work.path()).env("XDG_CACHE_HOME", cache.path());
    let found = full.output().unwrap();
    refused(&found, 1, &["cannot ", "XDG_CACHE_HOME"]);
    assert_eq!(stderr(&found).lines().last(), Some("lock"), "{}", stderr(&found));
}

#[test]
#[ignore = "needs qemu"]
fn kernels_that_nobody_knows_are_named_with_what_there_is() {
    let work = directory();
    fs::write(work.path().join("vmlinuz"), "no kernel").unwrap();
    for (asked, words) in [
        ("newest", "neither a version"),
        ("./vmlinuz", "no image of Linux"),
        ("./none", "No such file"),
        ("9.9", "have 6."),
    ] {
        let found = lab(work.path(), &["--kernel", asked]).output().unwrap();
        let status = if asked == "./none" { 1 } else { 2 };
        refused(&found, status, &[asked, words]);
    }
}

/// The kernel of this version in the cache of all these tests.
fn kept(version: &str) -> wakeai_guest::Kernel {
    Store::at(cache().join("wakeai/kernels")).kernel(version, None, &|_| {}).unwrap()
}

/// Puts a kernel's image into `place`, and its modules into `place`/lib/modules, as a package does. Returns the path of
/// the image.
fn unpacked(version: &str, place: &Path) -> PathBuf {
    let kernel = kept(version);
    let tree = place.join("lib/modules").join(kernel.release.as_str()).join("kernel");
    fs::create_dir_all(&tree).unwrap();
    let image = place.join("vmlinuz");
    fs::copy(&kernel.image, &image).unwrap();
    let directory = kernel.image.parent().unwrap();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        if entry.path().extension().is_some_and(|end| end == "ko") {
            fs::copy(entry.path(), tree.join(entry.file_name())).unwrap();
        }
    }
    image
}

#[test]
#[ignore = "boots a kernel three times: minutes"]
fn an_image_gives_the_same_run_as_its_version() {
    let work = directory();
    let image = unpacked("6.12", &work.path().join("beside"));
    let apart = unpacked("6.12", &work.path().join("apart"));
    let modules = work.path().join("modules");
    fs::rename(work.path().join("apart/lib/modules"), &modules).unwrap();
    let [image, apart, modules] =
        [&image, &apart, &modules].map(|path| path.to_str().unwrap().to_owned());
    let lost = lab(work.path(), &["--kernel", &apart]).output().unwrap();
    refused(&lost, 2, &[&apart, "its modules are in none of", "--modules"]);
    let mut results = Vec::new();
    for (out, asked) in [
        ("version", vec!["6.12"]),
        ("beside", vec![image.as_str()]),
        ("apart", vec![&apart, "--modules", &modules]),
    ] {
        let asked = [&["--conditions", "default", "--out", out, "--kernel"], &asked[..]].concat();
        let found = lab(work.path(), &asked).output().unwrap();
        assert!(found.status.success(), "{asked:?}: {}", stderr(&found));
        results.push(result(&work.path().join(out)));
    }
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
}

#[test]
#[ignore = "boots a kernel: a minute"]
fn the_highest_kernel_of_backports_runs() {
    let work = directory();
    let found = lab(work.path(), &["--kernel", "latest", "--conditions", "default", "--json"])
        .output()
        .unwrap();
    assert!(found.status.success(), "{}", stderr(&found));
    let report: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert!(report["runs"][0]["total_goodput_mbps"].as_f64().unwrap() > 5.0, "{report}");
    let kernel = report["guest"]["kernel"].as_str().unwrap();
    let version: Vec<&str> = kernel.split('.').take(2).collect();
    let newest = kept(&version.join(".")).release;
    assert_eq!(newest.as_str(), kernel);
    assert!(newest > kept("6.12").release, "{newest} is not above Debian's stable");
}

#[test]
#[ignore = "needs apt, qemu and a kernel"]
fn each_program_that_is_missing_is_named_with_77() {
    let work = directory();
    let empty = tempfile::tempdir().unwrap();
    let image = unpacked("6.12", work.path());
    let tree = work.path().join("lib/modules").join(kept("6.12").release.as_str());
    fs::rename(tree.join("kernel/tun.ko"), tree.join("kernel/tun.ko.xz")).unwrap();
    let image = image.to_str().unwrap();
    let own = cache();
    for (program, package, asked, cache) in [
        ("qemu-system-x86_64", "qemu-system-x86", "6.12", empty.path()),
        ("apt-get", "apt", "6.12", empty.path()),
        ("dpkg-deb", "dpkg", "6.12", empty.path()),
        ("iperf3", "iperf3", "6.12", own.as_path()),
        ("xz", "xz-utils", image, own.as_path()),
    ] {
        let programs = tempfile::tempdir().unwrap();
        for directory in ["/usr/bin", "/usr/sbin"] {
            for entry in fs::read_dir(directory).unwrap().flatten() {
                if entry.file_name() != program {
                    let to = programs.path().join(entry.file_name());
                    let _ = std::os::unix::fs::symlink(entry.path(), to); // both may have it
                }
            }
        }
        let mut lab = lab(work.path(), &["--kernel", asked]);
        lab.env("PATH", programs.path()).env("XDG_CACHE_HOME", cache);
        refused(&lab.output().unwrap(), 77, &[program, &format!("install the package {package}")]);
    }
}
