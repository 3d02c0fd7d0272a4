//! The credentials of an upload: a token, or a user's name and password.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderValue;
use nix::fcntl::OFlag;
use wakeai_units::text::without_mark;

use super::error::PutError;

/// The largest size of a file with credentials, in bytes.
const LIMIT: u64 = 64 << 10;

/// The value of the header field `Authorization`. No output shows it, because it is marked as sensitive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials(HeaderValue);

impl Credentials {
    /// Credentials from a token.
    ///
    /// # Errors
    ///
    /// `None` if the token has characters that a header field cannot contain.
    pub fn bearer(token: &str) -> Option<Self> {
        let token = token.trim();
        let is_plain = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        is_plain.then(|| Self::secret(&format!("Bearer {token}"))).flatten()
    }

    /// Credentials from a user's name and password, with a colon in between.
    ///
    /// # Errors
    ///
    /// `None` if there is no colon, or if there is a control character.
    pub fn basic(user: &str) -> Option<Self> {
        let user = user.trim_end_matches(['\r', '\n']);
        let is_pair = user.contains(':') && !user.chars().any(char::is_control);
        is_pair.then(|| Self::secret(&format!("Basic {}", BASE64.encode(user)))).flatten()
    }

    /// Reads a token from a file that only its owner can read.
    ///
    /// # Errors
    ///
    /// The file cannot be read, others can read it, or it holds no token.
    pub fn read_token(path: &Path) -> Result<Self, PutError> {
        Self::bearer(&read(path)?).ok_or_else(|| wrong(path, "it has to hold one token"))
    }

    /// Reads `user:password` from a file that only its owner can read.
    ///
    /// # Errors
    ///
    /// The file cannot be read, others can read it, or it does not hold `user:password`.
    pub fn read_user(path: &Path) -> Result<Self, PutError> {
        Self::basic(&read(path)?).ok_or_else(|| wrong(path, "it has to hold user:password"))
    }

    fn secret(text: &str) -> Option<Self> {
        let mut value = HeaderValue::from_str(text).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    pub(super) fn value(&self) -> HeaderValue {
        self.0.clone()
    }
}

fn wrong(path: &Path, reason: &'static str) -> PutError {
    PutError::Secret { path: path.to_owned(), reason }
}

fn read(path: &Path) -> Result<String, PutError> {
    let failed = |source: io::Error| PutError::Read { path: path.to_owned(), source };
    // The mode is checked on the open file, which is then read. `O_NONBLOCK` prevents a wait for the writer of a FIFO.
    let file = File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path);
    let file = file.map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(wrong(path, "it is not a regular file"));
    }
    if metadata.len() > LIMIT {
        return Err(wrong(path, "it is larger than 64 KiB"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(wrong(path, "others may read it: chmod 600 it"));
    }
    let mut text = String::new();
    file.take(LIMIT).read_to_string(&mut text).map_err(failed)?;
    Ok(without_mark(&text).to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_byte_order_mark_at_the_start_is_no_part_of_a_secret() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("user");
        std::fs::write(&path, "\u{feff}me:s3cret\r\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let user = Credentials::read_user(&path).unwrap();
        assert_eq!(user.value(), Credentials::basic("me:s3cret").unwrap().value());
    }

    #[test]
    fn no_output_shows_a_secret() {
        let token = Credentials::bearer("s3cret\n").unwrap();
        assert_eq!(token.value(), "Bearer s3cret");
        assert!(!format!("{token:?} {:?}", token.value()).contains("s3cret"));
        assert_eq!(Credentials::basic("me:pass word\n").unwrap().value(), "Basic bWU6cGFzcyB3b3Jk");
        assert_eq!(Credentials::bearer("two words"), None);
        assert_eq!(Credentials::bearer(" "), None);
        assert_eq!(Credentials::basic("nobody"), None);
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        std::fs::write(&path, "t0ken\n").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        let refused = Credentials::read_token(&path).unwrap_err();
        assert!(refused.to_string().contains("chmod 600"), "{refused}");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(Credentials::read_token(&path).unwrap().value(), "Bearer t0ken");
        assert!(Credentials::read_user(&path).unwrap_err().is_usage());
    }

    #[test]
    fn a_file_that_is_too_large_is_refused_and_not_cut() {
        let file = tempfile::NamedTempFile::new().unwrap(); // with the mode 600
        std::fs::write(file.path(), "t".repeat((64 << 10) + 1)).unwrap();
        let refused = Credentials::read_token(file.path()).unwrap_err();
        assert!(refused.to_string().contains("larger than 64 KiB"), "{refused}");
        std::fs::write(file.path(), "t".repeat(64 << 10)).unwrap();
        assert!(Credentials::read_token(file.path()).is_ok());
    }
}
