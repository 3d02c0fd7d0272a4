//! The links that are not 802.11: the wired leg, and a cellular link in the place of a BSS.

use wakeai_units::{Duration, Rate};

use crate::queue::QueueLimit;

/// The wired leg between the access point and the server, alike in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wired {
    /// The rate of each direction. It counts the bits of IP packets, without headers of the link
    /// layer.
    pub rate: Rate,
    /// Delay of each direction: the RTT grows by twice this.
    pub delay: Duration,
    /// The limit of each direction's queue, including the packet on the wire.
    pub queue: QueueLimit,
    /// The share of packets that each direction loses at random, in parts per million. They have taken
    /// their time on the wire.
    pub loss_ppm: u32,
}

impl Default for Wired {
    /// 1 Gbit/s, 1 ms, 1000 packets, no losses.
    fn default() -> Self {
        Self {
            rate: Rate::from_mbps(1_000),
            delay: Duration::from_millis(1),
            queue: QueueLimit::Packets(1_000),
            loss_ppm: 0,
        }
    }
}

/// A cellular base station: no contention and no broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The rate from all stations together.
    pub uplink: Rate,
    /// The rate to all stations together.
    pub downlink: Rate,
    /// The scheduler of each direction.
    pub scheduler: Scheduler,
}

/// The scheduler that grants the transmission time intervals. All stations have the same rate, so
/// with both schedulers all stations that always have data get the same bytes. The schedulers
/// differ in which station comes first after a pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduler {
    /// Proportional fair (Jalali, Padovani and Pankaj, VTC 2000, for equal rates). The station with
    /// the least recent throughput is served next, so a station that has paused comes first.
    #[default]
    ProportionalFair,
    /// Round robin in turns of equal bytes. A station that has paused is served after all others.
    RoundRobin,
}
