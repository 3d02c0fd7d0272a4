//! Parts that the tests of the real program share: access points made of namespaces, agents, traffic.

#![allow(clippy::new_without_default, reason = "what `new` makes are files and keys")]
#![allow(missing_docs, reason = "a helper of tests is named for what it does")]
#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]
#![allow(clippy::print_stdout, reason = "the harness shows it where a test fails or is skipped")]

pub mod agent;
pub mod bss;
pub mod guide;
pub mod members;
pub mod metrics;
pub mod probe;
mod program;
pub mod traffic;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};

pub use program::program;
pub use wakeai_guest::testing::write_program;

/// Bounds that are too wide for any run to exceed. Other tests check lateness and waits.
pub const ANY_LATENESS: [&str; 6] =
    ["--lateness-p99", "10s", "--lateness-max", "60s", "--waits-p99", "60s"];

/// Registrations and pins belong to the whole kernel, so most tests use the machine alone. Tests that share it hold this
/// lock for reading.
static MACHINE: RwLock<()> = RwLock::new(());

/// The number of tests of this process that share the machine now, and the file whose lock other processes respect.
static SHARING: Mutex<(u32, Option<Flock<File>>)> = Mutex::new((0, None));

/// The exclusive use of this machine for one test.
pub struct Machine {
    _file: Flock<File>,
    _guard: RwLockWriteGuard<'static, ()>,
}

impl Machine {
    /// Waits until no other test uses the machine. If the test cannot run here, prints the reason
    /// and returns `None`.
    pub fn take() -> Option<Self> {
        if !is_usable() {
            return None;
        }
        let guard = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
        Some(Self { _file: lock_file(FlockArg::LockExclusive), _guard: guard })
    }

    /// Waits until no other test uses the machine alone: for a test that neither counts nor removes what is in use, and
    /// works in namespaces that only it uses. Such tests run at the same time. The last one to end checks that
    /// nothing is left.
    pub fn share() -> Option<SharedMachine> {
        if !is_usable() {
            return None;
        }
        let guard = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
        let mut sharing = SHARING.lock().unwrap_or_else(PoisonError::into_inner);
        if sharing.0 == 0 {
            sharing.1 = Some(lock_file(FlockArg::LockShared));
        }
        sharing.0 += 1;
        Some(SharedMachine { _guard: guard })
    }
}

/// The use of this machine together with other tests.
pub struct SharedMachine {
    _guard: RwLockReadGuard<'static, ()>,
}

impl Drop for SharedMachine {
    fn drop(&mut self) {
        let mut sharing = SHARING.lock().unwrap_or_else(PoisonError::into_inner);
        sharing.0 -= 1;
        if sharing.0 > 0 {
            return;
        }
        let file = sharing.1.take();
        // Where tests of another process share the machine too, what is there may be theirs.
        let is_last = file.is_some_and(|file| file.relock(FlockArg::LockExclusiveNonblock).is_ok());
        if is_last && !std::thread::panicking() {
            nothing_left();
        }
    }
}

/// Whether this process can use the kernel. If not, it prints the reason, and fails under `WAKEAI_REQUIRE_KERNEL=1`.
fn is_usable() -> bool {
    let found = wakeai_kernel::features::detect();
    let root = nix::unistd::geteuid().is_root();
    if root && found.to_bound().is_ok() && found.to_monitor().is_ok() {
        return true;
    }
    let why = if root { "the kernel lacks a feature" } else { "not root" };
    assert!(
        std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_none_or(|value| value != "1"),
        "WAKEAI_REQUIRE_KERNEL=1, but {why}"
    );
    println!("SKIPPED: {why}");
    false
}

/// Locks the file that the tests' processes have in common.
fn lock_file(how: FlockArg) -> Flock<File> {
    let file = File::create(std::env::temp_dir().join("wakeai-kernel-tests.lock")).unwrap();
    Flock::lock(file, how).unwrap()
}

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Runs the program under test.
pub fn wakeai(arguments: &[&str]) -> Output {
    Command::new(program()).args(arguments).output().unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Runs a program that must succeed.
pub fn must(program: &str, arguments: &str) -> String {
    let output = Command::new(program).args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "{program} {arguments}: {}", stderr(&output));
    stdout(&output)
}

/// Calls `found` until it returns a value, for at most 30 s. The time that this takes depends on
/// the machine and is not tested.
pub fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    wait_or_say(|| found().ok_or_else(|| what.to_owned()))
}

/// [`wait_for`] what `found` says instead of a value, in the words of its last call.
fn wait_or_say<T>(mut found: impl FnMut() -> Result<T, String>) -> T {
    let give_up = Instant::now() + Duration::from_secs(30);
    loop {
        match found() {
            Ok(found) => return found,
            Err(what) => assert!(Instant::now() < give_up, "waited in vain until {what}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A copy of the program in this directory, for users who may not enter the target directory. A process of its own
/// writes it: while this one had it open for writing, a child that another thread starts at that moment would keep it
/// open, and running it would fail with ETXTBSY.
pub fn program_in(directory: &Path) -> PathBuf {
    let copy = directory.join("wakeai");
    let copied = Command::new("cp").arg(program()).arg(&copy).status().unwrap();
    assert!(copied.success(), "cp: {copied}");
    copy
}

/// What agents and labs have left outside of their namespaces.
pub fn leftovers() -> Vec<String> {
    let mut left = Vec::new();
    if must("bpftool", "struct_ops list").contains("wakeai") {
        left.push("a registration".to_owned());
    }
    if must("bpftool", "prog list").contains("govern_egress") {
        left.push("a program that governs datagrams".to_owned());
    }
    let names = |directory: &str| {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().display().to_string()).collect::<Vec<_>>()
    };
    left.extend(names("/sys/fs/bpf").into_iter().filter(|path| path.contains("wakeai")));
    left.extend(names("/run/wakeai").into_iter().filter(|path| path.contains(".sock")));
    left.extend(names("/run/wakeai/leases").into_iter().filter(|path| path.contains(".json")));
    left
}

/// The state of everything that this project ever changes on a host.
pub fn host_state() -> Vec<String> {
    let mut state = vec![
        must("ip", "netns list"),
        must("ip", "-o -br link show"),
        must("tc", "qdisc show"),
        must("bpftool", "struct_ops list"),
        must("bpftool", "cgroup tree"),
    ];
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    state.extend(mounts.lines().filter(|line| line.contains("/sys/fs/bpf")).map(str::to_owned));
    state.extend(sysctls("/proc/sys/net/core".as_ref()));
    state.extend(sysctls("/proc/sys/net/ipv4".as_ref()));
    state
}

/// Every readable setting below the directory, with its value.
fn sysctls(directory: &Path) -> Vec<String> {
    let mut entries: Vec<_> = fs::read_dir(directory).unwrap().flatten().collect();
    entries.sort_by_key(fs::DirEntry::path);
    let read = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => sysctls(&entry.path()),
        _ => fs::read_to_string(entry.path())
            .map(|value| vec![format!("{} = {}", entry.path().display(), value.trim())])
            .unwrap_or_default(),
    };
    entries.into_iter().flat_map(read).collect()
}

/// Waits until [`leftovers`] finds nothing. The kernel frees a registration a moment after its last reference is gone.
pub fn nothing_left() {
    wait_or_say(|| {
        let left = leftovers();
        if left.is_empty() { Ok(()) } else { Err(format!("nothing is left of {left:?}")) }
    });
}
