//! The reception of an aggregate, whose MPDUs (frames) arrive one after another.
//!
//! A receiver checks each MPDU as it arrives, and hands up the packets that are in order
//! (802.11-2020 9.7.3 and 10.25.6.6). The sender keeps all MPDUs until the BlockAck reports which
//! of them have arrived.

use wakeai_units::Instant;

use super::Wifi;
use super::attempt::{Attempt, Path};
use super::frames::{DELIMITER, Frames};
use super::phy::PhyRate;
use super::ports::queue_mut;
use crate::chance;
use crate::node::Packet;

/// An aggregate on the air that did not collide. Its last MPDU is not handled here but in
/// `end_data`, because it arrives when the aggregate ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reception {
    path: Path,
    /// The station at one end of the link.
    station: usize,
    /// The start of the PPDU (the transmission).
    start: Instant,
    rate: PhyRate,
    /// MPDUs that arrive before the last.
    left: usize,
    /// The place in the queue of the MPDU that arrives next.
    place: usize,
    /// The bytes of the PSDU (the data field) up to the end of this MPDU, padding included.
    bytes: u32,
    /// The time at which the MPDU arrives.
    pub(crate) at: Instant,
}

impl Reception {
    /// Moves to the first MPDU at or after `place`. Before the call, `self.bytes` are the bytes of
    /// the PSDU that precede it.
    fn seek<P: Packet>(mut self, frames: &Frames<P>, place: usize) -> Option<Self> {
        self.left = self.left.checked_sub(1)?;
        let (place, mpdu) = frames.unsettled_from(place)?;
        let end = self.bytes + DELIMITER + mpdu;
        self.at = self.start + self.rate.until(end);
        self.place = place;
        self.bytes = end.next_multiple_of(4);
        Some(self)
    }
}

impl<P: Packet> Wifi<P> {
    /// Begins the reception of a frame that does not collide.
    pub(crate) fn begin_reception(&mut self, number: usize, attempt: Attempt) {
        let Attempt { path, psdu, .. } = attempt;
        self.channels[number].reception = None;
        let Some(station) = path.station() else { return };
        if psdu.mpdus < 2 || self.config.hand_up_after_ppdu {
            return;
        }
        let start = attempt.start + attempt.lead;
        let whole = Reception {
            path,
            station,
            start,
            rate: self.links[station].rate,
            left: psdu.mpdus - 1,
            place: 0,
            bytes: 0,
            at: start,
        };
        self.channels[number].reception = whole.seek(self.queue(path), 0);
    }

    /// Handles the arrival of an MPDU of the aggregate on the air of a channel.
    pub(crate) fn end_mpdu(&mut self, number: usize, at: Instant) {
        let Some(reception) = self.channels[number].reception.take() else { return };
        let Reception { path, station, place, .. } = reception;
        let ppm = self.frame_error_ppm(path, station);
        let channel = &mut self.channels[number];
        let damaged = chance::happens(ppm, &mut channel.rng);
        let frames = queue_mut(&mut self.uplinks, &mut self.access_points, path);
        frames.decode(place, damaged);
        channel.reception = reception.seek(frames, place + 1);
        self.hand_up(path, station, at);
    }

    /// Hands up the packets that are in order, before the sender has its BlockAck.
    pub(crate) fn hand_up(&mut self, path: Path, station: usize, at: Instant) {
        loop {
            let frames = queue_mut(&mut self.uplinks, &mut self.access_points, path);
            let Some(frame) = frames.hand_up() else { return };
            let (packet, from, to) = (frame.packet.clone(), frame.from, frame.to);
            self.arrive(path, station, at, from, to, packet);
        }
    }
}
