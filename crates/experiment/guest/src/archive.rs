//! Writes the guest's first file system: an archive in the format `newc` of cpio, which the kernel unpacks into memory
//! (the kernel's documentation, driver-api/early-userspace/buffer-format).
//!
//! Equal contents give equal bytes: the entries are sorted by path, their inodes are counted from 1, and all times and
//! owners are zero.

use std::collections::BTreeMap;
use std::io::{self, Write};

/// The type bits of a file's mode.
const DIRECTORY: u32 = 0o04_0000;
const FILE: u32 = 0o10_0000;
const LINK: u32 = 0o12_0000;

/// The name of the entry that ends an archive.
const TRAILER: &str = "TRAILER!!!";

/// What a path in the archive stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Directory,
    Link(String),
    File { permissions: u32, contents: Vec<u8> },
}

/// A file system in an archive. A directory is made with the first file in it.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    entries: BTreeMap<String, Entry>,
}

impl Archive {
    /// Adds an empty directory.
    pub fn directory(&mut self, path: &str) {
        self.add(path, Entry::Directory);
    }

    /// Adds a symbolic link to `target`.
    pub fn link(&mut self, path: &str, target: &str) {
        self.add(path, Entry::Link(target.to_owned()));
    }

    /// Adds a file that only its owner may write.
    pub fn file(&mut self, path: &str, contents: impl Into<Vec<u8>>) {
        self.add(path, Entry::File { permissions: 0o644, contents: contents.into() });
    }

    /// Adds a file that may be run.
    pub fn executable(&mut self, path: &str, contents: impl Into<Vec<u8>>) {
        self.add(path, Entry::File { permissions: 0o755, contents: contents.into() });
    }

    /// The number of bytes in all files.
    pub fn bytes(&self) -> u64 {
        let sizes = self.entries.values().map(|entry| match entry {
            Entry::File { contents, .. } => contents.len() as u64,
            Entry::Directory | Entry::Link(_) => 0,
        });
        sizes.sum()
    }

    fn add(&mut self, path: &str, entry: Entry) {
        let path = path.trim_start_matches('/');
        for (at, _) in path.match_indices('/') {
            self.entries.entry(path[..at].to_owned()).or_insert(Entry::Directory);
        }
        match (self.entries.get(path), &entry) {
            (Some(_), Entry::Directory) => {}
            _ => drop(self.entries.insert(path.to_owned(), entry)),
        }
    }

    /// Writes the archive and returns the digest of its bytes, BLAKE3 in hexadecimal.
    ///
    /// # Errors
    ///
    /// The writer's.
    pub fn write(&self, writer: &mut dyn Write) -> io::Result<String> {
        let mut hashed = Hashed { writer, hasher: blake3::Hasher::new() };
        for (inode, (path, entry)) in (1..).zip(&self.entries) {
            let (mode, contents) = match entry {
                Entry::Directory => (DIRECTORY | 0o755, &[] as &[u8]),
                Entry::Link(target) => (LINK | 0o777, target.as_bytes()),
                Entry::File { permissions, contents } => (FILE | permissions, contents.as_slice()),
            };
            write_entry(&mut hashed, inode, path, mode, contents)?;
        }
        write_entry(&mut hashed, 0, TRAILER, 0, &[])?;
        Ok(hashed.hasher.finalize().to_hex().to_string())
    }
}

fn write_entry(
    to: &mut dyn Write,
    inode: u32,
    path: &str,
    mode: u32,
    contents: &[u8],
) -> io::Result<()> {
    let size = u32::try_from(contents.len()).map_err(|_| {
        io::Error::new(io::ErrorKind::FileTooLarge, format!("{path} has 4 GB or more"))
    })?;
    let links = if mode & DIRECTORY == 0 { 1 } else { 2 };
    let [owner, group, time, device] = [0_u32; 4];
    // The name's size includes the zero byte at its end.
    let header = [
        inode,
        mode,
        owner,
        group,
        links,
        time,
        size,
        device,
        device,
        device,
        device,
        path.len() as u32 + 1,
        0, // of this format no checksum
    ];
    to.write_all(b"070701")?;
    for field in header {
        write!(to, "{field:08X}")?;
    }
    to.write_all(path.as_bytes())?;
    // The magic number and the header have 110 bytes; name and contents each end at a multiple of four.
    to.write_all(&[0; 4][..4 - (110 + path.len()) % 4])?;
    to.write_all(contents)?;
    to.write_all(&[0; 3][..contents.len().wrapping_neg() % 4])
}

struct Hashed<'a> {
    writer: &'a mut dyn Write,
    hasher: blake3::Hasher,
}

impl Write for Hashed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

    use super::*;

    fn written(archive: &Archive) -> (Vec<u8>, String) {
        let mut bytes = Vec::new();
        let digest = archive.write(&mut bytes).unwrap();
        (bytes, digest)
    }

    #[test]
    fn equal_contents_give_equal_bytes_whatever_the_order() {
        let mut one = Archive::default();
        one.file("/b/x", "12345");
        one.executable("init", "#!");
        one.link("lib64", "lib");
        let mut other = Archive::default();
        other.link("lib64", "lib");
        other.directory("b");
        other.executable("/init", "#!");
        other.file("b/x", "12345");
        assert_eq!(written(&one), written(&other));
        other.file("b/x", "12346");
        assert_ne!(written(&one).1, written(&other).1);
    }

    /// cpio(1) reads what the kernel reads.
    #[test]
    fn cpio_unpacks_names_modes_links_and_contents() {
        let mut archive = Archive::default();
        archive.file("a/b/four", "1234");
        archive.file("a/five", "12345");
        archive.executable("run", "#!/bin/sh\n");
        archive.link("to", "a/five");
        archive.directory("proc");
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("archive");
        std::fs::write(&file, written(&archive).0).unwrap();
        let unpacked = directory.path().join("unpacked");
        std::fs::create_dir(&unpacked).unwrap();
        let cpio = std::process::Command::new("cpio")
            .args(["--quiet", "-idm"])
            .current_dir(&unpacked)
            .stdin(std::fs::File::open(&file).unwrap())
            .output()
            .unwrap();
        assert!(cpio.status.success(), "{}", String::from_utf8_lossy(&cpio.stderr));
        assert_eq!(std::fs::read_to_string(unpacked.join("a/b/four")).unwrap(), "1234");
        assert_eq!(std::fs::read_to_string(unpacked.join("to")).unwrap(), "12345");
        assert!(unpacked.join("proc").is_dir());
        let mode = |name| {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::metadata(unpacked.join(name)).unwrap().permissions().mode() & 0o777
        };
        assert_eq!((mode("run"), mode("a/five")), (0o755, 0o644));
        assert_eq!(archive.bytes(), 19);
    }
}
