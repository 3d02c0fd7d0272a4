//! A script for a sender.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use wakeai_connection::EventKind;
use wakeai_tcp::{Algorithm, Flags, Segment, Sender, SynOptions, TcpConfig, Timestamp};
use wakeai_units::Instant;

use super::{MSS, Transcript, at_us, clock_ms, position, positions};

/// Plays the receiver of one [`Sender`].
pub(crate) struct SenderScript {
    pub(crate) sender: Sender,
    now: Instant,
    out: VecDeque<(Instant, Segment)>,
    /// The time of each segment's last transmission, by the clock of the timestamps.
    stamps: BTreeMap<u64, u32>,
    /// The number of acknowledged segments, and the timestamp that their acknowledgement echoes.
    acknowledged: u64,
    echo: u32,
    /// The window that is offered from now on, in bytes.
    pub(crate) window: u64,
    /// The number of packets that the host's queue accepts; `None` where it accepts all.
    pub(crate) room: Option<usize>,
    /// The lengths of the packets in the host's queue, where that matters.
    pub(crate) queued: VecDeque<usize>,
    /// The last expected segment that came out.
    pub(crate) last: Segment,
    transcript: Transcript,
}

impl SenderScript {
    /// A script whose connection is being opened at time zero.
    pub(crate) fn opening(config: &TcpConfig, algorithm: Algorithm) -> Self {
        let mut script = Self {
            sender: Sender::new(config, algorithm),
            now: Instant::ZERO,
            out: VecDeque::new(),
            stamps: BTreeMap::new(),
            acknowledged: 0,
            echo: 0,
            window: 1 << 26,
            room: None,
            queued: VecDeque::new(),
            last: Segment::default(),
            transcript: Transcript::default(),
        };
        script.sender.open(script.now);
        script.poll();
        script
    }

    /// A script after the handshake, which ends at `rtt_ms`.
    pub(crate) fn established(config: &TcpConfig, algorithm: Algorithm, rtt_ms: u64) -> Self {
        let mut script = Self::opening(config, algorithm);
        script.sends_flags(Flags::SYN, 0);
        script.at(rtt_ms).syn_ack();
        script.sends_flags(Flags::ACK, 1);
        script
    }

    /// Handles the receiver's answer to the SYN.
    pub(crate) fn syn_ack(&mut self) -> &mut Self {
        let options = SynOptions { mss: Some(1460), window_scale: Some(11), sack_permitted: true };
        let syn_ack = Segment {
            ack: 1,
            window: 65_160,
            options,
            timestamp: Some(Timestamp { value: clock_ms(self.now), echo: self.echo }),
            flags: Flags::SYN_ACK,
            ..Segment::default()
        };
        self.inject(syn_ack)
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
        while let Some(due) = self.sender.next_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.sender.handle_timeout(self.now);
            self.poll();
            let next = self.sender.next_timeout();
            assert!(next.is_none_or(|next| next > due), "a timer that never goes away");
            if self.now < until {
                self.sends_nothing();
            }
        }
        self.now = until;
        self
    }

    /// Advances the time to the expiry of the next timer; returns that time.
    #[track_caller]
    pub(crate) fn at_next_timeout(&mut self) -> Instant {
        let due = self.sender.next_timeout().expect("a timer runs");
        self.at_us(due.as_nanos().div_ceil(1000));
        due
    }

    /// A segment arrives.
    pub(crate) fn inject(&mut self, segment: Segment) -> &mut Self {
        self.transcript.segment(self.now, '<', &segment);
        self.sender.handle_segment(self.now, &segment);
        self.poll();
        self
    }

    /// Supplies `segments` full segments in total, or endless data.
    pub(crate) fn supply(&mut self, segments: Option<u64>) -> &mut Self {
        self.sender.supply(segments.map(|segments| segments * MSS));
        self.poll();
        self
    }

    /// Supplies `segments` full segments, and closes.
    pub(crate) fn supply_all(&mut self, segments: u64) -> &mut Self {
        self.sender.supply(Some(segments * MSS));
        self.sender.close();
        self.poll();
        self
    }

    /// Acknowledges everything before `segment`.
    pub(crate) fn ack(&mut self, segment: u64) -> &mut Self {
        self.ack_with(segment, &[])
    }

    /// As [`Self::ack`], with SACK blocks.
    pub(crate) fn ack_with(&mut self, segment: u64, blocks: &[Range<u64>]) -> &mut Self {
        if segment > self.acknowledged {
            let first = self.stamps.get(&self.acknowledged);
            self.echo = first.copied().unwrap_or(self.echo);
            self.acknowledged = segment;
        }
        self.ack_echoing(segment, blocks, self.echo)
    }

    /// Acknowledges as [`Self::ack_with`], with a timestamp to echo.
    pub(crate) fn ack_echoing(
        &mut self,
        segment: u64,
        blocks: &[Range<u64>],
        echo: u32,
    ) -> &mut Self {
        self.acknowledged = self.acknowledged.max(segment);
        self.inject(Segment {
            seq: 1,
            ack: position(segment),
            window: self.window,
            sack: blocks.iter().map(positions).collect(),
            timestamp: Some(Timestamp { value: clock_ms(self.now), echo }),
            flags: Flags::ACK,
            ..Segment::default()
        })
    }

    /// Handles the peer's FIN, which acknowledges everything before `ack`.
    pub(crate) fn peer_fin(&mut self, ack: u64) -> &mut Self {
        let timestamp = Some(Timestamp { value: clock_ms(self.now), echo: self.echo });
        let fin = Segment { seq: 1, ack, timestamp, flags: Flags::FIN_ACK, ..Segment::default() };
        self.inject(fin)
    }

    /// Removes packets from the host's queue.
    pub(crate) fn departs(&mut self, packets: usize) -> &mut Self {
        for _ in 0..packets {
            let len = self.queued.pop_front().expect("a packet is in the host's queue");
            self.transcript.note(self.now, "  a packet leaves the host's queue");
            self.sender.handle_departure(self.now, len);
            self.poll();
        }
        self
    }

    /// Takes the segments that the sender sends now.
    pub(crate) fn poll(&mut self) -> &mut Self {
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            if self.room == Some(0) {
                self.transcript.segment(self.now, '!', &segment);
                self.sender.handle_local_drop(self.now, &segment);
                continue;
            }
            self.room = self.room.map(|room| room - 1);
            self.transcript.segment(self.now, '>', &segment);
            self.queued.push_back(segment.packet_len());
            if segment.len > 0 {
                let stamp = segment.timestamp.map_or(0, |timestamp| timestamp.value);
                self.stamps.insert((segment.seq - 1) / MSS, stamp);
            }
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

    /// Expects a segment with these flags and without data at `seq`.
    #[track_caller]
    pub(crate) fn sends_flags(&mut self, flags: Flags, seq: u64) -> &mut Self {
        let sent = self.next();
        if (sent.flags, sent.seq, sent.len) != (flags, seq, 0) {
            self.transcript.fail(self.now, "something else was sent");
        }
        self
    }

    /// Expects exactly these full segments now, in this order.
    #[track_caller]
    pub(crate) fn sends(&mut self, segments: impl IntoIterator<Item = u64>) -> &mut Self {
        for segment in segments {
            let sent = self.next();
            if (sent.seq, u64::from(sent.len)) != (position(segment), MSS) {
                self.transcript.fail(self.now, &format!("#{segment} should have been sent"));
            }
        }
        self.sends_nothing()
    }

    /// Checks that the script has named every segment that was sent.
    #[track_caller]
    pub(crate) fn sends_nothing(&mut self) -> &mut Self {
        if !self.out.is_empty() {
            self.transcript.fail(self.now, &format!("{} segments too many", self.out.len()));
        }
        self
    }

    /// The events that the sender has reported since the last call.
    pub(crate) fn events(&mut self) -> Vec<EventKind> {
        std::iter::from_fn(|| self.sender.poll_event()).collect()
    }
}
