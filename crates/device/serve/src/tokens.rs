//! The tokens of clients: reads their file, and finds the client of a request.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::rc::Rc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use nix::fcntl::OFlag;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use wakeai_units::text::without_mark;

use super::error::ServeError;

const SHORTEST: usize = 16;
const NAME_LIMIT: usize = 64;
/// The largest size of a token file, in bytes.
const FILE_LIMIT: u64 = 1 << 20;

/// The digests of all tokens, each with its client's name.
#[derive(Debug)]
pub(crate) struct Tokens(Vec<([u8; 32], Rc<str>)>);

impl Tokens {
    pub(crate) fn read(path: &Path) -> Result<Self, ServeError> {
        let text = read_secret(path)?;
        let mut tokens = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |reason| ServeError::Token { path: path.to_owned(), line: at + 1, reason };
            let (name, token) = line.split_once(' ').ok_or(wrong("found no space"))?;
            let token = token.trim();
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            if name.len() > NAME_LIMIT || !name.chars().all(is_plain) {
                return Err(wrong("the name has other characters or is longer than 64"));
            }
            if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(wrong("the token is too short or has other characters"));
            }
            tokens.push((digest(token), Rc::from(name)));
        }
        if tokens.is_empty() {
            return Err(ServeError::NoTokens(path.to_owned()));
        }
        Ok(Self(tokens))
    }

    /// The client whose token the request has. The time of this check does not depend on the tokens' bytes.
    pub(crate) fn client(&self, headers: &HeaderMap) -> Option<Rc<str>> {
        let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let shown = digest(token.trim());
        let mut found = None;
        for (token, name) in &self.0 {
            if bool::from(token.ct_eq(&shown)) {
                found = Some(name);
            }
        }
        found.map(Rc::clone)
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Reads a file that only its owner may read.
pub(crate) fn read_secret(path: &Path) -> Result<String, ServeError> {
    let failed = |source| ServeError::Read { path: path.to_owned(), source };
    // Without `O_NONBLOCK`, opening a FIFO would wait for a writer.
    let flags = (OFlag::O_NONBLOCK | OFlag::O_CLOEXEC).bits();
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.mode() & 0o077 != 0 {
        return Err(ServeError::Exposed(path.to_owned()));
    }
    let mut text = String::new();
    file.take(FILE_LIMIT).read_to_string(&mut text).map_err(failed)?;
    Ok(without_mark(&text).to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_byte_order_mark_at_the_start_is_no_part_of_a_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens");
        std::fs::write(&path, "\u{feff}tablet 0123456789abcdef0123456789abcdef\r\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(&*Tokens::read(&path).unwrap().0[0].1, "tablet");
    }
}
