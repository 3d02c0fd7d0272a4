//! The settings with a frontier.

use wakeai_scenario::Scenario;

use crate::law::{self, Promise, Setting};

/// The kind of a setting, which decides the least goodput beside `default`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Stations that do not aggregate frames: with stock CUBIC the access point drops ACKs, and
    /// their airtime carries data.
    SingleFrames,
    /// All others.
    Aggregates,
}

impl Kind {
    /// The kind of a setting; `None` where a setting has no frontier.
    pub fn of(setting: &Setting) -> Option<Self> {
        let constant = setting.scenario.events.is_empty();
        match setting.promise {
            Promise::SingleFrames if constant => Some(Self::SingleFrames),
            Promise::All | Promise::Alone | Promise::SmallQueues | Promise::Unequal(..)
                if constant =>
            {
                Some(Self::of_scenario(&setting.scenario))
            }
            _ => None,
        }
    }

    fn of_scenario(scenario: &Scenario) -> Self {
        let aggregates = scenario.stations.iter().filter_map(|group| group.radio);
        let mut aggregates = aggregates.map(|radio| radio.standard.longest_ampdu().get() > 0);
        if aggregates.any(|aggregates| aggregates) { Self::Aggregates } else { Self::SingleFrames }
    }

    /// The least goodput of the law as a part of that of `default`.
    pub const fn least_part(self) -> f64 {
        match self {
            Self::SingleFrames => 0.91,
            Self::Aggregates => 0.98,
        }
    }
}

/// The settings of the law's matrix that have a frontier: all stations are under agents, windows
/// can be bounded, and nothing changes during the run.
pub fn settings() -> Vec<Setting> {
    law::matrix().into_iter().filter(|setting| Kind::of(setting).is_some()).collect()
}
