//! The trait [`Law`] and its implementations. A law turns a station's figures into bounds for the
//! station's congestion windows. `docs/concepts/laws.md` explains each law, with its formulas.
//!
//! In this crate, "Matsuno et al." is Matsuno, Yamaguchi, Kamiyama and Oguchi, "A Study of
//! Communication Control Considering Wireless and WLANs on Android". "Shimada et al." is Shimada,
//! Yamaguchi and Oguchi, "Performance Evaluation of Backlog Control Middleware in WLAN and LTE
//! networks with Multiple Android Terminals".

pub mod airtime;
mod config;
mod shimada;

use wakeai_units::Instant;

use crate::{Basis, Bounds, Observation};
pub use config::{LARGEST_WINDOW, LawConfig, LawName, LawPlace};

/// A rule that turns the observation of a station into bounds.
///
/// [`Law::on_tick`] is called once per tick (0.5 s), also while nothing is being sent. `now` never
/// goes back.
pub trait Law {
    /// The bounds until the next tick, for the station as a whole, and what they follow from.
    fn on_tick(&mut self, now: Instant, observation: &Observation) -> (Bounds, Basis);
}

/// The same bounds at every tick (Matsuno et al., §5).
struct Fixed(Bounds);

impl Law for Fixed {
    fn on_tick(&mut self, _: Instant, _: &Observation) -> (Bounds, Basis) {
        (self.0, Basis::ByHand)
    }
}
