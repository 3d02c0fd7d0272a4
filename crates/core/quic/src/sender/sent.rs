//! The packets that are sent, and which of them are acknowledged and lost (RFC 9002 section 6.1).

use std::collections::VecDeque;

use wakeai_units::{Duration, Instant};

/// A packet is lost once one that was sent this many packets later is acknowledged (`kPacketThreshold`, RFC 9002 section
/// 6.1.1).
const PACKET_THRESHOLD: u64 = 3;

/// A packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) at: Instant,
    /// The part of the stream that it carries.
    pub(super) part: u64,
    in_flight: bool,
}

/// The packets from the oldest that is in flight on.
#[derive(Clone, Debug, Default)]
pub(super) struct SentPackets {
    first: u64,
    packets: VecDeque<Sent>,
    in_flight: u32,
    /// The largest packet number that was acknowledged.
    pub(super) largest: Option<u64>,
    /// The time at which the next packet is lost by time.
    pub(super) loss_at: Option<Instant>,
}

impl SentPackets {
    /// The number of the next packet.
    pub(super) fn next(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Records that a packet with this part of the stream is sent. Returns its number.
    pub(super) fn send(&mut self, at: Instant, part: u64) -> u64 {
        let number = self.next();
        self.packets.push_back(Sent { at, part, in_flight: true });
        self.in_flight += 1;
        number
    }

    /// Records that the packets from `first` to `last` have arrived, and calls `newly` for those that were in flight.
    pub(super) fn acknowledge(
        &mut self,
        (first, last): (u64, u64),
        mut newly: impl FnMut(u64, Sent),
    ) {
        let end = last.saturating_add(1).min(self.next());
        for number in first.max(self.first)..end {
            let packet = &mut self.packets[(number - self.first) as usize];
            if std::mem::take(&mut packet.in_flight) {
                self.in_flight -= 1;
                newly(number, *packet);
            }
        }
    }

    /// Notes the largest number of an acknowledgement.
    pub(super) fn note_largest(&mut self, number: u64) {
        debug_assert!(number < self.next(), "{number} was not sent");
        self.largest = self.largest.max(Some(number));
    }

    /// Finds the packets that are lost now, and calls `lost` for each in their order.
    pub(super) fn detect(
        &mut self,
        now: Instant,
        delay: Duration,
        mut lost: impl FnMut(u64, Sent),
    ) {
        self.loss_at = None;
        let Some(largest) = self.largest else { return };
        let before = largest.saturating_sub(self.first).min(self.packets.len() as u64);
        for (number, packet) in (self.first..).zip(self.packets.iter_mut()).take(before as usize) {
            if !packet.in_flight {
                continue;
            }
            let due = packet.at + delay;
            if due <= now || number + PACKET_THRESHOLD <= largest {
                packet.in_flight = false;
                self.in_flight -= 1;
                lost(number, *packet);
            } else {
                self.loss_at = Some(self.loss_at.map_or(due, |at| at.min(due)));
            }
        }
        while self.packets.front().is_some_and(|packet| !packet.in_flight) {
            self.packets.pop_front();
            self.first += 1;
        }
    }
}
