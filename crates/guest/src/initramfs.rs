//! The file system that a guest runs in: a program, what it needs, and a busybox.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine::Machine;
use crate::succeeds;

/// The guest's first program. Programs of the task come before busybox's.
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

/// What a guest does.
#[derive(Debug)]
pub struct Task<'a> {
    /// The command that it runs, for a shell.
    pub command: &'a str,
    /// The programs that are there beside busybox's.
    pub programs: Vec<Program>,
    /// Files that are there: the path inside, and what is in it.
    pub files: Vec<(String, String)>,
}

/// A program of this machine, or one that was built for the guest.
#[derive(Clone, Debug)]
pub struct Program {
    /// Where it is.
    pub from: PathBuf,
    /// Its path in the guest.
    pub to: PathBuf,
}

impl Program {
    /// This machine's program of that name; in the guest it is found by its name.
    ///
    /// # Errors
    ///
    /// The reason to skip, where this machine has none.
    pub fn tool(name: &str) -> Result<Self, String> {
        let from = crate::which(name).ok_or_else(|| format!("{name} is not installed"))?;
        Ok(Self { from, to: Path::new("/usr/bin").join(name) })
    }
}

/// Packs it, and gives back where it is.
pub(crate) fn pack(machine: &Machine, task: &Task<'_>) -> PathBuf {
    let root = machine.work.join("root");
    let _ = fs::remove_dir_all(&root);
    for dir in ["bin", "lib", "proc", "sys", "dev", "run", "tmp", "modules", "usr/bin"] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    symlink("lib", root.join("lib64")).unwrap();
    fs::copy(&machine.busybox, root.join("bin/busybox")).unwrap();
    write_init(&root, task.command);
    let inside = |path: &Path| root.join(path.strip_prefix("/").unwrap());
    for program in &task.programs {
        let to = inside(&program.to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(&program.from, &to).unwrap();
        if machine.strips {
            let _ = Command::new("strip").arg(&to).output(); // a script has nothing to strip
        }
    }
    for (path, text) in &task.files {
        let path = inside(Path::new(path));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    for (name, library) in shared_libraries(machine, &task.programs) {
        fs::copy(library, root.join("lib").join(name)).unwrap();
    }
    copy_modules(machine, &root.join("modules"));
    let pack = "find . | cpio --quiet -o -H newc > ../initramfs";
    assert!(succeeds(Command::new("sh").args(["-c", pack]).current_dir(&root)));
    machine.work.join("initramfs")
}

fn write_init(root: &Path, command: &str) {
    let end = format!("{command}\necho \"guest: status $?\"\npoweroff -f\n");
    fs::write(root.join("init"), format!("{INIT}{end}")).unwrap();
    fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755)).unwrap();
}

fn copy_modules(machine: &Machine, to: &Path) {
    fs::write(to.join("order"), "").unwrap();
    for module in machine.modules.iter().flat_map(|from| fs::read_dir(from).unwrap().flatten()) {
        fs::copy(module.path(), to.join(module.file_name())).unwrap();
    }
}

/// What the programs need, and what that needs, their loader among it. Not by ldd, which runs them.
fn shared_libraries(machine: &Machine, programs: &[Program]) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut unread: Vec<_> = programs.iter().map(|program| program.from.clone()).collect();
    while let Some(file) = unread.pop() {
        for name in needed(&file) {
            let mut places = machine.libraries.iter().map(|directory| directory.join(&name));
            let place = places.find(|place| place.exists());
            let place = place.unwrap_or_else(|| panic!("{} needs {name}", file.display()));
            if found.insert(name, place.clone()).is_none() {
                unread.push(place);
            }
        }
    }
    found
}

/// The names of the libraries that a program or library was linked with.
fn needed(file: &Path) -> Vec<String> {
    let read = Command::new("readelf").args(["--dynamic", "--wide"]).arg(file).output().unwrap();
    let read = String::from_utf8(read.stdout).unwrap();
    let needed = read.lines().filter(|line| line.contains("(NEEDED)"));
    needed.map(|line| line.split(['[', ']']).nth(1).unwrap().to_owned()).collect()
}
