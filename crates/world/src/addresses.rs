//! The addresses of the emulated network, as the lab gives them and a capture shows them.

use std::net::Ipv4Addr;

use wakeai_medium::StationId;

/// The server, on another network than the stations.
pub const SERVER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 74, 0, 1);
/// All stations.
pub const STATION_BROADCAST: Ipv4Addr = Ipv4Addr::new(10, 73, 255, 255);

/// The address of station `id`: 10.73.0.1 is the first.
pub fn station_address(id: StationId) -> Ipv4Addr {
    let number = id.0 + 1;
    Ipv4Addr::new(10, 73, (number >> 8) as u8, number as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_stations_have_addresses_of_their_own() {
        let mut addresses: Vec<_> = (0..10_000).map(|id| station_address(StationId(id))).collect();
        assert_eq!(addresses[0], Ipv4Addr::new(10, 73, 0, 1));
        assert_eq!(addresses[255], Ipv4Addr::new(10, 73, 1, 0));
        addresses.dedup();
        assert_eq!(addresses.len(), 10_000);
        assert!(!addresses.contains(&STATION_BROADCAST));
    }
}
