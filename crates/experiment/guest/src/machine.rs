//! An emulated machine, and the file system that it boots. The file system has busybox, and the
//! programs of a task with their libraries.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::succeeds;

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

/// A program of this machine, or one that was built for the guest.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program's path on this machine.
    pub from: PathBuf,
    /// The program's path in the guest.
    pub to: PathBuf,
}

impl Program {
    /// This machine's program `name`, which the guest has in `/usr/bin`.
    ///
    /// # Errors
    ///
    /// The reason to skip the test, where this machine does not have the program.
    pub fn tool(name: &str) -> Result<Self, String> {
        let from = crate::which(name).ok_or_else(|| format!("{name} is not installed"))?;
        Ok(Self { from, to: Path::new("/usr/bin").join(name) })
    }
}

/// A machine that runs one task and powers off.
#[derive(Debug)]
pub struct Machine {
    /// The first part of the emulator's command line: the program and the emulated machine.
    pub qemu: &'static [&'static str],
    /// The kernel's name of the serial port that is its console.
    pub console: &'static str,
    /// The time in seconds after which the emulator is ended.
    pub patience_s: u32,
    /// The kernel's image.
    pub kernel: PathBuf,
    /// The directory of the kernel modules to load, if there are any. Its file `order` lists their
    /// names, one per line, in the order of loading.
    pub modules: Option<PathBuf>,
    /// A busybox that is linked statically.
    pub busybox: PathBuf,
    /// The directories of the programs' shared libraries.
    pub libraries: Vec<PathBuf>,
    /// Whether this machine's strip(1) knows the guest's architecture.
    pub strips: bool,
    /// A directory for the archive of the guest's file system, and for the files in it.
    pub work: PathBuf,
    /// A lock that reserves [`Self::work`] for one process at a time.
    pub lock: Option<File>,
}

impl Machine {
    /// Boots the machine and returns the output on its console, which can be followed in the file `console` of
    /// [`Self::work`].
    pub fn boot(&self, task: &Task<'_>) -> String {
        let append =
            format!("console={} quiet panic=-1 mitigations=off preempt=full", self.console);
        let initramfs = self.pack(task);
        let console = self.work.join("console");
        let mut qemu = Command::new("timeout");
        qemu.arg(self.patience_s.to_string())
            .args(self.qemu)
            .args(["-smp", "1", "-m", "1024", "-nographic", "-no-reboot", "-nic", "none"])
            .args(["-append", &append])
            .arg("-kernel")
            .arg(&self.kernel)
            .arg("-initrd")
            .arg(initramfs)
            .stdin(Stdio::null())
            .stdout(File::create(&console).unwrap())
            .stderr(Stdio::null());
        let _ = qemu.status().unwrap(); // the task's own status is on the console
        String::from_utf8_lossy(&fs::read(&console).unwrap()).into_owned()
    }

    /// Packs the file system that the task runs in, and returns the path of the archive.
    fn pack(&self, task: &Task<'_>) -> PathBuf {
        let root = self.work.join("root");
        let _ = fs::remove_dir_all(&root);
        for dir in ["bin", "lib", "proc", "sys", "dev", "run", "tmp", "modules", "usr/bin"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        symlink("lib", root.join("lib64")).unwrap();
        fs::copy(&self.busybox, root.join("bin/busybox")).unwrap();
        let end = format!("{}\necho \"guest: status $?\"\npoweroff -f\n", task.command);
        fs::write(root.join("init"), format!("{INIT}{end}")).unwrap();
        fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755)).unwrap();
        let inside = |path: &Path| root.join(path.strip_prefix("/").unwrap());
        for program in &task.programs {
            let to = inside(&program.to);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(&program.from, &to).unwrap();
            if self.strips {
                let _ = Command::new("strip").arg(&to).output(); // a script has nothing to strip
            }
        }
        for (path, text) in &task.files {
            let path = inside(Path::new(path));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        for (name, library) in shared_libraries(self, &task.programs) {
            fs::copy(library, root.join("lib").join(name)).unwrap();
        }
        let modules = root.join("modules");
        fs::write(modules.join("order"), "").unwrap();
        for module in self.modules.iter().flat_map(|from| fs::read_dir(from).unwrap().flatten()) {
            fs::copy(module.path(), modules.join(module.file_name())).unwrap();
        }
        let pack = "find . | cpio --quiet -o -H newc > ../initramfs";
        assert!(succeeds(Command::new("sh").args(["-c", pack]).current_dir(&root)));
        self.work.join("initramfs")
    }
}

/// The shared libraries of the programs, the libraries that these need in turn, and their loader.
/// readelf(1) lists them; ldd(1) would run the programs.
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
