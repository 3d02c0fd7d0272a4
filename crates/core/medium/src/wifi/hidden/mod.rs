//! A channel on which not all contenders hear each other.
//!
//! Where all hear each other, an exchange is one event, and the slots of all contenders form one grid
//! (`contention`). Here each frame of an exchange, from RTS to ACK, is an event of its own, each contender counts
//! its own slots, and each receives what it alone hears. The rules:
//!
//! - A contender receives a frame that starts while it hears and sends nothing. Another frame that it hears before
//!   the first has ended damages the MPDUs of the first that overlap with it, and is itself received by nobody who
//!   hears both. There is no capture.
//! - Two frames that start within 4 us hide each other's preambles. They are only energy: the medium is busy, and no
//!   EIFS follows. Later on, the header of the first is read beside the second: it has the most robust modulation.
//! - A contender that has received a frame with errors waits EIFS after it (10.3.2.3.7).
//! - A frame for another one sets the NAV to the end of its exchange (10.3.2.4). The NAV of an RTS is reset where no
//!   frame follows.
//! - The sender of an aggregate whose `BlockAck` did not come asks for it with a `BlockAckReq` before it repeats anything,
//!   as ns-3 does. A channel on which all hear each other has no such frame: its collisions leave nothing to ask for.
//! - An RTS is answered unless the NAV of its receiver is set. Data are always answered.

mod exchange;
mod radio;

use std::collections::{BTreeMap, BTreeSet};

use rand_pcg::Pcg64Mcg;
use wakeai_units::{Duration, Instant};

use super::attempt::Attempt;
use super::contention::ContenderRules;
use super::link::Common;
use crate::counters::Airtime;
use exchange::{Exchange, Ppdu};
use radio::{Lock, Radio};

/// What is due at a time. Things of the same time are handled in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// The frame with this number ends.
    Ends(usize),
    /// The wait of this contender for an answer is over, unless it has begun another one since.
    Waited(usize, u64),
    /// The NAV of this contender ends, unless it has begun to receive a frame since.
    NavReset(usize, u64),
    /// This contender sends its reply.
    Starts(usize),
}

/// The state of the channel.
#[derive(Clone, Debug)]
pub(crate) struct Partial {
    /// For each contender of the medium, those that hear it. Contenders of other channels hear nothing.
    heard_by: Vec<Vec<u32>>,
    radios: Vec<Radio>,
    /// The frames on the air, by number.
    on_air: BTreeMap<usize, Ppdu>,
    next_number: usize,
    agenda: BTreeSet<(Instant, Due)>,
    /// The next access of each contender that has one.
    accesses: BTreeSet<(Instant, usize)>,
    /// The last time at which the number of frames on the air has changed.
    changed: Instant,
    sifs: Duration,
    slot: Duration,
    answer_timeout: Duration,
    eifs_extra: Duration,
}

impl Partial {
    /// The channel of contenders with these rules. `hears` says whether the second hears the first.
    pub(crate) fn new(
        common: &Common,
        rules: &[ContenderRules],
        hears: impl Fn(usize, usize) -> bool,
    ) -> Self {
        let (all, hears) = (rules.len(), &hears);
        let hearers = |one| (0..all).filter(move |other| *other != one && hears(one, *other));
        let Common { sifs, slot, answer_timeout, eifs_extra, .. } = *common;
        Self {
            heard_by: (0..all)
                .map(|one| hearers(one).map(|other| other as u32).collect())
                .collect(),
            radios: rules.iter().map(Radio::new).collect(),
            on_air: BTreeMap::new(),
            next_number: 0,
            agenda: BTreeSet::new(),
            accesses: BTreeSet::new(),
            changed: Instant::ZERO,
            sifs,
            slot,
            answer_timeout,
            eifs_extra,
        }
    }

    /// The time of the next event.
    pub(crate) fn next_event(&self) -> Option<Instant> {
        let due = self.agenda.first().map(|(at, _)| *at);
        let access = self.accesses.first().map(|(at, _)| *at);
        [due, access].into_iter().flatten().min()
    }

    /// Makes a contender that got a frame at `now` contend, unless it does already.
    pub(crate) fn request(&mut self, contender: usize, now: Instant, rng: &mut Pcg64Mcg) {
        let radio = &mut self.radios[contender];
        if !radio.is_active() {
            radio.request(now, self.sifs, self.slot, rng);
            self.refresh(contender);
        }
    }

    /// The data of a contender whose outcome it does not know.
    pub(crate) fn attempt(&self, contender: usize) -> Option<&Attempt> {
        let radio = &self.radios[contender];
        radio.exchange.as_ref().map(Exchange::attempt).or(radio.unanswered.as_ref())
    }

    fn schedule(&mut self, at: Instant, due: Due) {
        self.agenda.insert((at, due));
    }

    /// The next thing at `at` that is not the start of a frame.
    fn pop_before_starts(&mut self, at: Instant) -> Option<Due> {
        let first = *self.agenda.first()?;
        let is_due = first.0 == at && !matches!(first.1, Due::Starts(_));
        is_due.then(|| {
            self.agenda.remove(&first);
            first.1
        })
    }

    /// The next contender that sends a reply at `at`.
    fn pop_start(&mut self, at: Instant) -> Option<usize> {
        let first = *self.agenda.first()?;
        let (true, Due::Starts(contender)) = (first.0 == at, first.1) else { return None };
        self.agenda.remove(&first);
        Some(contender)
    }

    /// The next contender whose backoff is over at `at`.
    fn pop_access(&mut self, at: Instant) -> Option<usize> {
        let first = *self.accesses.first()?;
        if first.0 != at {
            return None;
        }
        self.accesses.remove(&first);
        self.radios[first.1].access = None;
        Some(first.1)
    }

    /// Computes the next access of a contender anew.
    fn refresh(&mut self, contender: usize) {
        let radio = &mut self.radios[contender];
        let next = radio.next_access(self.sifs, self.slot);
        let before = std::mem::replace(&mut radio.access, next);
        if before == next {
            return;
        }
        if let Some(at) = before {
            self.accesses.remove(&(at, contender));
        }
        if let Some(at) = next {
            self.accesses.insert((at, contender));
        }
    }

    /// Computes the next accesses of a contender and of all that hear it anew.
    fn refresh_around(&mut self, sender: usize) {
        self.refresh(sender);
        let hearers = std::mem::take(&mut self.heard_by[sender]);
        for hearer in &hearers {
            self.refresh(*hearer as usize);
        }
        self.heard_by[sender] = hearers;
    }

    /// Puts a frame on the air, whose sender has begun to send.
    fn start(&mut self, ppdu: Ppdu, airtime: &mut Airtime, rng: &mut Pcg64Mcg) {
        let (sender, number, end) = (ppdu.sender(), self.next_number, ppdu.end());
        self.next_number += 1;
        let now = ppdu.start();
        self.account(now, airtime);
        self.on_air.insert(number, ppdu);
        self.schedule(end, Due::Ends(number));
        let hearers = std::mem::take(&mut self.heard_by[sender]);
        for hearer in &hearers {
            self.radios[*hearer as usize].hear(now, number, self.sifs, self.slot, rng);
        }
        self.heard_by[sender] = hearers;
        self.refresh_around(sender);
    }

    /// Takes a frame from the air.
    fn end(&mut self, number: usize, at: Instant, airtime: &mut Airtime) -> Ppdu {
        self.account(at, airtime);
        let ppdu = self.on_air.remove(&number).expect("the frame is on the air");
        self.radios[ppdu.sender()].end_sending(at);
        ppdu
    }

    /// Lets a contender hear the end of a frame.
    fn hear_end(&mut self, contender: usize, number: usize, at: Instant) -> Option<Lock> {
        self.radios[contender].hear_end(at, number)
    }

    /// Records the reception of a frame that ended at `at`: whether it could be read, and for a frame for another
    /// one the end of its exchange. Where nothing follows it within `reset`, that end does not count.
    fn read(
        &mut self,
        contender: usize,
        is_read: bool,
        nav: Option<Instant>,
        reset: Option<Duration>,
        at: Instant,
    ) {
        let radio = &mut self.radios[contender];
        radio.received_until = if is_read { at } else { at + self.eifs_extra };
        let Some(nav) = nav.filter(|nav| *nav > radio.nav) else { return };
        radio.nav = nav;
        if let Some(reset) = reset {
            let receptions = radio.receptions;
            self.schedule(at + reset, Due::NavReset(contender, receptions));
        }
    }

    fn reset_nav(&mut self, contender: usize, receptions: u64, at: Instant) {
        let radio = &mut self.radios[contender];
        if radio.receptions == receptions {
            radio.nav = radio.nav.min(at);
            self.refresh(contender);
        }
    }

    /// The end of the frame that a contender receives.
    fn end_of_reception(&self, contender: usize) -> Option<Instant> {
        let lock = self.radios[contender].lock.as_ref()?;
        self.on_air.get(&lock.ppdu).map(Ppdu::end)
    }

    /// Counts the time since the last change of what is on the air.
    fn account(&mut self, at: Instant, airtime: &mut Airtime) {
        let span = at - self.changed;
        self.changed = at;
        let mut frames = self.on_air.values_mut();
        match (frames.next(), frames.next()) {
            (None, _) => airtime.idle += span,
            (Some(one), None) => one.alone += span,
            (Some(_), Some(_)) => airtime.collision += span,
        }
    }
}
