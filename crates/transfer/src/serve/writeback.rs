//! Has the kernel write a file to the disk before a sync waits for it.

use std::fs::File;
use std::os::fd::AsRawFd as _;

use nix::libc;

/// Starts to write the file's bytes from the offset `from` on to the disk, and returns before they are there. The kernel
/// may wait until the disk has room for requests. It reports no error here: the next sync does.
#[allow(unsafe_code, reason = "no crate at hand wraps sync_file_range")]
pub(crate) fn start_writeback(file: &File, from: u64) {
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    // A length of zero stands for all bytes up to the end of the file.
    // SAFETY: The call reads and writes no memory of this process. The file is open.
    unsafe { libc::sync_file_range(file.as_raw_fd(), from, 0, libc::SYNC_FILE_RANGE_WRITE) };
}
