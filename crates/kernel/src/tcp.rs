//! TCP connections as the kernel sees them.

use std::net::SocketAddr;

use wakeai_units::{Bytes, Duration, Rate, Segments};

/// The kernel's congestion state (`icsk_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CongestionState {
    /// Nothing unusual.
    Open,
    /// Duplicate ACKs or SACKs, no reduction yet.
    Disorder,
    /// The window is being reduced after ECN or local congestion.
    Cwr,
    /// The window is being reduced after a loss; fast retransmit.
    Recovery,
    /// A retransmission timeout.
    Loss,
}

impl CongestionState {
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

    pub(crate) fn from_kernel(state: u8) -> Self {
        match state {
            0 => Self::Open,
            1 => Self::Disorder,
            2 => Self::Cwr,
            3 => Self::Recovery,
            _ => Self::Loss,
        }
    }
}

/// Which connection: everything that identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Socket {
    /// The kernel's number for it, never reused (`SO_COOKIE`).
    pub cookie: u64,
    /// The cookie of its network namespace, see [`crate::netns_cookie`].
    pub netns_cookie: u64,
    /// The inode of its network namespace, as `/proc/PID/ns/net` shows it.
    pub netns_inode: u32,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
}

/// What the connection is doing, from its `tcp_sock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Congestion window.
    pub cwnd: Segments,
    /// Slow-start threshold; `0x7fff_ffff` before the first reduction.
    pub ssthresh: Segments,
    /// Smoothed RTT (`srtt_us`).
    pub smoothed_rtt: Duration,
    /// The RTT of the most recent segment that was acknowledged or selectively acknowledged without having been
    /// retransmitted (`rack.rtt_us`): it counts delayed ACKs in.
    pub latest_rtt: Duration,
    /// Windowed minimum RTT, over 5 minutes by default (`rtt_min`); zero before the first sample.
    pub min_rtt: Duration,
    /// Congestion state.
    pub congestion_state: CongestionState,
    /// Segments sent and not yet acknowledged cumulatively.
    pub packets_out: Segments,
    /// Of these, selectively acknowledged.
    pub sacked_out: Segments,
    /// Of these, taken for lost.
    pub lost_out: Segments,
    /// Of these, retransmitted.
    pub retrans_out: Segments,
    /// Bytes that the application wrote and that are not yet acknowledged.
    pub send_queue: Bytes,
    /// Segments delivered since the start, retransmitted ones counted (wraps at 2^32 in the
    /// kernel).
    pub delivered: u64,
    /// The kernel's latest delivery rate sample (`rate_delivered`/`rate_interval_us`).
    pub delivery_rate: Rate,
    /// Whether the application, not the network, limited that sample.
    pub application_limited: bool,
    /// The rate that the socket is paced at or that sizes its bursts; `None`: no limit.
    pub pacing_rate: Option<Rate>,
    /// K of the running stage of congestion avoidance, to 1/1024 s, under `wakeai_cubic` (RFC 9438
    /// equation 2) and `wakeai_rtt` (K' of Kozu et al., equation 3); `None` while no stage runs, and
    /// under any other algorithm.
    pub k: Option<Duration>,
    /// Current maximum segment size.
    pub mss: Bytes,
    /// Interface that its route leaves through; 0 while it has none cached.
    pub interface: u32,
}

impl Figures {
    /// Segments in flight (RFC 6675's pipe): out, less selectively acknowledged and lost, plus retransmitted.
    pub fn in_flight(&self) -> Segments {
        (self.packets_out.saturating_add(self.retrans_out))
            .saturating_sub(self.sacked_out.saturating_add(self.lost_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_five_states_of_the_kernel_have_names() {
        let names: Vec<_> =
            (0..5).map(|state| CongestionState::from_kernel(state).name()).collect();
        assert_eq!(names, ["open", "disorder", "cwr", "recovery", "loss"]);
    }
}
