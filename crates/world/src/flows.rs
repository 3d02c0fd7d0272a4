//! What carries a flow: connections, their algorithm, and when their application writes.

use wakeai_scenario::{Expanded, Experiment, Flow};
use wakeai_units::{Bytes, Duration, Rate};

/// Payload of a datagram of a UDP flow.
pub const DATAGRAM: Bytes = Bytes::new(1_472);

/// A UDP sender without a rate sends this share of its station's PHY rate: more than the air
/// carries.
const SATURATING_PERCENT: u64 = 120;

/// The algorithm that a flow's sender runs. Under a law, `cubic` and `reno` on a station whose
/// agent bounds its connections are the bounded ones (DESIGN §5).
pub fn sender_algorithm(flow: &Flow, bounded: bool) -> Option<&str> {
    let asked = flow.algorithm.as_deref()?;
    Some(match asked {
        "cubic" if bounded => "wakeai_cubic",
        "reno" if bounded => "wakeai_reno",
        other => other,
    })
}

/// What connection `number` of `chunks`, from 0, carries of `size`: as even as whole bytes allow,
/// the remainder with the first ones.
pub fn chunk(size: Bytes, chunks: u32, number: u32) -> Bytes {
    let chunks = u64::from(chunks.max(1));
    let (each, more) = (size.get() / chunks, size.get() % chunks);
    Bytes::new(each + u64::from(u64::from(number) < more))
}

/// The rate of a UDP flow that has none of its own.
pub fn saturating_rate(experiment: &Experiment, expanded: &Expanded, flow: &Flow) -> Rate {
    let group = &experiment.stations[expanded.stations[flow.station()].group];
    let rate = group.radio.map_or(experiment.wired.rate, |radio| radio.rate);
    rate.mul_div(SATURATING_PERCENT, 100).unwrap_or(rate)
}

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
    fn chunks_add_up_to_the_size() {
        let chunks = [0, 1, 2].map(|number| chunk(Bytes::new(10), 3, number));
        assert_eq!(chunks, [4, 3, 3].map(Bytes::new));
        assert_eq!(chunk(Bytes::new(7), 1, 0), Bytes::new(7));
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
