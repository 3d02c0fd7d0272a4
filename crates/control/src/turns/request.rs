//! A station's request for a turn.

use std::fmt;

use wakeai_units::{Duration, Instant, Rate};

/// A station's request for a turn, as the station announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The place in the order of requests, above zero.
    pub ticket: u32,
    /// What the station does.
    pub state: TurnState,
    /// The time that the rest of the transfers takes at the rate that the station reaches alone; whole
    /// milliseconds, at most 4.6 hours.
    pub left: Duration,
}

/// What a station with a transfer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnState {
    /// It waits for its turn.
    Waiting,
    /// It sends.
    Sending,
    /// It sends for a trial, although it is not its turn.
    Trying,
    /// It sends although it is not its turn, because it has found the air unused.
    Additional,
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.state {
            TurnState::Waiting => "waits",
            TurnState::Sending => "sends",
            TurnState::Trying => "tries whether the air is used",
            TurnState::Additional => "sends in addition, because the air is unused",
        };
        write!(f, "{words} with ticket {}, {} ms left", self.ticket, self.left.as_millis())
    }
}

/// What a station's transfers may do now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permission {
    /// They wait.
    Wait,
    /// They send in small pieces, because the permission may end within seconds.
    Try,
    /// They send.
    #[default]
    Send,
}

impl Permission {
    const ALL: [(&'static str, Self); 3] =
        [("wait", Self::Wait), ("try", Self::Try), ("send", Self::Send)];

    /// The permission's name: `wait`, `try` or `send`.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, of)| *of == self).map_or("wait", |(name, _)| name)
    }

    /// The permission with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(of, _)| *of == name).map(|(_, permission)| *permission)
    }
}

/// The phase of the own request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It receives the requests of others before it decides.
    Listening { until: Instant },
    /// It waits. `first_since` is the time since which no other waiting station is before it.
    Waiting { first_since: Option<Instant> },
    /// It sends in its turn.
    Sending { since: Instant },
    /// It sends for a trial. `best` is its largest delivery rate in one tick of the trial.
    Trial { since: Instant, best: Rate },
    /// It sends after a successful trial.
    Additional { since: Instant },
}

/// The own request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) ticket: u32,
    pub(super) phase: Phase,
    /// The time that the rest of the transfers takes alone.
    pub(super) left: Duration,
}

impl Request {
    pub(super) fn permission(&self) -> Permission {
        match self.phase {
            Phase::Listening { .. } | Phase::Waiting { .. } => Permission::Wait,
            Phase::Trial { .. } => Permission::Try,
            Phase::Sending { .. } | Phase::Additional { .. } => Permission::Send,
        }
    }

    pub(super) fn announced(&self) -> Turn {
        let state = match self.phase {
            Phase::Listening { .. } | Phase::Waiting { .. } => TurnState::Waiting,
            Phase::Sending { .. } => TurnState::Sending,
            Phase::Trial { .. } => TurnState::Trying,
            Phase::Additional { .. } => TurnState::Additional,
        };
        Turn { ticket: self.ticket, state, left: self.left }
    }
}
