//! Before every command: what a dead one left behind is removed.

use nix::unistd::geteuid;

use crate::failure::note;

/// Removes it and says what it was. Without root there is nothing that could be removed.
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
