//! The conditions that are compared: their laws, and the stations that run agents.

use wakeai_units::{Bytes, Duration, Segments};

use crate::stations::Selector;

/// The law: the rule by which agents turn observations into a floor and a ceiling of the congestion
/// windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Law {
    /// The bounds are set by hand.
    Fixed,
    /// The bounds of Shimada et al., table 1, left column.
    ShimadaBefore,
    /// The bounds of Shimada et al., table 1, right column.
    ShimadaAfter,
    /// Each station gets a share of airtime, and the queue stays short.
    Airtime,
}

impl Law {
    /// All laws, in the order of the reference page.
    pub const ALL: [Self; 4] =
        [Self::Fixed, Self::ShimadaBefore, Self::ShimadaAfter, Self::Airtime];

    /// The name in a scenario file and in an agent's configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::ShimadaBefore => "shimada-before",
            Self::ShimadaAfter => "shimada-after",
            Self::Airtime => "airtime",
        }
    }
}

/// Parameters of the law `airtime`, as in an agent's configuration. `None` stands for the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LawParameters {
    /// The target queueing delay, percent of a round.
    pub queue_rounds_percent: Option<u32>,
    /// The least target.
    pub queue_min: Option<Duration>,
    /// The largest target.
    pub queue_max: Option<Duration>,
}

/// Another law for some stations, as in a fleet whose agents were not all updated or configured alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LawRule {
    /// The stations.
    pub stations: Selector,
    /// Their law.
    pub law: Law,
    /// The parameters of that law.
    pub parameters: LawParameters,
}

/// Bounds set by hand for some stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundsRule {
    /// The stations.
    pub stations: Selector,
    /// The bounds of each of them.
    pub bounds: FixedBounds,
}

/// Bounds set by hand. They apply to all connections of a station together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedBounds {
    /// The smallest congestion window.
    pub floor: Segments,
    /// The largest congestion window; [`Segments::MAX`] if the file names none.
    pub ceiling: Segments,
    /// The bytes that may wait in the host's queue where Linux would allow fewer; zero if the file
    /// names none.
    pub small_queue: Bytes,
}

/// An entry of `[[conditions]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The name of the condition, which is unique in the file.
    pub name: String,
    /// The law of the agents; with `None` no agent runs.
    pub law: Option<Law>,
    /// The parameters of the law.
    pub parameters: LawParameters,
    /// The stations that run an agent; empty means all.
    pub agents: Vec<Selector>,
    /// The stations with another law than the condition's.
    pub laws: Vec<LawRule>,
    /// The bounds of the law `fixed`.
    pub bounds: Vec<BoundsRule>,
    /// The path and the value of each key that `set` changes, as they are written in the file.
    pub set: Vec<(String, String)>,
}

impl Condition {
    /// A condition without a law.
    pub(crate) fn plain(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            law: None,
            parameters: LawParameters::default(),
            agents: Vec::new(),
            laws: Vec::new(),
            bounds: Vec::new(),
            set: Vec::new(),
        }
    }
}
