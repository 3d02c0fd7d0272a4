//! A station's request for a turn, and the trial in which it sends for a second although it is not its turn. The trial
//! shows whether the stations before it in the order leave the air unused.

use std::fmt;

use serde::{Deserialize, Serialize};
use wakeai_units::{Duration, Instant, Rate};

use crate::{Announcement, Observation};

/// A station's request for a turn, as the station announces it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// The place in the order of requests, above zero. A smaller ticket comes first.
    pub ticket: u32,
    /// What the station does.
    pub state: TurnState,
    /// The time that the rest of the station's transfers takes at the rate that the station reaches
    /// alone. A message carries it in whole milliseconds, and at most 4.6 hours of it.
    pub left: Duration,
}

/// What a station with a transfer does. The numbers stand on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::FromRepr)]
#[repr(u32)]
pub enum TurnState {
    /// The station waits for its turn.
    #[default]
    Waiting = 0,
    /// The station sends in its turn.
    Sending = 1,
    /// The station sends although it is not its turn, because its trial has found the air unused.
    Additional = 2,
    /// The station makes a trial: it sends although it is not its turn, to find out whether the
    /// stations whose turn it is leave air unused.
    Trying = 3,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// The transfers wait.
    Wait,
    /// The transfers send in small pieces, because the permission may end within seconds.
    Try,
    /// The transfers send.
    #[default]
    Send,
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

/// A trial succeeds where the station delivers more than this percentage of a fair part of the air.
const CLEARLY_MORE_PERCENT: u64 = 160;
/// A trial also succeeds where all stations together use less than this part of the air,
/// millionths, by their announced rates.
const LITTLE_USED: u64 = 800_000;
/// Where the queueing delay is at least this, the announced rates do not make a trial succeed.
const MOST_DELAY: Duration = Duration::from_millis(20);
/// The estimate of the rate that a station reaches alone where it was not measured, percent of the
/// PHY rate.
const ALONE_PERCENT_OF_PHY: u64 = 60;
/// The assumed rate that a station reaches alone where no rate is known.
const UNKNOWN: Rate = Rate::from_mbps(10);

/// The rate that this station reaches alone, measured or estimated.
pub(super) fn alone(seen: &Observation) -> Rate {
    let by_phy = seen.link_rate.and_then(of_phy);
    let measured = Some(seen.total_rate).filter(|rate| *rate > Rate::ZERO);
    seen.up.max_rate.or(by_phy).or(measured).unwrap_or(UNKNOWN)
}

fn of_phy(rate: Rate) -> Option<Rate> {
    rate.mul_div(ALONE_PERCENT_OF_PHY, 100)
}

/// Whether a trial shows that the air is unused. `best` is the largest delivery rate of this
/// station in one tick of the trial.
pub(super) fn finds_unused(seen: &Observation, best: Rate) -> bool {
    let alone = alone(seen);
    let sending = |of: &Announcement| of.turn.is_some() && of.up.active;
    let others = seen.peers.iter().filter(|peer| sending(&peer.announced)).count() as u64;
    let fair = alone / (others + 1);
    let enough = fair.times(CLEARLY_MORE_PERCENT, 100);
    if others > 0 && best > enough {
        return true;
    }
    // The part of the air, millionths, that `rate` takes for a station that reaches `alone`.
    let part = |rate: Rate, alone: Rate| {
        rate.mul_div(1_000_000, alone.bits_per_second().max(1)).map_or(0, Rate::bits_per_second)
    };
    let parts = seen.peers.iter().map(|peer| {
        let of = &peer.announced;
        let its = of.up.max_rate.or_else(|| of.link_rate.and_then(of_phy)).unwrap_or(alone);
        part(of.up.rate, its)
    });
    let used = parts.fold(part(best, alone), u64::saturating_add);
    // Stations without agents announce nothing, but their packets delay the packets of this
    // station.
    let delayed = seen.up.rtt.is_none_or(|rtt| rtt.growth >= MOST_DELAY);
    used < LITTLE_USED && !delayed
}
