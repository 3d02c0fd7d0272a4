//! The secret that a listener prints. The listener answers only peers that know this secret.

use std::fmt;
use std::str::FromStr;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};

/// A secret of 128 random bits, which nobody guesses within the minutes for which a listener runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token([u8; Self::LENGTH]);

/// The error for a text that is no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {found} characters, expected the 32 hexadecimal digits that `--listen` printed")]
pub struct ParseTokenError {
    found: usize,
}

impl Token {
    const LENGTH: usize = 16;

    /// A new token from the kernel's random source.
    ///
    /// # Errors
    /// The kernel has no random bytes.
    pub fn random() -> Result<Self, std::io::Error> {
        let mut bytes = [0; Self::LENGTH];
        getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Self(bytes))
    }

    /// The token of these bytes, for tests that have to be repeatable.
    pub const fn from_bytes(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    /// The key for one use of the token, which `context` names. A program that knows the key of one
    /// use cannot compute the key of another.
    pub(crate) fn key(&self, context: &str) -> [u8; 32] {
        blake3::derive_key(context, &self.0)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl FromStr for Token {
    type Err = ParseTokenError;

    fn from_str(text: &str) -> Result<Self, ParseTokenError> {
        let wrong = || ParseTokenError { found: text.chars().count() };
        let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).map_err(|_| wrong())?;
        bytes.try_into().map(Self).map_err(|_| wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_what_it_writes_and_hides_itself_from_logs() {
        let token = Token::from_bytes([0xa5; 16]);
        assert_eq!(token.to_string().parse(), Ok(token));
        assert_eq!(token.to_string().to_uppercase().parse(), Ok(token));
        assert_eq!(format!("{token:?}"), "Token(..)");
        assert_ne!(Token::random().unwrap(), Token::random().unwrap());
    }

    #[test]
    fn what_is_no_token_is_refused_without_being_repeated() {
        for text in ["", "secret", "zz".repeat(16).as_str(), "ab".repeat(17).as_str()] {
            let error = text.parse::<Token>().unwrap_err().to_string();
            assert!(error.contains(&format!("found {} characters", text.len())), "{error}");
            assert!(text.is_empty() || !error.contains(text), "{error}");
        }
    }
}
