//! A script for a receiver.

use std::collections::VecDeque;
use std::ops::Range;

use wakeai_tcp::{Flags, Receiver, Segment, SynOptions, TcpConfig, Timestamp};
use wakeai_units::{Duration, Instant};

use super::{MSS, Transcript, at_us, clock_ms, ms, position, positions};

/// Plays the sender of one [`Receiver`].
pub(crate) struct ReceiverScript {
    pub(crate) receiver: Receiver,
    now: Instant,
    out: VecDeque<(Instant, Segment)>,
    /// The age of the echoed timestamp, which the receiver measures as its RTT.
    pub(crate) rtt: Duration,
    with_timestamps: bool,
    /// The last expected segment that came out.
    pub(crate) last: Segment,
    transcript: Transcript,
}

impl ReceiverScript {
    /// A script at time zero, before any segment.
    pub(crate) fn listening(config: &TcpConfig) -> Self {
        Self {
            receiver: Receiver::new(config),
            now: Instant::ZERO,
            out: VecDeque::new(),
            rtt: ms(10),
            with_timestamps: true,
            last: Segment::default(),
            transcript: Transcript::default(),
        }
    }

    /// A script after the handshake, at 10 ms. The RTT of the handshake was 10 ms.
    pub(crate) fn established(config: &TcpConfig) -> Self {
        let mut script = Self::listening(config);
        script.syn();
        script.sends(Flags::SYN_ACK, 0);
        script.at(10).nothing(1, Flags::ACK);
        script.sends_nothing();
        script
    }

    /// Advances the time to `millis` after the epoch.
    #[track_caller]
    pub(crate) fn at(&mut self, millis: u64) -> &mut Self {
        self.at_us(1000 * millis)
    }

    /// Advances the time to `micros` after the epoch. Fails if a segment is left that the script
    /// has not expected, or if a segment leaves before the new time.
    #[track_caller]
    pub(crate) fn at_us(&mut self, micros: u64) -> &mut Self {
        self.sends_nothing();
        let until = at_us(micros);
        while let Some(due) = self.receiver.next_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.receiver.handle_timeout(self.now);
            self.poll();
            assert_ne!(self.receiver.next_timeout(), Some(due), "a timer that never goes away");
            if self.now < until {
                self.sends_nothing();
            }
        }
        self.now = until;
        self
    }

    /// Advances the time, and ignores the segments that leave until then.
    pub(crate) fn skip_to(&mut self, millis: u64) -> &mut Self {
        while let Some(due) = self.receiver.next_timeout().filter(|due| *due < at_us(1000 * millis))
        {
            self.out.clear();
            self.at_us(due.as_nanos().div_ceil(1000));
        }
        self.out.clear();
        self.at(millis)
    }

    /// A segment without data at `seq`.
    pub(crate) fn bare(&self, seq: u64, flags: Flags) -> Segment {
        let echoed = Instant::ZERO + (self.now - Instant::ZERO).saturating_sub(self.rtt);
        let timestamp = Timestamp { value: clock_ms(self.now), echo: clock_ms(echoed) };
        let timestamp = self.with_timestamps.then_some(timestamp);
        Segment { seq, ack: 1, window: 65_535, timestamp, flags, ..Segment::default() }
    }

    /// The sender's SYN, as Linux sends it.
    pub(crate) fn syn(&mut self) -> &mut Self {
        let options = SynOptions { mss: Some(1460), window_scale: Some(11), sack_permitted: true };
        self.inject(Segment { options, ack: 0, ..self.bare(0, Flags::SYN) })
    }

    /// A segment arrives.
    pub(crate) fn inject(&mut self, segment: Segment) -> &mut Self {
        self.transcript.segment(self.now, '<', &segment);
        self.receiver.handle_segment(self.now, &segment);
        self.poll();
        self
    }

    /// Handles the arrival of full segments, all at the same time.
    pub(crate) fn data(&mut self, segments: Range<u64>) -> &mut Self {
        for segment in segments {
            self.bytes(position(segment), MSS);
        }
        self
    }

    /// A segment without data arrives.
    pub(crate) fn nothing(&mut self, seq: u64, flags: Flags) -> &mut Self {
        let segment = self.bare(seq, flags);
        self.inject(segment)
    }

    /// A segment of `len` bytes arrives.
    pub(crate) fn bytes(&mut self, seq: u64, len: u64) -> &mut Self {
        let segment = Segment { len: len as u32, ..self.bare(seq, Flags::ACK) };
        self.inject(segment)
    }

    /// A FIN arrives after `segments`.
    pub(crate) fn fin(&mut self, segments: u64) -> &mut Self {
        self.nothing(position(segments), Flags::FIN_ACK)
    }

    /// Takes the segments that the receiver sends now. A script calls it after it has called a
    /// method of the receiver itself.
    pub(crate) fn poll(&mut self) -> &mut Self {
        while let Some(segment) = self.receiver.poll_transmit(self.now) {
            self.transcript.segment(self.now, '>', &segment);
            self.out.push_back((self.now, segment));
        }
        self
    }

    /// The present time.
    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// The next segment that was sent, whatever it is.
    pub(crate) fn take(&mut self) -> Option<Segment> {
        let (_, segment) = self.out.pop_front()?;
        self.last = segment;
        Some(segment)
    }

    #[track_caller]
    fn next(&mut self) -> Segment {
        if self.out.front().is_some_and(|(at, _)| *at != self.now) {
            self.transcript.fail(self.now, "it was sent before");
        }
        let Some(segment) = self.take() else {
            self.transcript.fail(self.now, "nothing was sent");
        };
        segment
    }

    /// Expects a segment with these flags at `seq`.
    #[track_caller]
    pub(crate) fn sends(&mut self, flags: Flags, seq: u64) -> &mut Self {
        let sent = self.next();
        if (sent.flags, sent.seq) != (flags, seq) {
            self.transcript.fail(self.now, "something else was sent");
        }
        self
    }

    /// Expects an ACK of everything before `segment`, without SACK blocks.
    #[track_caller]
    pub(crate) fn acks(&mut self, segment: u64) -> &mut Self {
        self.acks_with(segment, &[])
    }

    /// Expects ACKs of everything before each of `segments`, in this order.
    #[track_caller]
    pub(crate) fn acks_each(&mut self, segments: impl IntoIterator<Item = u64>) -> &mut Self {
        for segment in segments {
            self.acks(segment);
        }
        self
    }

    /// Expects an ACK of everything before `segment` with these SACK blocks.
    #[track_caller]
    pub(crate) fn acks_with(&mut self, segment: u64, blocks: &[Range<u64>]) -> &mut Self {
        let sent = self.next();
        let expected: Vec<(u64, u64)> = blocks.iter().map(positions).collect();
        if sent.flags != Flags::ACK || sent.ack != position(segment) {
            self.transcript.fail(self.now, &format!("expected an ACK of #{segment}"));
        }
        if *sent.sack != expected {
            self.transcript.fail(self.now, &format!("expected blocks {blocks:?}"));
        }
        self
    }

    /// Checks that the script has named every segment that was sent.
    #[track_caller]
    pub(crate) fn sends_nothing(&mut self) -> &mut Self {
        if !self.out.is_empty() {
            self.transcript.fail(self.now, &format!("{} segments too many", self.out.len()));
        }
        self
    }
}
