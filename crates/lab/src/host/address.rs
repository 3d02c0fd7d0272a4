//! The addresses of the emulated network.

pub(crate) use wakeai_world::addresses::{SERVER_ADDRESS, STATION_BROADCAST, station_address};

/// The stations' network: one broadcast domain, the BSS.
pub(crate) const STATION_PREFIX_BITS: u8 = 16;
