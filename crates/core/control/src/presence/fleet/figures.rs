//! The figures of a station, with which it answers a query of a fleet.

use std::fmt;

use wakeai_units::{Duration, Rate};

use crate::{Announcement, Bounds};

/// The largest number of kinds of faults in an answer.
pub const FAULT_KINDS: usize = 16;

/// The length of a [`Label`], bytes.
pub(super) const LABEL_LEN: usize = 24;

/// A short name, such as a version or a state. It has at most 24 printable ASCII characters without
/// spaces.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Label(pub(super) [u8; LABEL_LEN]);

impl Label {
    /// The label for `name`. Each character that is not allowed becomes `?`, and only the first 24
    /// characters are kept.
    pub fn new(name: &str) -> Self {
        let mut bytes = [0; LABEL_LEN];
        for (byte, character) in bytes.iter_mut().zip(name.chars()) {
            *byte = if character.is_ascii_graphic() { character as u8 } else { b'?' };
        }
        Self(bytes)
    }

    /// The label as text.
    pub fn as_str(&self) -> &str {
        let used = self.0.iter().position(|byte| *byte == 0).unwrap_or(LABEL_LEN);
        std::str::from_utf8(&self.0[..used]).expect("a label is ASCII")
    }

    /// Whether the bytes are allowed characters, and zeros after them.
    pub(super) fn is_valid(self) -> bool {
        let used = self.0.iter().position(|byte| *byte == 0).unwrap_or(LABEL_LEN);
        let (name, rest) = self.0.split_at(used);
        name.iter().all(u8::is_ascii_graphic) && rest.iter().all(|byte| *byte == 0)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// The figures of the program that drives a controller. The controller does not know them by
/// itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentFigures {
    /// The version of the program.
    pub software: Label,
    /// The name of the program's state.
    pub state: Label,
    /// The name of the program's law.
    pub law: Label,
    /// The time since the start of the program; whole seconds on the wire.
    pub uptime: Duration,
    /// The number of faults of each kind since the start of the program.
    pub faults: [u32; FAULT_KINDS],
    /// The kinds of faults that still last. Bit `n` is set where the fault of kind `n` (its place
    /// in `faults`) lasts.
    pub lasting: u16,
}

/// The figures with which a station answers a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationFigures {
    /// The figures of the station's program.
    pub agent: AgentFigures,
    /// What the station announces; on the wire without its reservation and its turn.
    pub announced: Announcement,
    /// The station's share of the airtime as a rate ([`Decision::share`](crate::Decision::share)).
    pub share: Option<Rate>,
    /// The bounds of all connections together; on the wire without the host's queue.
    pub bounds: Bounds,
    /// The number of stations that send, as this station sees them, itself included.
    pub senders: u16,
    /// The number of live peers that this station sees.
    pub peers: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_printable_characters_alone() {
        assert_eq!(Label::new("0.1.0").as_str(), "0.1.0");
        assert_eq!(Label::new("").as_str(), "");
        assert_eq!(Label::new("a b\u{1b}[2Jü").as_str(), "a?b?[2J?");
        assert_eq!(Label::new(&"x".repeat(99)).as_str(), "x".repeat(LABEL_LEN));
    }

    #[test]
    fn a_label_from_the_wire_cannot_steer_a_terminal() {
        let with = |bytes: &[u8]| {
            let mut label = [0; LABEL_LEN];
            label[..bytes.len()].copy_from_slice(bytes);
            Some(Label(label)).filter(|label| label.is_valid())
        };
        assert_eq!(with(b"0.2.0-rc.1+x"), Some(Label::new("0.2.0-rc.1+x")));
        for wrong in [&b"\x1b[2J"[..], b"a\nb", b"a b", b"\xff", b"a\0b", b"\x7f"] {
            assert_eq!(with(wrong), None, "{wrong:?}");
        }
    }
}
