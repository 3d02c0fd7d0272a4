//! The links that are not 802.11: the wired leg, and a cellular link in the place of a BSS.

use wakeai_units::{Duration, Rate};

/// The wired leg between the access point and the server, alike in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wired {
    /// Rate of each direction, in bits of IP packets.
    pub rate: Rate,
    /// Delay of each direction: the RTT grows by twice this.
    pub delay: Duration,
    /// Packets that each direction keeps, the one on the wire included.
    pub queue: u32,
}

impl Default for Wired {
    /// 1 Gbit/s, 1 ms, 1000 packets.
    fn default() -> Self {
        Self { rate: Rate::from_mbps(1_000), delay: Duration::from_millis(1), queue: 1_000 }
    }
}

/// A cellular base station: no contention and no broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What the cell carries from the stations.
    pub uplink: Rate,
    /// What the cell carries to the stations.
    pub downlink: Rate,
    /// Who is served next, in each direction.
    pub scheduler: Scheduler,
}

/// Who is granted the next transmission time interval. All stations have the same rate, so both give the
/// same bytes to all who always want some; they differ in who goes first after a pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduler {
    /// Who was served least of late (Jalali, Padovani and Pankaj, VTC 2000, for equal rates): who
    /// comes after a pause goes first.
    #[default]
    ProportionalFair,
    /// In turn, as many bytes each: who comes after a pause waits for all others.
    RoundRobin,
}
