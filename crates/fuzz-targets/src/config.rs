//! The agent's configuration.

use wakeai_api::config::Config;

/// Beyond this a file is not tried: `make fuzz` looks for what is wrong, not for what takes long.
const LONGEST: usize = 1 << 16;

/// A configuration is refused with a message, or it can be written and reads back as the same.
pub(crate) fn target(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(&bytes[..bytes.len().min(LONGEST)]) else { return };
    match Config::parse(text) {
        Err(error) => {
            let said = error.to_string();
            assert!(said.starts_with("configuration"), "{said}");
            assert!(said.len() < 2 * text.len() + 1_000, "{said}");
        }
        Ok(config) => {
            let written = config.to_toml().expect("what was accepted can be written");
            assert_eq!(Config::parse(&written).expect("it reads back"), config, "{written}");
        }
    }
}
