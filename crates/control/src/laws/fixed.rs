//! Bounds by hand, per station (000 §5).

use wakeai_units::{Instant, Segments};

use crate::{Bounds, Law, Narrator, Observation, Reason};

/// The same bounds at every tick.
#[derive(Clone, Debug)]
pub struct Fixed {
    bounds: Bounds,
}

impl Fixed {
    /// Holds the station's windows in `floor..=ceiling` segments together.
    pub fn new(floor: Segments, ceiling: Segments) -> Self {
        Self { bounds: Bounds::window(floor, ceiling) }
    }
}

impl Law for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn yields(&self) -> bool {
        false
    }

    fn on_tick(&mut self, _: Instant, _: &Observation, narrator: &mut dyn Narrator) -> Bounds {
        narrator.narrate(Reason::ByHand);
        self.bounds
    }
}
