//! Fuzzes the reader of leases: files that list a process's changes on the host. If the process
//! died, the next command of root undoes these changes.

use wakeai_host::Holder;

/// A lease that is read is the same after it was written and read back, and each of its changes has
/// a text for the log.
pub(crate) fn target(bytes: &[u8]) {
    let Ok(holder) = Holder::parse(bytes) else { return };
    let written = serde_json::to_vec(&holder).expect("what was read can be written");
    let again = Holder::parse(&written).expect("what was written can be read");
    assert_eq!(again.changes, holder.changes);
    assert_eq!((again.process, again.role), (holder.process, holder.role));
    for change in &holder.changes {
        assert!(!change.to_string().is_empty());
    }
}
