//! Moves off our algorithms the sockets and network namespaces that exist only because a file is
//! open. Such TCP sockets are not connected yet, or their peer has reset them and their owner has
//! not closed them. Such namespaces have neither a name nor a process. No iterator and no list of
//! sockets shows them, but each keeps its algorithm loaded.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use wakeai_host::{Namespace, NetnsId};

use super::PREFIX;
use super::vacate::{available, vacate_here};
use crate::bounded::Bounded;

/// Moves off our algorithms the sockets and namespaces that exist because of an open file. It
/// covers the open files of all processes that this process may inspect.
pub(super) fn give_back() {
    let mut seen = Seen {
        namespaces: Namespace::all().iter().map(Namespace::id).collect(),
        sockets: HashSet::new(),
    };
    for process in numbered("/proc") {
        for file in numbered(Path::new("/proc").join(process.to_string()).join("fd")) {
            seen.look_at(process, file);
        }
    }
}

struct Seen {
    namespaces: HashSet<NetnsId>,
    /// The targets of the links in `/proc/PID/fd` that were handled. They contain the sockets'
    /// inodes.
    sockets: HashSet<PathBuf>,
}

impl Seen {
    /// Handles an open file. A file that was closed meanwhile, or that this process may not open,
    /// is ignored.
    fn look_at(&mut self, process: RawFd, file: RawFd) {
        let path = format!("/proc/{process}/fd/{file}");
        let Ok(link) = fs::read_link(&path) else { return };
        let text = link.as_os_str().as_encoded_bytes();
        if text.starts_with(b"net:[") {
            self.vacate(File::open(path));
        } else if text == b"/dev/net/tun" {
            self.vacate(take(process, file).and_then(|tun| namespace_of(&tun, TUNGETDEVNETNS)));
        } else if text.starts_with(b"socket:[") && self.sockets.insert(link) {
            let Ok(socket) = take(process, file) else { return };
            leave(&socket);
            self.vacate(namespace_of(&socket, SIOCGSKNS));
        }
    }

    fn vacate(&mut self, namespace: io::Result<File>) {
        let Ok(namespace) = namespace.and_then(Namespace::from_file) else { return };
        if self.namespaces.insert(namespace.id())
            && let Err(error) = namespace.run(vacate_here)
        {
            tracing::debug!(%error, "a namespace that an open file keeps stays as it is");
        }
    }
}

/// Moves a TCP socket from one of our algorithms to the kernel's own.
fn leave(socket: &OwnedFd) {
    let Ok(found) = getsockopt(socket, sockopt::TcpCongestion) else { return };
    let found = found.to_string_lossy();
    let found = found.trim_end_matches('\0');
    let Some(ours) = Bounded::named(found) else { return };
    debug_assert!(found.starts_with(PREFIX));
    let plain = OsString::from(available(ours.plain));
    if let Err(error) = setsockopt(socket, sockopt::TcpCongestion, &plain) {
        tracing::debug!(%error, "a socket that an open file keeps stays on {found}");
    }
}

/// The entries of a directory that are numbers.
fn numbered(directory: impl AsRef<Path>) -> Vec<RawFd> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Duplicates an open file of another process into this one (`pidfd_getfd`, Linux 5.6).
fn take(process: RawFd, file: RawFd) -> io::Result<OwnedFd> {
    let process = Pid::from_raw(process).ok_or(io::ErrorKind::InvalidInput)?;
    let process = pidfd_open(process, PidfdFlags::empty())?;
    Ok(pidfd_getfd(process, file, PidfdGetfdFlags::empty())?)
}

/// The requests for the network namespace of a socket (`<linux/sockios.h>`) and of a TUN
/// (`<linux/if_tun.h>`).
const SIOCGSKNS: libc::c_ulong = 0x894C;
const TUNGETDEVNETNS: libc::c_ulong = 0x54E3;

fn namespace_of(file: &OwnedFd, request: libc::c_ulong) -> io::Result<File> {
    // The type of `request` depends on the C library.
    #[allow(unsafe_code, reason = "no crate at hand wraps them")]
    // SAFETY: both requests take no argument and give a new file descriptor, which nothing else owns.
    unsafe {
        Ok(File::from_raw_fd(Errno::result(libc::ioctl(file.as_raw_fd(), request as _))?))
    }
}
