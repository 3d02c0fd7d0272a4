//! Wraps a program in an initramfs and boots it with a kernel.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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

/// A machine that runs one program.
pub(crate) struct Machine {
    /// The emulator and what it emulates.
    pub(crate) qemu: &'static [&'static str],
    pub(crate) console: &'static str,
    pub(crate) patience_s: u32,
    pub(crate) kernel: PathBuf,
    pub(crate) program: PathBuf,
    /// Linked statically.
    pub(crate) busybox: PathBuf,
    /// Where the program's shared libraries are.
    pub(crate) libraries: Vec<PathBuf>,
    /// A directory to write to.
    pub(crate) work: PathBuf,
}

impl Machine {
    /// Boots it and gives back what it wrote to its console.
    pub(crate) fn boot(&self) -> String {
        let append = format!("console={} quiet panic=-1 mitigations=off", self.console);
        let output = Command::new("timeout")
            .arg(self.patience_s.to_string())
            .args(self.qemu)
            .args(["-smp", "1", "-m", "768", "-nographic", "-no-reboot", "-nic", "none"])
            .args(["-append", &append])
            .arg("-kernel")
            .arg(&self.kernel)
            .arg("-initrd")
            .arg(self.initramfs())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn initramfs(&self) -> PathBuf {
        let root = self.work.join("root");
        let _ = fs::remove_dir_all(&root);
        for dir in ["bin", "lib", "proc", "sys", "dev", "run", "tmp"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        symlink("lib", root.join("lib64")).unwrap();
        fs::copy(&self.busybox, root.join("bin/busybox")).unwrap();
        symlink("busybox", root.join("bin/sh")).unwrap();
        fs::write(root.join("init"), INIT).unwrap();
        fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::copy(&self.program, root.join("guest")).unwrap();
        for (name, library) in self.shared_libraries() {
            fs::copy(library, root.join("lib").join(name)).unwrap();
        }
        let pack = "find . | cpio --quiet -o -H newc > ../initramfs";
        assert!(succeeds(Command::new("sh").args(["-c", pack]).current_dir(&root)));
        self.work.join("initramfs")
    }

    /// What the program needs, and what that needs, its loader among it. Not by ldd, which runs the
    /// program.
    fn shared_libraries(&self) -> BTreeMap<String, PathBuf> {
        let mut found = BTreeMap::new();
        let mut unread = vec![self.program.clone()];
        while let Some(file) = unread.pop() {
            for name in needed(&file) {
                let mut places = self.libraries.iter().map(|directory| directory.join(&name));
                let place = places.find(|place| place.exists());
                let place = place.unwrap_or_else(|| panic!("{} needs {name}", file.display()));
                if found.insert(name, place.clone()).is_none() {
                    unread.push(place);
                }
            }
        }
        found
    }
}

/// The names of the libraries that a program or library was linked with.
fn needed(file: &Path) -> Vec<String> {
    let read = Command::new("readelf").args(["--dynamic", "--wide"]).arg(file).output().unwrap();
    let read = String::from_utf8(read.stdout).unwrap();
    let needed = read.lines().filter(|line| line.contains("(NEEDED)"));
    needed.map(|line| line.split(['[', ']']).nth(1).unwrap().to_owned()).collect()
}

/// The kernel's image among the files of its package.
pub(crate) fn image(root: &Path) -> Option<PathBuf> {
    let images = fs::read_dir(root.join("boot")).ok()?.flatten().map(|entry| entry.path());
    images.into_iter().find(|path| path.to_string_lossy().contains("/vmlinuz-6.1."))
}

pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
