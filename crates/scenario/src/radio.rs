//! What carries the packets: an 802.11 access point or a cellular base station.

use wakeai_wifi::{Bss, Cell};

/// What carries the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// An 802.11 BSS.
    Wifi(Bss),
    /// A cellular link.
    Cellular(Cell),
}

/// What the stations share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessPoint {
    /// Its buffer towards the stations, in packets: of all together on Wi-Fi, of each on cellular.
    pub buffer: u32,
    /// What carries the packets.
    pub medium: Medium,
}

impl AccessPoint {
    /// The BSS, unless this is a cellular base station.
    pub fn wifi(&self) -> Option<&Bss> {
        match &self.medium {
            Medium::Wifi(bss) => Some(bss),
            Medium::Cellular(_) => None,
        }
    }
}
