//! For tests alone: runs a shell command on the kernels that Wakeai supports, each in a guest, and writes programs.
//!
//! [`KERNELS`] lists the kernels. [`take`] returns a [`Rig`] with one of them, and [`Rig::boot`] runs a [`Task`] in
//! it. The guest's userland is busybox's.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "it serves tests: a failure here fails the test, and a skipped test prints the reason"
)]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::modules::{LAB, Modules, TESTS, WIFI};
use crate::{
    Archive, GuestError, Machine, Patience, Program, Store, add_programs, library_directories,
    which,
};

/// Every kernel that is tested in a guest, with the expected verdict.
pub const KERNELS: &[Kernel] = &[
    Kernel { suite: "bullseye", version: "5.10", arm64: false, verdict: Verdict::Refused },
    Kernel { suite: "bookworm", version: "6.1", arm64: true, verdict: Verdict::Runs },
    Kernel { suite: "trixie", version: "6.12", arm64: false, verdict: Verdict::Runs },
];

/// The kernel of a suite of Debian that is tested.
#[derive(Debug)]
pub struct Kernel {
    /// The suite's code name. The package may also come from the suite's security updates.
    pub suite: &'static str,
    /// The first two numbers of the kernel's version.
    pub version: &'static str,
    /// Whether `make test-arm64` boots the arm64 kernel of the suite.
    pub arm64: bool,
    /// The expected verdict.
    pub verdict: Verdict,
}

/// What is expected of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every command works.
    Runs,
    /// The kernel is too old: every command that needs BPF reports that and exits with status 77.
    Refused,
}

impl Kernel {
    /// Whether `release` (`uname -r`) is one of this version.
    pub fn is(&self, release: &str) -> bool {
        release.strip_prefix(self.version).is_some_and(|rest| rest.starts_with('.'))
    }
}

/// The guest's first program. In its `PATH` the task's programs come before busybox's.
const INIT: &str = "#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mkdir -p /dev/shm
/bin/busybox mount -t cgroup2 cgroup2 /sys/fs/cgroup
/bin/busybox --install -s /bin
export PATH=/usr/bin:/bin
while read module; do insmod /modules/$module.ko; done </modules/order
ip link set lo up
";

/// A task for a guest.
#[derive(Debug)]
pub struct Task<'a> {
    /// The shell command that the guest runs.
    pub command: &'a str,
    /// Programs in addition to busybox's.
    pub programs: Vec<Program>,
    /// Files in the guest: path and contents.
    pub files: Vec<(String, String)>,
}

/// A machine that runs one task and powers off.
#[derive(Debug)]
pub struct Rig {
    /// The machine.
    pub machine: Machine,
    /// The time in seconds on this machine's clock after which a silent guest is ended.
    pub patience_s: u64,
    modules: Modules,
    /// A busybox that is linked statically.
    busybox: PathBuf,
    /// The directories of the programs' shared libraries.
    libraries: Vec<PathBuf>,
    /// A directory for files of the test.
    pub work: PathBuf,
}

/// Prepares a machine with this kernel, which is kept below `work`. If a tool or the kernel's package is missing, this
/// function calls [`skip`] and returns `None`.
pub fn take(kernel: &Kernel, work: &Path) -> Option<Rig> {
    match rig(kernel, &work.join("guests")) {
        Ok(rig) => Some(rig),
        Err(reason) => {
            skip(&format!("Linux {} of {}: {reason}", kernel.version, kernel.suite));
            None
        }
    }
}

fn rig(kernel: &Kernel, work: &Path) -> Result<Rig, GuestError> {
    let busybox =
        which("busybox").ok_or_else(|| GuestError::program("busybox", "busybox-static"))?;
    let store = Store::at(work.join("kernels"));
    let found = store.kernel_of_suite(kernel.version, kernel.suite, &|said| println!("{said}"))?;
    Ok(Rig {
        machine: Machine::x86_64(found.image)?,
        patience_s: 900,
        modules: found.modules,
        busybox,
        libraries: library_directories(),
        work: work.join(kernel.suite),
    })
}

/// The machine with an arm64 kernel, from the files that `scripts/arm64-guest` has prepared. The script passes the
/// directory of the unpacked packages in `WAKEAI_ARM64_ROOT`.
pub fn arm64(kernel: &Kernel) -> Rig {
    let root = PathBuf::from(told("WAKEAI_ARM64_ROOT"));
    let modules = Modules::take(&root.join("lib/modules"), &root.join("guest-modules")).unwrap();
    let images = fs::read_dir(root.join("boot")).unwrap().flatten().map(|entry| entry.path());
    let is = |path: &PathBuf| {
        let release = path.file_name().and_then(|name| name.to_str()?.strip_prefix("vmlinuz-"));
        release.is_some_and(|release| kernel.is(release))
    };
    let emulated = ["-M", "virt", "-accel", "tcg", "-cpu", "max"];
    let machine = Machine {
        emulator: which("qemu-system-aarch64").expect("the script installs it"),
        emulated: emulated.map(str::to_owned).into(),
        console: "ttyAMA0".to_owned(),
        memory_mb: 1024,
        kernel: images.into_iter().find(is).expect("the kernel in WAKEAI_ARM64_ROOT/boot"),
        parameters: String::new(),
        seed: None,
        answers: false,
    };
    Rig {
        machine,
        patience_s: 1800,
        modules,
        busybox: root.join("bin/busybox"),
        libraries: vec![
            "/usr/aarch64-linux-gnu/lib".into(), // the cross compiler's libraries
            root.join("usr/lib/aarch64-linux-gnu"),
            root.join("lib/aarch64-linux-gnu"),
        ],
        work: root.join("guest"),
    }
}

impl Rig {
    /// Boots the machine and returns the output on its console.
    pub fn boot(&self, task: &Task<'_>) -> String {
        let archive = self.pack(task).unwrap();
        let mut guest = self.machine.boot(&[&archive]).unwrap();
        let time = Duration::from_secs(self.patience_s);
        let followed =
            guest.follow(Patience { busy: time, idle: time }, |_| Ok::<_, GuestError>(0));
        let console = guest.console(); // the task's own status is on it
        match followed {
            Ok(()) => console,
            Err(error) => format!("{console}\n{error}"),
        }
    }

    /// The file system that the task runs in.
    fn pack(&self, task: &Task<'_>) -> Result<Archive, GuestError> {
        let mut archive = Archive::default();
        for directory in ["bin", "proc", "sys", "dev", "run", "tmp", "modules", "usr/bin"] {
            archive.directory(directory);
        }
        let end = format!("{}\necho \"guest: status $?\"\npoweroff -f\n", task.command);
        archive.executable("init", format!("{INIT}{end}"));
        let mut programs = task.programs.clone();
        programs.push(Program { from: self.busybox.clone(), to: "/bin/busybox".into() });
        add_programs(&mut archive, &programs, &self.libraries)?;
        for (path, text) in &task.files {
            archive.file(path, text.as_str());
        }
        // A module of a radio that the guest has loaded at its start cannot be loaded again.
        let at_start = self.modules.with_needs([LAB, TESTS].concat());
        let mut radio = self.modules.with_needs(WIFI.to_vec());
        radio.retain(|name| !at_start.contains(name));
        for (list, order) in [("order", at_start), ("wifi", radio)] {
            for name in &order {
                let file = self.modules.file(name);
                let read = GuestError::file(format!("read {}", file.display()));
                archive.file(&format!("modules/{name}.ko"), fs::read(&file).map_err(read)?);
            }
            archive.file(&format!("modules/{list}"), order.join("\n") + "\n");
        }
        Ok(archive)
    }
}

/// Runs `try_on` for several kernels at the same time, because the emulation of a kernel uses only
/// one thread. Returns the failures.
pub fn at_once<'a>(
    kernels: impl Iterator<Item = &'a Kernel>,
    try_on: impl Fn(&Kernel) -> Result<(), String> + Sync,
) -> Vec<String> {
    let try_on = &try_on;
    std::thread::scope(|scope| {
        let tries: Vec<_> = kernels.map(|kernel| scope.spawn(move || try_on(kernel))).collect();
        tries.into_iter().filter_map(|tried| tried.join().unwrap().err()).collect()
    })
}

/// Writes a program that this process will start. A process of its own writes the file: while this process had it open for
/// writing, a child that another thread starts at that moment would keep it open, and starting it would fail with ETXTBSY.
pub fn write_program(path: &Path, contents: impl AsRef<[u8]>) {
    let mut install = Command::new("install");
    install.args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped());
    let mut install = install.spawn().unwrap();
    install.stdin.take().expect("it is piped").write_all(contents.as_ref()).unwrap();
    let status = install.wait().unwrap();
    assert!(status.success(), "install {}: {status}", path.display());
}

/// Prints why a test is skipped. Under `WAKEAI_REQUIRE_KERNEL=1` the test fails instead.
pub fn skip(reason: &str) {
    let required = std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_some_and(|is| is == "1");
    assert!(!required, "WAKEAI_REQUIRE_KERNEL=1, but {reason}");
    println!("SKIPPED: {reason}");
}

/// The value of an environment variable that a script sets.
pub fn told(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("a script of scripts/ sets {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The row of README's table for a kernel.
    fn row(kernel: &Kernel) -> String {
        let expected = match (kernel.verdict, kernel.arm64) {
            (Verdict::Runs, true) => "works; on arm64 too (`make test-arm64`)",
            (Verdict::Runs, false) => "works",
            (Verdict::Refused, _) => "too old: the commands end with 77 and name what is missing",
        };
        format!("| {} | {} | {expected} |", kernel.version, kernel.suite)
    }

    #[test]
    fn readme_names_these_kernels_and_no_others() {
        let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../README.md");
        let readme = fs::read_to_string(readme).unwrap();
        let section = readme.split("\n## ").find(|text| text.starts_with("What it needs\n"));
        let rows = section.unwrap().lines().filter(|line| line.starts_with('|')).skip(2);
        let expected: Vec<_> = KERNELS.iter().map(row).collect();
        assert_eq!(rows.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_release_belongs_to_a_version_and_not_to_a_longer_number() {
        let old = Kernel { suite: "", version: "6.1", arm64: false, verdict: Verdict::Runs };
        assert!(old.is("6.1.0-56-amd64"));
        assert!(!old.is("6.12.117+deb13-amd64"));
    }
}
