//! The active end of a connection: it opens, sends a stream, and closes.
//!
//! The order in which its parts are best read:
//!
//! 1. `stream`: the bytes, cut into segments; `scoreboard`: the segments that are out
//! 2. `lifecycle`: SYN and FIN; `transmission`: which segment leaves next, and when; `segmentation`: packets of several segments;
//!    `host_queue`: TCP small queues
//! 3. `acknowledgement`: what an acknowledgement says, and the order of the steps that handle it
//! 4. `rtt`: timestamps and the estimate; `delivery_rate`: its samples; `loss_detection`: RACK-TLP, or counting; `recovery`: the congestion state
//!    machine, and undoing
//! 5. `timers`: retransmission, its backoff, window probes
//! 6. `report`: events, counters and figures

mod acknowledgement;
mod delivery_rate;
mod host_queue;
mod lifecycle;
mod loss_detection;
mod recovery;
mod report;
mod rtt;
mod scoreboard;
mod segmentation;
mod stream;
#[cfg(test)]
mod tests;
mod timers;
mod transmission;

use std::collections::VecDeque;

use wakeai_algorithms::Algorithm;
use wakeai_connection::{Bounds, CongestionState, EventKind, Signal};
use wakeai_units::Instant;

use crate::config::{INITIAL_TIMEOUT, TcpConfig};
use crate::segment::{SackBlocks, Segment};
use delivery_rate::DeliveryRate;
use host_queue::HostQueue;
use lifecycle::Handshake;
use loss_detection::{Counting, Rack, TailLossProbe};
use recovery::Episode;
use rtt::{RttEstimator, Timestamps};
use scoreboard::Scoreboard;
use segmentation::Packet;
use stream::SendStream;
use timers::{Persist, RetransmissionTimeout, Timer};
use transmission::{Pacing, PeerWindow};

pub use report::SenderCounters;

/// The sender of one stream to a [`Receiver`](crate::Receiver).
///
/// Order of calls: first call [`Self::open`]. Then call [`Self::handle_segment`] for each segment
/// that arrives, [`Self::handle_timeout`] when [`Self::next_timeout`] has come, and
/// [`Self::handle_departure`] when one of the connection's packets has left the host's queue. `now`
/// never goes back. After each of these calls, and after [`Self::supply`] and [`Self::close`], call
/// [`Self::poll_transmit`] until it gives `None`, then [`Self::poll_event`] until it gives `None`.
/// A segment for which the host's queue has no room is handed to [`Self::handle_local_drop`] before
/// the next poll.
///
/// The bookkeeping is that of the kernel: the congestion state machine, the times at which the
/// algorithm's hooks are called, and the values of its [`TcpSock`](wakeai_algorithms::TcpSock) at
/// these times.
#[derive(Clone, Debug)]
pub struct Sender {
    config: TcpConfig,
    algorithm: Algorithm,
    phase: SenderPhase,
    state: CongestionState,
    handshake: Handshake,
    stream: SendStream,
    board: Scoreboard,
    /// The first position that is not acknowledged.
    una: u64,
    /// The next position to send.
    nxt: u64,
    /// The next position that is expected of the peer. Its SYN has position 0, and its FIN position
    /// 1.
    peer_next: u64,
    peer_window: PeerWindow,
    timestamps: Timestamps,
    rtt: RttEstimator,
    rto: RetransmissionTimeout,
    timer: Timer,
    persist: Persist,
    rack: Rack,
    tail_probe: TailLossProbe,
    counting: Counting,
    episode: Episode,
    pacing: Pacing,
    rate: DeliveryRate,
    host_queue: HostQueue,
    /// The packet whose segments are leaving.
    packet: Packet,
    output: Output,
    /// The last selective acknowledgements, which the scoreboard already contains.
    last_sacks: SackBlocks,
    /// The position whose acknowledgement begins the next round of window validation.
    usage_round_end: u64,
    events: VecDeque<EventKind>,
    counters: SenderCounters,
}

/// The life of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SenderPhase {
    /// Not opened.
    Idle,
    /// A SYN is out.
    Opening,
    /// From the handshake to the last acknowledgement.
    Established,
    /// Both directions are closed; a repeated FIN is still answered.
    Closed,
    /// Given up.
    Failed,
}

/// The output, besides new data, that waits to be sent.
#[derive(Clone, Copy, Debug, Default)]
struct Output {
    syn: bool,
    /// An acknowledgement without data.
    ack: bool,
    /// A segment that is sent regardless of the windows.
    forced: Option<Forced>,
    /// Whether the host's queue was full. Nothing then leaves until the next ACK or timeout.
    blocked: bool,
    /// Whether lost segments may leave.
    retransmission: Retransmission,
}

/// A segment that a timer sends regardless of the windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forced {
    /// The oldest segment, after a timeout.
    Head,
    /// The tail loss probe (RFC 8985 section 7.3).
    TailLossProbe,
    /// A segment with an old sequence number, which the peer answers with its window.
    WindowProbe,
}

/// Whether lost segments are retransmitted after the last acknowledgement or timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Retransmission {
    #[default]
    Nothing,
    Lost,
    /// Lost segments are retransmitted after new data. The acknowledgement of the new data shows
    /// whether the timeout was spurious (F-RTO).
    AfterNew,
}

impl Sender {
    /// A connection that is not open yet.
    pub fn new(config: &TcpConfig, mut algorithm: Algorithm) -> Self {
        config.assert_ranges();
        algorithm.sk_pacing_shift = host_queue::pacing_shift(config, &algorithm);
        let rate = DeliveryRate::new(algorithm.needs_rate());
        Self {
            algorithm,
            phase: SenderPhase::Idle,
            state: CongestionState::Open,
            handshake: Handshake::default(),
            stream: SendStream::new(config),
            board: Scoreboard::default(),
            una: 0,
            nxt: 0,
            peer_next: 0,
            peer_window: PeerWindow::default(),
            timestamps: Timestamps::default(),
            rtt: RttEstimator::new(config),
            rto: RetransmissionTimeout::new(config),
            timer: Timer::default(),
            persist: Persist::default(),
            rack: Rack::new(config),
            tail_probe: TailLossProbe::default(),
            counting: Counting::new(config),
            episode: Episode::default(),
            pacing: Pacing::default(),
            rate,
            host_queue: HostQueue::new(config),
            packet: Packet::default(),
            output: Output::default(),
            last_sacks: SackBlocks::NONE,
            usage_round_end: 0,
            events: VecDeque::new(),
            counters: SenderCounters::default(),
            config: config.clone(),
        }
    }

    /// Begins the handshake.
    pub fn open(&mut self, now: Instant) {
        debug_assert_eq!(self.phase, SenderPhase::Idle, "opened once");
        self.phase = SenderPhase::Opening;
        self.handshake.opened_at = now;
        self.output.syn = true;
    }

    /// Sets the number of bytes of the stream; with `None` the stream has no end. Once a last
    /// segment that is not full was sent, the number can no longer be raised. So an application
    /// that writes little by little raises it by whole segments.
    pub fn supply(&mut self, bytes: Option<u64>) {
        self.check_app_limited();
        self.stream.supply(bytes, self.nxt);
        // As in Linux, a write retries what the host's queue has refused.
        self.output.blocked = false;
    }

    /// Ends the stream after the supplied bytes. A stream without end ends with the bytes that were
    /// sent.
    pub fn close(&mut self) {
        self.stream.close(self.nxt);
    }

    /// Takes a segment that arrived.
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment) {
        self.output.blocked = false;
        self.advance(now);
        self.timestamps.echoed = segment.timestamp.map_or(0, |timestamp| timestamp.echo);
        if segment.flags.rst {
            self.fail();
            return;
        }
        match self.phase {
            SenderPhase::Opening => self.handle_handshake(now, segment),
            SenderPhase::Established => self.handle_established(now, segment),
            SenderPhase::Closed => self.output.ack |= segment.end() > segment.seq,
            SenderPhase::Idle | SenderPhase::Failed => {}
        }
        self.assert_order();
    }

    /// Sets the algorithm's clock, which never goes back.
    fn advance(&mut self, now: Instant) {
        let now_us = microseconds(now);
        debug_assert!(self.algorithm.tcp_mstamp <= now_us, "the time went back to {now}");
        self.algorithm.tcp_mstamp = now_us;
    }

    /// What holds between any two calls: acknowledged positions were sent, the counts of segments add up, and in
    /// Open nothing is lost.
    fn assert_order(&self) {
        debug_assert!(self.una <= self.nxt, "{} acknowledged of {}", self.una, self.nxt);
        debug_assert!(
            self.nxt <= self.una + self.stream.buffer + 2,
            "more is out than was written"
        );
        debug_assert!(
            self.state != CongestionState::Open || self.board.lost_out == 0,
            "something is lost and nothing is done"
        );
        debug_assert!(self.rto.timeout <= self.config.max_timeout.max(INITIAL_TIMEOUT));
        self.board.assert_counts();
    }

    fn handle_established(&mut self, now: Instant, segment: &Segment) {
        if let Some(timestamp) = segment.timestamp
            && segment.seq <= self.peer_next
        {
            // A later timestamp is larger, except when the clock wraps after 49 days.
            self.timestamps.echo = timestamp.value;
        }
        if segment.flags.ack {
            self.handle_ack(now, segment);
        }
        self.handle_peer_fin(segment);
        self.finish_if_closed(now);
    }

    /// Sets the bounds that the algorithm obeys from the next ACK on. The bytes in the host's queue
    /// take effect only with [`TcpConfig::small_queues`].
    pub fn set_bounds(&mut self, bounds: Bounds) {
        let sock = &mut *self.algorithm;
        (sock.bound_floor, sock.bound_ceiling, sock.bound_pacing, sock.bound_small_queue) =
            bounds.to_numbers();
    }

    /// Sets the target of `wakeai_av` in payload bytes per second, from the next ACK on; 0 means
    /// none.
    pub fn set_target_rate(&mut self, bytes_per_s: u64) {
        self.algorithm.target_rate = bytes_per_s;
    }

    /// The position after the bytes that the application has written (the kernel's `write_seq`).
    fn written_end(&self) -> u64 {
        self.stream.data_end.min(self.una.max(1) + self.stream.buffer)
    }

    /// Copies the scoreboard's counts to the fields that the algorithm reads.
    fn publish(&mut self) {
        let sock = &mut *self.algorithm;
        sock.snd_una = self.una as u32;
        sock.snd_nxt = self.nxt as u32;
        sock.packets_out = self.board.out();
        sock.sacked_out = self.board.sacked_out;
        sock.lost_out = self.board.lost_out;
        sock.retrans_out = self.board.retransmitted_out;
        sock.reordering = self.rack.reordering;
        if self.rate.enabled {
            self.publish_rate();
        }
    }

    fn publish_rate(&mut self) {
        let sock = &mut *self.algorithm;
        sock.delivered = self.board.delivered as u32;
        sock.lost = self.board.lost as u32;
        sock.delivered_mstamp = microseconds(self.rate.delivered_at);
        sock.departure_us = microseconds(self.pacing.next_at());
        sock.app_limited = u32::from(self.rate.app_limited.is_some());
        let least_us = self.rtt.least_us();
        sock.rtt_min_us = if least_us == 0 { u32::MAX } else { least_us };
    }

    fn change_state(&mut self, next: CongestionState) {
        self.change_state_upon(next, None);
    }

    fn change_state_upon(&mut self, next: CongestionState, signal: Option<Signal>) {
        self.publish();
        self.algorithm.set_state(next);
        if next != self.state {
            self.events.push_back(EventKind::StateChange { from: self.state, to: next, signal });
            self.counters.count_state(next);
            self.state = next;
        }
    }

    /// Whether the window is being reduced.
    fn is_reducing(&self) -> bool {
        matches!(self.state, CongestionState::Cwr | CongestionState::Recovery)
    }

    fn fail(&mut self) {
        if !matches!(self.phase, SenderPhase::Closed | SenderPhase::Failed) {
            self.phase = SenderPhase::Failed;
            self.timer.clear();
            self.output = Output::default();
            self.events.push_back(EventKind::Closed);
        }
    }
}

/// Microseconds since the start of the run; at least 1, because the algorithms never see 0.
fn microseconds(now: Instant) -> u64 {
    (now.as_nanos() / 1_000).max(1)
}

#[cfg(test)]
impl Sender {
    /// Checks the invariants between calls.
    fn check(&self) {
        self.board.check();
        self.assert_order();
        let out = self.board.out();
        let waits = self.output.syn || self.output.ack || self.output.forced.is_some();
        let is_open = self.phase == SenderPhase::Established;
        assert!(!is_open || out == 0 || self.timer.is_armed() || waits, "nothing is waited for");
    }
}
