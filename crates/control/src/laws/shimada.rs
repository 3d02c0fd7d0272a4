//! The laws of 001: the smaller of a share by the number of stations and a table by RTT growth.

use wakeai_units::{Duration, Instant, Segments};

use super::by_senders;
use crate::{Bounds, Law, Narrator, Observation, Reason};

/// One row of 001 table 1: from this RTT growth (ms) on, the ceiling and the floor (segments).
type Row = (u64, u32, u32);

/// 001 table 1, 改善前 (before the improvement).
const BEFORE: [Row; 5] =
    [(0, 555, 200), (51, 555, 50), (106, 555, 10), (161, 555, 2), (331, 555, 1)];

/// 001 table 1, 改善後 (after the improvement).
const AFTER: [Row; 5] =
    [(0, 600, 300), (51, 555, 200), (106, 500, 150), (161, 500, 100), (331, 300, 50)];

/// `shimada-before` or `shimada-after`.
#[derive(Clone, Debug)]
pub struct Shimada {
    name: &'static str,
    table: &'static [Row; 5],
}

impl Shimada {
    /// The left column of 001 table 1.
    pub fn before() -> Self {
        Self { name: "shimada-before", table: &BEFORE }
    }

    /// The right column of 001 table 1.
    pub fn after() -> Self {
        Self { name: "shimada-after", table: &AFTER }
    }

    /// Candidate 2 (001 §3.2 step 5). The rows `0-`, `51-`, … of the table are RTT growth in whole
    /// milliseconds, though its caption says "number of terminals".
    pub fn by_growth(&self, growth: Duration) -> Bounds {
        let growth_ms = growth.as_millis();
        let row = self.table.iter().rev().find(|row| row.0 <= growth_ms).unwrap_or(&self.table[0]);
        Bounds::window(Segments::new(row.2), Segments::new(row.1))
    }
}

impl Law for Shimada {
    fn name(&self) -> &'static str {
        self.name
    }

    fn on_tick(
        &mut self,
        _now: Instant,
        observation: &Observation,
        narrator: &mut dyn Narrator,
    ) -> Bounds {
        let growth = observation.rtt.map(|rtt| rtt.growth);
        let by_growth = self.by_growth(growth.unwrap_or(Duration::ZERO));
        let by_senders = by_senders(observation);
        narrator.narrate(Reason::Candidates {
            senders: observation.senders,
            growth,
            by_senders,
            by_growth,
        });
        match by_senders {
            Some(other) => Bounds::window(
                other.floor.min(by_growth.floor),
                other.ceiling.min(by_growth.ceiling),
            ),
            None => by_growth,
        }
    }
}
