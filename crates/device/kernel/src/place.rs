//! The paths of the shared files: the lock, the bpffs and the pins on it.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::Flock;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

use crate::mounts;

const BPFFS: &str = "/sys/fs/bpf";

/// A file that exists while Wakeai has mounted the bpffs and so has to unmount it. It contains the mount namespace of
/// the mount, because a process in another namespace does not see the mount.
fn mounted_by_us() -> PathBuf {
    wakeai_host::state().join("bpffs-mounted")
}

/// The inode of the mount namespace in which Wakeai has mounted the bpffs, where it has.
fn noted_mount() -> Option<u64> {
    fs::read_to_string(mounted_by_us()).ok()?.parse().ok()
}

/// The machine's bpffs, kept open by a process whose mount namespace does not have it. Opening it again needs
/// privileges that an agent drops.
static KEPT: Mutex<Option<File>> = Mutex::new(None);

fn kept() -> MutexGuard<'static, Option<File>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The path by which this thread reaches the bpffs.
fn bpffs() -> PathBuf {
    match &*kept() {
        Some(directory) => format!("/proc/self/fd/{}", directory.as_raw_fd()).into(),
        None => BPFFS.into(),
    }
}

/// The directory of the pins.
pub(crate) fn pins() -> PathBuf {
    bpffs().join("wakeai")
}

/// The pin of one map or link.
pub(crate) fn pin(name: &str) -> PathBuf {
    pins().join(name)
}

/// Runs `work` in the machine's own mount namespace.
///
/// `ip netns exec` gives its command a private `/sys`, and no other process sees a bpffs that is mounted
/// there: agents that are started in that way would not find each other.
pub(crate) fn in_machine_mounts<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let Some(machine) = mounts::of_the_machine(noted_mount()) else { return work() };
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| {
            let moved = unshare(CloneFlags::CLONE_FS)
                .and_then(|()| setns(machine, CloneFlags::CLONE_NEWNS));
            if let Err(errno) = moved {
                // Without the privilege `work` uses the present mounts, and reports what is missing.
                tracing::debug!(%errno, "staying in this process's mount namespace");
            }
            work()
        });
        inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Keeps the bpffs open in a process whose mount namespace does not have it.
pub(crate) fn keep() {
    let mut kept = kept();
    if kept.is_none() && mounts::is_elsewhere() {
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        *kept = File::options().read(true).custom_flags(flags).open(BPFFS).ok();
    }
}

/// Whether this process is in the initial PID namespace, and so sees all processes.
pub(crate) fn in_first_pid_namespace() -> bool {
    match fs::metadata("/proc/self/ns/pid") {
        Ok(namespace) => namespace.ino() == 0xEFFF_FFFC, // PROC_PID_INIT_INO of <linux/proc_ns.h>
        // A kernel without PID namespaces, such as Android's, has only this one.
        Err(_) => fs::exists("/proc/self/ns/net").unwrap_or(false),
    }
}

/// Locks loading and unloading; dropping the returned value releases the lock.
pub(crate) fn lock() -> io::Result<Flock<File>> {
    wakeai_host::state_directory()?;
    Ok(wakeai_host::lock(&wakeai_host::state().join("kernel.lock"))?)
}

/// Whether a bpffs is mounted at its path.
pub(crate) fn has_bpffs() -> bool {
    // BPF_FS_MAGIC of <linux/magic.h>
    nix::sys::statfs::statfs(&bpffs()).is_ok_and(|stat| stat.filesystem_type().0 == 0xcafe_4a11)
}

/// Mounts the bpffs if it is not mounted, and makes the directory of the pins.
pub(crate) fn prepare() -> io::Result<()> {
    if !has_bpffs() {
        // The file comes first: a process that dies in between leaves a file without a mount, which is
        // harmless. A mount without the file would never be removed.
        fs::write(mounted_by_us(), mounts::here().unwrap_or_default().to_string())?;
        mount(Some("bpf"), BPFFS, Some("bpf"), MsFlags::empty(), None::<&str>)?;
    }
    Ok(wakeai_host::private_directory(&pins(), 0o755)?)
}

/// Checks that the directory of the pins, where there is one, belongs to this user. In a bpffs every user may make
/// directories, and the owner of a directory can replace its contents.
pub(crate) fn check_pins() -> io::Result<()> {
    if pins().is_dir() { Ok(wakeai_host::private_directory(&pins(), 0o755)?) } else { Ok(()) }
}

/// Removes every pin but the one named `kept`; returns `false` where there was none.
pub(crate) fn clear_but(kept: &str) -> io::Result<bool> {
    let mut found = false;
    for entry in fs::read_dir(pins()).into_iter().flatten() {
        let entry = entry?;
        if entry.file_name() != kept {
            fs::remove_file(entry.path())?;
            found = true;
        }
    }
    Ok(found)
}

/// Removes every pin, and unmounts the bpffs if Wakeai mounted it and no other program uses it. Returns
/// `false` where there was nothing to remove.
pub(crate) fn clear() -> io::Result<bool> {
    let mut found = false;
    if has_bpffs() {
        found |= clear_but("")?;
        match fs::remove_dir(pins()) {
            Ok(()) => found = true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let noted = fs::read_to_string(mounted_by_us()).ok();
    if noted.as_deref() == Some("") {
        // A process that died before it wrote into the file had mounted nothing yet.
        fs::remove_file(mounted_by_us())?;
    } else if noted.is_some_and(|inode| inode.parse().ok() == mounts::here()) {
        if has_bpffs() {
            if is_used_by_others()? {
                return Ok(found);
            }
            drop(kept().take()); // an open directory would keep it busy
            if let Err(errno) = unmount() {
                // Busy, or the process has dropped the privilege: the file stays for the next process.
                tracing::warn!(%errno, "{BPFFS} stays mounted");
                return Ok(found);
            }
            found = true;
        }
        fs::remove_file(mounted_by_us())?;
    }
    Ok(found)
}

/// Unmounts the bpffs. Where it is busy, waits up to a second: the serving process of an agent whose other
/// process was killed has it open, and ends a moment later.
fn unmount() -> nix::Result<()> {
    for _ in 0..20 {
        match umount2(BPFFS, MntFlags::empty()) {
            Err(Errno::EBUSY) => std::thread::sleep(Duration::from_millis(50)),
            done => return done,
        }
    }
    umount2(BPFFS, MntFlags::empty())
}

/// Whether another program has pins on the bpffs. A new one contains two files of the kernel.
fn is_used_by_others() -> io::Result<bool> {
    for entry in fs::read_dir(bpffs())? {
        let name = entry?.file_name();
        if name != "maps.debug" && name != "progs.debug" {
            return Ok(true);
        }
    }
    Ok(false)
}
