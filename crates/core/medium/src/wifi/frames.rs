//! The frames that wait for one receiver, their aggregation into PPDUs (transmissions), and their
//! acknowledgement.

use std::collections::VecDeque;

use wakeai_wifi::{Mode, Standard};

use crate::MAX_PACKET;
use crate::counters::BytesByKind;
use crate::node::{Destination, Kind, Node, Packet};

/// LLC and SNAP headers before the IP packet (RFC 1042).
const LLC_SNAP: u32 = 8;
/// Frame check sequence (802.11-2020 9.2.4.8).
const FCS: u32 = 4;
/// Frame control, duration, three addresses and sequence control (9.3.2.1).
const DATA_HEADER: u32 = 24;
/// QoS control (9.2.4.5).
const QOS_CONTROL: u32 = 2;
/// MPDU delimiter of an A-MPDU subframe (9.7.1).
pub(crate) const DELIMITER: u32 = 4;
/// Header of an A-MSDU subframe: two addresses and a length (9.3.2.2.2).
const SUBFRAME_HEADER: u32 = 14;
/// The most packets in the MPDU of an A-MSDU for which a host's queue is asked.
const MOST_MSDUS: usize = 64;

/// How MPDUs (single frames) are put into a PSDU (the data field of a transmission).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// a, b, g: one MPDU.
    Single,
    /// n: a single MPDU is sent as it is; several form an A-MPDU whose last subframe is not padded.
    Ht,
    /// ac, ax: MPDUs always form an A-MPDU, and every subframe is padded to four bytes (10.12.2,
    /// 9.7.1).
    Vht,
}

impl Framing {
    pub(crate) const fn of(standard: Standard) -> Self {
        match standard {
            Standard::A | Standard::B | Standard::G => Self::Single,
            Standard::N => Self::Ht,
            Standard::Ac | Standard::Ax => Self::Vht,
        }
    }
}

/// The properties of a frame that the medium needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The length of the packet.
    pub(crate) packet: u32,
    /// The length of the MPDU.
    pub(crate) mpdu: u32,
    pub(crate) kind: Kind,
}

impl Shape {
    /// The shape of the frame that carries `packet`, with a QoS field or without.
    pub(crate) fn of<P: Packet>(qos: bool, packet: &P) -> Self {
        let qos = if qos { QOS_CONTROL } else { 0 };
        let length = packet.len().min(MAX_PACKET) as u32;
        let plain = length + LLC_SNAP + DATA_HEADER + qos + FCS;
        Self { packet: length, mpdu: packet.mpdu().unwrap_or(plain), kind: packet.kind() }
    }
}

/// The limits of a PPDU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) framing: Framing,
    /// Most subframes, and the BlockAck window.
    pub(crate) subframes: usize,
    /// The longest PSDU of several MPDUs, in bytes. A PSDU of a single MPDU may be longer.
    pub(crate) psdu: u32,
    /// The longest A-MSDU (several packets in one MPDU), in bytes; 0 for none.
    pub(crate) amsdu: u32,
}

/// A PSDU. It consists of those among the first `span` frames that are neither acknowledged nor
/// given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Psdu {
    pub(crate) span: usize,
    pub(crate) mpdus: usize,
    pub(crate) bytes: u32,
}

/// The numbers of acknowledged and failed frames of a PSDU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) acknowledged: usize,
    pub(crate) failed: usize,
    /// The part of `failed` that was given up.
    pub(crate) dropped: usize,
    /// The MPDUs that failed, each with the frames of its A-MSDU.
    pub(crate) failed_mpdus: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameState {
    Waiting,
    /// In the aggregate on the air, and decoded; the sender has no BlockAck yet.
    Decoded,
    /// In the aggregate on the air, and damaged; the sender has no BlockAck yet.
    Damaged,
    /// Acknowledged, but kept in the receiver's reorder buffer, because an earlier frame is not
    /// acknowledged (10.25.6).
    Held,
    GivenUp,
}

/// A packet on its way over the air.
#[derive(Clone, Debug)]
pub(crate) struct Frame<P> {
    pub(crate) packet: P,
    pub(crate) from: Node,
    pub(crate) to: Destination,
    shape: Shape,
    attempts: u8,
    state: FrameState,
    /// Whether the receiver has it, although its sender does not know, because the answer was lost.
    received: bool,
    /// Whether it is in the MPDU of the frame before it: an A-MSDU.
    joined: bool,
}

impl<P> Frame<P> {
    /// Its length as a subframe of an A-MSDU, without padding.
    fn subframe(&self) -> u32 {
        SUBFRAME_HEADER + LLC_SNAP + self.shape.packet
    }

    /// Whether its sender still waits for its ACK or BlockAck.
    fn is_unsettled(&self) -> bool {
        matches!(self.state, FrameState::Waiting | FrameState::Decoded | FrameState::Damaged)
    }
}

/// Frames of one sender to one receiver, in order.
///
/// Order of calls: [`Frames::plan`] when a PPDU starts. Where its MPDUs arrive one by one,
/// [`Frames::decode`] for each of them, and after each [`Frames::hand_up`] until it returns `None`.
/// When the PPDU ends, [`Frames::settle`], then [`Frames::release`] until it returns `None`.
/// [`Frames::push`] may be called at any time.
///
/// The frame in front is always the oldest that is neither acknowledged nor given up. So the
/// BlockAck window begins there, and a frame's place in the queue is its place in the window.
#[derive(Clone, Debug)]
pub(crate) struct Frames<P> {
    queue: VecDeque<Frame<P>>,
    /// The number of frames that the sender still keeps.
    pub(crate) waiting: usize,
    /// The length of the packets that the sender still keeps, in bytes.
    pub(crate) bytes: u64,
    /// Frames that were removed from the front since the start. It is the number of the frame in front.
    pub(crate) front_number: u64,
    /// Frames in front that [`Frames::hand_up`] has passed.
    handed_up: usize,
}

impl<P: Packet> Frames<P> {
    pub(crate) fn new() -> Self {
        Self { queue: VecDeque::new(), waiting: 0, bytes: 0, front_number: 0, handed_up: 0 }
    }

    /// Packets that were not handed up, at the sender or in the receiver's reorder buffer.
    pub(crate) fn packets(&self) -> usize {
        let inside = self.queue.iter().skip(self.handed_up);
        inside.filter(|frame| frame.state != FrameState::GivenUp).count()
    }

    /// Adds a frame, and returns its number.
    pub(crate) fn push(&mut self, packet: P, from: Node, to: Destination, shape: Shape) -> u64 {
        let number = self.front_number + self.queue.len() as u64;
        self.queue.push_back(Frame {
            packet,
            from,
            to,
            shape,
            attempts: 0,
            state: FrameState::Waiting,
            received: false,
            joined: false,
        });
        self.waiting += 1;
        self.bytes += u64::from(shape.packet);
        number
    }

    /// Adds the frames that `next` gives until a PSDU within `limits` is full. The last of these
    /// frames may be too long for this PSDU. It then begins the next PSDU.
    pub(crate) fn fill(
        &mut self,
        limits: &Limits,
        mut next: impl FnMut() -> Option<(P, Node, Destination, Shape)>,
    ) {
        let most = if limits.framing == Framing::Single { 1 } else { limits.subframes };
        let (most, most_bytes) = match limits.amsdu {
            0 => (most, limits.psdu),
            amsdu if most == 1 => (MOST_MSDUS, amsdu),
            amsdu => (most * MOST_MSDUS, limits.psdu.max(amsdu)),
        };
        let whole = |shape: Shape| (DELIMITER + shape.mpdu).next_multiple_of(4);
        let waiting = self.queue.iter().filter(|frame| frame.state == FrameState::Waiting);
        let mut bytes: u32 = waiting.map(|frame| whole(frame.shape)).sum();
        while self.queue.len() < most && (self.waiting == 0 || bytes < most_bytes) {
            let Some((packet, from, to, shape)) = next() else { return };
            bytes += whole(shape);
            self.push(packet, from, to, shape);
        }
    }

    /// The modulation of the frame in front, where its packet chooses it, and the number of frames from it on that
    /// may be in one aggregate with it, because they are of the same standard.
    pub(crate) fn modulation(&self) -> Option<(Mode, usize)> {
        let own = |frame: &Frame<P>| frame.packet.modulation(frame.attempts);
        let first = self.queue.front().and_then(own)?;
        let like = |frame: &&Frame<P>| own(frame).is_some_and(|one| one.standard == first.standard);
        Some((first, self.queue.iter().take_while(like).count()))
    }

    /// Removes the last frame, unless it is among the first `keep` or was sent before.
    pub(crate) fn pop_untried(&mut self, keep: usize) -> Option<P> {
        let last = self.queue.back()?;
        if self.queue.len() <= keep || last.attempts > 0 || last.state != FrameState::Waiting {
            return None;
        }
        self.waiting -= 1;
        self.bytes -= u64::from(last.shape.packet);
        self.queue.pop_back().map(|frame| frame.packet)
    }

    /// The PSDU that is sent now. It has as many of the waiting frames in front as the limits
    /// allow, and at least one. `None` where no frame waits.
    pub(crate) fn plan(&mut self, limits: &Limits) -> Option<Psdu> {
        let first = self.queue.front()?;
        debug_assert!(first.is_unsettled(), "the frame in front is not settled");
        match limits.framing {
            Framing::Single => Some(Psdu { span: 1, mpdus: 1, bytes: first.shape.mpdu }),
            Framing::Ht | Framing::Vht if limits.amsdu == 0 => Some(self.aggregate(limits)),
            Framing::Ht | Framing::Vht => {
                self.join(limits);
                Some(self.aggregate_joined(limits))
            }
        }
    }

    /// Puts frames that were not sent yet into A-MSDUs. What was sent stays as it is, because a retry has the
    /// same MPDU.
    fn join(&mut self, limits: &Limits) {
        let (mut mpdus, mut bytes, mut grows) = (0, 0, false);
        for frame in &mut self.queue {
            let subframe = frame.subframe();
            let waits = frame.state == FrameState::Waiting;
            if frame.joined {
                bytes = u32::next_multiple_of(bytes, 4) + subframe;
                continue;
            }
            let longer = u32::next_multiple_of(bytes, 4) + subframe;
            if grows && waits && frame.attempts == 0 && longer <= limits.amsdu {
                frame.joined = true;
                bytes = longer;
                continue;
            }
            mpdus += 1;
            if mpdus > limits.subframes {
                return;
            }
            (bytes, grows) = (subframe, waits && frame.attempts == 0);
        }
    }

    /// The MPDUs in the queue: the place of the first frame, the place after the last, and the length.
    fn mpdus_from(&self, place: usize) -> impl Iterator<Item = (usize, usize, u32)> {
        let mut first = place;
        std::iter::from_fn(move || {
            let leader = self.queue.get(first)?;
            let (mut end, mut bytes) = (first + 1, leader.subframe());
            while let Some(next) = self.queue.get(end).filter(|next| next.joined) {
                bytes = bytes.next_multiple_of(4) + next.subframe();
                end += 1;
            }
            let alone = end == first + 1;
            let headers = leader.shape.mpdu - leader.shape.packet - LLC_SNAP;
            let mpdu = if alone { leader.shape.mpdu } else { headers + bytes };
            let found = (first, end, mpdu);
            first = end;
            Some(found)
        })
    }

    /// As [`Self::aggregate`], of MPDUs that may be A-MSDUs.
    fn aggregate_joined(&self, limits: &Limits) -> Psdu {
        let pad_last = limits.framing == Framing::Vht;
        let mut psdu = Psdu { span: 0, mpdus: 0, bytes: 0 };
        let mut padded = 0;
        let window = self.mpdus_from(0).take(limits.subframes);
        for (_, end, mpdu) in
            window.filter(|(first, ..)| self.queue[*first].state == FrameState::Waiting)
        {
            let whole = (DELIMITER + mpdu).next_multiple_of(4);
            let bytes = padded + if pad_last { whole } else { DELIMITER + mpdu };
            if psdu.mpdus > 0 && bytes > limits.psdu {
                break;
            }
            padded += whole;
            psdu = Psdu { span: end, mpdus: psdu.mpdus + 1, bytes };
        }
        if psdu.mpdus == 1 && !pad_last {
            psdu.bytes -= DELIMITER;
        }
        psdu
    }

    /// The part of `psdu` that counts as sent where only an RTS was: its first MPDU.
    pub(crate) fn first_of(&self, psdu: Psdu) -> Psdu {
        let span = self.mpdus_from(0).next().map_or(1, |(_, end, _)| end);
        Psdu { span, mpdus: 1, ..psdu }
    }

    fn aggregate(&self, limits: &Limits) -> Psdu {
        let pad_last = limits.framing == Framing::Vht;
        let mut psdu = Psdu { span: 0, mpdus: 0, bytes: 0 };
        let mut padded = 0;
        let window = self.queue.iter().take(limits.subframes).enumerate();
        for (place, frame) in window.filter(|(_, frame)| frame.state == FrameState::Waiting) {
            let whole = (DELIMITER + frame.shape.mpdu).next_multiple_of(4);
            let bytes = padded + if pad_last { whole } else { DELIMITER + frame.shape.mpdu };
            if psdu.mpdus > 0 && bytes > limits.psdu {
                break;
            }
            padded += whole;
            psdu = Psdu { span: place + 1, mpdus: psdu.mpdus + 1, bytes };
        }
        if psdu.mpdus == 1 && !pad_last {
            psdu.bytes -= DELIMITER;
        }
        debug_assert!((1..=limits.subframes).contains(&psdu.mpdus), "{} MPDUs", psdu.mpdus);
        debug_assert!(psdu.mpdus == 1 || psdu.bytes <= limits.psdu, "{} bytes", psdu.bytes);
        psdu
    }

    /// The bytes of the MPDUs in `psdu`, as long as their outcome is not recorded.
    pub(crate) fn bytes_by_kind(&self, psdu: Psdu) -> BytesByKind {
        let mut bytes = BytesByKind::default();
        let planned = self.queue.iter().take(psdu.span);
        for frame in planned.filter(|frame| frame.is_unsettled()) {
            bytes[frame.shape.kind as usize] += u64::from(frame.shape.mpdu);
        }
        bytes
    }

    /// The first MPDU from `place` on that is neither acknowledged nor given up: the place of its first frame, and
    /// its length.
    pub(crate) fn unsettled_from(&self, place: usize) -> Option<(usize, u32)> {
        let ahead = self.queue.iter().enumerate().skip(place);
        let mut unsettled = ahead.filter(|(_, frame)| frame.is_unsettled() && !frame.joined);
        let (place, frame) = unsettled.next()?;
        if self.queue.get(place + 1).is_none_or(|next| !next.joined) {
            return Some((place, frame.shape.mpdu));
        }
        self.mpdus_from(place).next().map(|(place, _, mpdu)| (place, mpdu))
    }

    /// Records, while the aggregate goes on, that the MPDU at `place` was decoded or damaged.
    /// A receiver that has the frame already decodes it again, as a duplicate.
    pub(crate) fn decode(&mut self, place: usize, damaged: bool) {
        let mut frame = &mut self.queue[place];
        let is_missing = damaged && !frame.received;
        let state = if is_missing { FrameState::Damaged } else { FrameState::Decoded };
        frame.state = state;
        let mut next = place + 1;
        while self.queue.get(next).is_some_and(|frame| frame.joined) {
            frame = &mut self.queue[next];
            frame.state = state;
            next += 1;
        }
    }

    /// The next frame that the receiver may hand up in order while the aggregate goes on.
    pub(crate) fn hand_up(&mut self) -> Option<&Frame<P>> {
        loop {
            match self.queue.get(self.handed_up)?.state {
                FrameState::Waiting | FrameState::Damaged => return None,
                FrameState::GivenUp => self.handed_up += 1,
                FrameState::Decoded | FrameState::Held => break,
            }
        }
        self.handed_up += 1;
        self.queue.get(self.handed_up - 1)
    }

    /// Records the outcome of each frame of `psdu`. `arrived` draws the outcomes, in order, of the
    /// frames for which [`Self::decode`] was not called. A frame of an earlier PSDU whose answer was lost is acknowledged
    /// whatever arrives now, since its receiver has it. A frame that has failed `retry_limit` times is given up. `gone` is called for each packet that the sender removes.
    pub(crate) fn settle(
        &mut self,
        psdu: Psdu,
        retry_limit: u8,
        mut arrived: impl FnMut() -> bool,
        mut gone: impl FnMut(&P, u8, bool),
    ) -> Settled {
        let mut settled = Settled::default();
        let (mut has_arrived, mut mpdus) = (false, 0);
        for frame in self.queue.iter_mut().take(psdu.span) {
            has_arrived = match frame.state {
                FrameState::Held | FrameState::GivenUp => continue,
                FrameState::Waiting if frame.joined => has_arrived,
                FrameState::Waiting => arrived() || frame.received,
                FrameState::Decoded => true,
                FrameState::Damaged => frame.received,
            };
            mpdus += usize::from(!frame.joined);
            if has_arrived {
                frame.state = FrameState::Held;
                settled.acknowledged += 1;
                self.bytes -= u64::from(frame.shape.packet);
                gone(&frame.packet, frame.attempts.saturating_add(1), true);
                continue;
            }
            settled.failed += 1;
            settled.failed_mpdus += usize::from(!frame.joined);
            frame.state = FrameState::Waiting;
            frame.attempts += 1;
            if frame.attempts >= frame.packet.attempts().unwrap_or(retry_limit) {
                frame.state = FrameState::GivenUp;
                settled.dropped += 1;
                self.bytes -= u64::from(frame.shape.packet);
                gone(&frame.packet, frame.attempts, false);
            }
        }
        debug_assert_eq!(mpdus, psdu.mpdus, "each has an outcome");
        debug_assert!(settled.dropped <= settled.failed);
        self.waiting -= settled.acknowledged + settled.dropped;
        settled
    }

    /// Records that nothing answered `psdu`, whatever its receiver has decoded. A frame that has failed
    /// `retry_limit` times is given up, but one that its receiver has is handed up. `gone` is called for
    /// each packet that the sender removes.
    pub(crate) fn fail(
        &mut self,
        psdu: Psdu,
        retry_limit: u8,
        mut gone: impl FnMut(&P, u8, bool),
    ) -> Settled {
        let mut settled = Settled::default();
        for frame in self.queue.iter_mut().take(psdu.span).filter(|frame| frame.is_unsettled()) {
            frame.received |= frame.state == FrameState::Decoded;
            frame.state = FrameState::Waiting;
            frame.attempts += 1;
            settled.failed += 1;
            settled.failed_mpdus += usize::from(!frame.joined);
            if frame.attempts < frame.packet.attempts().unwrap_or(retry_limit) {
                continue;
            }
            if frame.received {
                frame.state = FrameState::Held;
                settled.acknowledged += 1;
            } else {
                frame.state = FrameState::GivenUp;
                settled.dropped += 1;
            }
            self.bytes -= u64::from(frame.shape.packet);
            gone(&frame.packet, frame.attempts, frame.received);
        }
        self.waiting -= settled.acknowledged + settled.dropped;
        settled
    }

    /// Removes the next frame that the receiver may hand up in order. Returns it where
    /// [`Frames::hand_up`] has not passed it before.
    pub(crate) fn release(&mut self) -> Option<Frame<P>> {
        while self.queue.front().is_some_and(|frame| frame.state != FrameState::Waiting) {
            let frame = self.queue.pop_front()?;
            self.front_number += 1;
            if self.handed_up > 0 {
                self.handed_up -= 1;
            } else if frame.state == FrameState::Held {
                return Some(frame);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
