//! Outcomes: the end of the frames on the air, their ACKs, and the next backoff.

use wakeai_units::{Duration, Instant};

use super::attempt::{Attempt, Contender, Path, Receiver, Turn};
use super::contention::Backoff;
use super::ports::queue_mut;
use super::{AccessPointState, Wifi};
use crate::chance;
use crate::counters::{Airtime, BytesByKind, ContenderCounters};
use crate::node::{Node, Packet, StationId, Stations};

impl<P: Packet> Wifi<P> {
    /// Handles the end of the frames on the air of a channel.
    pub(crate) fn end_access(&mut self, number: usize, at: Instant) {
        let channel = &mut self.channels[number];
        channel.busy_until = None;
        if let [attempt] = channel.on_air[..] {
            channel.on_air.clear();
            match attempt.path {
                Path::Up(station) | Path::Down(_, Receiver::Station(station)) => {
                    self.end_data(attempt, station, at);
                }
                Path::Down(place, Receiver::Everyone) => self.end_broadcast(attempt, place, at),
            }
        } else {
            self.end_collision(number, at);
        }
    }

    /// Handles the end of a unicast data frame that did not collide.
    fn end_data(&mut self, attempt: Attempt, station: usize, at: Instant) {
        let Attempt { path, psdu, .. } = attempt;
        let (sender, ppm) = (path.sender(), self.frame_error_ppm(path, station));
        let access_point = &self.access_points[self.place_of(path, station)];
        let (number, retry_limit) = (access_point.channel as usize, access_point.retry_limit);
        let common = access_point.common;
        let watched = self.watched(sender);
        let rng = &mut self.channels[number].rng;
        let frames = queue_mut(&mut self.uplinks, &mut self.access_points, path);
        let bytes = frames.bytes_by_kind(psdu);
        let arrived = || !chance::happens(ppm, rng);
        let gone = self.base.departures.of(watched);
        let settled = frames.settle(psdu, retry_limit, arrived, gone);
        let answered = settled.acknowledged > 0;
        let counters = self.counters_of(sender);
        counters.attempts += 1;
        counters.failures += u64::from(!answered);
        counters.mpdus += psdu.mpdus as u64;
        counters.mpdu_failures += settled.failed_mpdus as u64;
        counters.retry_drops += settled.dropped as u64;
        self.handed_on(path, station, settled.acknowledged + settled.dropped, at);
        self.account_data(attempt, station, at, bytes, answered);
        if answered {
            self.backoff(number, sender).succeeded();
            let end = at + common.sifs + self.links[station].answer(psdu.mpdus);
            self.end_exchange(number, attempt, common.sifs, end);
        } else {
            // All stations except the sender have received a frame with errors, and wait EIFS.
            self.fail_backoff(number, sender, settled.dropped);
            let channel = &mut self.channels[number];
            let timeout = channel.contention.slots_in(common.answer_timeout);
            channel.fall_idle(at, channel.contention.slots_in(common.eifs_extra));
            self.rejoin(number, sender, timeout);
        }
    }

    /// Ends an exchange that succeeded. The TXOP continues with another exchange, or is over.
    fn end_exchange(&mut self, number: usize, attempt: Attempt, sifs: Duration, end: Instant) {
        let next = end + sifs;
        let turn = Turn { start: next, txop_end: attempt.txop_end, first: false };
        if next < attempt.txop_end
            && let Some(next) = self.plan(attempt.path.sender(), turn)
        {
            self.base.counters.airtime.idle += sifs;
            let channel = &mut self.channels[number];
            channel.busy_until = Some(next.end);
            channel.on_air.push(next);
            self.begin_reception(number, next);
            return;
        }
        self.channels[number].fall_idle(end, 0);
        self.rejoin(number, attempt.path.sender(), 0);
    }

    /// Handles the end of a broadcast that did not collide. For each station an error is drawn; a
    /// station with an error waits EIFS (a longer time than DIFS). There is no ACK, and so no retry
    /// (802.11-2020 10.3.6).
    fn end_broadcast(&mut self, attempt: Attempt, place: usize, at: Instant) {
        let frame = self.take_broadcast(attempt, place);
        let access_point = &mut self.access_points[place];
        let (number, common) = (access_point.channel as usize, access_point.common);
        let channel = &mut self.channels[number];
        self.damaged.clear();
        if let Some((packet, from)) = frame {
            let mut receivers = Stations::with_capacity(self.links.len());
            for &station in &access_point.stations {
                let to = StationId(station);
                if Node::Station(to) == from {
                    continue;
                }
                if chance::happens(self.links[station as usize].frame_error_ppm, &mut channel.rng) {
                    self.damaged.push(station as usize);
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
        access_point.queues.charge(Receiver::Everyone, airtime);
        self.backoff(number, attempt.path.sender()).succeeded();
        self.end_exchange(number, attempt, common.sifs, at);
        let channel = &mut self.channels[number];
        if !channel.on_air.is_empty() {
            return; // the next frame of the TXOP, received without errors, ends their EIFS
        }
        let deferral = channel.contention.slots_in(common.eifs_extra);
        for &station in &self.damaged {
            channel.contention.defer_one(station, deferral);
        }
    }

    /// Handles the end of a collision, of which no station could receive a frame.
    fn end_collision(&mut self, number: usize, at: Instant) {
        for place in 0..self.channels[number].on_air.len() {
            let attempt = self.channels[number].on_air[place];
            let airtime = attempt.end_if_collided - attempt.start;
            let counters = self.counters_of(attempt.path.sender());
            counters.collisions += 1;
            counters.airtime.collision += airtime;
            match attempt.path {
                Path::Up(station) | Path::Down(_, Receiver::Station(station)) => {
                    self.lose_data(number, attempt, station, at);
                }
                Path::Down(by, Receiver::Everyone) => self.lose_broadcast(number, attempt, by),
            }
            if let Path::Down(by, receiver) = attempt.path {
                if let Receiver::Station(station) = receiver {
                    self.base.counters.downlinks[station].collision += airtime;
                }
                self.access_points[by].queues.charge(receiver, airtime);
            }
        }
        let channel = &mut self.channels[number];
        if let Some(first) = channel.on_air.first() {
            self.base.counters.airtime.collision += at - first.start;
        }
        // All access points on a channel have the same EIFS, because they are of one band.
        let eifs = if self.config.eifs_after_collision {
            self.access_points[0].common.eifs_extra
        } else {
            Duration::ZERO
        };
        channel.fall_idle(at, channel.contention.slots_in(eifs));
        for place in 0..self.channels[number].on_air.len() {
            let attempt = self.channels[number].on_air[place];
            let timeout = match attempt.path {
                Path::Up(station) | Path::Down(_, Receiver::Station(station)) => {
                    self.access_point(station).common.answer_timeout
                }
                Path::Down(_, Receiver::Everyone) => Duration::ZERO,
            };
            let resumes = attempt.end_if_collided + timeout;
            let late = self.channels[number].contention.slots_between(at, resumes);
            self.rejoin(number, attempt.path.sender(), late);
        }
        self.channels[number].on_air.clear();
    }

    /// Records that a collision lost a data frame, or the RTS before it. For the retry limit, a
    /// lost RTS counts as one more attempt of the first MPDU (frame) of its data frame.
    fn lose_data(&mut self, number: usize, attempt: Attempt, station: usize, at: Instant) {
        let Attempt { path, psdu, .. } = attempt;
        let sender = path.sender();
        let rts = !attempt.lead.is_zero() && self.links[station].rts.is_some();
        let (retry_limit, watched) = (self.access_point(station).retry_limit, self.watched(sender));
        let frames = queue_mut(&mut self.uplinks, &mut self.access_points, path);
        let lost = if rts { frames.first_of(psdu) } else { psdu };
        let gone = self.base.departures.of(watched);
        let settled = frames.settle(lost, retry_limit, || false, gone);
        let counters = self.counters_of(sender);
        if rts {
            counters.rts_attempts += 1;
            counters.rts_failures += 1;
        } else {
            counters.attempts += 1;
            counters.failures += 1;
            counters.mpdus += psdu.mpdus as u64;
            counters.mpdu_failures += settled.failed_mpdus as u64;
        }
        counters.retry_drops += settled.dropped as u64;
        self.handed_on(path, station, settled.dropped, at);
        self.fail_backoff(number, sender, settled.dropped);
    }

    /// Records that a collision lost a broadcast. Without an ACK the sender does not notice the
    /// loss, so it resets its contention window.
    fn lose_broadcast(&mut self, number: usize, attempt: Attempt, place: usize) {
        let Some((_, from)) = self.take_broadcast(attempt, place) else { return };
        let receivers =
            self.access_points[place].stations.len() - usize::from(from != Node::Server);
        self.base.counters.access_point.broadcast_losses += receivers as u64;
        self.backoff(number, attempt.path.sender()).succeeded();
    }

    pub(crate) fn take_broadcast(&mut self, attempt: Attempt, place: usize) -> Option<(P, Node)> {
        let watched = self.watched(attempt.path.sender());
        let queues = &mut self.access_points[place].queues;
        let frames = queues.frames_mut(Receiver::Everyone);
        frames.settle(attempt.psdu, 1, || true, self.base.departures.of(watched));
        let frame = frames.release()?;
        queues.left(Receiver::Everyone, 1);
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
        let sifs = if answered { link.standard.sifs() } else { Duration::ZERO };
        let spaces = attempt.lead - airtime.protection + sifs;
        let rts = u64::from(!attempt.lead.is_zero() && link.rts.is_some());
        let counters = self.counters_of(attempt.path.sender());
        counters.rts_attempts += rts;
        counters.airtime.add(&airtime);
        self.base.counters.airtime.add(&airtime);
        self.base.counters.airtime.idle += spaces;
        if let Path::Down(place, receiver) = attempt.path {
            self.base.counters.downlinks[station].add(&airtime);
            self.access_points[place].queues.charge(receiver, airtime.busy() + spaces);
        }
    }

    fn rejoin(&mut self, number: usize, sender: Contender, late: u64) {
        let has_frames = self.has_frames(sender);
        let channel = &mut self.channels[number];
        let sender = sender.index(self.links.len());
        channel.contention.finish(sender, has_frames, late, &mut channel.rng);
    }

    /// Whether a contender has frames to send.
    pub(crate) fn has_frames(&self, contender: Contender) -> bool {
        match contender {
            Contender::Station(station) => self.queued(station) > 0,
            Contender::AccessPoint(place) => self.access_points[place].queues.waiting > 0,
        }
    }

    /// The access point of a station.
    pub(super) fn access_point(&self, station: usize) -> &AccessPointState<P> {
        &self.access_points[self.access_point_of[station] as usize]
    }

    fn backoff(&mut self, number: usize, contender: Contender) -> &mut Backoff {
        let index = contender.index(self.links.len());
        self.channels[number].contention.backoff(index)
    }

    pub(crate) fn counters_of(&mut self, contender: Contender) -> &mut ContenderCounters {
        match contender {
            Contender::Station(station) => &mut self.base.counters.stations[station],
            Contender::AccessPoint(_) => &mut self.base.counters.access_point,
        }
    }
}
