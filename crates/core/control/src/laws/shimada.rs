//! The laws of Shimada et al. Each bound is the smaller of two candidates. One follows from the
//! number of stations, the other is read from a table by the queueing delay. The paper calls the
//! queueing delay RTT growth.

use wakeai_units::{Duration, Instant, Segments};

use crate::{Basis, Bounds, Law, Observation};

/// Candidate 1 of both bounds: a station's share of the path and of the access point's buffer.
///
/// The paper (§3.2 step 2) does not print its formula. This formula follows Keceli, Inan and
/// Ayanoglu (arXiv 0806.1089): uplink windows are limited so that the ACKs of all stations fit in
/// the access point's buffer together. Let `C` be the aggregate goodput, `R` the minimum RTT, `B`
/// the buffer in packets, `d` the data segments per ACK and `n` the number of stations that send.
/// Then
///
/// floor = ceiling = (C·R/MSS + d·B) / n.
///
/// A floor of (C·R/MSS) / n, without the buffer, would follow from what the present windows deliver, and could not
/// raise windows that are too small (docs/decisions/050).
///
/// The result is `None` while `C` or `R` is unknown.
fn by_senders(observation: &Observation) -> Option<Bounds> {
    let rtt = observation.up.rtt?;
    if observation.total_rate.bits_per_second() == 0 || rtt.min.is_zero() {
        return None;
    }
    let path = Segments::in_flight(observation.total_rate, rtt.min, observation.mss());
    let acks = observation.access_point_buffer.saturating_mul(observation.segments_per_ack);
    let senders = observation.senders.max(1);
    let total = path.saturating_add(Segments::new(acks));
    let share = Segments::new((total.get() / senders).max(1));
    Some(Bounds::window(share, share))
}

/// One row of table 1: the smallest queueing delay of the row (ms), the ceiling and the floor
/// (segments).
type TableRow = (u64, u32, u32);

/// The law `shimada-before` or `shimada-after`.
#[derive(Clone, Debug)]
pub(super) struct Shimada {
    /// One column of table 1.
    table: [TableRow; 5],
}

/// The left column of table 1, 改善前 (before the improvement).
pub(super) const BEFORE: Shimada =
    Shimada { table: [(0, 555, 200), (51, 555, 50), (106, 555, 10), (161, 555, 2), (331, 555, 1)] };

/// The right column of table 1, 改善後 (after the improvement).
pub(super) const AFTER: Shimada = Shimada {
    table: [(0, 600, 300), (51, 555, 200), (106, 500, 150), (161, 500, 100), (331, 300, 50)],
};

impl Shimada {
    /// Candidate 2 (§3.2 step 5). A row of the table applies from its own queueing delay up to the
    /// delay of the next row, in whole milliseconds (`0-`, `51-`, …). The table's caption says
    /// "number of terminals", but the paper's text says RTT growth.
    fn by_growth(&self, growth: Duration) -> Bounds {
        let growth_ms = growth.as_millis();
        let row = self.table.iter().rev().find(|row| row.0 <= growth_ms).unwrap_or(&self.table[0]);
        Bounds::window(Segments::new(row.2), Segments::new(row.1))
    }
}

impl Law for Shimada {
    fn on_tick(&mut self, _now: Instant, observation: &Observation) -> (Bounds, Basis) {
        let growth = observation.up.rtt.map(|rtt| rtt.growth);
        let by_growth = self.by_growth(growth.unwrap_or(Duration::ZERO));
        let by_senders = by_senders(observation);
        let bounds = by_senders.map_or(by_growth, |other| {
            Bounds::window(other.floor.min(by_growth.floor), other.ceiling.min(by_growth.ceiling))
        });
        let senders = observation.senders;
        (bounds, Basis::Candidates { senders, growth, by_senders, by_growth })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::example;
    use crate::{OwnTraffic, RttView};
    use wakeai_units::Rate;

    fn table(law: &Shimada) -> Vec<(u64, u32, u32)> {
        [0, 50, 51, 105, 106, 160, 161, 330, 331, 60_000]
            .into_iter()
            .map(|ms| {
                let bounds = law.by_growth(Duration::from_millis(ms));
                (ms, bounds.ceiling.get(), bounds.floor.get())
            })
            .collect()
    }

    #[test]
    fn the_table_is_that_of_the_paper() {
        let before = [
            (0, 555, 200),
            (50, 555, 200),
            (51, 555, 50),
            (105, 555, 50),
            (106, 555, 10),
            (160, 555, 10),
            (161, 555, 2),
            (330, 555, 2),
            (331, 555, 1),
            (60_000, 555, 1),
        ];
        assert_eq!(table(&BEFORE), before);
        let after = [
            (0, 600, 300),
            (50, 600, 300),
            (51, 555, 200),
            (105, 555, 200),
            (106, 500, 150),
            (160, 500, 150),
            (161, 500, 100),
            (330, 500, 100),
            (331, 300, 50),
            (60_000, 300, 50),
        ];
        assert_eq!(table(&AFTER), after);
    }

    #[test]
    fn growth_is_compared_in_whole_milliseconds() {
        let law = AFTER;
        let almost = Duration::from_millis(51).saturating_sub(Duration::from_nanos(1));
        assert_eq!(law.by_growth(almost).ceiling, Segments::new(600));
    }

    fn seen(senders: u32, mbps: u64, min_ms: u64, growth_ms: u64) -> Observation {
        let (min, growth) = (Duration::from_millis(min_ms), Duration::from_millis(growth_ms));
        let rtt = Some(RttView { current: min + growth, min, growth });
        let up = OwnTraffic { connections: vec![example()], rtt, ..OwnTraffic::default() };
        let total_rate = Rate::from_mbps(mbps);
        Observation { up, senders, total_rate, ..Observation::default() }
    }

    #[test]
    fn each_bound_is_the_smaller_of_the_candidates() {
        let bounds = |observation: &Observation| {
            let (bounds, basis) = AFTER.clone().on_tick(Instant::ZERO, observation);
            assert!(matches!(basis, Basis::Candidates { .. }), "{basis}");
            (bounds.floor.get(), bounds.ceiling.get())
        };
        // At 48 Mbit/s a path of 512 ms holds 2122 segments, and the buffer holds the ACKs of 600.
        // Each of six stations has 453.
        assert_eq!(bounds(&seen(6, 48, 512, 0)), (300, 453));
        assert_eq!(bounds(&seen(6, 48, 512, 200)), (100, 453));
        assert_eq!(bounds(&seen(1, 48, 512, 0)), (300, 600), "alone: the table decides");
        assert_eq!(bounds(&seen(40, 48, 2, 0)), (15, 15), "many stations divide the windows");
        assert_eq!(
            bounds(&seen(6, 1, 512, 0)),
            (107, 107),
            "what small windows deliver does not keep them small"
        );
        assert_eq!(bounds(&seen(6, 0, 512, 0)), (300, 600), "no rate yet: the table alone");
    }
}
