//! What a station's flows reserve.

use wakeai_units::{Instant, Rate};
use wakeai_world::reservations::ReservationLog;

use crate::flow::FlowState;

/// The reservation of one station.
#[derive(Debug, Default)]
pub(crate) struct Reserving {
    /// The flows that ask for one.
    pub(crate) flows: Vec<u32>,
    pub(crate) log: ReservationLog,
}

impl Reserving {
    /// What the flows that are running ask for together.
    pub(crate) fn wanted(&self, now: Instant, flows: &[FlowState]) -> Option<Rate> {
        let flows = self.flows.iter().map(|flow| &flows[*flow as usize]);
        let running = flows.filter(|flow| flow.start <= now && !flow.is_over());
        let sum: Rate = running.filter_map(|flow| flow.reserves).sum();
        (sum > Rate::ZERO).then_some(sum)
    }
}
