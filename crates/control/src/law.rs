//! What a law is, and how one is chosen.

use wakeai_units::{Instant, Segments};

use crate::laws::{airtime::Airtime, fixed::Fixed, shimada::Shimada};
use crate::{AirtimeKnobs, Bounds, Narrator, Observation};

/// A rule that turns what a station knows into bounds.
///
/// [`Law::on_tick`] is called once per tick with `now` never going back, whether or not anything is
/// being sent.
pub trait Law {
    /// The name in scenarios and configurations.
    fn name(&self) -> &'static str;

    /// Whether its bounds give way to reservations; those that somebody set by hand do not.
    fn yields(&self) -> bool {
        true
    }

    /// The bounds until the next tick, for the station as a whole. Every reason goes to `narrator`.
    fn on_tick(
        &mut self,
        now: Instant,
        observation: &Observation,
        narrator: &mut dyn Narrator,
    ) -> Bounds;
}

/// Which law, with its knobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LawConfig {
    /// Bounds by hand (000 §5).
    Fixed {
        /// Floor of the station, segments; zero for none.
        floor: Segments,
        /// Ceiling of the station, segments.
        ceiling: Segments,
    },
    /// The smaller of the share by number of stations and 001 table 1, left column.
    ShimadaBefore,
    /// The same with the right column.
    ShimadaAfter,
    /// A share of the air and a short queue.
    Airtime(AirtimeKnobs),
}

impl LawConfig {
    /// The names that [`LawConfig::from_name`] knows.
    pub const NAMES: [&'static str; 4] = ["fixed", "shimada-before", "shimada-after", "airtime"];

    /// The law of that name with default knobs; `fixed` binds nothing until its fields are set.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "fixed" => Some(Self::Fixed { floor: Segments::ZERO, ceiling: Segments::MAX }),
            "shimada-before" => Some(Self::ShimadaBefore),
            "shimada-after" => Some(Self::ShimadaAfter),
            "airtime" => Some(Self::Airtime(AirtimeKnobs::default())),
            _ => None,
        }
    }

    /// The law, ready for its first tick.
    pub fn build(&self) -> Box<dyn Law + Send> {
        match self {
            Self::Fixed { floor, ceiling } => Box::new(Fixed::new(*floor, *ceiling)),
            Self::ShimadaBefore => Box::new(Shimada::before()),
            Self::ShimadaAfter => Box::new(Shimada::after()),
            Self::Airtime(knobs) => Box::new(Airtime::new(knobs.clone())),
        }
    }
}
