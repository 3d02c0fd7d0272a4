//! The file of an upload's bytes: writes them past the page cache, and syncs.
//!
//! A whole block goes from this process's memory to the disk, past the page cache (`O_DIRECT` of open(2)). For many large
//! uploads the copy into new pages of that cache would take most of the processor's time. Other bytes go through the page
//! cache: those before the first whole block and after the last one, and all of them on file systems without `O_DIRECT`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::block::ALIGNMENT;

/// The file of an upload's bytes. One thread at a time writes to it.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) file: File,
    /// Whether the file has `O_DIRECT` now.
    is_direct: AtomicBool,
    /// Whether the file system has not refused `O_DIRECT` so far.
    may_be_direct: AtomicBool,
}

impl Data {
    /// A file that was opened for writing, without `O_DIRECT`.
    pub(crate) fn new(file: File) -> Self {
        Self { file, is_direct: AtomicBool::new(false), may_be_direct: AtomicBool::new(true) }
    }

    /// Writes all bytes at an offset. Returns how many bytes were written, and the error that stopped the writing.
    pub(crate) fn write(&self, bytes: &[u8], offset: u64) -> (usize, io::Result<()>) {
        let mut count = 0;
        while count < bytes.len() {
            let (rest, at) = (&bytes[count..], offset + count as u64);
            match self.write_some(rest, at) {
                Ok(0) => return (count, Err(io::ErrorKind::WriteZero.into())),
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (count, Err(error)),
            }
        }
        (count, Ok(()))
    }

    fn write_some(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if self.may_be_direct.load(Ordering::Relaxed) && is_aligned(bytes, offset) {
            let written = self.set_direct(true).and_then(|()| self.file.write_at(bytes, offset));
            // Some file systems refuse the flag, and some only the write.
            let is_refused = |error: &io::Error| error.raw_os_error() == Some(Errno::EINVAL as i32);
            match written {
                Err(error) if is_refused(&error) => {
                    self.may_be_direct.store(false, Ordering::Relaxed);
                }
                written => return written,
            }
        }
        self.set_direct(false)?;
        self.file.write_at(bytes, offset)
    }

    fn set_direct(&self, is_direct: bool) -> io::Result<()> {
        if self.is_direct.load(Ordering::Relaxed) == is_direct {
            return Ok(());
        }
        let flags = if is_direct { OFlag::O_DIRECT } else { OFlag::empty() };
        fcntl(&self.file, FcntlArg::F_SETFL(flags))?;
        self.is_direct.store(is_direct, Ordering::Relaxed);
        Ok(())
    }
}

/// Whether `O_DIRECT` takes these bytes: their address, number and offset are multiples of [`ALIGNMENT`].
fn is_aligned(bytes: &[u8], offset: u64) -> bool {
    bytes.as_ptr().addr().is_multiple_of(ALIGNMENT)
        && bytes.len().is_multiple_of(ALIGNMENT)
        && offset.is_multiple_of(ALIGNMENT as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a file in blocks of several lengths, of which some are aligned, and reads it.
    fn written(directory: &std::path::Path) {
        let file = tempfile::tempfile_in(directory).unwrap();
        let data = Data::new(file.try_clone().unwrap());
        let expected: Vec<u8> = (0..400_000_usize).map(|at| (at ^ (at >> 8)) as u8).collect();
        let mut memory = vec![0; expected.len() + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        let mut offset = 0;
        for length in [100, 3996, 8192, 4096, 65_536, 1, 4095, 131_072, 182_912] {
            let block = &mut memory[start..][..length];
            block.copy_from_slice(&expected[offset..][..length]);
            let (count, outcome) = data.write(block, offset as u64);
            outcome.unwrap();
            assert_eq!(count, length);
            let takes_part = data.may_be_direct.load(Ordering::Relaxed);
            let is_whole = offset % ALIGNMENT == 0 && length % ALIGNMENT == 0;
            assert_eq!(data.is_direct.load(Ordering::Relaxed), takes_part && is_whole, "{length}");
            offset += length;
        }
        data.file.sync_data().unwrap();
        let mut found = vec![0; expected.len()];
        file.read_exact_at(&mut found, 0).unwrap();
        assert_eq!((offset, found == expected), (expected.len(), true));
        assert_eq!(file.metadata().unwrap().len(), expected.len() as u64);
    }

    #[test]
    fn bytes_past_the_page_cache_and_through_it_make_one_file() {
        written(&std::env::temp_dir());
        written(std::path::Path::new("/dev/shm"));
    }

    #[test]
    fn a_file_that_refuses_to_bypass_the_cache_is_written_all_the_same() {
        let file = std::fs::OpenOptions::new().write(true).open("/dev/null").unwrap();
        let data = Data::new(file);
        let memory = vec![0; 3 * ALIGNMENT];
        let block = &memory[memory.as_ptr().align_offset(ALIGNMENT)..][..ALIGNMENT];
        assert!(data.may_be_direct.load(Ordering::Relaxed));
        data.write(block, 0).1.unwrap();
        assert!(!data.may_be_direct.load(Ordering::Relaxed));
    }
}
