//! An emulated machine.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::initramfs::{Task, pack};

/// A machine that runs one task and ends.
#[derive(Debug)]
pub struct Machine {
    /// The emulator and what it emulates.
    pub qemu: &'static [&'static str],
    /// The kernel's name for the serial line.
    pub console: &'static str,
    /// After which it is given up.
    pub patience_s: u32,
    /// The kernel's image.
    pub kernel: PathBuf,
    /// Modules to load, and their order, where there are any.
    pub modules: Option<PathBuf>,
    /// Linked statically.
    pub busybox: PathBuf,
    /// Where the programs' shared libraries are.
    pub libraries: Vec<PathBuf>,
    /// Whether this machine's strip(1) knows its programs.
    pub strips: bool,
    /// A directory to write to.
    pub work: PathBuf,
    /// Holds the directory for one process at a time.
    pub lock: Option<File>,
}

impl Machine {
    /// Boots it and gives back what it wrote to its console.
    pub fn boot(&self, task: &Task<'_>) -> String {
        let append =
            format!("console={} quiet panic=-1 mitigations=off preempt=full", self.console);
        let output = Command::new("timeout")
            .arg(self.patience_s.to_string())
            .args(self.qemu)
            .args(["-smp", "1", "-m", "1024", "-nographic", "-no-reboot", "-nic", "none"])
            .args(["-append", &append])
            .arg("-kernel")
            .arg(&self.kernel)
            .arg("-initrd")
            .arg(pack(self, task))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
