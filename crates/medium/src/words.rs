//! The words of a configuration, read and written.

use std::fmt;
use std::str::FromStr;

use wakeai_units::Duration;

use crate::config::{GuardInterval, Protection, QueueKind, Width};
use crate::error::ConfigError;

impl GuardInterval {
    /// Its length in nanoseconds.
    pub const fn nanos(self) -> u64 {
        match self {
            Self::Ns400 => 400,
            Self::Ns800 => 800,
            Self::Ns1600 => 1_600,
            Self::Ns3200 => 3_200,
        }
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mhz20 => "20MHz",
            Self::Mhz40 => "40MHz",
            Self::Mhz80 => "80MHz",
            Self::Mhz160 => "160MHz",
        })
    }
}

/// Reads one of a few words, for each of the enums above.
fn word<T: Copy>(
    what: &'static str,
    text: &str,
    words: &[(&str, T)],
    allowed: &'static str,
) -> Result<T, ConfigError> {
    let known = words.iter().find(|(word, _)| *word == text);
    known.map(|(_, value)| *value).ok_or_else(|| ConfigError::Word {
        what,
        found: text.to_owned(),
        allowed,
    })
}

impl FromStr for QueueKind {
    type Err = ConfigError;
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        word("queue", text, &[("fifo", Self::Fifo), ("fq", Self::Fq)], "fifo, fq")
    }
}

impl FromStr for Protection {
    type Err = ConfigError;
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let words =
            [("none", Self::None), ("cts-to-self", Self::CtsToSelf), ("rts-cts", Self::RtsCts)];
        word("protection", text, &words, "none, cts-to-self, rts-cts")
    }
}

impl FromStr for Width {
    type Err = ConfigError;
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let words = [
            ("20MHz", Self::Mhz20),
            ("40MHz", Self::Mhz40),
            ("80MHz", Self::Mhz80),
            ("160MHz", Self::Mhz160),
        ];
        word("width", text, &words, "20MHz, 40MHz, 80MHz, 160MHz")
    }
}

impl TryFrom<Duration> for GuardInterval {
    type Error = ConfigError;
    fn try_from(interval: Duration) -> Result<Self, ConfigError> {
        match interval.as_nanos() {
            400 => Ok(Self::Ns400),
            800 => Ok(Self::Ns800),
            1_600 => Ok(Self::Ns1600),
            3_200 => Ok(Self::Ns3200),
            _ => Err(ConfigError::Word {
                what: "guard_interval",
                found: interval.to_string(),
                allowed: "400ns, 800ns (n, ac), 800ns, 1.6us, 3.2us (ax)",
            }),
        }
    }
}
