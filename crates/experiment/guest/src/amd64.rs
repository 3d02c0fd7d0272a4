//! Guests of this machine's own architecture, x86-64. Their kernels come from Debian's packages,
//! which are unpacked, but not installed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::apt::Suite;
use crate::machine::Machine;
use crate::{Kernel, modules, skip, succeeds, which};

const TOOLS: [&str; 9] = [
    "apt-get",
    "apt-cache",
    "dpkg-deb",
    "qemu-system-x86_64",
    "busybox",
    "cpio",
    "readelf",
    "strip",
    "xz",
];

/// Prepares a machine with this kernel; the machine's files are below `work`. If a tool or the
/// kernel's package is missing, this function calls [`skip`] and returns `None`.
pub fn take(kernel: &Kernel, work: &Path) -> Option<Machine> {
    match machine(kernel, &work.join("guests").join(kernel.suite)) {
        Ok(machine) => Some(machine),
        Err(reason) => {
            skip(&format!("Linux {} of {}: {reason}", kernel.version, kernel.suite));
            None
        }
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

fn machine(kernel: &Kernel, work: &Path) -> Result<Machine, String> {
    if let Some(tool) = TOOLS.into_iter().find(|tool| which(tool).is_none()) {
        return Err(format!("{tool} is not installed"));
    }
    fs::create_dir_all(work).unwrap();
    let lock = File::create(work.join("lock")).unwrap();
    lock.lock().unwrap();
    Ok(Machine {
        // qemu emulates in software (TCG), because the kernel does not boot under every machine's
        // KVM, and CI may have none. The guest's clock counts instructions (`-icount`), so other
        // load of this machine does not look like delay to the guest. While the guest sleeps, its
        // clock jumps ahead.
        qemu: &[
            "qemu-system-x86_64",
            "-M",
            "q35,accel=tcg",
            "-cpu",
            "max",
            "-icount",
            "shift=0,sleep=off",
        ],
        console: "ttyS0",
        patience_s: 900,
        kernel: unpacked(kernel, work)?,
        modules: Some(work.join("modules")),
        busybox: which("busybox").expect("it is among the tools"),
        libraries: vec!["/lib/x86_64-linux-gnu".into(), "/usr/lib/x86_64-linux-gnu".into()],
        strips: true,
        work: work.to_owned(),
        lock: Some(lock),
    })
}

/// The path of the kernel's image; its modules are in `modules` beside it. The first call downloads and
/// unpacks the package.
fn unpacked(kernel: &Kernel, work: &Path) -> Result<PathBuf, String> {
    let package = work.join("package");
    let complete = work.join("complete");
    if fs::read_to_string(&complete).ok() != Some(modules::wanted()) {
        let _ = fs::remove_dir_all(work.join("modules"));
        let _ = fs::remove_dir_all(&package);
        let is = |name: &str| {
            name.strip_prefix("linux-image-").is_some_and(|release| kernel.is(release))
        };
        let suite = Suite::read(kernel.suite, &work.join("apt"))?;
        let file = suite.download_dependency("linux-image-amd64", is, &package)?;
        assert!(succeeds(Command::new("dpkg-deb").arg("-x").arg(&file).arg(&package)));
        // Debian 13's packages have everything in /usr.
        let trees = ["lib/modules", "usr/lib/modules"].map(|tree| package.join(tree));
        let tree = trees.into_iter().find(|tree| tree.is_dir());
        modules::copy(&tree.expect("the package has modules"), &work.join("modules"));
        // The rest of the package has hundreds of megabytes, and no guest needs it.
        for rest in [&package.join("lib"), &package.join("usr"), &file] {
            let _ = fs::remove_dir_all(rest).or_else(|_| fs::remove_file(rest));
        }
        let _ = fs::remove_dir_all(work.join("apt"));
        fs::write(&complete, modules::wanted()).unwrap();
    }
    Ok(kernel.image(&package).expect("the package has an image"))
}
