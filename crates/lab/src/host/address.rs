//! The addresses of the emulated network.

pub(crate) use wakeai_world::addresses::{SERVER_ADDRESS, STATION_BROADCAST, station_address};

use std::net::Ipv4Addr;

use wakeai_medium::StationId;

/// The stations' network: one broadcast domain, the BSS.
pub(crate) const STATION_PREFIX_BITS: u8 = 16;
/// The network of a cable between a station and the sender behind it.
pub(crate) const CABLE_PREFIX_BITS: u8 = 16;
/// The station's end of such a cable. They never meet, so all have the same.
pub(crate) const CABLE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 75, 255, 254);

/// The address of the sender behind station `id`: 10.75.0.1 behind the first.
pub(crate) fn sender_address(id: StationId) -> Ipv4Addr {
    let [ten, _, high, low] = station_address(id).octets();
    Ipv4Addr::new(ten, CABLE_ADDRESS.octets()[1], high, low)
}
