//! This machine's own architecture: a kernel from Debian that is not installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::boot::{Machine, image, succeeds};

const TOOLS: [&str; 7] =
    ["apt-get", "apt-cache", "dpkg-deb", "qemu-system-x86_64", "busybox", "cpio", "readelf"];

/// The machine, or why it cannot be had.
pub(crate) fn machine() -> Result<Machine, String> {
    if let Some(tool) = TOOLS.into_iter().find(|tool| which(tool).is_none()) {
        return Err(format!("{tool} is not installed"));
    }
    // In the target directory, so `cargo clean` removes the download.
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guest");
    fs::create_dir_all(&work).unwrap();
    Ok(Machine {
        // TCG: the kernel does not boot under every machine's KVM, and CI may have none.
        qemu: &["qemu-system-x86_64", "-M", "q35,accel=tcg", "-cpu", "max"],
        console: "ttyS0",
        patience_s: 300,
        kernel: kernel(&work)?,
        program: std::env::current_exe().unwrap(),
        busybox: which("busybox").expect("it is among the tools"),
        libraries: vec!["/lib/x86_64-linux-gnu".into(), "/usr/lib/x86_64-linux-gnu".into()],
        work,
    })
}

fn which(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(tool)).find(|file| file.is_file())
}

/// The image of the package that `linux-image-amd64` stands for, unpacked and not installed.
fn kernel(work: &Path) -> Result<PathBuf, String> {
    if let Some(image) = image(work) {
        return Ok(image);
    }
    // The package lists may be missing, or older than what the mirror has.
    let update = || succeeds(Command::new("apt-get").args(["-qq", "update"]));
    let downloaded = download(work) || (update() && download(work));
    if !downloaded {
        return Err("no linux-image package of 6.1 can be downloaded".to_owned());
    }
    for entry in fs::read_dir(work).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            assert!(succeeds(Command::new("dpkg-deb").arg("-x").arg(&path).arg(work)));
            fs::remove_file(path).unwrap();
        }
    }
    // 300 MB of modules that the guest does not load.
    fs::remove_dir_all(work.join("lib")).unwrap();
    Ok(image(work).expect("the package has an image"))
}

fn download(work: &Path) -> bool {
    let depends =
        Command::new("apt-cache").args(["depends", "linux-image-amd64"]).output().unwrap();
    let depends = String::from_utf8_lossy(&depends.stdout).into_owned();
    let package = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    package.filter(|name| name.starts_with("linux-image-6.1.")).is_some_and(|name| {
        succeeds(Command::new("apt-get").args(["-qq", "download", name]).current_dir(work))
    })
}
