//! The group key: 32 bytes that all agents of a fleet share. While the fleet changes its key, an
//! agent has several keys.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use data_encoding::{BASE64, HEXLOWER, HEXLOWER_PERMISSIVE};
use wakeai_units::text::without_mark;

/// The largest size of a key file, in bytes. Each key takes 64 hexadecimal digits or 44 characters
/// of base64. A file may also have comments.
const LONGEST_FILE: u64 = 1024;
/// The largest number of keys in a file. The number is limited because a datagram that no key
/// authenticates costs one hash per key.
const MOST_KEYS: usize = 4;

/// The keys of a group. The first key authenticates the messages that this station sends. A
/// received message is accepted if any of the keys authenticates it. `Debug` does not show the
/// keys.
#[derive(Clone, PartialEq, Eq)]
pub struct GroupKeys {
    /// Authenticates this station's messages.
    pub signing: [u8; 32],
    /// Further keys. Messages that one of these keys authenticates are accepted.
    pub accepted: Vec<[u8; 32]>,
}

impl fmt::Debug for GroupKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupKeys(..)")
    }
}

/// The reason why a group key cannot be used or made.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("key file {path}: {source}{}", advice(path, source))]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file exists already. An existing file is never replaced.
    #[error(
        "key file {path} exists and is not replaced, because stations with different keys ignore \
         each other; to make a new key, move the file away first: mv {path} {path}.old"
    )]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error(
        "cannot write the key file {path}: {source}; name a directory that exists and is yours"
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file's mode lets the file's Unix group write it, or gives other users any access.
    #[error(
        "key file {path}: found mode {mode:03o}, allowed is at most 640: others must neither read \
         nor change the group's key; run: chmod 600 {path}"
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Another user can change the key.
    #[error(
        "key file {path}: found user {found} as its owner, expected root or user {expected}, who runs the \
         agent: its owner can change the group's key; run: chown root {path}"
    )]
    Owner {
        /// The file.
        path: PathBuf,
        /// Its owner.
        found: u32,
        /// The user who may own the file, besides root.
        expected: u32,
    },
    /// The file does not hold a key.
    #[error(
        "key file {path}: line {line}: found {found}, expected 32 bytes as 64 hexadecimal digits \
         or 44 characters of base64 on one line, and at most {MOST_KEYS} such lines"
    )]
    Content {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The problem, without the content of the line.
        found: String,
    },
}

fn advice(path: &Path, source: &io::Error) -> String {
    if source.kind() != io::ErrorKind::NotFound {
        return String::new();
    }
    format!(
        "; copy the fleet's key to this path, or make a key with: wakeai agent --generate-key {}",
        path.display()
    )
}

impl GroupKeys {
    /// Reads `path`. Each key is a line of 64 hexadecimal digits or of base64. Empty lines and
    /// lines that begin with `#` are ignored.
    ///
    /// # Errors
    /// [`KeyError`]. No message shows the file's content.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::File { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let mode = metadata.mode() & 0o777;
        if mode & 0o027 != 0 {
            return Err(KeyError::Open { path: path.to_owned(), mode });
        }
        let (found, expected) = (metadata.uid(), nix::unistd::geteuid().as_raw());
        if found != 0 && found != expected {
            return Err(KeyError::Owner { path: path.to_owned(), found, expected });
        }
        let mut bytes = Vec::new();
        file.take(LONGEST_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
        parse(&bytes).map_err(|(line, found)| KeyError::Content {
            path: path.to_owned(),
            line,
            found,
        })
    }

    /// Writes a new random key to `path`, readable only by its owner. An existing file is not
    /// replaced.
    ///
    /// # Errors
    /// [`KeyError::Exists`] and [`KeyError::Write`].
    pub fn generate(path: &Path) -> Result<(), KeyError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => KeyError::Exists { path: path.to_owned() },
            _ => KeyError::Write { path: path.to_owned(), source },
        };
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| failed(io::Error::other(error.to_string())))?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        writeln!(file, "{}", HEXLOWER.encode(&key)).and_then(|()| file.sync_all()).map_err(failed)
    }
}

/// Reads the keys in the file's content. An error consists of a line number and the problem on that
/// line.
fn parse(bytes: &[u8]) -> Result<GroupKeys, (usize, String)> {
    if bytes.len() as u64 > LONGEST_FILE {
        return Err((1, format!("more than {LONGEST_FILE} bytes")));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| (1, "bytes that are not text".to_owned()))?;
    let text = without_mark(text);
    let lines = text
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let keys: Vec<(usize, [u8; 32])> =
        lines.map(|(number, line)| Ok((number, key(number, line)?))).collect::<Result<_, _>>()?;
    match keys.as_slice() {
        [] => Err((1, "no key".to_owned())),
        [(_, signing), others @ ..] if keys.len() <= MOST_KEYS => {
            let accepted = others.iter().map(|(_, key)| *key).collect();
            Ok(GroupKeys { signing: *signing, accepted })
        }
        _ => Err((keys[MOST_KEYS].0, format!("a key after the first {MOST_KEYS}"))),
    }
}

fn key(number: usize, line: &str) -> Result<[u8; 32], (usize, String)> {
    let decoded = if line.len() == 64 {
        HEXLOWER_PERMISSIVE.decode(line.as_bytes())
    } else {
        BASE64.decode(line.as_bytes())
    };
    decoded
        .ok()
        .and_then(|key| <[u8; 32]>::try_from(key).ok())
        .ok_or_else(|| (number, format!("a line of {} characters that is no key", line.len())))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn file_with(content: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("group.key");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        (directory, path)
    }

    #[test]
    fn a_byte_order_mark_at_the_start_is_no_part_of_the_key() {
        let key = "07".repeat(32);
        for content in [format!("\u{feff}{key}\r\n"), format!("\u{feff}# of the fleet\n{key}\n")] {
            let (_directory, path) = file_with(&content, 0o600);
            assert_eq!(GroupKeys::load(&path).unwrap().signing, [7; 32]);
        }
        let (_directory, path) = file_with(&format!("{key}\n\u{feff}{key}\n"), 0o600);
        assert!(GroupKeys::load(&path).unwrap_err().to_string().contains("line 2"));
    }

    #[test]
    fn a_generated_key_is_private_and_new() {
        let directory = tempfile::tempdir().unwrap();
        let paths = [directory.path().join("a"), directory.path().join("b")];
        let keys = paths.each_ref().map(|path| {
            GroupKeys::generate(path).unwrap();
            assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o600);
            GroupKeys::load(path).unwrap()
        });
        assert_ne!(keys[0], keys[1]);
    }

    #[test]
    fn generating_does_not_replace_a_key() {
        let (_directory, path) = file_with("precious", 0o600);
        assert!(matches!(GroupKeys::generate(&path), Err(KeyError::Exists { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn hexadecimal_and_base64_give_the_same_key() {
        let hex = file_with(&format!("# ours\n\n{}\n", "0F".repeat(32)), 0o640);
        let base64 = file_with(&BASE64.encode(&[0x0f; 32]), 0o400);
        assert_eq!(GroupKeys::load(&hex.1).unwrap(), GroupKeys::load(&base64.1).unwrap());
    }

    #[test]
    fn a_key_with_too_many_permissions_is_refused() {
        for mode in [0o604, 0o644, 0o660, 0o602, 0o601] {
            let (_directory, path) = file_with(&"ab".repeat(32), mode);
            let message = GroupKeys::load(&path).unwrap_err().to_string();
            assert!(message.contains(&format!("found mode {mode:03o}")), "{message}");
        }
    }

    #[test]
    fn a_key_of_another_user_is_refused() {
        if !nix::unistd::geteuid().is_root() {
            let required = std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_some_and(|it| it == "1");
            assert!(!required, "WAKEAI_REQUIRE_KERNEL=1, but this is not root");
            let _ = io::stdout().write_all(b"SKIPPED: giving a file away needs root\n");
            return;
        }
        let (_directory, path) = file_with(&"ab".repeat(32), 0o600);
        std::os::unix::fs::chown(&path, Some(65533), None).unwrap();
        let message = GroupKeys::load(&path).unwrap_err().to_string();
        assert!(message.contains("found user 65533"), "{message}");
    }

    #[test]
    fn a_wrong_content_names_the_line_and_shows_nothing_of_it() {
        let long = "a".repeat(300);
        let cases =
            [("", 1), ("# only\n", 1), ("abc\n", 1), ("# x\nsecretsecret\n", 2), (&long, 1)];
        for (content, expected) in cases {
            let (_directory, path) = file_with(content, 0o600);
            let error = GroupKeys::load(&path).unwrap_err();
            assert!(!error.to_string().contains("secret"));
            assert!(matches!(error, KeyError::Content { line, .. } if line == expected), "{error}");
        }
        let line = "ab".repeat(32) + "\n";
        let wrong = [(line.repeat(5), 5), (format!("{line}secret\n"), 2)];
        for (content, expected) in wrong {
            let error = GroupKeys::load(&file_with(&content, 0o600).1).unwrap_err();
            assert!(!error.to_string().contains("secret"));
            assert!(matches!(error, KeyError::Content { line, .. } if line == expected), "{error}");
        }
    }

    #[test]
    fn the_first_key_signs_and_the_others_are_accepted() {
        let content = format!("# new\n{}\n# old\n{}\n", "ab".repeat(32), "cd".repeat(32));
        let keys = GroupKeys::load(&file_with(&content, 0o600).1).unwrap();
        assert_eq!((keys.signing, keys.accepted), ([0xab; 32], vec![[0xcd; 32]]));
    }

    #[test]
    fn the_debug_form_hides_the_key() {
        let keys = GroupKeys { signing: [0xab; 32], accepted: Vec::new() };
        assert_eq!(format!("{keys:?}"), "GroupKeys(..)");
    }
}
