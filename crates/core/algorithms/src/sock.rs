// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The sender's state under the kernel's names; mirrors `c/native/shim.h`.

use wakeai_connection::{CongestionState, INFINITE_SSTHRESH};

/// The fields of the kernel's `sock`, `inet_connection_sock` and `tcp_sock` that an algorithm reads
/// and writes. They have the kernel's meanings: windows are in segments, sequence numbers in bytes,
/// and rates in bytes per second.
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct TcpSock {
    /// Now, in microseconds; never 0.
    pub tcp_mstamp: u64,
    /// The pacing rate, which the algorithm writes; `u64::MAX` before the first time.
    pub sk_pacing_rate: u64,
    /// The largest pacing rate that the application allows; `u64::MAX` unless set.
    pub sk_max_pacing_rate: u64,
    /// 1 where the sender paces; 0 where bursts are sent at once.
    pub sk_pacing_status: u32,
    /// The shift that gives the limit of the host's queue. The queue may hold `sk_pacing_rate >>
    /// sk_pacing_shift` bytes of the connection.
    pub sk_pacing_shift: u32,
    /// The first byte that is not yet acknowledged.
    pub snd_una: u32,
    /// The next byte to send.
    pub snd_nxt: u32,
    /// Congestion window.
    pub snd_cwnd: u32,
    /// The largest window.
    pub snd_cwnd_clamp: u32,
    /// Slow-start threshold.
    pub snd_ssthresh: u32,
    /// The window when the last reduction began.
    pub prior_cwnd: u32,
    /// Segments delivered in a reduction that began before the algorithm was set.
    pub prr_delivered: u32,
    /// Segments sent since the start of the reduction; counted by the sender.
    pub prr_out: u32,
    /// Segments that are sent and not yet acknowledged.
    pub packets_out: u32,
    /// Selectively acknowledged segments among [`Self::packets_out`].
    pub sacked_out: u32,
    /// Segments among [`Self::packets_out`] that are taken for lost.
    pub lost_out: u32,
    /// Segments among [`Self::packets_out`] that were retransmitted.
    pub retrans_out: u32,
    /// The largest number of outstanding segments within the last round.
    pub max_packets_out: u32,
    /// Smoothed RTT in microseconds, times 8; 0 before the first sample.
    pub srtt_us: u32,
    /// The part of the retransmission timeout beyond the smoothed RTT, in microseconds.
    pub rttvar_us: u32,
    /// Maximum segment size.
    pub mss_cache: u32,
    /// The known degree of reordering of the path, in segments; 3 at first.
    pub reordering: u32,
    /// 0 after a reduction was undone.
    pub undo_marker: u32,
    /// Whether the window limits the sender.
    pub is_cwnd_limited: u32,
    /// The [`CongestionState`], which [`crate::Algorithm::set_state`] writes.
    pub(crate) ca_state: u32,
    /// The restart window after idle time (RFC 5681 section 4.1); 0: none.
    pub restart_window: u32,
    /// The retransmission timeout in microseconds, including the backoff.
    pub rto_us: u32,
    /// Bound: the least window, except in [`CongestionState::Loss`]; 0 means none.
    pub bound_floor: u32,
    /// Bound: the largest window; 0 means none.
    pub bound_ceiling: u32,
    /// The time at which a segment with data was last sent, by the clock of [`Self::tcp_mstamp`].
    pub last_sent_us: u64,
    /// `wakeai_av`'s target in payload bytes per second; 0 means none.
    pub target_rate: u64,
    /// Bound: the largest pacing rate; 0 means none.
    pub bound_pacing: u64,
    /// Bound: the bytes of packets that may wait in the host's queue, where
    /// [`Self::sk_pacing_rate`] would allow fewer; 0 means none. It needs a ceiling, and has no
    /// effect while the sender paces, except for BBR, which paces by itself.
    pub bound_small_queue: u64,
    /// The time of the last delivery, by the clock of [`Self::tcp_mstamp`].
    pub delivered_mstamp: u64,
    /// The next departure that pacing allows, by the same clock.
    pub departure_us: u64,
    /// Segments delivered so far, selectively acknowledged ones included.
    pub delivered: u32,
    /// Marks of loss so far.
    pub lost: u32,
    /// Not 0 while the application limits the sender: the value of [`Self::delivered`] up to which it does.
    pub app_limited: u32,
    /// The smallest RTT that the sender knows, in microseconds; `u32::MAX` where it knows none.
    pub rtt_min_us: u32,
    pub(crate) knobs: [u32; 8],
    pub(crate) private: [u64; 13],
}

const _: () = assert!(size_of::<TcpSock>() == 328, "mirrors c/native/shim.h");

/// What an ACK says about the delivery rate (draft-cheng-iccrg-delivery-rate-estimation); mirrors
/// `struct rate_sample` of `c/native/shim.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// The time in which [`Self::delivered`] segments were delivered, in microseconds; -1 where there is no
    /// sample.
    pub interval_us: i64,
    /// The RTT of the newest segment that the ACK delivered, in microseconds; -1 where there is none.
    pub rtt_us: i64,
    /// [`TcpSock::delivered`] at the time when that segment was sent.
    pub prior_delivered: u32,
    /// Segments delivered since then; -1 where there is no sample.
    pub delivered: i32,
    /// Segments that were newly marked as lost.
    pub losses: i32,
    /// Segments that were newly delivered.
    pub acked_sacked: u32,
    /// Segments in flight before the ACK.
    pub prior_in_flight: u32,
    /// Whether the application limited the sender when that segment was sent.
    pub is_app_limited: u32,
    /// Whether the receiver may have delayed the ACK.
    pub is_ack_delayed: u32,
    unused: u32,
}

const _: () = assert!(size_of::<RateSample>() == 48, "mirrors c/native/shim.h");

impl RateSample {
    /// An ACK that delivered `acked` segments and showed `lost` new losses, without a delivery rate.
    pub fn without_rate(acked: u32, lost: u32, rtt_us: Option<u32>) -> Self {
        Self {
            interval_us: -1,
            rtt_us: rtt_us.map_or(-1, i64::from),
            prior_delivered: 0,
            delivered: -1,
            losses: i32::try_from(lost).unwrap_or(i32::MAX),
            acked_sacked: acked,
            prior_in_flight: 0,
            is_app_limited: 0,
            is_ack_delayed: 0,
            unused: 0,
        }
    }
}

impl TcpSock {
    /// A sender that has sent nothing yet, at a time after 0.
    pub fn new(mss: u32, initial_window: u32) -> Self {
        Self {
            tcp_mstamp: 1,
            sk_pacing_rate: u64::MAX,
            sk_max_pacing_rate: u64::MAX,
            sk_pacing_shift: 10,
            snd_cwnd: initial_window,
            snd_cwnd_clamp: u32::MAX,
            snd_ssthresh: INFINITE_SSTHRESH,
            mss_cache: mss,
            reordering: 3,
            ca_state: CongestionState::Open as u32,
            restart_window: 10,
            rtt_min_us: u32::MAX,
            ..Self::default()
        }
    }
}
