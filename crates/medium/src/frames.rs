//! The frames that wait for one receiver, what of them goes into one PPDU, and what became of it.

use std::collections::VecDeque;

use crate::node::{Destination, Node};
use crate::{MAX_PACKET, Standard};

/// LLC and SNAP headers ahead of the IP packet (RFC 1042).
const LLC_SNAP: u32 = 8;
/// Frame check sequence (802.11-2020 9.2.4.8).
const FCS: u32 = 4;
/// Frame control, duration, three addresses and sequence control (9.3.2.1).
const DATA_HEADER: u32 = 24;
/// QoS control (9.2.4.5).
const QOS_CONTROL: u32 = 2;
/// MPDU delimiter of an A-MPDU subframe (9.7.1).
const DELIMITER: u32 = 4;

/// How MPDUs are put into a PSDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// a, g: one MPDU.
    Single,
    /// n: one MPDU as it is, several as an A-MPDU whose last subframe is not padded.
    Ht,
    /// ac, ax: always an A-MPDU, every subframe padded to four bytes (10.12.2, 9.7.1).
    Vht,
}

impl Framing {
    pub(crate) const fn of(standard: Standard) -> Self {
        match standard {
            Standard::A | Standard::G => Self::Single,
            Standard::N => Self::Ht,
            Standard::Ac | Standard::Ax => Self::Vht,
        }
    }
}

/// Length of the MPDU, with a QoS field or without, that carries a packet of `packet` bytes.
pub(crate) fn mpdu_length(qos: bool, packet: usize) -> u32 {
    let qos = if qos { QOS_CONTROL } else { 0 };
    packet.min(MAX_PACKET) as u32 + LLC_SNAP + DATA_HEADER + qos + FCS
}

/// What a PPDU may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) framing: Framing,
    /// Most subframes, and the BlockAck window.
    pub(crate) subframes: usize,
    /// Longest PSDU in bytes, of several MPDUs; a single one may be longer.
    pub(crate) psdu: u32,
}

/// A PSDU made of waiting frames: all that are unresolved among the first `span`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Psdu {
    pub(crate) span: usize,
    pub(crate) mpdus: usize,
    pub(crate) bytes: u32,
}

/// What became of the frames of a PSDU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) acknowledged: usize,
    pub(crate) failed: usize,
    /// Of `failed`, those that were given up.
    pub(crate) dropped: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    /// Acknowledged, but one before it is not: the receiver's reorder buffer holds it (10.25.6).
    Held,
    GivenUp,
}

/// A packet on its way over the air.
#[derive(Clone, Debug)]
pub(crate) struct Frame<P> {
    pub(crate) packet: P,
    pub(crate) from: Node,
    pub(crate) to: Destination,
    mpdu: u32,
    attempts: u8,
    state: State,
}

/// Frames of one sender to one receiver, in order.
///
/// Order of calls: [`Frames::plan`] when a PPDU starts, [`Frames::settle`] when it ends, then
/// [`Frames::release`] until it gives `None`; pushes in between are at the end and do no harm.
///
/// The frame in front is always the oldest that is neither acknowledged nor given up, so the
/// BlockAck window begins there and a frame's place in the queue is its place in the window.
#[derive(Clone, Debug)]
pub(crate) struct Frames<P> {
    queue: VecDeque<Frame<P>>,
    waiting: usize,
    /// Frames that have left the front since the start.
    taken: u64,
}

impl<P> Frames<P> {
    pub(crate) fn new() -> Self {
        Self { queue: VecDeque::new(), waiting: 0, taken: 0 }
    }

    /// Frames that the sender still keeps.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Packets in here: those that the sender keeps, and those in the receiver's reorder buffer.
    pub(crate) fn packets(&self) -> usize {
        self.queue.iter().filter(|frame| frame.state != State::GivenUp).count()
    }

    /// The number of the frame in front, counted from the first that was ever pushed.
    pub(crate) fn front_number(&self) -> u64 {
        self.taken
    }

    /// Adds a frame, and returns its number.
    pub(crate) fn push(&mut self, packet: P, from: Node, to: Destination, mpdu: u32) -> u64 {
        let number = self.taken + self.queue.len() as u64;
        self.queue.push_back(Frame { packet, from, to, mpdu, attempts: 0, state: State::Waiting });
        self.waiting += 1;
        number
    }

    /// Takes back the last frame, unless it is among the first `keep` or was tried already.
    pub(crate) fn pop_untried(&mut self, keep: usize) -> Option<P> {
        let last = self.queue.back()?;
        if self.queue.len() <= keep || last.attempts > 0 || last.state != State::Waiting {
            return None;
        }
        self.waiting -= 1;
        self.queue.pop_back().map(|frame| frame.packet)
    }

    /// The PSDU that goes out now: the waiting frames in front, as many as the limits allow and at
    /// least one; `None` where nothing waits.
    pub(crate) fn plan(&self, limits: &Limits) -> Option<Psdu> {
        let first = self.queue.front()?;
        match limits.framing {
            Framing::Single => Some(Psdu { span: 1, mpdus: 1, bytes: first.mpdu }),
            Framing::Ht | Framing::Vht => Some(self.aggregate(limits)),
        }
    }

    fn aggregate(&self, limits: &Limits) -> Psdu {
        let pad_last = limits.framing == Framing::Vht;
        let mut psdu = Psdu { span: 0, mpdus: 0, bytes: 0 };
        let mut padded = 0;
        let window = self.queue.iter().take(limits.subframes).enumerate();
        for (place, frame) in window.filter(|(_, frame)| frame.state == State::Waiting) {
            let whole = (DELIMITER + frame.mpdu).next_multiple_of(4);
            let bytes = padded + if pad_last { whole } else { DELIMITER + frame.mpdu };
            if psdu.mpdus > 0 && bytes > limits.psdu {
                break;
            }
            padded += whole;
            psdu = Psdu { span: place + 1, mpdus: psdu.mpdus + 1, bytes };
        }
        if psdu.mpdus == 1 && !pad_last {
            psdu.bytes -= DELIMITER;
        }
        psdu
    }

    /// Records what became of each frame of `psdu`: `arrived` is asked once per frame, in order.
    /// A frame that has failed `retry_limit` times is given up.
    pub(crate) fn settle(
        &mut self,
        psdu: Psdu,
        retry_limit: u8,
        mut arrived: impl FnMut() -> bool,
    ) -> Settled {
        let mut settled = Settled::default();
        for frame in self.queue.iter_mut().take(psdu.span) {
            if frame.state != State::Waiting {
                continue;
            }
            if arrived() {
                frame.state = State::Held;
                settled.acknowledged += 1;
                continue;
            }
            settled.failed += 1;
            frame.attempts += 1;
            if frame.attempts >= retry_limit {
                frame.state = State::GivenUp;
                settled.dropped += 1;
            }
        }
        self.waiting -= settled.acknowledged + settled.dropped;
        settled
    }

    /// The next frame that the receiver may hand up in order.
    pub(crate) fn release(&mut self) -> Option<Frame<P>> {
        while self.queue.front().is_some_and(|frame| frame.state != State::Waiting) {
            let frame = self.queue.pop_front()?;
            self.taken += 1;
            if frame.state == State::Held {
                return Some(frame);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::StationId;

    const TO: Destination = Destination::Unicast(Node::Server);

    fn frames(count: u32) -> Frames<u32> {
        let mut frames = Frames::new();
        for packet in 0..count {
            frames.push(packet, Node::Station(StationId(0)), TO, 1_538);
        }
        frames
    }

    fn ht(subframes: usize, psdu: u32) -> Limits {
        Limits { framing: Framing::Ht, subframes, psdu }
    }

    fn released(frames: &mut Frames<u32>) -> Vec<u32> {
        std::iter::from_fn(|| frames.release()).map(|frame| frame.packet).collect()
    }

    #[test]
    fn an_ht_ampdu_pads_all_subframes_but_the_last() {
        // 4 + 1538 = 1542, padded to 1544.
        let psdu = frames(3).plan(&ht(64, 65_535)).unwrap();
        assert_eq!(psdu, Psdu { span: 3, mpdus: 3, bytes: 1_544 + 1_544 + 1_542 });
    }

    #[test]
    fn a_single_frame_has_a_delimiter_in_vht_only() {
        assert_eq!(frames(1).plan(&ht(64, 65_535)).unwrap().bytes, 1_538);
        let vht = Limits { framing: Framing::Vht, ..ht(64, 65_535) };
        assert_eq!(frames(1).plan(&vht).unwrap().bytes, 1_544);
    }

    #[test]
    fn subframes_and_bytes_limit_an_ampdu() {
        assert_eq!(frames(90).plan(&ht(64, 1_000_000)).unwrap().mpdus, 64);
        assert_eq!(frames(90).plan(&ht(64, 65_535)).unwrap().mpdus, 42); // 41 * 1544 + 1542
        assert_eq!(frames(90).plan(&ht(64, 10)).unwrap().mpdus, 1);
    }

    #[test]
    fn a_failed_frame_holds_back_those_behind_it_and_the_window() {
        let mut frames = frames(10);
        let psdu = frames.plan(&ht(4, 65_535)).unwrap();
        let mut outcomes = [false, true, true, true].into_iter();
        let settled = frames.settle(psdu, 7, || outcomes.next().unwrap());
        assert_eq!(settled, Settled { acknowledged: 3, failed: 1, dropped: 0 });
        assert_eq!(released(&mut frames), []);
        // The window of 4 begins at frame 0: frames 4 and up have to wait.
        let retry = frames.plan(&ht(4, 65_535)).unwrap();
        assert_eq!((retry.mpdus, frames.waiting()), (1, 7));
        frames.settle(retry, 7, || true);
        assert_eq!(released(&mut frames), [0, 1, 2, 3]);
    }

    #[test]
    fn a_frame_given_up_lets_the_others_pass() {
        let mut frames = frames(3);
        for _ in 0..2 {
            let psdu = frames.plan(&ht(1, 65_535)).unwrap();
            frames.settle(psdu, 2, || false);
        }
        assert_eq!(released(&mut frames), []);
        let psdu = frames.plan(&ht(64, 65_535)).unwrap();
        assert_eq!(psdu.mpdus, 2);
        frames.settle(psdu, 2, || true);
        assert_eq!(released(&mut frames), [1, 2]);
    }

    #[test]
    fn a_frame_on_the_air_is_not_taken_back() {
        let mut frames = frames(2);
        assert_eq!(frames.pop_untried(1), Some(1));
        assert_eq!(frames.pop_untried(1), None);
    }
}
