//! Lease files: the next command of root obeys what they say.

use wakeai_host::Holder;

/// A lease is read as it was written, and every change in it can be named in the log.
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
