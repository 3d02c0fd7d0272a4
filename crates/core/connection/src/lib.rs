//! One TCP connection in the kernel's terms: its state in numbers ([`Figures`]), its events
//! ([`EventKind`]), the congestion events among them ([`ErrorCode`]), the figures of its receiving
//! end ([`Receiving`]), the limits that it obeys ([`Bounds`]), and the algorithms that obey them
//! ([`Bounded`]).
//!
//! The monitor reads these from the kernel, and the simulator's TCP gives the same. So agents, laws
//! and records see no difference between the two.

mod algorithm;
mod bounds;
mod event;
mod receiving;

pub use algorithm::{Bounded, HOLDS_A_RATE};
pub use bounds::Bounds;
pub use event::{ErrorCode, EventKind, Signal};
pub use receiving::{Direction, Receiving};

use wakeai_units::{Bytes, Duration, Rate, Segments};

/// The slow-start threshold before the first reduction (`TCP_INFINITE_SSTHRESH`).
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// The kernel's congestion state (`icsk_ca_state`), in the order and with the numbers of its
/// `enum tcp_ca_state`.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    strum::IntoStaticStr,
    strum::FromRepr,
)]
#[strum(serialize_all = "lowercase")]
#[repr(u8)]
pub enum CongestionState {
    /// Nothing unusual.
    #[default]
    Open,
    /// Duplicate ACKs or SACKs have arrived, and nothing is reduced yet.
    Disorder,
    /// The window is being reduced after ECN, a full local queue or a repaired tail loss.
    Cwr,
    /// Fast recovery: the window is being reduced after a loss.
    Recovery,
    /// The retransmission timer has expired.
    Loss,
}

impl CongestionState {
    /// The state with this number in the kernel. Every number above 4 gives Loss.
    pub fn from_number(number: u8) -> Self {
        Self::from_repr(number).unwrap_or(Self::Loss)
    }

    /// The state with this [`Self::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        (0..5).map(Self::from_number).find(|state| state.name() == name)
    }

    /// The kernel's number.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The name of the state, in lower case.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The figures of a connection at one moment, as the kernel's `tcp_sock` holds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Congestion window.
    pub cwnd: Segments,
    /// Slow-start threshold; [`INFINITE_SSTHRESH`] before the first reduction.
    pub ssthresh: Segments,
    /// Smoothed RTT (`srtt_us`); `None` before the first sample.
    pub smoothed_rtt: Option<Duration>,
    /// The latest RTT sample, with the delay of delayed ACKs (`rack.rtt_us`); `None` before the
    /// first. A sample is the time from sending a segment until its ACK or SACK. Segments that were
    /// retransmitted give no sample.
    pub latest_rtt: Option<Duration>,
    /// The minimum RTT over a window of 5 minutes by default (`rtt_min`); `None` before the first
    /// sample.
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
    /// Segments delivered since the start, including retransmitted ones. In the kernel the number
    /// wraps at 2^32.
    pub delivered: u64,
    /// The kernel's latest sample of the delivery rate (`rate_delivered`/`rate_interval_us`).
    /// `None` before the first sample, and in the simulator, which takes no samples.
    pub delivery_rate: Option<Rate>,
    /// Whether the application limited [`Self::delivery_rate`], and not the network.
    pub application_limited: bool,
    /// The pacing rate of the socket (`sk_pacing_rate`). Where nothing paces the socket, the rate
    /// still determines the size of its bursts. `None` where there is no limit.
    pub pacing_rate: Option<Rate>,
    /// K of CUBIC: the time until the window's curve reaches its plateau, with a resolution of
    /// 1/1024 s. Under `wakeai_cubic` it is K of RFC 9438 (equation 2). Under `wakeai_rtt` it is K'
    /// of Kozu et al. (equation 3). `None` outside of congestion avoidance, and under any other
    /// algorithm.
    pub k: Option<Duration>,
    /// Current maximum segment size.
    pub mss: Bytes,
    /// The index of the interface of the route; 0 while the socket has no cached route, and in the
    /// simulator.
    pub interface: u32,
}

impl Figures {
    /// The number of segments in flight (RFC 6675's pipe): those in [`Self::packets_out`], less the
    /// selectively acknowledged and lost ones, plus the retransmitted ones.
    pub fn in_flight(&self) -> Segments {
        (self.packets_out.saturating_add(self.retrans_out))
            .saturating_sub(self.sacked_out.saturating_add(self.lost_out))
    }
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
