//! Finds the processes that hold sockets, in `/proc`.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use wakeai_units::text::visible;

/// A process that holds a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// Its command (`/proc/PID/comm`).
    pub(crate) command: Arc<str>,
}

/// The holders of sockets, by the sockets' inodes.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    known: HashMap<u32, Process>,
    /// The inodes whose holder was not found: it belongs to another user, or the kernel itself holds the socket.
    unknown: HashSet<u32>,
}

impl Processes {
    /// Looks for the holders of these sockets. `/proc` is read only if one of them is new.
    pub(crate) fn refresh(&mut self, inodes: &HashSet<u32>) {
        self.known.retain(|inode, _| inodes.contains(inode));
        self.unknown.retain(|inode| inodes.contains(inode));
        let is_known = |inode| self.known.contains_key(inode) || self.unknown.contains(inode);
        if inodes.iter().all(is_known) {
            return;
        }
        self.known = holders(inodes);
        self.unknown =
            inodes.iter().copied().filter(|inode| !self.known.contains_key(inode)).collect();
    }

    /// The process that holds this socket.
    pub(crate) fn holder(&self, inode: u32) -> Option<&Process> {
        self.known.get(&inode)
    }
}

fn holders(inodes: &HashSet<u32>) -> HashMap<u32, Process> {
    let mut found = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // The process may end at any moment, and may belong to another user.
        let mut process: Option<Process> = None;
        for file in fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten() {
            let Some(inode) = fs::read_link(file.path()).ok().and_then(|link| socket(&link)) else {
                continue;
            };
            if inodes.contains(&inode) {
                let process = process.get_or_insert_with(|| describe(pid, &entry.path()));
                found.entry(inode).or_insert_with(|| process.clone());
            }
        }
    }
    found
}

fn describe(pid: u32, directory: &Path) -> Process {
    let command = fs::read(directory.join("comm")).unwrap_or_default();
    // A process chooses its name itself, from any bytes.
    Process { pid, command: visible(&String::from_utf8_lossy(&command)).into() }
}

/// The inode in the target of a link such as `socket:[12345]`.
fn socket(link: &Path) -> Option<u32> {
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn a_name_that_would_turn_the_screen_around_is_shown_without_that() {
        let directory = tempfile::tempdir().unwrap();
        for (name, shown) in [
            ("\u{202e}dhss\n".as_bytes(), "dhss"),
            (b"a\x1b[2J\n", "a[2J"),
            ("\u{2066}x\u{200b}y".as_bytes(), "xy"),
            (b"\xff\xfe!\n", "\u{fffd}\u{fffd}!"),
        ] {
            fs::write(directory.path().join("comm"), name).unwrap();
            assert_eq!(&*describe(1, directory.path()).command, shown);
        }
    }

    #[test]
    fn a_socket_of_this_process_is_found_and_forgotten_with_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&listener.as_fd()));
        let inode = socket(&fs::read_link(link).unwrap()).unwrap();
        let mut processes = Processes::default();
        processes.refresh(&HashSet::from([inode, u32::MAX]));
        assert_eq!(processes.holder(inode).unwrap().pid, std::process::id());
        assert_eq!(processes.holder(u32::MAX), None);
        processes.refresh(&HashSet::new());
        assert_eq!(processes.holder(inode), None);
    }
}
