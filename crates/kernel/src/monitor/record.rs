//! What the monitor reports.

use wakeai_units::Instant;

use crate::raw::RecordValue;
use crate::skeleton::monitor::types::record_kind;
use crate::tcp::{CongestionState, Figures, Socket};

/// One thing that the monitor saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// A connection's figures when an ACK arrived.
    Sample(Sample),
    /// Something that is never sampled away.
    Event(Event),
}

/// A connection's figures when an ACK arrived, as the ACK before it left them.
///
/// The kernel's tracepoint (`tcp_probe`) covers established connections: once this end has closed,
/// what it still sends is seen by events only (and by [`crate::snapshot`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// `CLOCK_MONOTONIC`.
    pub at: Instant,
    /// Which connection.
    pub socket: Socket,
    /// Its figures.
    pub figures: Figures,
}

/// Something that happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// `CLOCK_MONOTONIC`.
    pub at: Instant,
    /// Which connection.
    pub socket: Socket,
    /// Its figures then.
    pub figures: Figures,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The connection was established.
    Opened,
    /// The connection is closed.
    Closed,
    /// The congestion state changed.
    StateChange {
        /// Before.
        from: CongestionState,
        /// After.
        to: CongestionState,
    },
    /// A segment was retransmitted.
    Retransmit,
    /// The retransmission timer ran out; [`ErrorCode::Timeout`] follows.
    Timeout,
    /// An error code of DESIGN §6 (000 table 2): follows the state change that it comes from.
    Error(ErrorCode),
}

/// The error codes of 000 table 2, from the kernel's congestion state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorCode {
    /// 1: Disorder.
    Reordering = 1,
    /// 2: CWR without ECN, so the local send queue overflowed.
    LocalOverflow = 2,
    /// 3: Recovery.
    DuplicateAck = 3,
    /// 4: Loss.
    Timeout = 4,
}

impl ErrorCode {
    /// The number in the paper's table.
    pub fn number(self) -> u8 {
        self as u8
    }
}

const SAMPLE: u32 = record_kind::RECORD_SAMPLE.0;
const OPENED: u32 = record_kind::RECORD_OPENED.0;
const CLOSED: u32 = record_kind::RECORD_CLOSED.0;
const STATE: u32 = record_kind::RECORD_STATE.0;

/// `enum state_detail` of `intf.h`
const BY_ECN: u32 = 1 << 16;
const BY_TAIL_LOSS_PROBE: u32 = 1 << 17;

/// Hands over what a raw record stands for: one record, or a state change with what it means.
pub(super) fn expand(value: &RecordValue, on_record: &mut dyn FnMut(Record)) {
    let at = Instant::from_nanos(value.at_ns);
    let socket = value.socket.to_socket();
    let figures = value.figures.to_figures(value.socket.ifindex);
    let mut event = |kind| on_record(Record::Event(Event { at, socket, figures, kind }));
    match value.kind {
        SAMPLE => on_record(Record::Sample(Sample { at, socket, figures })),
        OPENED => event(EventKind::Opened),
        CLOSED => event(EventKind::Closed),
        STATE => state_events(value.detail, &mut event),
        _ => event(EventKind::Retransmit),
    }
}

fn state_events(detail: u32, event: &mut dyn FnMut(EventKind)) {
    let from = CongestionState::from_kernel(detail as u8);
    let to = CongestionState::from_kernel((detail >> 8) as u8);
    if from != to {
        event(EventKind::StateChange { from, to });
    }
    if to == CongestionState::Loss {
        event(EventKind::Timeout);
    }
    let overflow = detail & (BY_ECN | BY_TAIL_LOSS_PROBE) == 0;
    let code = match to {
        // What Recovery or CWR ends in is no new reordering.
        CongestionState::Disorder if from == CongestionState::Open => Some(ErrorCode::Reordering),
        CongestionState::Cwr if overflow => Some(ErrorCode::LocalOverflow),
        CongestionState::Recovery => Some(ErrorCode::DuplicateAck),
        CongestionState::Loss => Some(ErrorCode::Timeout),
        _ => None,
    };
    if let Some(code) = code {
        event(EventKind::Error(code));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(detail: u32) -> Vec<EventKind> {
        let mut seen = Vec::new();
        state_events(detail, &mut |kind| seen.push(kind));
        seen
    }

    #[test]
    fn a_second_timeout_in_loss_is_an_error_but_no_state_change() {
        assert_eq!(events(0x404), [EventKind::Timeout, EventKind::Error(ErrorCode::Timeout)]);
    }

    #[test]
    fn a_reduction_asked_for_by_ecn_is_no_overflow() {
        let change =
            EventKind::StateChange { from: CongestionState::Open, to: CongestionState::Cwr };
        assert_eq!(events(0x200), [change, EventKind::Error(ErrorCode::LocalOverflow)]);
        assert_eq!(events(0x200 | BY_ECN), [change]);
        assert_eq!(events(0x200 | BY_TAIL_LOSS_PROBE), [change]);
    }

    #[test]
    fn the_codes_are_those_of_the_papers_table() {
        let codes = [0x100, 0x200, 0x300, 0x400].map(|detail| match events(detail).last() {
            Some(EventKind::Error(code)) => code.number(),
            _ => 0,
        });
        assert_eq!(codes, [1, 2, 3, 4]);
    }
}
