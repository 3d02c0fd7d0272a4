//! The events of a connection, and the congestion event that each of them stands for.

use crate::CongestionState;

/// An event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum EventKind {
    /// The connection was established.
    Opened,
    /// The connection ended, in order or not.
    Closed,
    /// The congestion state changed.
    #[strum(to_string = "state")]
    StateChange {
        /// The state before.
        from: CongestionState,
        /// The state after.
        to: CongestionState,
        /// The cause of the reduction where the state changes to [`CongestionState::Cwr`]; `None`
        /// where the cause is unknown.
        signal: Option<Signal>,
    },
    /// A segment was retransmitted.
    Retransmit,
    /// The retransmission timer expired.
    Timeout,
    /// A congestion event. It is recorded after the event that caused it ([`EventKind::error`]).
    Error(ErrorCode),
}

/// The cause of a change to CWR (a reduction of the window), other than a full local queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The receiver echoed congestion (RFC 3168).
    Ecn,
    /// A tail loss probe repaired a loss (RFC 8985 section 7.4).
    TailLossProbe,
}

impl EventKind {
    /// The name of the event in records and in the monitor's output.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The number beside the name in records. A change of state has the number of the new state,
    /// and a congestion event its error code. All other events have 0.
    pub fn value(self) -> u8 {
        match self {
            Self::StateChange { to, .. } => to.number(),
            Self::Error(code) => code.number(),
            _ => 0,
        }
    }

    /// The error code of Matsuno et al. (table 2) that this event stands for.
    ///
    /// Disorder counts only where it begins in Open, because Disorder after Recovery or CWR is no
    /// new reordering. CWR counts as an overflow of the local queue where no [`Signal`] explains
    /// it. Each timeout counts, even in Loss, where it changes no state.
    pub fn error(self) -> Option<ErrorCode> {
        use CongestionState::{Cwr, Disorder, Open, Recovery};
        match self {
            Self::StateChange { from: Open, to: Disorder, .. } => Some(ErrorCode::Reordering),
            Self::StateChange { to: Cwr, signal: None, .. } => Some(ErrorCode::LocalOverflow),
            Self::StateChange { to: Recovery, .. } => Some(ErrorCode::DuplicateAck),
            Self::Timeout => Some(ErrorCode::Timeout),
            _ => None,
        }
    }
}

/// The congestion events of Matsuno et al., table 2, with its codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ErrorCode {
    /// Segments were selectively acknowledged out of order, and nothing was taken for lost.
    Reordering = 1,
    /// The send queue of the host was full.
    LocalOverflow = 2,
    /// Fast recovery began.
    DuplicateAck = 3,
    /// The retransmission timer expired.
    Timeout = 4,
}

impl ErrorCode {
    /// The code in the paper's table.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The name of the event in the results' JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CongestionState::{Cwr, Disorder, Loss, Open, Recovery};

    #[test]
    fn each_event_has_the_code_of_the_papers_table() {
        let change = |from, to, signal| EventKind::StateChange { from, to, signal };
        let cases = [
            (change(Open, Disorder, None), 1),
            (change(Cwr, Disorder, None), 0),
            (change(Recovery, Disorder, None), 0),
            (change(Open, Cwr, None), 2),
            (change(Disorder, Cwr, None), 2),
            (change(Open, Cwr, Some(Signal::Ecn)), 0),
            (change(Open, Cwr, Some(Signal::TailLossProbe)), 0),
            (change(Open, Recovery, None), 3),
            (change(Cwr, Recovery, None), 3),
            (change(Recovery, Loss, None), 0),
            (change(Recovery, Open, None), 0),
            (EventKind::Timeout, 4),
            (EventKind::Retransmit, 0),
            (EventKind::Opened, 0),
            (EventKind::Closed, 0),
        ];
        for (event, code) in cases {
            assert_eq!(event.error().map_or(0, ErrorCode::number), code, "{event:?}");
        }
    }
}
