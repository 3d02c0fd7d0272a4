//! What a cellular link is made from.

use wakeai_units::{Duration, Rate};

use crate::config::WiredConfig;
use crate::error::ConfigError;
use crate::validate;

/// A cellular base station, its stations, and the wire behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellularConfig {
    /// What all stations together send, in bits of IP packets.
    pub uplink: Rate,
    /// What all stations together receive, in bits of IP packets.
    pub downlink: Rate,
    /// Packets that the base station keeps for each station.
    pub buffer: usize,
    /// Who is granted the next transmission time interval, in each direction.
    pub scheduler: Scheduler,
    /// Between the base station and the server.
    pub wired: WiredConfig,
    /// The stations, in the order of their [`StationId`](crate::StationId).
    pub stations: Vec<CellularStationConfig>,
}

/// One station on a cellular link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellularStationConfig {
    /// Packets that its modem keeps for the air.
    pub queue: usize,
    /// Delay each way between this station's server and the wired leg, on top of the leg's own.
    pub wired_delay: Duration,
}

/// Who is granted the next transmission time interval. All stations have the same rate, so both
/// give the same bytes to all who always want some; they differ in who goes first after a pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduler {
    /// Who was served least of late (Jalali, Padovani and Pankaj, VTC 2000, for equal rates): who
    /// comes after a pause goes first.
    #[default]
    ProportionalFair,
    /// In turn, as many bytes each: who comes after a pause waits for all others.
    RoundRobin,
}

/// The ranges.
pub(super) fn validate(config: &CellularConfig) -> Result<(), ConfigError> {
    validate::granted_rate("uplink", config.uplink)?;
    validate::granted_rate("downlink", config.downlink)?;
    validate::packets("buffer", config.buffer)?;
    validate::wired(&config.wired)?;
    validate::stations(config.stations.len())?;
    for station in &config.stations {
        validate::packets("queue", station.queue)?;
        validate::delay("wired_delay", station.wired_delay)?;
    }
    Ok(())
}
