//! The passive end of a connection, which receives a stream and acknowledges it.

mod arrival;
mod autotune;
mod delayed_ack;
mod lifecycle;
mod reader;
mod reassembly;
mod retransmission;
mod sacks;
mod window;

use wakeai_connection::Receiving;
use wakeai_units::{Bytes, Duration, Instant};

use crate::config::TcpConfig;
use crate::segment::{Flags, SackBlocks, Segment, SynOptions, Timestamp};
use autotune::Autotune;
use delayed_ack::DelayedAck;
use lifecycle::ReceiverPhase;
use reader::ApplicationReader;
use reassembly::Reassembly;
use retransmission::{HandshakeRtt, Retransmission};
use sacks::Sacks;
use window::Window;

pub use reader::Reading;

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// Segments that arrived with data.
    pub data_segments: u64,
    /// Data segments that arrived behind a gap.
    pub out_of_order: u64,
    /// Data segments whose data had arrived before, in whole or in part.
    pub duplicates: u64,
    /// Segments outside the window, or with timestamps that are too old.
    pub unacceptable: u64,
    /// Pure ACKs sent.
    pub acks: u64,
    /// Acknowledgements that left when their delay expired.
    pub delayed_acks: u64,
    /// Acknowledgements of data out of order that a later acknowledgement replaced.
    pub compressed_acks: u64,
    /// Acknowledgements with a D-SACK, which reports data that arrived twice.
    pub duplicate_sacks: u64,
    /// Acknowledgements that announced a window of zero.
    pub zero_windows: u64,
    /// SYN-ACKs that were sent again.
    pub syn_ack_retransmits: u64,
    /// FINs that were sent again.
    pub fin_retransmits: u64,
}

/// The receiver of one stream, which a [`Sender`](crate::Sender) opens, fills and closes first.
///
/// Order of calls: call [`Self::handle_segment`] for each segment that arrives, and
/// [`Self::handle_timeout`] when [`Self::next_timeout`] has come. `now` never goes back. After each
/// of these calls, and after [`Self::set_reading`], call [`Self::poll_transmit`] until it gives
/// `None`. Without such a poll between two segments both would get one common answer, which a host
/// does not do.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: TcpConfig,
    phase: ReceiverPhase,
    /// The next position that is expected (the kernel's `rcv_nxt`).
    next: u64,
    /// The position up to which the application has read.
    read: u64,
    /// The position of the sender's FIN, once it has come.
    fin: Option<u64>,
    reassembly: Reassembly,
    sacks: Sacks,
    window: Window,
    acks: DelayedAck,
    autotune: Autotune,
    reader: ApplicationReader,
    handshake: HandshakeRtt,
    /// The time at which the SYN-ACK was sent; `None` where it was sent more than once.
    syn_ack_sent: Option<Instant>,
    /// The retransmission timer of the unacknowledged SYN-ACK or FIN.
    retransmission: Option<Retransmission>,
    /// The sender's timestamp to echo (RFC 7323's TS.Recent); `None` where no timestamps are used.
    echo: Option<u32>,
    sack_permitted: bool,
    due: Due,
    counters: ReceiverCounters,
}

/// The segment, other than an acknowledgement, that the next poll returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Due {
    #[default]
    Nothing,
    SynAck,
    Fin,
    /// A RST at this position.
    Reset(u64),
}

impl Receiver {
    /// A receiver that listens for a connection, and whose application reads at once.
    pub fn new(config: &TcpConfig) -> Self {
        config.assert_ranges();
        let mss = u64::from(config.mss);
        Self {
            phase: ReceiverPhase::Listen,
            next: 0,
            read: 0,
            fin: None,
            reassembly: Reassembly::default(),
            sacks: Sacks::default(),
            window: Window::new(mss, config.receive_buffer_limit, config.is_linux()),
            acks: DelayedAck::new(config),
            autotune: Autotune::new(Instant::ZERO, mss),
            reader: ApplicationReader::default(),
            handshake: HandshakeRtt::UNKNOWN,
            syn_ack_sent: None,
            retransmission: None,
            echo: None,
            sack_permitted: false,
            due: Due::Nothing,
            counters: ReceiverCounters::default(),
            config: config.clone(),
        }
    }

    /// Bytes that the application has read.
    pub fn bytes_read(&self) -> u64 {
        let fin_read = u64::from(self.fin.is_some_and(|fin| fin < self.read));
        self.read.saturating_sub(1 + fin_read)
    }

    /// Whether everything up to the sender's FIN has arrived.
    pub fn finished(&self) -> bool {
        self.fin.is_some_and(|fin| fin < self.next)
    }

    /// Whether the connection has been opened and has ended.
    pub fn is_closed(&self) -> bool {
        self.phase == ReceiverPhase::Closed
    }

    /// The counters.
    pub fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }

    /// Changes how the application reads from `now` on. With [`Reading::AtOnce`] it reads the
    /// waiting data now.
    pub fn set_reading(&mut self, now: Instant, reading: Reading) {
        self.reader.set(now, reading, self.unread());
        self.read(now);
    }

    /// Limits the window that is offered (`TCP_WINDOW_CLAMP`); `None` lifts the limit. A buffer that grows
    /// lifts it, too, as in Linux.
    pub fn limit_window(&mut self, most: Option<Bytes>) {
        self.window.set_clamp(most.map_or(u64::MAX, Bytes::get));
    }

    /// The RTT of the handshake; `None` before it, and where it could not be measured.
    pub fn handshake_rtt(&self) -> Option<Duration> {
        self.handshake.rtt
    }

    /// Whether the connection is established, and the sender has not finished.
    pub fn is_established(&self) -> bool {
        self.phase == ReceiverPhase::Established
    }

    /// The figures of this end as they are now.
    pub fn figures(&self) -> Receiving {
        Receiving {
            received: self.next.saturating_sub(1),
            rtt: self.autotune.rtt(),
            window: Bytes::new(self.window.offered),
            mss: Bytes::new(u64::from(self.config.mss)),
        }
    }

    /// The time of the next timeout, provided that no segment arrives. The timeout is that of a
    /// delayed acknowledgement, of a SYN-ACK or FIN, or of the application's next read.
    pub fn next_timeout(&self) -> Option<Instant> {
        let own = self.retransmission.as_ref().map(|timer| timer.at);
        let timers = [own, self.acks.next_timeout(), self.reader.next_timeout()];
        timers.into_iter().flatten().min()
    }

    /// Handles the timeouts that are due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.expire(now);
        if self.acks.handle_timeout(now, self.handshake.timeout) {
            self.counters.delayed_acks += 1;
        }
        if self.reader.next_timeout().is_some_and(|at| at <= now) {
            self.read(now);
        }
    }

    /// The next segment that leaves at `now`.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        match std::mem::take(&mut self.due) {
            Due::SynAck => Some(self.syn_ack(now)),
            Due::Fin => Some(self.answer(now, 1, Flags::FIN_ACK)),
            Due::Reset(seq) => Some(Segment { seq, flags: Flags::RST, ..Segment::default() }),
            Due::Nothing if self.acks.is_due() => {
                self.counters.acks += 1;
                Some(self.answer(now, self.own_next(), Flags::ACK))
            }
            Due::Nothing => None,
        }
    }

    /// The position after everything that this end has sent.
    fn own_next(&self) -> u64 {
        match self.phase {
            ReceiverPhase::LastAck | ReceiverPhase::Closed => 2,
            _ => 1,
        }
    }

    /// The answer to a SYN. Options that the SYN did not offer are not used (RFC 9293 section 3.2,
    /// RFC 7323).
    fn syn_ack(&mut self, now: Instant) -> Segment {
        let timestamps = if self.echo.is_some() { Timestamp::OPTION_LEN } else { 0 };
        let options = SynOptions {
            mss: u16::try_from(self.config.mss + timestamps).ok(),
            window_scale: (self.window.scale > 0).then_some(self.window.scale),
            sack_permitted: self.sack_permitted,
        };
        Segment {
            seq: 0,
            ack: self.next,
            window: self.window.offered,
            timestamp: self.timestamp(now),
            options,
            flags: Flags::SYN_ACK,
            ..Segment::default()
        }
    }

    /// A segment that acknowledges everything that has arrived in order.
    fn answer(&mut self, now: Instant, seq: u64, flags: Flags) -> Segment {
        debug_assert!(self.read <= self.next, "{} read of {}", self.read, self.next);
        debug_assert!(self.fin.is_none_or(|fin| self.next <= fin + 1), "nothing follows the FIN");
        let held = self.held();
        let window = self.window.offer(self.next, held, self.acks.segment_size);
        if self.window.is_crowded(held) {
            self.acks.on_crowded();
        }
        self.counters.zero_windows += u64::from(window == 0);
        self.counters.compressed_acks += u64::from(self.acks.on_sent());
        let sack = self.selective();
        let timestamp = self.timestamp(now);
        Segment { seq, ack: self.next, window, sack, timestamp, flags, ..Segment::default() }
    }

    fn selective(&mut self) -> SackBlocks {
        let (blocks, duplicate) = self.sacks.take();
        if !self.sack_permitted {
            return SackBlocks::NONE;
        }
        self.counters.duplicate_sacks += u64::from(duplicate);
        blocks
    }

    fn timestamp(&self, now: Instant) -> Option<Timestamp> {
        self.echo.map(|echo| Timestamp { value: Timestamp::clock_ms(now), echo })
    }

    /// Bytes in order that the application has not read.
    fn unread(&self) -> u64 {
        self.next - self.read
    }

    /// Bytes in the buffer.
    fn held(&self) -> u64 {
        self.unread() + self.reassembly.bytes
    }

    /// The distance from the first missing position to the end of the data that has arrived out of
    /// order.
    fn ahead(&self) -> u64 {
        self.reassembly.end().map_or(0, |end| end - self.next)
    }
}
