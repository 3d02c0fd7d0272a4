//! How a flow is carried: the algorithm, the sizes of its connections, and when its application writes.

use wakeai_connection::Bounded;
use wakeai_control::{Permission, Pieces};
use wakeai_scenario::{Chunks, Expanded, Experiment, Flow, FlowKind};
use wakeai_units::{Bytes, Duration, Rate};

/// The payload of a full datagram of a UDP flow.
pub const DATAGRAM: Bytes = Bytes::new(1_472);

/// The rate of a UDP flow without `rate`, in per cent of its station's PHY rate. It is more than
/// the air carries.
const SATURATING_PERCENT: u64 = 120;

/// The algorithm that a flow's sender runs. Where an agent bounds the sender, those that obey bounds
/// take the place of `cubic` and `reno`.
pub fn sender_algorithm(flow: &Flow, bounded: bool) -> Option<&str> {
    let asked = flow.algorithm.as_deref()?;
    let stand_in = Bounded::instead_of(asked).filter(|_| bounded && flow.kind == FlowKind::Tcp);
    Some(stand_in.map_or(asked, |algorithm| algorithm.name))
}

/// The division of a flow's data among its connections, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    size: Option<Bytes>,
    chunks: Chunks,
    pieces: Pieces,
    begun: u32,
    share: Share,
    /// The number of pieces that have begun. `rest` is what is left of the last piece after its
    /// connection has failed.
    piece: u32,
    rest: Bytes,
}

impl Division {
    /// The division of `flow`. No connection has begun.
    pub fn new(flow: &Flow) -> Self {
        Self::of(flow.size, flow.chunks, flow.turns)
    }

    /// The division of `size` bytes, `None` for a flow without end. `turns` says whether the flow sends in turns.
    pub fn of(size: Option<Bytes>, chunks: Chunks, turns: bool) -> Self {
        Self {
            size,
            chunks,
            pieces: if turns { Pieces::in_turns() } else { Pieces::new(None) },
            begun: 0,
            share: Share::default(),
            piece: 0,
            rest: Bytes::ZERO,
        }
    }

    /// The size of the flow.
    pub fn size(&self) -> Option<Bytes> {
        self.size
    }

    /// Begins the next connection. Returns the part of the flow that it carries; `None` where there is
    /// no further connection.
    ///
    /// A station that may only try to send begins a small piece, with `"auto"`.
    pub fn begin(&mut self, permission: Permission) -> Option<Share> {
        if self.is_over() {
            return None;
        }
        let before = self.share.before + self.share.size.unwrap_or(Bytes::ZERO);
        let again = self.rest > Bytes::ZERO;
        let size = match (self.size, self.chunks) {
            (None, _) => None,
            _ if again => Some(std::mem::take(&mut self.rest)),
            (Some(size), Chunks::Count(chunks)) => Some(chunk(size, chunks, self.piece)),
            (Some(size), Chunks::Auto) if permission == Permission::Try => {
                Some(Pieces::small(size.saturating_sub(before)))
            }
            (Some(size), Chunks::Auto) => Some(self.pieces.next(size.saturating_sub(before))),
        };
        self.piece += u32::from(!again);
        self.share = Share { before, size };
        self.begun += 1;
        debug_assert!(self.piece <= self.begun, "each piece has a connection");
        debug_assert!(self.size.is_none_or(|all| before + size.unwrap_or(all) <= all));
        Some(self.share)
    }

    /// Whether there is no further connection.
    pub fn is_over(&self) -> bool {
        let given = self.share.before + self.share.size.unwrap_or(Bytes::ZERO);
        self.begun > 0 && self.size.is_none_or(|size| given >= size)
    }

    /// The bytes of the flow that are left, where the last connection has carried `carried` so far.
    pub fn left(&self, carried: Bytes) -> Bytes {
        let size = self.size.unwrap_or(Bytes::ZERO);
        size.saturating_sub(self.share.before).saturating_sub(carried)
    }

    /// Says that the last connection took this time.
    pub fn sent(&mut self, took: Duration) {
        if let Some(size) = self.share.size {
            self.pieces.sent(size, took);
        }
    }

    /// Says that the last connection has failed after it carried `carried`. The next one carries the rest of
    /// its piece; with `"auto"` it carries a smaller piece.
    pub fn cut(&mut self, carried: Bytes) {
        let Some(size) = self.share.size else { return };
        self.share.size = Some(carried.min(size));
        match self.chunks {
            Chunks::Count(_) => self.rest = size.saturating_sub(carried),
            Chunks::Auto => self.pieces.cut(),
        }
    }

    /// The number of connections that have begun.
    pub fn begun(&self) -> u32 {
        self.begun
    }

    /// The part of the last connection that has begun.
    pub fn share(&self) -> Share {
        self.share
    }
}

/// The number of bytes that connection `number` (from 0) carries, where `chunks` connections carry
/// `size` bytes together. Where the division leaves a remainder, the first connections carry one
/// more byte.
fn chunk(size: Bytes, chunks: u32, number: u32) -> Bytes {
    let chunks = u64::from(chunks.max(1));
    let (each, more) = (size.get() / chunks, size.get() % chunks);
    Bytes::new(each + u64::from(u64::from(number) < more))
}

/// The rate of a UDP flow without `rate`.
pub fn saturating_rate(experiment: &Experiment, expanded: &Expanded, flow: &Flow) -> Rate {
    let group = &experiment.stations[expanded.stations[flow.station()].group];
    let rate = group.radio.map_or(experiment.wired.rate, |radio| radio.rate);
    rate.mul_div(SATURATING_PERCENT, 100).unwrap_or(rate)
}

/// The shortest time between two writes. It keeps an application from waking for every byte.
const BETWEEN_WRITES: Duration = Duration::from_millis(5);

/// An application that produces data at a steady rate from the start of its flow. It writes the
/// data in blocks of whole segments; the last write of a connection has the rest. It does not wait
/// for TCP, so data that TCP cannot send yet becomes a backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writing {
    rate: Rate,
    block: u64,
}

/// The part of a flow that one connection carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Bytes of the flow that earlier connections have carried.
    pub before: Bytes,
    /// The bytes of this connection; `None` for a connection without end.
    pub size: Option<Bytes>,
}

impl Writing {
    /// An application that writes at the rate `limit`, which is above zero. Its block is the
    /// smallest number of segments of `segment` bytes that takes at least 5 ms to produce.
    pub fn new(limit: Rate, segment: Bytes) -> Self {
        let segment = segment.get();
        let least = limit.bytes_in(BETWEEN_WRITES).get();
        Self { rate: limit, block: least.div_ceil(segment).max(1) * segment }
    }

    /// The bytes that were written to a connection up to the time `since_start` after the start of
    /// its flow.
    pub fn written(&self, share: Share, since_start: Duration) -> Bytes {
        let produced = self.rate.bytes_in(since_start).saturating_sub(share.before);
        match share.size {
            Some(size) if produced >= size => size,
            _ => Bytes::new(produced.get() / self.block * self.block),
        }
    }

    /// The time from the start of the flow to the next write on a connection that has `written`
    /// bytes so far; `None` if all bytes of the connection are written.
    pub fn next_write(&self, share: Share, written: Bytes) -> Option<Duration> {
        let block_end = (written.get() / self.block).saturating_add(1).saturating_mul(self.block);
        let end = share.size.map_or(block_end, |size| block_end.min(size.get()));
        if end <= written.get() {
            return None;
        }
        self.rate.time_for(Bytes::new(share.before.get().saturating_add(end)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SEGMENT: Bytes = Bytes::new(1_448);

    fn at(kilobits: u64) -> Writing {
        Writing::new(Rate::from_bps(kilobits * 1_000), SEGMENT)
    }

    #[test]
    fn chunks_add_up_to_the_size() {
        let chunks = [0, 1, 2].map(|number| chunk(Bytes::new(10), 3, number));
        assert_eq!(chunks, [4, 3, 3].map(Bytes::new));
        assert_eq!(chunk(Bytes::new(7), 1, 0), Bytes::new(7));
    }

    #[test]
    fn a_block_is_a_segment_or_what_takes_5_ms() {
        // At 2 Mbit/s a segment takes 5.792 ms. At 10 Mbit/s 5 ms produce 6250 bytes, which are
        // five segments when rounded up.
        assert_eq!((at(2_000).block, at(10_000).block), (1_448, 5 * 1_448));
        let (two, endless) = (at(2_000), Share::default());
        let first = two.next_write(endless, Bytes::ZERO).unwrap();
        assert_eq!(first, Duration::from_micros(5_792));
        let just_before = first - Duration::from_nanos(1);
        assert_eq!(two.written(endless, just_before), Bytes::ZERO);
        assert_eq!(two.written(endless, first), SEGMENT);
    }

    #[test]
    fn a_connection_ends_with_what_is_left_of_its_share() {
        let share = Share { before: Bytes::new(700), size: Some(Bytes::new(2_000)) };
        let one = at(1_000);
        // At 125 bytes per millisecond, the first write comes after 700 + 1448 bytes, the last
        // after 700 + 2000.
        let first = one.next_write(share, Bytes::ZERO).unwrap();
        assert_eq!(first, Duration::from_micros(17_184));
        assert_eq!(one.written(share, first), SEGMENT);
        let last = one.next_write(share, SEGMENT).unwrap();
        assert_eq!(
            (last, one.written(share, last)),
            (Duration::from_micros(21_600), Bytes::new(2_000))
        );
        assert_eq!(one.next_write(share, Bytes::new(2_000)), None);
    }

    proptest! {
        #[test]
        fn writes_never_exceed_what_was_produced_and_are_never_late(
            kilobits in 1_u64..1_000_000_000,
            before in 0_u64..1_000_000,
            size in prop::option::of(1_u64..1_000_000),
        ) {
            let writing = at(kilobits);
            let share = Share { before: Bytes::new(before), size: size.map(Bytes::new) };
            let mut written = Bytes::ZERO;
            for _ in 0..50 {
                let Some(next) = writing.next_write(share, written) else {
                    prop_assert_eq!(Some(written), share.size);
                    break;
                };
                prop_assert_eq!(writing.written(share, next - Duration::from_nanos(1)), written);
                let after = writing.written(share, next);
                prop_assert!(after > written);
                prop_assert!(before + after.get() <= writing.rate.bytes_in(next).get());
                let is_whole = after.get().is_multiple_of(SEGMENT.get());
                prop_assert!(is_whole || Some(after) == share.size);
                written = after;
            }
        }
    }
}
