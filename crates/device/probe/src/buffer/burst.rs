//! The datagrams of one burst: when each was sent, and which arrived when.

use wakeai_units::Instant;

use crate::arrivals::BurstArrival;

/// The number of datagrams that are sent before the burst itself, with pauses between them. They
/// meet an empty queue, so the smallest of their delays is the delay without queueing.
pub const PRELUDE: usize = 10;

/// One flow of a burst: the datagrams that were sent, and those that arrived.
#[derive(Clone, Debug, Default)]
pub struct Burst {
    /// When each datagram was handed to the kernel, by the sender's clock. The index is the
    /// datagram's number.
    pub sent: Vec<Instant>,
    /// The number of each datagram that arrived, and its time by the listener's clock. The two
    /// clocks may differ, if their difference stays the same during the burst.
    pub arrivals: Vec<(u32, Instant)>,
}

/// A datagram that has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accepted {
    pub(crate) number: usize,
    /// The time at which it was sent, by the sender's clock.
    pub(crate) sent_ns: i64,
    /// The time at which it arrived, by the listener's clock.
    pub(crate) came_ns: i64,
}

impl Accepted {
    /// The delay of the datagram plus the difference of the two clocks.
    pub(crate) fn delay_ns(&self) -> i64 {
        self.came_ns - self.sent_ns
    }
}

impl Burst {
    /// The flow `flow` of a burst, from the arrivals of all its flows.
    pub fn of_flow(flow: u8, sent: Vec<Instant>, arrivals: &[BurstArrival]) -> Self {
        let ours = arrivals.iter().filter(|arrival| arrival.flow == flow);
        Self { sent, arrivals: ours.map(|arrival| (arrival.number, arrival.at)).collect() }
    }

    /// The datagrams that arrived, ordered by number. If a datagram arrived twice, its first
    /// arrival counts.
    pub(crate) fn accepted(&self) -> Vec<Accepted> {
        let one = |(number, at): &(u32, Instant)| {
            let sent = self.sent.get(*number as usize)?;
            Some(Accepted {
                number: *number as usize,
                sent_ns: sent.as_nanos().cast_signed(),
                came_ns: at.as_nanos().cast_signed(),
            })
        };
        let mut accepted: Vec<Accepted> = self.arrivals.iter().filter_map(one).collect();
        accepted.sort_by_key(|one| (one.number, one.came_ns));
        accepted.dedup_by_key(|one| one.number);
        accepted
    }
}
