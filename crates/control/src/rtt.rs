//! How much the RTT has grown over its minimum (001 §3.2 steps 3 and 4).

use wakeai_units::{Duration, Instant};

use crate::{Observation, RttView, StationView};

/// Watches current and minimum RTT of a station's connections.
#[derive(Clone, Debug, Default)]
pub struct RttWatch {
    min: Option<Duration>,
}

impl RttWatch {
    /// A watch that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the connections of one tick and tells the station's RTT.
    pub fn on_tick(&mut self, _now: Instant, own: &StationView) -> Option<RttView> {
        let sampled = || own.connections.iter().filter(|c| c.sending && !c.smoothed_rtt.is_zero());
        let current = sampled().map(|c| c.smoothed_rtt).max()?;
        let kernel = sampled().map(|c| c.min_rtt).filter(|min| !min.is_zero()).min();
        let min = [kernel, self.min, Some(current)].into_iter().flatten().min()?;
        self.min = Some(min);
        Some(RttView { current, min, growth: current.saturating_sub(min) })
    }
}

impl Observation {
    /// How far the RTT is above its minimum; zero where there is none yet.
    pub fn growth(&self) -> Duration {
        self.rtt.map_or(Duration::ZERO, |rtt| rtt.growth)
    }
}
