//! A device of the guide: a network namespace, and a file system of its own over that of the machine.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use wakeai_tests::bss::Bss;
use wakeai_tests::{must, wait_for};

/// Stands for systemd.
const SYSTEMCTL: &str = include_str!("systemctl");

/// Makes the file system in a mount namespace, and keeps both. What a device writes goes into memory. Leases, locks and
/// sockets are the machine's, because the kernel is.
const KEEP: &str = r#"
set -eu
mkdir -p /run/wakeai
mount -t tmpfs device "$1"
cd "$1"
mkdir upper work root
mount -t overlay device -o lowerdir=/,upperdir=upper,workdir=work root
for shared in proc sys dev; do mount --rbind /$shared root/$shared; done
mount -t tmpfs -o mode=755 device root/run
mkdir root/run/wakeai root/run/netns
mount --bind /run/wakeai root/run/wakeai
mount --rbind /run/netns root/run/netns
mount -t tmpfs device root/tmp
cd root
# Only a process that is in the device says so: files are written through its root.
exec chroot . sh -c 'echo ready; exec sleep infinity'
"#;

/// A running device, which is gone with this.
pub(crate) struct Device {
    keeper: Child,
    namespace: String,
    _mount_point: tempfile::TempDir,
}

impl Device {
    /// Starts the device of a station.
    pub(crate) fn start(bss: &Bss, station: &str) -> Self {
        let mount_point = tempfile::tempdir().unwrap();
        let namespace = bss.name(station);
        let mut keeper = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "nsenter", &format!("--net=/run/netns/{namespace}")])
            .args(["unshare", "--mount", "--propagation", "private", "sh", "-c", KEEP, "sh"])
            .arg(mount_point.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "ready\n", "the file system of {station} is not made");
        let device = Self { keeper, namespace, _mount_point: mount_point };
        wakeai_tests::write_program(&device.outside("/usr/local/bin/systemctl"), SYSTEMCTL);
        device
    }

    /// The machine's path of a file of the device.
    fn outside(&self, path: &str) -> PathBuf {
        Path::new(&format!("/proc/{}/root", self.keeper.id())).join(path.trim_start_matches('/'))
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.outside(path)).unwrap_or_default()
    }

    pub(crate) fn write(&self, path: &str, content: &[u8], mode: u32) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.outside(path);
        fs::write(&path, content).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Runs commands in root's home.
    pub(crate) fn run(&self, commands: &str) -> Output {
        let keeper = self.keeper.id();
        Command::new("nsenter")
            .args(["--target", &keeper.to_string(), "--mount", "--net"])
            .args(["chroot", &format!("/proc/{keeper}/root")])
            .args([
                "timeout",
                "--foreground",
                "120",
                "sh",
                "-euc",
                &format!("cd /root\n{commands}"),
            ])
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", "/root")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // Only processes of this device are in its network namespace.
        let pids = must("ip", &format!("netns pids {}", self.namespace));
        let pids: Vec<_> = pids.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        for pid in &pids {
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL); // it may have ended by itself
        }
        let _ = self.keeper.wait();
        wait_for("the device is gone", || {
            must("ip", &format!("netns pids {}", self.namespace)).trim().is_empty().then_some(())
        });
    }
}
