//! The machine's mount namespace, and whether this process is in another one.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

/// The machine's mount namespace, if the calling thread is in another one: the namespace of the first
/// process or, where this process may not read it, of its oldest ancestor.
pub(crate) fn of_the_machine() -> Option<File> {
    let path = |pid: u32| format!("/proc/{pid}/ns/mnt");
    let mut ancestors_first = std::iter::once(1).chain(ancestors().into_iter().rev());
    let machine = ancestors_first.find_map(|pid| File::open(path(pid)).ok())?;
    let is_here = machine.metadata().ok()?.ino() == here()?;
    (!is_here).then_some(machine)
}

/// The inode of the calling thread's mount namespace.
pub(crate) fn here() -> Option<u64> {
    inode("/proc/thread-self/ns/mnt")
}

/// Whether the calling thread has left the mount namespace of its process.
pub(crate) fn is_elsewhere() -> bool {
    here() != inode("/proc/self/ns/mnt")
}

fn inode(path: &str) -> Option<u64> {
    fs::metadata(path).map(|metadata| metadata.ino()).ok()
}

/// The parent, its parent, and so on, as far as this PID namespace goes.
fn ancestors() -> Vec<u32> {
    std::iter::successors(parent(std::process::id()), |pid| parent(*pid)).collect()
}

fn parent(pid: u32) -> Option<u32> {
    parent_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The fourth field of proc(5)'s `stat`. The second field, a name in parentheses, may contain any character.
fn parent_in(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok().filter(|pid| *pid != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_hide_the_parent() {
        assert_eq!(parent_in("7 (a) S 9 (b) R 4 7 7 0"), Some(4));
        assert_eq!(parent_in("1 (init) S 0 1 1 0"), None);
        assert_eq!(parent_in(""), None);
    }

    #[test]
    fn the_ancestors_of_this_process_begin_with_its_parent() {
        assert_eq!(ancestors().first().copied(), Some(std::os::unix::process::parent_id()));
        assert!(!is_elsewhere());
    }
}
