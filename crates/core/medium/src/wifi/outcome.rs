//! Outcomes: the end of the frames on the air, their ACKs, and the next backoff.

use wakeai_units::{Duration, Instant};

use super::Wifi;
use super::attempt::{Attempt, Contender, Path, Receiver, Turn};
use super::contention::Backoff;
use super::frames::Psdu;
use super::link::is_damaged;
use super::ports::queue_mut;
use crate::counters::{Airtime, BytesByKind, ContenderCounters};
use crate::node::{Node, Packet, StationId, Stations};

impl<P: Packet> Wifi<P> {
    /// Handles the end of the frames on the air.
    pub(crate) fn end_access(&mut self, at: Instant) {
        self.busy_until = None;
        if let [attempt] = self.on_air[..] {
            self.on_air.clear();
            match attempt.path.station() {
                Some(station) => self.end_data(attempt, station, at),
                None => self.end_broadcast(attempt, at),
            }
        } else {
            self.end_collision(at);
        }
    }

    /// Handles the end of a unicast data frame that did not collide.
    fn end_data(&mut self, attempt: Attempt, station: usize, at: Instant) {
        let Attempt { path, psdu, .. } = attempt;
        let (sender, ppm) = (path.sender(), self.links[station].frame_error_ppm);
        let rng = &mut self.rng;
        let frames = queue_mut(&mut self.uplinks, &mut self.access_point, path);
        let bytes = frames.bytes_by_kind(psdu);
        let arrived = || !is_damaged(ppm, rng);
        let gone = self.base.departures.of(sender.station());
        let settled = frames.settle(psdu, self.config.bss.retry_limit, arrived, gone);
        let answered = settled.acknowledged > 0;
        let counters = self.counters_of(sender);
        counters.attempts += 1;
        counters.failures += u64::from(!answered);
        counters.mpdus += psdu.mpdus as u64;
        counters.mpdu_failures += settled.failed as u64;
        counters.retry_drops += settled.dropped as u64;
        self.handed_on(path, station, settled.acknowledged + settled.dropped, at);
        self.account_data(attempt, station, at, bytes, answered);
        if answered {
            self.backoff(sender).succeeded();
            let end = at + self.bss.sifs + self.links[station].answer(psdu.mpdus);
            self.end_exchange(attempt, end);
        } else {
            // All stations except the sender have received a frame with errors, and wait EIFS.
            self.backoff(sender).failed();
            let timeout = self.contention.slots_in(self.bss.answer_timeout);
            self.fall_idle(at, self.contention.slots_in(self.bss.eifs_extra));
            self.rejoin(sender, timeout);
        }
    }

    /// Ends an exchange that succeeded. The TXOP continues with another exchange, or is over.
    fn end_exchange(&mut self, attempt: Attempt, end: Instant) {
        let next = end + self.bss.sifs;
        let turn = Turn { start: next, txop_end: attempt.txop_end, first: false };
        if next < attempt.txop_end
            && let Some(next) = self.plan(attempt.path.sender(), turn)
        {
            self.base.counters.airtime.idle += self.bss.sifs;
            self.busy_until = Some(next.end);
            self.on_air.push(next);
            self.begin_reception(next);
            return;
        }
        self.fall_idle(end, 0);
        self.rejoin(attempt.path.sender(), 0);
    }

    /// Handles the end of a broadcast that did not collide. For each station an error is drawn; a
    /// station with an error waits EIFS (a longer time than DIFS). There is no ACK, and so no retry
    /// (802.11-2020 10.3.6).
    fn end_broadcast(&mut self, attempt: Attempt, at: Instant) {
        let frame = self.take_broadcast(attempt);
        self.damaged.clear();
        if let Some((packet, from)) = frame {
            let mut receivers = Stations::with_capacity(self.links.len());
            for station in 0..self.links.len() {
                let to = StationId(station as u32);
                if Node::Station(to) == from {
                    continue;
                }
                if is_damaged(self.links[station].frame_error_ppm, &mut self.rng) {
                    self.damaged.push(station);
                } else {
                    receivers.insert(to);
                }
            }
            self.base.deliver_broadcast(at, receivers, from, packet);
        }
        let losses = self.damaged.len() as u64;
        let airtime = at - attempt.start;
        let counters = &mut self.base.counters.access_point;
        counters.broadcast_losses += losses;
        counters.airtime.broadcast += airtime;
        self.base.counters.airtime.broadcast += airtime;
        self.access_point.charge(Receiver::Everyone, airtime);
        self.backoff(attempt.path.sender()).succeeded();
        self.end_exchange(attempt, at);
        if !self.on_air.is_empty() {
            return; // the next frame of the TXOP, received without errors, ends their EIFS
        }
        let deferral = self.contention.slots_in(self.bss.eifs_extra);
        for &station in &self.damaged {
            self.contention.defer_one(station, deferral);
        }
    }

    /// Handles the end of a collision, of which no station could receive a frame.
    fn end_collision(&mut self, at: Instant) {
        for place in 0..self.on_air.len() {
            let attempt = self.on_air[place];
            let airtime = attempt.end_if_collided - attempt.start;
            let counters = self.counters_of(attempt.path.sender());
            counters.collisions += 1;
            counters.airtime.collision += airtime;
            match attempt.path.station() {
                Some(station) => self.lose_data(attempt, station, at),
                None => self.lose_broadcast(attempt),
            }
            if let Path::Down(receiver) = attempt.path {
                if let Receiver::Station(station) = receiver {
                    self.base.counters.downlinks[station].collision += airtime;
                }
                self.access_point.charge(receiver, airtime);
            }
        }
        if let Some(first) = self.on_air.first() {
            self.base.counters.airtime.collision += at - first.start;
        }
        let eifs =
            if self.config.eifs_after_collision { self.bss.eifs_extra } else { Duration::ZERO };
        self.fall_idle(at, self.contention.slots_in(eifs));
        for place in 0..self.on_air.len() {
            let attempt = self.on_air[place];
            let waits_for_answer = attempt.path.station().is_some();
            let timeout = if waits_for_answer { self.bss.answer_timeout } else { Duration::ZERO };
            let resumes = attempt.end_if_collided + timeout;
            self.rejoin(attempt.path.sender(), self.contention.slots_between(at, resumes));
        }
        self.on_air.clear();
    }

    /// Records that a collision lost a data frame, or the RTS before it. For the retry limit, a
    /// lost RTS counts as one more attempt of the first MPDU (frame) of its data frame.
    fn lose_data(&mut self, attempt: Attempt, station: usize, at: Instant) {
        let Attempt { path, psdu, .. } = attempt;
        let sender = path.sender();
        let rts = !attempt.lead.is_zero() && self.links[station].rts.is_some();
        let lost = if rts { Psdu { span: 1, mpdus: 1, ..psdu } } else { psdu };
        let frames = queue_mut(&mut self.uplinks, &mut self.access_point, path);
        let gone = self.base.departures.of(sender.station());
        let settled = frames.settle(lost, self.config.bss.retry_limit, || false, gone);
        let counters = self.counters_of(sender);
        if rts {
            counters.rts_attempts += 1;
            counters.rts_failures += 1;
        } else {
            counters.attempts += 1;
            counters.failures += 1;
            counters.mpdus += psdu.mpdus as u64;
            counters.mpdu_failures += settled.failed as u64;
        }
        counters.retry_drops += settled.dropped as u64;
        self.handed_on(path, station, settled.dropped, at);
        self.backoff(sender).failed();
    }

    /// Records that a collision lost a broadcast. Without an ACK the sender does not notice the
    /// loss, so it resets its contention window.
    fn lose_broadcast(&mut self, attempt: Attempt) {
        let Some((_, from)) = self.take_broadcast(attempt) else { return };
        let receivers = self.links.len() - usize::from(from != Node::Server);
        self.base.counters.access_point.broadcast_losses += receivers as u64;
        self.backoff(attempt.path.sender()).succeeded();
    }

    fn take_broadcast(&mut self, attempt: Attempt) -> Option<(P, Node)> {
        let frames = self.access_point.frames_mut(Receiver::Everyone);
        frames.settle(attempt.psdu, 1, || true, |_| ());
        let frame = frames.release()?;
        self.access_point.left(Receiver::Everyone, 1);
        self.base.counters.access_point.broadcasts += 1;
        Some((frame.packet, frame.from))
    }

    /// Counts the airtime of an exchange that did not collide.
    fn account_data(
        &mut self,
        attempt: Attempt,
        station: usize,
        at: Instant,
        bytes: BytesByKind,
        answered: bool,
    ) {
        let link = &self.links[station];
        let airtime = Airtime {
            ack: if answered { link.answer(attempt.psdu.mpdus) } else { Duration::ZERO },
            protection: attempt.lead_frames,
            ..Airtime::of_data(at - attempt.start - attempt.lead, bytes)
        };
        let sifs = if answered { self.bss.sifs } else { Duration::ZERO };
        let spaces = attempt.lead - airtime.protection + sifs;
        let rts = u64::from(!attempt.lead.is_zero() && link.rts.is_some());
        let counters = self.counters_of(attempt.path.sender());
        counters.rts_attempts += rts;
        counters.airtime.add(&airtime);
        self.base.counters.airtime.add(&airtime);
        self.base.counters.airtime.idle += spaces;
        if let Path::Down(receiver) = attempt.path {
            self.base.counters.downlinks[station].add(&airtime);
            self.access_point.charge(receiver, airtime.busy() + spaces);
        }
    }

    fn fall_idle(&mut self, end: Instant, deferral: u64) {
        self.quiet_since = end;
        self.contention.idle_from(end, deferral);
    }

    fn rejoin(&mut self, sender: Contender, late: u64) {
        let has_frames = match sender {
            Contender::Station(station) => self.queued(station) > 0,
            Contender::AccessPoint => self.access_point.waiting > 0,
        };
        self.contention.finish(sender.index(self.links.len()), has_frames, late, &mut self.rng);
    }

    fn backoff(&mut self, contender: Contender) -> &mut Backoff {
        self.contention.backoff(contender.index(self.links.len()))
    }

    fn counters_of(&mut self, contender: Contender) -> &mut ContenderCounters {
        match contender {
            Contender::Station(station) => &mut self.base.counters.stations[station],
            Contender::AccessPoint => &mut self.base.counters.access_point,
        }
    }
}
