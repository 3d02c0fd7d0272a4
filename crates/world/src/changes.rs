//! What changes about a station in mid-run.

use wakeai_medium::{ConfigError, Medium, Packet, StationId};
use wakeai_scenario::Experiment;
use wakeai_units::{Duration, Instant, Rate};

/// The knobs that the medium lets turn while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Delay each way between the access point and this station's server.
    WiredDelay(Duration),
    /// Data rate of the station's frames.
    Rate(Rate),
    /// MPDUs that arrive broken, in parts per million.
    FrameErrorPpm(u32),
}

impl Change {
    /// Makes it happen to `station`.
    ///
    /// # Errors
    ///
    /// The medium does not have the new value.
    pub fn apply<P: Packet>(
        self,
        medium: &mut Medium<P>,
        now: Instant,
        station: StationId,
    ) -> Result<(), ConfigError> {
        match self {
            Self::WiredDelay(delay) => medium.set_wired_delay(now, station, delay),
            Self::Rate(rate) => medium.set_rate(now, station, rate),
            Self::FrameErrorPpm(ppm) => medium.set_frame_error_rate(now, station, ppm),
        }
    }
}

/// Something that changes in mid-run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedChange {
    /// When.
    pub at: Instant,
    /// The station that it concerns.
    pub station: StationId,
    /// What becomes of it.
    pub change: Change,
}

/// The `[[events]]` of a run that begins at `origin`, in the order of the file.
pub fn changes(experiment: &Experiment, origin: Instant) -> Vec<TimedChange> {
    let mut all = Vec::new();
    for event in &experiment.events {
        let at = origin + event.at;
        for station in experiment.select(event.stations) {
            let station = StationId(station as u32);
            let changes = [
                event.wired_delay.map(Change::WiredDelay),
                event.rate.map(Change::Rate),
                event.frame_error_ppm.map(Change::FrameErrorPpm),
            ];
            let changes = changes.into_iter().flatten();
            all.extend(changes.map(|change| TimedChange { at, station, change }));
        }
    }
    all
}
