//! What a cellular link is made from.

use wakeai_units::Duration;
use wakeai_wifi::{Cell, Wired};

use crate::error::ConfigError;
use crate::validate;

/// A cellular base station, its stations, and the wire behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellularConfig {
    /// Its rates, in bits of IP packets, and who is served next.
    pub cell: Cell,
    /// Packets that the base station keeps for each station.
    pub buffer: usize,
    /// Between the base station and the server.
    pub wired: Wired,
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

/// The ranges.
pub(super) fn validate(config: &CellularConfig) -> Result<(), ConfigError> {
    validate::granted_rate("uplink", config.cell.uplink)?;
    validate::granted_rate("downlink", config.cell.downlink)?;
    validate::packets("buffer", config.buffer)?;
    validate::wired(&config.wired)?;
    validate::stations(config.stations.len())?;
    for station in &config.stations {
        validate::packets("queue", station.queue)?;
        validate::delay("wired_delay", station.wired_delay)?;
    }
    Ok(())
}
