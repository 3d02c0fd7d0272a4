//! One TCP connection in the kernel's terms: what it does ([`Figures`]), what happens to it
//! ([`EventKind`]), which congestion event that is ([`ErrorCode`]), and the limits that its
//! congestion control obeys ([`SocketBounds`]).
//!
//! The monitor reads these from the kernel and the simulator's TCP gives the same, so agents, laws
//! and records see no difference between the two.

mod event;

pub use event::{ErrorCode, EventKind, Signal};

use wakeai_units::{Bytes, Duration, Rate, Segments};

/// The slow-start threshold before the first reduction (`TCP_INFINITE_SSTHRESH`).
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// The kernel's congestion state (`icsk_ca_state`), in the order and with the numbers of its
/// `enum tcp_ca_state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CongestionState {
    /// Nothing unusual.
    #[default]
    Open,
    /// Duplicate ACKs or SACKs, no reduction yet.
    Disorder,
    /// The window is being reduced after ECN, a full local queue or a repaired tail loss.
    Cwr,
    /// Fast recovery: the window is being reduced after a loss.
    Recovery,
    /// A retransmission timeout.
    Loss,
}

impl CongestionState {
    /// The state with this number in the kernel; every number above 4 is Loss.
    pub fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Open,
            1 => Self::Disorder,
            2 => Self::Cwr,
            3 => Self::Recovery,
            _ => Self::Loss,
        }
    }

    /// The state with this [`Self::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        (0..5).map(Self::from_number).find(|state| state.name() == name)
    }

    /// The kernel's number.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Disorder => "disorder",
            Self::Cwr => "cwr",
            Self::Recovery => "recovery",
            Self::Loss => "loss",
        }
    }
}

/// The figures of a connection at one moment, as its `tcp_sock` holds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Congestion window.
    pub cwnd: Segments,
    /// Slow-start threshold; [`INFINITE_SSTHRESH`] before the first reduction.
    pub ssthresh: Segments,
    /// Smoothed RTT (`srtt_us`); `None` before the first sample.
    pub smoothed_rtt: Option<Duration>,
    /// The RTT of the most recent segment that was acknowledged or selectively acknowledged without
    /// having been retransmitted (`rack.rtt_us`), delayed ACKs included; `None` before the first.
    pub latest_rtt: Option<Duration>,
    /// Windowed minimum RTT, over 5 minutes by default (`rtt_min`); `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// Congestion state.
    pub congestion_state: CongestionState,
    /// Segments sent and not yet acknowledged cumulatively.
    pub packets_out: Segments,
    /// Selectively acknowledged segments among [`Self::packets_out`].
    pub sacked_out: Segments,
    /// Segments among [`Self::packets_out`] that are taken for lost.
    pub lost_out: Segments,
    /// Segments among [`Self::packets_out`] that were retransmitted.
    pub retrans_out: Segments,
    /// Bytes that the application wrote and that are not yet acknowledged.
    pub send_queue: Bytes,
    /// Segments delivered since the start, retransmitted ones counted (wraps at 2^32 in the
    /// kernel).
    pub delivered: u64,
    /// The kernel's latest delivery rate sample (`rate_delivered`/`rate_interval_us`); `None` before
    /// the first, and in the simulator, which takes none.
    pub delivery_rate: Option<Rate>,
    /// Whether the application, not the network, limited that sample.
    pub application_limited: bool,
    /// The rate at which the socket is paced, or that sizes its bursts; `None`: no limit.
    pub pacing_rate: Option<Rate>,
    /// K of the running stage of congestion avoidance, to 1/1024 s, under `wakeai_cubic` (RFC 9438
    /// equation 2) and `wakeai_rtt` (K' of Kozu et al., equation 3); `None` while no stage runs, and
    /// under any other algorithm.
    pub k: Option<Duration>,
    /// Current maximum segment size.
    pub mss: Bytes,
    /// Index of the interface of its route; 0 while the socket has no cached route, and in the simulator.
    pub interface: u32,
}

impl Figures {
    /// Segments in flight (RFC 6675's pipe): those that are out, less the selectively acknowledged and lost ones,
    /// plus the retransmitted ones.
    pub fn in_flight(&self) -> Segments {
        (self.packets_out.saturating_add(self.retrans_out))
            .saturating_sub(self.sacked_out.saturating_add(self.lost_out))
    }
}

/// The bounds of one connection as its congestion control reads them; 0 means no bound. A ceiling below the floor
/// takes precedence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketBounds {
    /// Segments: the window is not below this, except in [`CongestionState::Loss`].
    pub floor: u32,
    /// Segments: the window is not above this.
    pub ceiling: u32,
    /// Bytes per second: the connection does not send faster than this.
    pub pacing_bytes_per_second: u64,
    /// Bytes of packets that may wait in the host's queue (TCP small queues) where TCP would admit less.
    /// This applies only with a ceiling and without pacing.
    pub small_queue_bytes: u64,
}

impl SocketBounds {
    /// The connection behaves as if it had no agent.
    pub const NONE: Self =
        Self { floor: 0, ceiling: 0, pacing_bytes_per_second: 0, small_queue_bytes: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_five_states_have_the_kernel_s_numbers_and_names() {
        let states = (0..5).map(CongestionState::from_number);
        let found: Vec<_> = states.map(|state| (state.number(), state.name())).collect();
        let names = [(0, "open"), (1, "disorder"), (2, "cwr"), (3, "recovery"), (4, "loss")];
        assert_eq!(found, names);
    }

    #[test]
    fn in_flight_is_rfc_6675_s_pipe_and_never_negative() {
        let segments = Segments::new;
        let some = Figures {
            packets_out: segments(10),
            sacked_out: segments(3),
            lost_out: segments(2),
            retrans_out: segments(1),
            ..Figures::default()
        };
        assert_eq!(some.in_flight(), segments(6));
        assert_eq!(Figures { packets_out: segments(2), ..some }.in_flight(), Segments::ZERO);
    }
}
