//! The machine's mount namespace, and whether this process is in another one.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

/// The machine's mount namespace, if the calling thread is in another one: the namespace of the first process. Where
/// this process may not read that one, it is the namespace that the note of Wakeai's own mount names (its inode), and
/// without a note that of the oldest ancestor.
///
/// Ancestors alone do not lead there: a process whose parent has ended, such as a helper that has lost its connection, has
/// the first process as its only ancestor.
pub(crate) fn of_the_machine(noted: Option<u64>) -> Option<File> {
    let here = here()?;
    let open = |pid: u32| File::open(format!("/proc/{pid}/ns/mnt")).ok();
    let machine = open(1)
        .or_else(|| noted.filter(|noted| *noted != here).and_then(a_process_in).and_then(open))
        .or_else(|| {
            if noted == Some(here) { None } else { ancestors().into_iter().rev().find_map(open) }
        })?;
    let is_here = machine.metadata().ok()?.ino() == here;
    (!is_here).then_some(machine)
}

/// A process in the mount namespace with this inode.
fn a_process_in(namespace: u64) -> Option<u32> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.find(|pid: &u32| inode(&format!("/proc/{pid}/ns/mnt")) == Some(namespace))
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
    fn a_process_is_found_in_a_namespace_that_has_one() {
        let here = here().unwrap();
        let found = a_process_in(here).unwrap();
        assert_eq!(inode(&format!("/proc/{found}/ns/mnt")), Some(here));
        assert_eq!(a_process_in(0), None);
    }

    #[test]
    fn the_ancestors_of_this_process_begin_with_its_parent() {
        assert_eq!(ancestors().first().copied(), Some(std::os::unix::process::parent_id()));
        assert!(!is_elsewhere());
    }
}
