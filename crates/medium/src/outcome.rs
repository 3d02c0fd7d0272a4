//! Outcomes: what follows when the frames on the air have ended.

use rand_core::Rng;
use wakeai_units::{Duration, Instant};

use crate::access::{Attempt, Turn};
use crate::counters::{Airtime, BytesByKind, ContenderCounters};
use crate::frames::{Frames, Psdu};
use crate::medium::Medium;
use crate::node::{Node, Packet, StationId};

impl<P: Packet> Medium<P> {
    /// The frames on the air end.
    pub(crate) fn end_access(&mut self, at: Instant) {
        self.busy_until = None;
        if let [attempt] = self.on_air[..] {
            self.on_air.clear();
            if attempt.link == self.links.len() {
                self.end_broadcast(attempt, at);
            } else {
                self.end_data(attempt, at);
            }
        } else {
            self.end_collision(at);
        }
    }

    /// A unicast data frame that did not collide has ended.
    fn end_data(&mut self, attempt: Attempt, at: Instant) {
        let Attempt { sender, link, psdu, .. } = attempt;
        let ppm = self.links[link].frame_error_ppm;
        let rng = &mut self.rng;
        let frames = queue_mut(&mut self.uplinks, &mut self.access_point.frames, sender, link);
        let bytes = frames.bytes_by_kind(psdu);
        let arrived = || !is_damaged(ppm, rng);
        let gone = self.departures.of(sender);
        let settled = frames.settle(psdu, self.bss.retry_limit, arrived, gone);
        let answered = settled.acknowledged > 0;
        let counters = self.contender(sender);
        counters.attempts += 1;
        counters.failures += u64::from(!answered);
        counters.mpdus += psdu.mpdus as u64;
        counters.mpdu_failures += settled.failed as u64;
        counters.retry_drops += settled.dropped as u64;
        self.handed_on(attempt, settled.acknowledged + settled.dropped, at);
        self.account_data(attempt, at, bytes, answered);
        if answered {
            self.contention.backoff(sender).succeeded();
            let end = at + self.bss.sifs + self.links[link].answer(psdu.mpdus);
            self.end_exchange(attempt, end);
        } else {
            // Everybody but the sender has received a frame with errors, and waits EIFS.
            self.contention.backoff(sender).failed();
            let timeout = self.contention.slots_in(self.bss.answer_timeout);
            self.fall_idle(at, self.contention.slots_in(self.bss.eifs_extra));
            self.rejoin(sender, timeout);
        }
    }

    /// An exchange has succeeded: the TXOP goes on with another, or is over.
    fn end_exchange(&mut self, attempt: Attempt, end: Instant) {
        let next = end + self.bss.sifs;
        let turn = Turn { start: next, txop_end: attempt.txop_end, first: false };
        if next < attempt.txop_end
            && let Some(next) = self.plan(attempt.sender, turn)
        {
            self.counters.airtime.idle += self.bss.sifs;
            self.busy_until = Some(next.end);
            self.on_air.push(next);
            self.begin_reception(next);
            return;
        }
        self.fall_idle(end, 0);
        self.rejoin(attempt.sender, 0);
    }

    /// A broadcast that did not collide has ended. Each station's reception has its own errors,
    /// and its own EIFS after them. There is no ACK, and so no retry (802.11-2020 10.3.6).
    fn end_broadcast(&mut self, attempt: Attempt, at: Instant) {
        let frame = self.take_broadcast(attempt);
        self.damaged.clear();
        if let Some((packet, from)) = frame {
            for station in 0..self.links.len() {
                let to = Node::Station(StationId(station as u32));
                if to == from {
                    continue;
                }
                if is_damaged(self.links[station].frame_error_ppm, &mut self.rng) {
                    self.damaged.push(station);
                } else {
                    self.deliver(at, to, from, packet.clone());
                }
            }
        }
        let losses = self.damaged.len() as u64;
        let airtime = at - attempt.start;
        let counters = &mut self.counters.access_point;
        counters.broadcast_losses += losses;
        counters.airtime.broadcast += airtime;
        self.counters.airtime.broadcast += airtime;
        self.access_point.charge(attempt.link, airtime);
        self.contention.backoff(attempt.sender).succeeded();
        self.end_exchange(attempt, at);
        if !self.on_air.is_empty() {
            return; // the next frame of the TXOP, received without errors, ends their EIFS
        }
        let deferral = self.contention.slots_in(self.bss.eifs_extra);
        for &station in &self.damaged {
            self.contention.defer_one(station, deferral);
        }
    }

    /// Several frames have ended that nobody could receive.
    fn end_collision(&mut self, at: Instant) {
        for place in 0..self.on_air.len() {
            let attempt = self.on_air[place];
            let airtime = attempt.end_if_collided - attempt.start;
            let counters = self.contender(attempt.sender);
            counters.collisions += 1;
            counters.airtime.collision += airtime;
            if attempt.link == self.links.len() {
                self.lose_broadcast(attempt);
            } else {
                self.lose_data(attempt, at);
            }
            if attempt.sender == self.links.len() {
                if let Some(downlink) = self.counters.downlinks.get_mut(attempt.link) {
                    downlink.collision += airtime;
                }
                self.access_point.charge(attempt.link, airtime);
            }
        }
        if let Some(first) = self.on_air.first() {
            self.counters.airtime.collision += at - first.start;
        }
        let eifs = if self.bss.eifs_after_collision { self.bss.eifs_extra } else { Duration::ZERO };
        self.fall_idle(at, self.contention.slots_in(eifs));
        for place in 0..self.on_air.len() {
            let attempt = self.on_air[place];
            let waits_for_answer = attempt.link < self.links.len();
            let timeout = if waits_for_answer { self.bss.answer_timeout } else { Duration::ZERO };
            let resumes = attempt.end_if_collided + timeout;
            self.rejoin(attempt.sender, self.contention.slots_between(at, resumes));
        }
        self.on_air.clear();
    }

    /// A collision has cost a data frame, or the RTS ahead of it. An RTS counts against the first
    /// frame that it was for.
    fn lose_data(&mut self, attempt: Attempt, at: Instant) {
        let Attempt { sender, link, psdu, .. } = attempt;
        let rts = !attempt.lead.is_zero() && self.links[link].rts.is_some();
        let lost = if rts { Psdu { span: 1, mpdus: 1, ..psdu } } else { psdu };
        let frames = queue_mut(&mut self.uplinks, &mut self.access_point.frames, sender, link);
        let gone = self.departures.of(sender);
        let settled = frames.settle(lost, self.bss.retry_limit, || false, gone);
        let counters = self.contender(sender);
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
        self.handed_on(attempt, settled.dropped, at);
        self.contention.backoff(sender).failed();
    }

    /// A collision has cost a broadcast; its sender does not know.
    fn lose_broadcast(&mut self, attempt: Attempt) {
        let Some((_, from)) = self.take_broadcast(attempt) else { return };
        let receivers = self.links.len() - usize::from(from != Node::Server);
        self.counters.access_point.broadcast_losses += receivers as u64;
        self.contention.backoff(attempt.sender).succeeded();
    }

    fn take_broadcast(&mut self, attempt: Attempt) -> Option<(P, Node)> {
        let frames = &mut self.access_point.frames[attempt.link];
        frames.settle(attempt.psdu, 1, || true, |_| ());
        let frame = frames.release()?;
        self.access_point.left(attempt.link, 1);
        self.counters.access_point.broadcasts += 1;
        Some((frame.packet, frame.from))
    }

    /// The air of an exchange that did not collide.
    fn account_data(&mut self, attempt: Attempt, at: Instant, bytes: BytesByKind, answered: bool) {
        let link = &self.links[attempt.link];
        let airtime = Airtime {
            ack: if answered { link.answer(attempt.psdu.mpdus) } else { Duration::ZERO },
            protection: attempt.lead_frames,
            ..Airtime::of_data(at - attempt.start - attempt.lead, bytes)
        };
        let sifs = if answered { self.bss.sifs } else { Duration::ZERO };
        let spaces = attempt.lead - airtime.protection + sifs;
        let rts = u64::from(!attempt.lead.is_zero() && link.rts.is_some());
        let counters = self.contender(attempt.sender);
        counters.rts_attempts += rts;
        counters.airtime.add(&airtime);
        self.counters.airtime.add(&airtime);
        self.counters.airtime.idle += spaces;
        if attempt.sender == self.links.len() {
            self.counters.downlinks[attempt.link].add(&airtime);
            self.access_point.charge(attempt.link, airtime.busy() + spaces);
        }
    }

    fn fall_idle(&mut self, end: Instant, deferral: u64) {
        self.quiet_since = end;
        self.contention.idle_from(end, deferral);
    }

    fn rejoin(&mut self, sender: usize, late: u64) {
        let has_frames = if sender < self.links.len() {
            self.queued_at_station(sender) > 0
        } else {
            self.access_point.waiting() > 0
        };
        self.contention.finish(sender, has_frames, late, &mut self.rng);
    }

    fn contender(&mut self, sender: usize) -> &mut ContenderCounters {
        let counters = &mut self.counters;
        counters.stations.get_mut(sender).unwrap_or(&mut counters.access_point)
    }
}

/// The queue that an attempt takes its frames from.
pub(crate) fn queue_mut<'a, P>(
    uplinks: &'a mut [Frames<P>],
    downlinks: &'a mut [Frames<P>],
    sender: usize,
    link: usize,
) -> &'a mut Frames<P> {
    uplinks.get_mut(sender).unwrap_or(&mut downlinks[link])
}

/// Whether an MPDU arrives damaged.
pub(crate) fn is_damaged(ppm: u32, rng: &mut rand_pcg::Pcg64Mcg) -> bool {
    ppm > 0 && (u64::from(rng.next_u32()) * 1_000_000) >> 32 < u64::from(ppm)
}
