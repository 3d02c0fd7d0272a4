//! Gets a Debian 6.1 kernel without installing it, wraps this test binary in an initramfs, and
//! boots both.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TOOLS: [&str; 6] =
    ["apt-get", "apt-cache", "dpkg-deb", "qemu-system-x86_64", "busybox", "cpio"];

/// The guest's first program.
const INIT: &str = "#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox ip link set lo up
/guest --ignored --exact inside_the_guest --nocapture
echo \"guest: status $?\"
/bin/busybox poweroff -f
";

/// Boots the guest and gives back what it wrote to its console, or says why it cannot be had.
pub(crate) fn run() -> Result<String, String> {
    if let Some(tool) = TOOLS.into_iter().find(|tool| which(tool).is_none()) {
        return Err(format!("{tool} is not installed"));
    }
    // In the target directory, so `cargo clean` removes the download.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guest");
    fs::create_dir_all(&cache).unwrap();
    let kernel = kernel(&cache)?;
    let initramfs = initramfs(&cache);
    // TCG: the kernel does not boot under every machine's KVM, and CI may have none.
    let output = Command::new("timeout")
        .args(["300", "qemu-system-x86_64", "-M", "q35,accel=tcg", "-cpu", "max", "-smp", "1"])
        .args(["-m", "768", "-nographic", "-no-reboot", "-nic", "none"])
        .args(["-append", "console=ttyS0 quiet panic=-1 mitigations=off"])
        .arg("-kernel")
        .arg(kernel)
        .arg("-initrd")
        .arg(initramfs)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn which(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(tool)).find(|file| file.is_file())
}

/// The image of the package that `linux-image-amd64` stands for, unpacked and not installed.
fn kernel(cache: &Path) -> Result<PathBuf, String> {
    if let Some(image) = unpacked(cache) {
        return Ok(image);
    }
    // The package lists may be missing, or older than what the mirror has.
    let update = || succeeds(Command::new("apt-get").args(["-qq", "update"]));
    let downloaded = download(cache) || (update() && download(cache));
    if !downloaded {
        return Err("no linux-image package of 6.1 can be downloaded".to_owned());
    }
    for entry in fs::read_dir(cache).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            assert!(succeeds(Command::new("dpkg-deb").arg("-x").arg(&path).arg(cache)));
            fs::remove_file(path).unwrap();
        }
    }
    // 300 MB of modules that the guest does not load.
    fs::remove_dir_all(cache.join("lib")).unwrap();
    Ok(unpacked(cache).expect("the package has an image"))
}

fn unpacked(cache: &Path) -> Option<PathBuf> {
    let images = fs::read_dir(cache.join("boot")).ok()?.flatten().map(|entry| entry.path());
    images.into_iter().find(|path| path.to_string_lossy().contains("/vmlinuz-6.1."))
}

fn download(cache: &Path) -> bool {
    let depends =
        Command::new("apt-cache").args(["depends", "linux-image-amd64"]).output().unwrap();
    let depends = String::from_utf8_lossy(&depends.stdout).into_owned();
    let package = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    package.filter(|name| name.starts_with("linux-image-6.1.")).is_some_and(|name| {
        succeeds(Command::new("apt-get").args(["-qq", "download", name]).current_dir(cache))
    })
}

fn initramfs(cache: &Path) -> PathBuf {
    let root = cache.join("root");
    let _ = fs::remove_dir_all(&root);
    for dir in ["bin", "proc", "sys", "dev", "run", "tmp"] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    let program = std::env::current_exe().unwrap();
    fs::copy(which("busybox").unwrap(), root.join("bin/busybox")).unwrap();
    symlink("busybox", root.join("bin/sh")).unwrap();
    fs::write(root.join("init"), INIT).unwrap();
    fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(&program, root.join("guest")).unwrap();
    for library in libraries(&program) {
        let to = root.join(library.strip_prefix("/").unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(&library, to).unwrap();
    }
    let archive = cache.join("initramfs");
    let pack = "find . | cpio --quiet -o -H newc > ../initramfs";
    assert!(succeeds(Command::new("sh").args(["-c", pack]).current_dir(&root)));
    archive
}

/// The shared libraries of a program, its loader among them, by their absolute paths.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let listed = Command::new("ldd").arg(program).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let words = listed.split_whitespace().filter(|word| word.starts_with('/'));
    words.map(PathBuf::from).collect()
}

fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
