//! The records of the monitor: makes samples and events of what the kernel wrote.

use wakeai_connection::{CongestionState, EventKind, Figures, Signal};
use wakeai_units::Instant;

use crate::raw::{RecordValue, Socket};
use crate::skeleton::monitor::types::record_kind;

/// A record of the monitor: a sample at an ACK, or an event, which is always reported.
///
/// Samples come from the kernel's tracepoint `tcp_probe`, which covers only established
/// connections. Once this end has closed, only events and [`crate::Snapshotter`] show what the
/// connection still sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The time of the record, by `CLOCK_MONOTONIC`.
    pub at: Instant,
    /// The connection.
    pub socket: Socket,
    /// The connection's figures at that time. A sample has them as they were before its ACK was
    /// handled.
    pub figures: Figures,
    /// The event; `None` in a sample.
    pub event: Option<EventKind>,
}

/// Bits of `enum state_detail` of `intf.h`: the causes of a change to the state CWR.
const BY_ECN: u32 = 1 << 16;
const BY_TAIL_LOSS_PROBE: u32 = 1 << 17;

/// Converts a raw record. A change of state becomes one record per event; any other raw record
/// becomes one record.
pub(super) fn expand(value: &RecordValue, on_record: &mut dyn FnMut(Record)) {
    let at = Instant::from_nanos(value.at_ns);
    let socket = value.socket.to_socket();
    let figures = value.figures.to_figures(value.socket.ifindex);
    let mut record = |event| on_record(Record { at, socket, figures, event });
    let mut event = |kind| record(Some(kind));
    match value.kind {
        record_kind::RECORD_SAMPLE => record(None),
        record_kind::RECORD_OPENED => event(EventKind::Opened),
        record_kind::RECORD_CLOSED => event(EventKind::Closed),
        record_kind::RECORD_STATE => state_events(value.detail, &mut event),
        record_kind::RECORD_RETRANSMIT => event(EventKind::Retransmit),
        kind => debug_assert!(false, "the monitor sends no record of kind {kind:?}"),
    }
}

/// Reports a change of the congestion state. If the new state is Loss, it also reports a timeout; a
/// further timeout in Loss comes without a change. After each event it reports the error that the
/// event stands for, if any.
fn state_events(detail: u32, event: &mut dyn FnMut(EventKind)) {
    let from = CongestionState::from_number(detail as u8);
    let to = CongestionState::from_number((detail >> 8) as u8);
    let signal = if detail & BY_ECN != 0 {
        Some(Signal::Ecn)
    } else {
        (detail & BY_TAIL_LOSS_PROBE != 0).then_some(Signal::TailLossProbe)
    };
    let change = (from != to).then_some(EventKind::StateChange { from, to, signal });
    let timeout = (to == CongestionState::Loss).then_some(EventKind::Timeout);
    for kind in [change, timeout].into_iter().flatten() {
        event(kind);
        if let Some(code) = kind.error() {
            event(EventKind::Error(code));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakeai_connection::ErrorCode;

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
    fn the_kernel_s_bits_become_a_change_its_signal_and_its_error() {
        let change = |signal| EventKind::StateChange {
            from: CongestionState::Open,
            to: CongestionState::Cwr,
            signal,
        };
        assert_eq!(events(0x200), [change(None), EventKind::Error(ErrorCode::LocalOverflow)]);
        assert_eq!(events(0x200 | BY_ECN), [change(Some(Signal::Ecn))]);
        assert_eq!(events(0x200 | BY_TAIL_LOSS_PROBE), [change(Some(Signal::TailLossProbe))]);
    }
}
