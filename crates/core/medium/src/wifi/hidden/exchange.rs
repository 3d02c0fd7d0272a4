//! The frames of an exchange, one after another, where not all contenders hear each other.

use wakeai_units::{Duration, Instant};

use super::super::Wifi;
use super::super::attempt::{Attempt, Contender, Path, Receiver, Turn};
use super::super::frames::{DELIMITER, Psdu};
use super::super::ports::queue_mut;
use super::radio::Lock;
use super::{Due, Partial};
use crate::chance;
use crate::counters::{Airtime, BytesByKind};
use crate::node::{Node, Packet, StationId, Stations};

/// A kind of frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Rts,
    Cts,
    CtsToSelf,
    Data,
    /// The request for a BlockAck that did not come.
    BlockAckReq,
    /// ACK or BlockAck.
    Answer,
    Broadcast,
}

/// The exchange that a contender has begun, and waits for the end of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    attempt: Attempt,
    /// The frame that is on the air, or is to be answered.
    stage: What,
    /// The number of the exchange's wait for an answer. An earlier wait's end has no effect.
    wait: u64,
    /// Whether the wait is over, and only a reception that has begun may still be the answer.
    late: bool,
    /// Whether errors alone, and no other frame, damaged the data frame.
    errors: bool,
}

/// A frame that is sent a SIFS after another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    what: What,
    attempt: Attempt,
}

/// A transmission on the air.
#[derive(Clone, Debug)]
pub(crate) struct Ppdu {
    sender: usize,
    what: What,
    attempt: Attempt,
    start: Instant,
    end: Instant,
    /// The end of the exchange, by the frame's Duration field.
    nav: Instant,
    /// The time for which nothing else was on the channel's air.
    pub(crate) alone: Duration,
}

/// An MPDU of a data frame.
#[derive(Clone, Copy, Debug)]
struct Piece {
    place: usize,
    from: Instant,
    to: Instant,
    /// Whether errors damage it.
    damaged: bool,
}

impl<P: Packet> Wifi<P> {
    /// Handles all that happens at `at` on a channel where not all hear each other.
    pub(crate) fn step_partial(&mut self, number: usize, at: Instant) {
        while let Some(due) = self.partial(number).pop_before_starts(at) {
            match due {
                Due::Ends(ppdu) => self.end_ppdu(number, ppdu, at),
                Due::Waited(contender, wait) => self.end_wait(number, contender, wait, at),
                Due::NavReset(contender, receptions) => {
                    self.partial(number).reset_nav(contender, receptions, at);
                }
                Due::Starts(_) => unreachable!("these are taken below"),
            }
        }
        let mut starting = Vec::new();
        while let Some(contender) = self.partial(number).pop_start(at) {
            let reply = self.partial(number).radios[contender].reply.take();
            if let Some(Reply { what, attempt }) = reply {
                starting.push((contender, what, attempt));
            }
        }
        while let Some(contender) = self.partial(number).pop_access(at) {
            self.base.counters.accesses += 1;
            if let Some(attempt) = self.partial(number).radios[contender].unanswered {
                starting.push((contender, What::BlockAckReq, attempt));
                continue;
            }
            let turn = Turn { start: at, txop_end: at + self.txops[contender], first: true };
            let sender = Contender::of(contender, self.links.len());
            let attempt =
                self.plan(sender, turn).expect("a contender that counts down has a frame");
            starting.push((contender, self.first_frame(&attempt), attempt));
        }
        self.start_ppdus(number, &starting, at);
    }

    fn partial(&mut self, number: usize) -> &mut Partial {
        self.channels[number].partial.as_mut().expect("the channel has hidden stations")
    }

    /// The first frame of an exchange.
    fn first_frame(&self, attempt: &Attempt) -> What {
        match attempt.path.station() {
            None => What::Broadcast,
            Some(_) if attempt.lead.is_zero() => What::Data,
            Some(station) if self.links[station].rts.is_some() => What::Rts,
            Some(_) => What::CtsToSelf,
        }
    }

    /// Puts frames on the air, all at the same time.
    fn start_ppdus(&mut self, number: usize, starting: &[(usize, What, Attempt)], at: Instant) {
        for &(contender, what, attempt) in starting {
            let radio = &mut self.partial(number).radios[contender];
            radio.begin_sending();
            if !matches!(what, What::Cts | What::Answer) {
                radio.wants = false;
                radio.exchange = Some(Exchange::new(attempt, what, radio.new_wait()));
            }
        }
        for &(sender, what, attempt) in starting {
            let end = at + self.duration(what, &attempt);
            let nav = match attempt.path.station() {
                Some(station) => {
                    let link = &self.links[station];
                    let data = if what == What::BlockAckReq { end } else { attempt.end };
                    data + link.standard.sifs() + link.answer(attempt.psdu.mpdus)
                }
                None => end,
            };
            let alone = Duration::ZERO;
            let channel = &mut self.channels[number];
            let partial = channel.partial.as_mut().expect("the channel has hidden stations");
            partial.start(
                Ppdu { sender, what, attempt, start: at, end, nav, alone },
                &mut self.base.counters.airtime,
                &mut channel.rng,
            );
        }
    }

    fn duration(&self, what: What, attempt: &Attempt) -> Duration {
        let data = attempt.end - attempt.start - attempt.lead;
        let Some(station) = attempt.path.station() else { return data };
        let link = &self.links[station];
        let rts = link.rts.unwrap_or_default();
        match what {
            What::Rts => rts,
            What::Cts | What::CtsToSelf => attempt.lead_frames - rts,
            What::Data | What::Broadcast => data,
            What::BlockAckReq => link.block_ack_req,
            What::Answer => link.answer(attempt.psdu.mpdus),
        }
    }

    /// The contender at the other end of an exchange.
    fn addressee(&self, path: Path) -> Option<usize> {
        let stations = self.links.len();
        match path {
            Path::Up(station) => Some(stations + self.access_point_of[station] as usize),
            Path::Down(_, Receiver::Station(station)) => Some(station),
            Path::Down(_, Receiver::Everyone) => None,
        }
    }

    /// Handles the end of a frame at its sender and at all that hear it.
    fn end_ppdu(&mut self, number: usize, id: usize, at: Instant) {
        let airtime = &mut self.base.counters.airtime;
        let channel = &mut self.channels[number];
        let partial = channel.partial.as_mut().expect("the channel has hidden stations");
        let ppdu = partial.end(id, at, airtime);
        let hearers = std::mem::take(&mut partial.heard_by[ppdu.sender]);
        let locks: Vec<(usize, Option<Lock>)> = hearers
            .iter()
            .map(|hearer| (*hearer as usize, partial.hear_end(*hearer as usize, id, at)))
            .collect();
        partial.heard_by[ppdu.sender] = hearers;
        let to = match ppdu.what {
            What::Cts | What::Answer => Some(ppdu.attempt.path.sender().index(self.links.len())),
            What::Rts | What::Data | What::BlockAckReq => self.addressee(ppdu.attempt.path),
            What::CtsToSelf | What::Broadcast => None,
        };
        let pieces = self.pieces(number, &ppdu);
        let reset = self.nav_reset(&ppdu);
        let mut arrived = false;
        let mut receivers = Stations::with_capacity(self.links.len());
        for (hearer, lock) in locks {
            let Some(lock) = lock else { continue };
            let is_read = match ppdu.what {
                What::Data => {
                    pieces.iter().any(|one| !one.damaged && lock.is_intact(one.from, one.to))
                }
                _ => lock.is_intact(ppdu.start, ppdu.end),
            };
            let nav = if is_read && to != Some(hearer) { Some(ppdu.nav) } else { None };
            self.partial(number).read(hearer, is_read, nav, reset, at);
            if to == Some(hearer) {
                if ppdu.what == What::Data {
                    self.decode(number, &ppdu, &pieces, &lock, at);
                    arrived = is_read;
                }
                if is_read {
                    self.answer_to(number, hearer, &ppdu, at);
                }
            }
            if is_read && ppdu.what == What::Broadcast && hearer < self.links.len() {
                receivers.insert(StationId(hearer as u32));
            }
        }
        self.sent(number, &ppdu, &receivers, at);
        self.account_ppdu(&ppdu, arrived);
        self.partial(number).refresh_around(ppdu.sender);
    }

    /// The time after an RTS in which a frame has to follow (10.3.2.4).
    fn nav_reset(&self, ppdu: &Ppdu) -> Option<Duration> {
        let (What::Rts, Some(station)) = (ppdu.what, ppdu.attempt.path.station()) else {
            return None;
        };
        let standard = self.links[station].standard;
        let cts = self.duration(What::Cts, &ppdu.attempt);
        let delay = self.access_point(station).common.rx_start_delay;
        Some((standard.sifs() + standard.slot()) * 2 + cts + delay)
    }

    /// The MPDUs of a data frame, with their times.
    fn pieces(&mut self, number: usize, ppdu: &Ppdu) -> Vec<Piece> {
        let (What::Data, Some(station)) = (ppdu.what, ppdu.attempt.path.station()) else {
            return Vec::new();
        };
        let Attempt { path, psdu, .. } = ppdu.attempt;
        let link = &self.links[station];
        let rng = &mut self.channels[number].rng;
        let frames = queue_mut(&mut self.uplinks, &mut self.access_points, path);
        let (mut pieces, mut place, mut bytes) = (Vec::with_capacity(psdu.mpdus), 0, 0);
        while pieces.len() < psdu.mpdus {
            let Some((next, mpdu)) = frames.unsettled_from(place) else { break };
            let (from, end) = (bytes, bytes + DELIMITER + mpdu);
            let single = psdu.mpdus == 1;
            pieces.push(Piece {
                place: next,
                from: if single { ppdu.start } else { ppdu.start + link.rate.until(from) },
                to: if single { ppdu.end } else { ppdu.start + link.rate.until(end) },
                damaged: chance::happens(link.frame_error_ppm, rng),
            });
            place = next + 1;
            bytes = end.next_multiple_of(4);
        }
        pieces
    }

    /// Records what the addressee makes of a data frame, and hands up what is in order.
    fn decode(&mut self, number: usize, ppdu: &Ppdu, pieces: &[Piece], lock: &Lock, at: Instant) {
        let path = ppdu.attempt.path;
        let frames = queue_mut(&mut self.uplinks, &mut self.access_points, path);
        let mut hit = false;
        for piece in pieces {
            let intact = lock.is_intact(piece.from, piece.to);
            hit |= !intact;
            frames.decode(piece.place, piece.damaged || !intact);
        }
        let radio = &mut self.partial(number).radios[ppdu.sender];
        if let Some(exchange) = radio.exchange.as_mut() {
            exchange.errors = !hit;
        }
        if let Some(station) = path.station() {
            self.hand_up(path, station, at);
        }
    }

    /// What the contender does that has received a frame which is for it.
    fn answer_to(&mut self, number: usize, contender: usize, ppdu: &Ppdu, at: Instant) {
        let path = ppdu.attempt.path;
        let radio = &mut self.partial(number).radios[contender];
        let mine = radio.exchange.filter(|exchange| exchange.attempt.path == path);
        match (ppdu.what, mine) {
            // A station whose NAV is set does not answer an RTS (10.3.2.9).
            (What::Rts, _) if radio.nav <= at => self.reply(number, contender, What::Cts, ppdu, at),
            (What::Data | What::BlockAckReq, _) => {
                self.reply(number, contender, What::Answer, ppdu, at);
            }
            (What::Cts, Some(exchange)) if exchange.stage == What::Rts => {
                self.reply(number, contender, What::Data, ppdu, at);
            }
            (What::Answer, Some(exchange))
                if matches!(exchange.stage, What::Data | What::BlockAckReq) =>
            {
                self.succeed(number, contender, ppdu, at);
            }
            _ => {}
        }
    }

    /// Schedules the frame that follows a SIFS after another one.
    fn reply(&mut self, number: usize, contender: usize, what: What, ppdu: &Ppdu, at: Instant) {
        let partial = self.partial(number);
        let radio = &mut partial.radios[contender];
        radio.reply = Some(Reply { what, attempt: ppdu.attempt });
        if what == What::Data {
            // The CTS has come, so its wait is over.
            radio.exchange = Some(Exchange::new(ppdu.attempt, what, radio.new_wait()));
        }
        partial.schedule(at + partial.sifs, Due::Starts(contender));
    }

    /// What the sender does at the end of its frame.
    fn sent(&mut self, number: usize, ppdu: &Ppdu, receivers: &Stations, at: Instant) {
        match ppdu.what {
            What::Rts | What::Data | What::BlockAckReq => {
                let partial = self.partial(number);
                let wait = partial.radios[ppdu.sender].exchange.map_or(0, |exchange| exchange.wait);
                let until = at + partial.answer_timeout;
                partial.schedule(until, Due::Waited(ppdu.sender, wait));
            }
            What::CtsToSelf => self.reply(number, ppdu.sender, What::Data, ppdu, at),
            What::Broadcast => self.end_hidden_broadcast(number, ppdu, receivers, at),
            What::Cts | What::Answer => {}
        }
    }

    /// Ends a wait for an answer. Where a reception has begun, its end decides.
    fn end_wait(&mut self, number: usize, contender: usize, wait: u64, at: Instant) {
        let radio = &mut self.partial(number).radios[contender];
        let Some(exchange) = radio.exchange.as_mut().filter(|exchange| exchange.wait == wait)
        else {
            return;
        };
        if let (Some(_), false) = (&radio.lock, exchange.late) {
            exchange.late = true;
            let partial = self.partial(number);
            let until = partial.end_of_reception(contender).unwrap_or(at);
            partial.schedule(until, Due::Waited(contender, wait));
            return;
        }
        self.fail(number, contender, at);
    }

    /// Ends an exchange that was answered.
    fn succeed(&mut self, number: usize, contender: usize, ppdu: &Ppdu, at: Instant) {
        let Attempt { path, psdu, .. } = ppdu.attempt;
        let Some(station) = path.station() else { return };
        let sender = path.sender();
        let retry_limit = self.access_point(station).retry_limit;
        let frames = queue_mut(&mut self.uplinks, &mut self.access_points, path);
        let bytes = frames.bytes_by_kind(psdu);
        let gone = self.base.departures.of(sender.station());
        let settled = frames.settle(psdu, retry_limit, || false, gone);
        self.handed_on(path, station, settled.acknowledged + settled.dropped, at);
        let counters = self.counters_of(sender);
        counters.mpdu_failures += settled.failed_mpdus as u64;
        counters.retry_drops += settled.dropped as u64;
        // What a BlockAckReq asks for was counted when its BlockAck did not come.
        if self.partial(number).radios[contender].unanswered.take().is_none() {
            self.count_data(sender, psdu, true);
            self.account_exchange(&ppdu.attempt, station, bytes);
        }
        self.partial(number).radios[contender].backoff.succeeded();
        self.go_on(number, contender, &ppdu.attempt, at);
    }

    /// Continues the TXOP of an exchange that has ended well, or ends it.
    fn go_on(&mut self, number: usize, contender: usize, attempt: &Attempt, at: Instant) {
        let next = at + self.partial(number).sifs;
        let turn = Turn { start: next, txop_end: attempt.txop_end, first: false };
        if next < attempt.txop_end
            && let Some(attempt) = self.plan(attempt.path.sender(), turn)
        {
            let what = self.first_frame(&attempt);
            let partial = self.partial(number);
            let radio = &mut partial.radios[contender];
            radio.reply = Some(Reply { what, attempt });
            radio.exchange = Some(Exchange::new(attempt, what, radio.new_wait()));
            partial.schedule(next, Due::Starts(contender));
            return;
        }
        self.rejoin_partial(number, contender);
    }

    /// Ends an exchange that was not answered.
    fn fail(&mut self, number: usize, contender: usize, at: Instant) {
        let partial = self.partial(number);
        let slots = partial.answer_timeout.as_nanos().div_ceil(partial.slot.as_nanos());
        // The timeout ends on the grid of slots that began with the end of the frame.
        let rounded = partial.slot * slots - partial.answer_timeout;
        let radio = &mut partial.radios[contender];
        let Some(Exchange { attempt, stage, late, errors, .. }) = radio.exchange else { return };
        radio.waited_until = if late { at } else { at + rounded };
        let Attempt { path, psdu, .. } = attempt;
        let Some(station) = path.station() else { return };
        let sender = path.sender();
        let (rts, data) = (stage == What::Rts, stage == What::Data);
        let link = &self.links[station];
        let lost = match stage {
            What::Rts => link.rts.unwrap_or_default(),
            What::BlockAckReq => link.block_ack_req,
            _ => attempt.lead_frames + self.duration(What::Data, &attempt),
        };
        let was_protected = data && link.rts.is_some() && !attempt.lead.is_zero();
        let counters = self.counters_of(sender);
        counters.rts_attempts += u64::from(rts || was_protected);
        counters.rts_failures += u64::from(rts);
        counters.collisions += u64::from(!data || !errors);
        counters.airtime.collision += lost;
        if data {
            self.count_data(sender, psdu, false);
        }
        if let Path::Down(by, receiver) = path {
            self.base.counters.downlinks[station].collision += lost;
            self.access_points[by].queues.charge(receiver, lost);
        }
        let radio = &mut self.partial(number).radios[contender];
        if stage == What::BlockAckReq || (data && psdu.mpdus > 1) {
            // What has arrived is not known, so it is asked for before anything is repeated (10.25.6.7).
            radio.backoff.widen();
            radio.unanswered = Some(attempt);
        } else {
            radio.backoff.failed();
            self.give_up(path, psdu, station, rts, at);
        }
        self.rejoin_partial(number, contender);
    }

    /// Records that nothing answered a frame of `psdu`, or the RTS before it.
    fn give_up(&mut self, path: Path, psdu: Psdu, station: usize, rts: bool, at: Instant) {
        let sender = path.sender();
        let retry_limit = self.access_point(station).retry_limit;
        let frames = queue_mut(&mut self.uplinks, &mut self.access_points, path);
        let lost = if rts { frames.first_of(psdu) } else { psdu };
        let gone = self.base.departures.of(sender.station());
        let settled = frames.fail(lost, retry_limit, gone);
        let counters = self.counters_of(sender);
        counters.mpdu_failures += if rts { 0 } else { settled.failed_mpdus as u64 };
        counters.retry_drops += settled.dropped as u64;
        self.handed_on(path, station, settled.acknowledged + settled.dropped, at);
    }

    fn count_data(&mut self, sender: Contender, psdu: Psdu, answered: bool) {
        let counters = self.counters_of(sender);
        counters.attempts += 1;
        counters.failures += u64::from(!answered);
        counters.mpdus += psdu.mpdus as u64;
    }

    /// Delivers a broadcast that has ended.
    fn end_hidden_broadcast(&mut self, number: usize, ppdu: &Ppdu, heard: &Stations, at: Instant) {
        let Path::Down(place, Receiver::Everyone) = ppdu.attempt.path else { return };
        let mut receivers = Stations::with_capacity(self.links.len());
        let frame = self.take_broadcast(ppdu.attempt, place);
        let mut losses = 0;
        if let Some((packet, from)) = frame {
            let rng = &mut self.channels[number].rng;
            for &station in &self.access_points[place].stations {
                let to = StationId(station);
                if Node::Station(to) == from {
                    continue;
                }
                let ppm = self.links[station as usize].frame_error_ppm;
                if heard.contains(to) && !chance::happens(ppm, rng) {
                    receivers.insert(to);
                } else {
                    losses += 1;
                }
            }
            self.base.deliver_broadcast(at, receivers, from, packet);
        }
        let airtime = ppdu.end - ppdu.start;
        let counters = &mut self.base.counters.access_point;
        counters.broadcast_losses += losses;
        counters.airtime.broadcast += airtime;
        self.access_points[place].queues.charge(Receiver::Everyone, airtime);
        self.partial(number).radios[ppdu.sender].backoff.succeeded();
        self.go_on(number, ppdu.sender, &ppdu.attempt, at);
    }

    /// Ends the exchange of a contender, which draws its next backoff.
    fn rejoin_partial(&mut self, number: usize, contender: usize) {
        let has_frames = self.has_frames(Contender::of(contender, self.links.len()));
        let channel = &mut self.channels[number];
        let partial = channel.partial.as_mut().expect("the channel has hidden stations");
        let radio = &mut partial.radios[contender];
        radio.exchange = None;
        radio.wants = has_frames;
        radio.draw(&mut channel.rng);
        partial.refresh(contender);
    }

    /// Counts the airtime of an exchange that was answered, for its sender.
    fn account_exchange(&mut self, attempt: &Attempt, station: usize, bytes: BytesByKind) {
        let link = &self.links[station];
        let data = attempt.end - attempt.start - attempt.lead;
        let airtime = Airtime {
            ack: link.answer(attempt.psdu.mpdus),
            protection: attempt.lead_frames,
            ..Airtime::of_data(data, bytes)
        };
        let spaces = attempt.lead - attempt.lead_frames + link.standard.sifs();
        let rts = u64::from(!attempt.lead.is_zero() && link.rts.is_some());
        let counters = self.counters_of(attempt.path.sender());
        counters.rts_attempts += rts;
        counters.airtime.add(&airtime);
        if let Path::Down(place, receiver) = attempt.path {
            self.base.counters.downlinks[station].add(&airtime);
            self.access_points[place].queues.charge(receiver, airtime.busy() + spaces);
        }
    }

    /// Counts the time for which a frame was alone on the channel.
    fn account_ppdu(&mut self, ppdu: &Ppdu, arrived: bool) {
        let alone = ppdu.alone;
        let airtime = match ppdu.what {
            What::Rts | What::Cts | What::CtsToSelf | What::BlockAckReq => {
                Airtime { protection: alone, ..Airtime::default() }
            }
            What::Answer => Airtime { ack: alone, ..Airtime::default() },
            What::Broadcast => Airtime { broadcast: alone, ..Airtime::default() },
            What::Data if arrived => {
                let frames = self.queue(ppdu.attempt.path);
                Airtime::of_data(alone, frames.bytes_by_kind(ppdu.attempt.psdu))
            }
            What::Data => Airtime { collision: alone, ..Airtime::default() },
        };
        self.base.counters.airtime.add(&airtime);
    }
}

impl Exchange {
    fn new(attempt: Attempt, stage: What, wait: u64) -> Self {
        Self { attempt, stage, wait, late: false, errors: false }
    }

    /// The frames that the contender has put on the air, or is about to repeat.
    pub(crate) fn attempt(&self) -> &Attempt {
        &self.attempt
    }
}

impl Ppdu {
    /// The contender that sends it.
    pub(crate) fn sender(&self) -> usize {
        self.sender
    }

    /// The start of the frame.
    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// The end of the frame.
    pub(crate) fn end(&self) -> Instant {
        self.end
    }
}
