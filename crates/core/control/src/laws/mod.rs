//! The trait [`Law`] and its implementations. A law turns a station's figures into bounds for the
//! station's congestion windows. `docs/concepts/laws.md` explains each law, with its formulas.
//!
//! In this crate, "Matsuno et al." is Matsuno, Yamaguchi, Kamiyama and Oguchi, "A Study of
//! Communication Control Considering Wireless and WLANs on Android". "Shimada et al." is Shimada,
//! Yamaguchi and Oguchi, "Performance Evaluation of Backlog Control Middleware in WLAN and LTE
//! networks with Multiple Android Terminals".

pub mod airtime;
mod shimada;

use wakeai_units::{Bytes, Instant, Segments};

use crate::{Bounds, Observation, Reason};
use airtime::{Airtime, AirtimeKnobs};

/// A rule that turns the observation of a station into bounds.
///
/// [`Law::on_tick`] is called once per tick (0.5 s), also while nothing is being sent. `now` never
/// goes back.
pub trait Law {
    /// The name in scenarios and configurations.
    fn name(&self) -> &'static str;

    /// Whether reservations change the bounds of this law. Reservations do not change bounds that
    /// were set by hand.
    fn yields(&self) -> bool {
        true
    }

    /// The bounds until the next tick, for the station as a whole. The law adds its reasons to
    /// `reasons`.
    fn on_tick(
        &mut self,
        now: Instant,
        observation: &Observation,
        reasons: &mut Vec<Reason>,
    ) -> Bounds;
}

/// A law with its knobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LawConfig {
    /// Bounds set by hand (Matsuno et al., §5).
    Fixed {
        /// The floor of the station, segments; zero is no floor.
        floor: Segments,
        /// The ceiling of the station, segments.
        ceiling: Segments,
        /// The bytes that may wait in the host's queue ([`Bounds::small_queue`]); zero leaves
        /// Linux's own limit.
        small_queue: Bytes,
    },
    /// Each bound is the smaller of two candidates. One is an equal share, by the number of sending
    /// stations, of the window that the path and the access point's buffer allow. The other is read
    /// from the left column of table 1 of Shimada et al. by the queueing delay.
    ShimadaBefore,
    /// As [`Self::ShimadaBefore`], but with the right column of table 1.
    ShimadaAfter,
    /// The law [`airtime`]: a share of the airtime, and a short queue.
    Airtime(AirtimeKnobs),
}

impl LawConfig {
    /// The names that [`LawConfig::from_name`] knows.
    pub const NAMES: [&'static str; 4] = ["fixed", "shimada-before", "shimada-after", "airtime"];
    /// The law `fixed` that bounds nothing.
    pub const UNBOUND: Self = Self::by_hand(Segments::ZERO, Segments::MAX);

    /// The law `fixed` with these bounds of the window, and with Linux's own limit of the host's
    /// queue.
    pub const fn by_hand(floor: Segments, ceiling: Segments) -> Self {
        Self::Fixed { floor, ceiling, small_queue: Bytes::ZERO }
    }

    /// The law with the name `name` and default knobs. `fixed` has no bounds until its fields are
    /// set.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "fixed" => Some(Self::UNBOUND),
            "shimada-before" => Some(Self::ShimadaBefore),
            "shimada-after" => Some(Self::ShimadaAfter),
            "airtime" => Some(Self::Airtime(AirtimeKnobs::default())),
            _ => None,
        }
    }

    /// The law, ready for its first tick.
    pub fn build(&self) -> Box<dyn Law + Send> {
        match self {
            Self::Fixed { floor, ceiling, small_queue } => {
                let window = Bounds::window(*floor, *ceiling);
                Box::new(Fixed(Bounds { small_queue: *small_queue, ..window }))
            }
            Self::ShimadaBefore => Box::new(shimada::BEFORE),
            Self::ShimadaAfter => Box::new(shimada::AFTER),
            Self::Airtime(knobs) => Box::new(Airtime::new(knobs.clone())),
        }
    }
}

/// The same bounds at every tick (Matsuno et al., §5).
struct Fixed(Bounds);

impl Law for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn yields(&self) -> bool {
        false
    }

    fn on_tick(&mut self, _: Instant, _: &Observation, reasons: &mut Vec<Reason>) -> Bounds {
        reasons.push(Reason::ByHand);
        self.0
    }
}
