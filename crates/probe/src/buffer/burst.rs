//! What one burst has shown.

use wakeai_units::Instant;

use crate::arrivals::Arrival;

/// The datagrams before the burst itself, with pauses between them. They meet an empty queue, so the fastest of them
/// tells the delay without queueing.
pub const PRELUDE: usize = 10;

/// One flow of a burst, with what arrived of it.
#[derive(Clone, Debug, Default)]
pub struct Burst {
    /// When each datagram was handed to the kernel, by the sender's clock; the index is its number.
    pub sent: Vec<Instant>,
    /// Number and time of what arrived, by the listener's clock. The two clocks may differ by any time that stays the
    /// same during the burst.
    pub arrivals: Vec<(u32, Instant)>,
}

/// A datagram that has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accepted {
    pub(crate) number: usize,
    /// By the sender's clock, in nanoseconds.
    pub(crate) sent_ns: i64,
    /// By the listener's clock.
    pub(crate) came_ns: i64,
}

impl Accepted {
    /// The delay plus the difference of the two clocks.
    pub(crate) fn delay_ns(&self) -> i64 {
        self.came_ns - self.sent_ns
    }
}

impl Burst {
    /// The burst with the arrivals of one of its flows.
    pub fn of_flow(flow: u8, sent: Vec<Instant>, arrivals: &[Arrival]) -> Self {
        let ours = arrivals.iter().filter(|arrival| arrival.flow == flow);
        Self { sent, arrivals: ours.map(|arrival| (arrival.number, arrival.at)).collect() }
    }

    /// What arrived, by number. The first arrival of a number counts.
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
