//! A station's request for a turn.

use std::fmt;

use wakeai_units::{Duration, Instant, Rate};

/// A station's request for a turn, as the station announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The place in the order of requests, above zero. A smaller ticket comes first.
    pub ticket: u32,
    /// What the station does.
    pub state: TurnState,
    /// The time that the rest of the station's transfers takes at the rate that the station reaches
    /// alone. A message carries it in whole milliseconds, and at most 4.6 hours of it.
    pub left: Duration,
}

/// What a station with a transfer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnState {
    /// The station waits for its turn.
    Waiting,
    /// The station sends in its turn.
    Sending,
    /// The station makes a trial: it sends although it is not its turn, to find out whether the
    /// stations whose turn it is leave air unused.
    Trying,
    /// The station sends although it is not its turn, because its trial has found the air unused.
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
    /// The transfers wait.
    Wait,
    /// The transfers send in small pieces, because the permission may end within seconds.
    Try,
    /// The transfers send.
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

/// The phase of this station's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestPhase {
    /// The station waits, and receives the requests of others, until the time `until`.
    Listening { until: Instant },
    /// The station waits. `first_since` is the time since which it has been the first of the
    /// waiting stations; `None` where it is not the first.
    Waiting { first_since: Option<Instant> },
    /// The station sends in its turn.
    Sending { since: Instant },
    /// The station makes a trial. `best` is its largest delivery rate in one tick of the trial.
    Trial { since: Instant, best: Rate },
    /// The station sends although it is not its turn, after a successful trial.
    Additional { since: Instant },
}

/// This station's request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) ticket: u32,
    pub(super) phase: RequestPhase,
    /// The time that the rest of the transfers takes at the rate that the station reaches alone.
    pub(super) left: Duration,
}

impl Request {
    pub(super) fn permission(&self) -> Permission {
        match self.phase {
            RequestPhase::Listening { .. } | RequestPhase::Waiting { .. } => Permission::Wait,
            RequestPhase::Trial { .. } => Permission::Try,
            RequestPhase::Sending { .. } | RequestPhase::Additional { .. } => Permission::Send,
        }
    }

    pub(super) fn announced(&self) -> Turn {
        let state = match self.phase {
            RequestPhase::Listening { .. } | RequestPhase::Waiting { .. } => TurnState::Waiting,
            RequestPhase::Sending { .. } => TurnState::Sending,
            RequestPhase::Trial { .. } => TurnState::Trying,
            RequestPhase::Additional { .. } => TurnState::Additional,
        };
        Turn { ticket: self.ticket, state, left: self.left }
    }
}
