//! Finds control groups of version 2. Nothing here changes them.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::statfs::statfs;

/// A control group could not be found.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// The machine has control groups of version 1 only, or none at all.
    #[error(
        "no cgroup v2 is mounted here; boot with systemd.unified_cgroup_hierarchy=1, or `mount -t cgroup2 \
         none /sys/fs/cgroup/unified`. `ip netns exec` hides it: run this command without that, because a \
         cgroup may have connections in all network namespaces"
    )]
    NoHierarchy,
    /// There is no such directory.
    #[error("found {0:?}, expected a directory below {1}")]
    None(PathBuf, PathBuf),
    /// The cgroup is the root, which holds the whole machine.
    #[error(
        "{0} is the root cgroup, which holds the whole machine; without --cgroup the whole network \
         namespace is covered"
    )]
    Root(PathBuf),
    /// systemd does not run here.
    #[error("cannot ask systemd for the unit {unit}: {reason}; name its cgroup with --cgroup")]
    NoSystemd {
        /// The unit.
        unit: String,
        /// The reason.
        reason: String,
    },
    /// systemd does not know the name, or the name is a pattern or empty.
    #[error("found the unit {unit:?}, expected the name of one unit{}", after(reason))]
    NoUnit {
        /// The unit.
        unit: String,
        /// systemd's message, which may be empty.
        reason: String,
    },
    /// The unit has no processes.
    #[error("the unit {0} has no cgroup: it does not exist or does not run")]
    NotRunning(String),
    /// The directory of the cgroup could not be opened.
    #[error("cannot open the cgroup {path}: {source}")]
    Io {
        /// The path of the directory.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

impl CgroupError {
    /// Whether the machine has no cgroup v2 or no systemd.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::NoHierarchy | Self::NoSystemd { .. })
    }

    /// Whether the given name is wrong.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::None(..) | Self::Root(_) | Self::NoUnit { .. } | Self::NotRunning(_))
    }
}

fn after(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

/// A control group of version 2.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    directory: File,
}

impl Cgroup {
    /// The cgroup at `path`: a directory, or a place in the hierarchy such as
    /// `/system.slice/x.service`.
    ///
    /// # Errors
    ///
    /// Where no cgroup is at `path`, or where the cgroup is the root.
    pub fn find(path: &Path) -> Result<Self, CgroupError> {
        let root = hierarchy(&read_mounts())?;
        let inside = path.components().filter(|part| *part != Component::RootDir);
        let candidates = [path.to_owned(), root.join(inside.collect::<PathBuf>())];
        let found = candidates.into_iter().find(|path| path.is_dir() && is_cgroup2(path));
        let path = found.ok_or_else(|| CgroupError::None(path.to_owned(), root))?;
        // Every cgroup but the root has the file `cgroup.type`.
        if !path.join("cgroup.type").exists() {
            return Err(CgroupError::Root(path));
        }
        let directory =
            File::open(&path).map_err(|source| CgroupError::Io { path: path.clone(), source })?;
        Ok(Self { path, directory })
    }

    /// The cgroup of the systemd unit `unit`.
    ///
    /// # Errors
    ///
    /// Where systemd does not run, or the unit does not run.
    pub fn of_unit(unit: &str) -> Result<Self, CgroupError> {
        hierarchy(&read_mounts())?;
        // systemctl(1) takes patterns, and would answer for every unit that matches.
        if unit.is_empty() || unit.contains(['*', '?', '[']) {
            return Err(CgroupError::NoUnit { unit: unit.to_owned(), reason: String::new() });
        }
        let without = |reason: String| CgroupError::NoSystemd { unit: unit.to_owned(), reason };
        let asked = Command::new("systemctl")
            .args(["show", "--property=ControlGroup", "--value", "--", unit])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| without(format!("systemctl: {error}")))?;
        if !asked.status.success() {
            let reason = String::from_utf8_lossy(&asked.stderr).trim().to_owned();
            // This directory exists where systemd runs (sd_booted(3)).
            return Err(if Path::new("/run/systemd/system").is_dir() {
                CgroupError::NoUnit { unit: unit.to_owned(), reason }
            } else {
                without(reason)
            });
        }
        match String::from_utf8_lossy(&asked.stdout).trim() {
            "" => Err(CgroupError::NotRunning(unit.to_owned())),
            path => Self::find(Path::new(path)),
        }
    }

    /// The cgroup that has replaced this one at the same path, as happens when a unit is restarted.
    /// `None` while this cgroup is still there, and while the path has no cgroup.
    pub fn successor(&self) -> Option<Self> {
        if self.is_there() { None } else { Self::find(&self.path).ok() }
    }

    /// Whether this cgroup is still at its path. The kernel removes nothing of one that is.
    pub fn is_there(&self) -> bool {
        let inode = |metadata: fs::Metadata| metadata.ino();
        let own = self.directory.metadata().ok().map(inode);
        own.is_some() && fs::metadata(&self.path).ok().map(inode) == own
    }

    /// The directory of the cgroup.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Opens the root of the hierarchy of version 2, as the calling thread sees it. In a container this may be the
/// container's own control group.
///
/// # Errors
///
/// Where there is no such hierarchy, or it cannot be opened.
pub fn cgroup_root() -> Result<File, CgroupError> {
    let path = hierarchy(&fs::read_to_string("/proc/thread-self/mounts").unwrap_or_default())?;
    File::open(&path).map_err(|source| CgroupError::Io { path, source })
}

impl AsFd for Cgroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

fn is_cgroup2(path: &Path) -> bool {
    // CGROUP2_SUPER_MAGIC of <linux/magic.h>
    statfs(path).is_ok_and(|stat| stat.filesystem_type().0 == 0x6367_7270)
}

fn read_mounts() -> String {
    fs::read_to_string("/proc/self/mounts").unwrap_or_default()
}

/// Where the hierarchy of version 2 is mounted, by the text of `/proc/self/mounts`.
fn hierarchy(mounts: &str) -> Result<PathBuf, CgroupError> {
    let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let found = mounts.find(|fields| fields.get(2) == Some(&"cgroup2"));
    found.map(|fields| PathBuf::from(fields[1])).ok_or(CgroupError::NoHierarchy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_is_found_and_its_absence_is_an_error() {
        let v1 = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n";
        let both = format!("{v1}none /sys/fs/cgroup/unified cgroup2 rw 0 0\n");
        assert_eq!(hierarchy(&both).unwrap(), Path::new("/sys/fs/cgroup/unified"));
        let error = hierarchy(v1).unwrap_err();
        assert!(error.is_missing() && !error.is_usage());
    }

    #[test]
    fn a_directory_elsewhere_is_no_cgroup() {
        match Cgroup::find(Path::new("/tmp")) {
            Err(error) => assert!(error.is_usage() || error.is_missing(), "{error}"),
            Ok(found) => panic!("{}", found.path().display()),
        }
    }
}
