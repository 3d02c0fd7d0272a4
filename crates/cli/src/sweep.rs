//! Before every command: the changes of processes that died are undone.

use nix::unistd::geteuid;

use crate::failure::note;

/// Undoes the changes and reports them. Without root nothing can be undone.
pub(crate) fn before_anything_else() {
    if !geteuid().is_root() {
        return;
    }
    let (removed, errors) = wakeai_host::sweep(&wakeai_kernel::Undo);
    for removed in removed {
        note(format_args!("removed {removed}"));
    }
    for error in errors {
        note(format_args!("warning: left over from a dead process: {error}"));
    }
}
