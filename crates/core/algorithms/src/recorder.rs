// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A stand-in for an algorithm that records its calls (`c/native/recorder.c`).

use wakeai_connection::CongestionState;

use crate::sock::TcpSock;

/// A hook that was called, and a value of the sender's state at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `on_ack` with `acked` = this number.
    Ack(u8),
    /// `ssthresh` with this window.
    Ssthresh(u8),
    /// `undo_cwnd`, which restores this window.
    Undo(u8),
    /// `set_state`.
    SetState(CongestionState),
    /// `before_sending` with this number of outstanding packets.
    BeforeSending(u8),
    /// `after_idle` with this number of outstanding packets.
    AfterIdle(u8),
}

/// The calls since the start, up to 48 of them.
pub(crate) fn recorded(sock: &TcpSock) -> Vec<Call> {
    let bytes: Vec<u8> = sock.private.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let count = sock.private[0].to_ne_bytes();
    let count = u32::from_ne_bytes([count[0], count[1], count[2], count[3]]);
    bytes[4..].chunks_exact(2).take(count as usize).map(|call| decode(call[0], call[1])).collect()
}

fn decode(hook: u8, detail: u8) -> Call {
    match hook {
        b'a' => Call::Ack(detail),
        b's' => Call::Ssthresh(detail),
        b'u' => Call::Undo(detail),
        b't' => Call::SetState(CongestionState::from_number(detail)),
        b'b' => Call::BeforeSending(detail),
        _ => Call::AfterIdle(detail),
    }
}
