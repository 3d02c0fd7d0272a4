//! Fuzzes the reader of the agent's configuration.

use wakeai_api::config::Config;

/// The longest input in bytes; the rest is ignored, because long inputs would slow the search down.
const LONGEST: usize = 1 << 16;

/// A text is rejected with a message of limited length, or it is accepted and the configuration is
/// the same after it was written and read back.
pub(crate) fn target(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(&bytes[..bytes.len().min(LONGEST)]) else { return };
    match Config::parse(text) {
        Err(error) => {
            let said = error.to_string();
            assert!(said.starts_with("configuration"), "{said}");
            assert!(said.len() < 100_000, "{said}");
        }
        Ok(config) => {
            let written = config.to_toml().expect("what was accepted can be written");
            assert_eq!(Config::parse(&written).expect("it reads back"), config, "{written}");
        }
    }
}
