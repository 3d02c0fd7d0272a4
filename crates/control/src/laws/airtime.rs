//! A share of the air and a short queue: our own law.

use wakeai_units::{Duration, Instant};

use crate::{Bounds, Law, Narrator, Observation, Reason};

/// The knobs of [`Airtime`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AirtimeKnobs {
    /// The RTT growth that the law aims at.
    pub queue_target: Duration,
}

impl Default for AirtimeKnobs {
    fn default() -> Self {
        Self { queue_target: Duration::from_millis(60) }
    }
}

/// The law `airtime`.
#[derive(Clone, Debug)]
pub struct Airtime {
    #[expect(dead_code, reason = "filled in with the law itself")]
    knobs: AirtimeKnobs,
}

impl Airtime {
    /// The law with these knobs.
    pub fn new(knobs: AirtimeKnobs) -> Self {
        Self { knobs }
    }
}

impl Law for Airtime {
    fn name(&self) -> &'static str {
        "airtime"
    }

    fn on_tick(&mut self, _: Instant, _: &Observation, narrator: &mut dyn Narrator) -> Bounds {
        narrator.narrate(Reason::Idle);
        Bounds::NONE
    }
}
