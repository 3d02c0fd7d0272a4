//! What the application of a flow with a `limit` has written by when.

use wakeai_units::{Bytes, Duration, Rate};

/// Between two writes at least: an application that produces all the time does not wake for every
/// byte.
const BETWEEN_WRITES: Duration = Duration::from_millis(5);

/// An application that produces at a steady rate from the start of its flow on, and writes what it
/// has produced: in blocks of whole segments, and the rest of what a connection is to carry at its end.
/// Whether TCP can send it is not its concern, so what was written while it could not is a backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writing {
    rate: Rate,
    block: u64,
}

/// What one connection carries of its flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Bytes of the flow that other connections have carried before.
    pub before: Bytes,
    /// How much; `None`: whatever comes.
    pub size: Option<Bytes>,
}

impl Writing {
    /// At `limit`, which is not zero, in blocks of full segments of `segment` bytes: as few as take
    /// the application 5 ms or longer.
    pub fn new(limit: Rate, segment: Bytes) -> Self {
        let segment = segment.get();
        let least = limit.bytes_in(BETWEEN_WRITES).get();
        Self { rate: limit, block: least.div_ceil(segment).max(1) * segment }
    }

    /// What was written to a connection `since_start` of its flow.
    pub fn written(&self, share: Share, since_start: Duration) -> Bytes {
        let produced = self.rate.bytes_in(since_start).saturating_sub(share.before);
        match share.size {
            Some(size) if produced >= size => size,
            _ => Bytes::new(produced.get() / self.block * self.block),
        }
    }

    /// When something is written next to a connection that has `written`, from the start of its flow;
    /// `None` where that is all.
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
    fn a_block_is_a_segment_or_what_takes_5_ms() {
        // 2 Mbit/s: a segment takes 5.792 ms; 10 Mbit/s: 6250 bytes in 5 ms.
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
        // 700 and 1448 bytes at 125 a millisecond, then 700 and 2000.
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
        fn never_more_is_written_than_was_produced_and_each_write_comes_when_it_is_due(
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
