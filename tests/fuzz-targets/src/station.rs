//! A station's controller (the agent's decisions) that a fuzzer drives, and the properties that
//! must hold for any input.

use std::collections::{BTreeMap, BTreeSet};

use wakeai_control::presence::{BootId, Challenge, Codec, FleetCodec, FleetContent};
use wakeai_control::{
    Actuation, Bounds, Connection, Controller, ControllerConfig, Event, LawConfig, Observation,
    OwnTraffic, PeerView, PresenceCounters, ReservationLimit, Share, StationId, TICK,
};
use wakeai_units::{Duration, Instant, Rate, Segments};

/// The group key.
pub(crate) const KEY: [u8; 32] = [42; 32];
/// The key that the fleet changes to.
pub(crate) const NEXT_KEY: [u8; 32] = [43; 32];
pub(crate) const BSSID: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// This station.
pub(crate) const OWN: StationId = StationId(0);
/// The number of this station's present start.
pub(crate) const OWN_BOOT: BootId = BootId([1; 16]);

/// The largest number of ticks of a run, so that no input takes long.
const MOST_TICKS: u32 = 1_500;
/// The shortest time between two messages of this station.
const APART: Duration = Duration::from_millis(500);
/// The largest number of queries and answers between two presence messages.
const MOST_BESIDES: u32 = 2;
/// The upper limit of an announced interval.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);
/// A peer is live until this many of its intervals have passed since its last message.
const LIVE_INTERVALS: u64 = 3;
/// A station that falls silent keeps its reservation for this long.
const RESERVED_FOR: Duration = Duration::from_secs(30);
/// The share of the air that a station leaves free for others grows by at most this much per tick.
const FOLLOWED_PER_TICK: Share = Share::from_percent(20);

pub(crate) struct FuzzedStation {
    pub(crate) controller: Controller,
    pub(crate) now: Instant,
    config: ControllerConfig,
    law: LawConfig,
    /// The station's own challenges (random numbers in its messages), the newest last. Every member
    /// of the group hears them.
    pub(crate) challenges: Vec<Challenge>,
    last_sent: Option<Instant>,
    /// The numbers of the station's own queries to the fleet, the newest last.
    pub(crate) asked: Vec<Challenge>,
    /// The queries and answers that were sent since the last presence message.
    besides: u32,
    /// When each peer was last heard.
    heard: BTreeMap<StationId, Instant>,
    /// Every datagram that was accepted.
    accepted: BTreeSet<Vec<u8>>,
    /// The highest sequence number that was accepted of each boot.
    highest: BTreeMap<BootId, u64>,
    /// The boots whose numbers went back after they were dropped. No agent does that, but a member can, and then its
    /// own earlier messages are new again.
    went_back: BTreeSet<BootId>,
    /// The text of the last event, for the message of a failed assertion.
    pub(crate) said: String,
    /// The share of the air that the station left free at the last tick.
    claimed: Option<Share>,
    ticks: u32,
}

impl FuzzedStation {
    pub(crate) fn new(config: ControllerConfig, law: LawConfig) -> Self {
        let controller = Controller::new(Instant::ZERO, &config, OWN_BOOT.0, &law);
        Self {
            controller,
            now: Instant::ZERO,
            config,
            law,
            challenges: Vec::new(),
            last_sent: None,
            asked: Vec::new(),
            besides: 0,
            heard: BTreeMap::new(),
            accepted: BTreeSet::new(),
            highest: BTreeMap::new(),
            went_back: BTreeSet::new(),
            said: String::new(),
            claimed: None,
            ticks: 0,
        }
    }

    /// Whether this run has had its largest number of ticks.
    pub(crate) fn is_over(&self) -> bool {
        self.ticks >= MOST_TICKS
    }

    /// Lets `span` pass. `connections` returns the connections at each tick.
    pub(crate) fn pass(
        &mut self,
        span: Duration,
        link_rate: Option<Rate>,
        mut connections: impl FnMut() -> Vec<Connection>,
    ) {
        let end = self.now + span;
        while !self.is_over() {
            let next = self.controller.next_timeout().expect("it always ticks");
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            if self.controller.next_tick() <= self.now {
                self.tick(link_rate, &connections());
            }
            self.transmit();
        }
    }

    fn tick(&mut self, link_rate: Option<Rate>, connections: &[Connection]) {
        self.ticks += 1;
        let actuation = self.controller.handle_tick(self.now, link_rate, connections);
        self.check_peers();
        let (seen, bounds) = (self.controller.observation(), self.controller.decision().bounds);
        assert!(seen.senders as usize <= 1 + seen.peers.len(), "{} senders", seen.senders);
        let least = Rate::of(seen.up.mss(), TICK);
        let sending = seen.up.windowed().count() as u32;
        self.check_bounds(bounds, least, sending, seen.up.rtt.is_some());
        check_parts(bounds, &actuation, seen);
        self.check_events();
    }

    fn check_peers(&self) {
        let peers: Vec<PeerView> = self.controller.peers().collect();
        assert!(peers.len() <= self.config.peer_limit, "{} peers", peers.len());
        for peer in peers {
            assert!(peer.interval <= LONGEST_INTERVAL, "{}", peer.interval);
            assert!(peer.age <= peer.interval * LIVE_INTERVALS, "silent for {}", peer.age);
        }
        for (station, heard) in &self.heard {
            let silent = self.now.saturating_since(*heard);
            let admitted = self.controller.admits(*station);
            assert!(!admitted || silent <= RESERVED_FOR, "reserved after {silent}");
        }
    }

    /// Checks the properties that the bounds of every law have, and those that only some laws have.
    fn check_bounds(&self, bounds: Bounds, least: Rate, sending: u32, has_rtt: bool) {
        assert!(bounds.floor <= bounds.ceiling, "{bounds}");
        assert!(bounds.ceiling >= Segments::new(1), "{bounds}");
        assert!(bounds.receive >= Segments::new(1), "{bounds}");
        assert!(bounds.pacing.is_none_or(|pacing| pacing >= least), "{bounds}, least {least}");
        match self.law {
            LawConfig::Fixed { floor, ceiling, small_queue, receive } => {
                let by_hand = Bounds { small_queue, receive, ..Bounds::window(floor, ceiling) };
                assert_eq!(bounds, by_hand, "set by hand");
            }
            LawConfig::Airtime(_) if has_rtt && sending > 0 => {
                let least = Segments::new(sending.saturating_mul(2).clamp(2, 8));
                assert!(bounds.ceiling >= least, "{bounds} for {sending} connections");
            }
            _ => {}
        }
    }

    fn check_events(&mut self) {
        let limit = self.config.reservable;
        let most = Share::WHOLE.minus(Share::WHOLE.minus(limit).percent(75));
        while let Some(event) = self.controller.poll_event() {
            self.said = event.to_string();
            let Event::Decision(decision) = event else { continue };
            let yields = match decision.reservation {
                Some(ReservationLimit::Yields { claimed, .. }) => Some(claimed),
                _ => None,
            };
            if let Some(claimed) = yields {
                assert!(claimed <= most, "{claimed} left free of at most {most}");
                let grown = self.claimed.map_or(claimed, |last| last.plus(FOLLOWED_PER_TICK));
                assert!(claimed <= grown, "{claimed} after {:?}", self.claimed);
            }
            self.claimed = yields;
        }
    }

    fn transmit(&mut self) {
        while let Some(datagram) = self.controller.poll_transmit(self.now) {
            if datagram.starts_with(b"WKFL") {
                self.sends_fleet(&datagram);
            } else {
                self.sends(&datagram);
            }
        }
    }

    /// A query to the fleet, or the answer to one.
    fn sends_fleet(&mut self, datagram: &[u8]) {
        assert!(self.last_sent.is_some(), "after its first presence message");
        self.besides += 1;
        assert!(self.besides <= MOST_BESIDES, "{} queries and answers", self.besides);
        let codec = FleetCodec::accepting(&KEY, &[NEXT_KEY]);
        let message = codec.decode(datagram).expect("its own messages are valid");
        if let FleetContent::Query(number) = message.content {
            self.asked.push(number);
        }
    }

    fn sends(&mut self, datagram: &[u8]) {
        self.besides = 0;
        let apart = self.last_sent.map_or(APART, |last| self.now.saturating_since(last));
        assert!(apart >= APART, "two messages {apart} apart");
        self.last_sent = Some(self.now);
        let codec = Codec::accepting(&KEY, &[NEXT_KEY]);
        let message = codec.decode(datagram).expect("its own messages are valid");
        if self.challenges.last() != Some(&message.challenge) {
            self.challenges.push(message.challenge);
        }
    }

    /// Gives the controller a datagram; returns whether it was accepted.
    pub(crate) fn receive(&mut self, datagram: &[u8]) -> bool {
        let before = *self.controller.counters();
        let shown = self.shown();
        self.controller.handle_datagram(self.now, datagram);
        let after = *self.controller.counters();
        assert_eq!(received(&after), received(&before) + 1, "counted once");
        let accepted = after.accepted > before.accepted;
        let queried = after.queries > before.queries;
        if accepted {
            let message = Codec::accepting(&KEY, &[NEXT_KEY]).decode(datagram).expect("accepted");
            let first = self.accepted.insert(datagram.to_vec());
            assert!(first || self.went_back.contains(&message.boot), "a message counts once");
            let highest = self.highest.entry(message.boot).or_default();
            if message.sequence < *highest {
                self.went_back.insert(message.boot);
            }
            *highest = message.sequence.max(*highest);
            self.heard.insert(message.station, self.now);
        } else if queried {
            assert_eq!(self.shown().0, shown.0, "a query changes no peer");
        } else {
            assert_eq!(self.shown(), shown, "only an accepted message changes anything");
        }
        let answers = self.controller.fleet_answers().count();
        assert!(answers <= self.config.peer_limit, "{answers} answers");
        accepted
    }

    /// Gives the controller a datagram of an attacker without the key, which must be refused.
    pub(crate) fn receive_forged(&mut self, datagram: &[u8]) {
        let refused = |c: &PresenceCounters| c.malformed + c.wrong_version + c.forged;
        let before = refused(self.controller.counters());
        self.receive(datagram);
        assert_eq!(refused(self.controller.counters()), before + 1, "without the key");
    }

    /// The state that can be seen from outside. Peers that have been silent for too long are left
    /// out, because the next message of such a peer, or the next tick, removes it.
    fn shown(&self) -> (Vec<PeerView>, Option<Instant>) {
        let silent = |peer: &PeerView| {
            let heard = self.heard.get(&peer.station).copied().unwrap_or(self.now);
            self.now.saturating_since(heard)
        };
        let kept = |peer: &PeerView| {
            silent(peer) <= peer.interval.saturating_mul(KEPT_INTERVALS).min(KEPT_FOR)
        };
        let peers = self.controller.peers().filter(kept);
        let peers = peers.map(|peer| PeerView { age: Duration::ZERO, ..peer });
        (peers.collect(), self.controller.next_timeout())
    }
}

/// A silent peer is kept for this many of its intervals, and for no longer than [`KEPT_FOR`].
const KEPT_INTERVALS: u64 = 12;
const KEPT_FOR: Duration = Duration::from_secs(300);

/// The number of all datagrams that were counted as received.
fn received(counters: &PresenceCounters) -> u64 {
    let PresenceCounters {
        sent: _,
        accepted,
        unproven,
        malformed,
        wrong_version,
        forged,
        invalid,
        wrong_bssid,
        own,
        duplicate_id,
        replayed,
        stale,
        table_full,
        fleet_sent: _,
        queries,
        answers,
        unasked,
    } = *counters;
    let refused = malformed + wrong_version + forged + invalid + wrong_bssid + own + duplicate_id;
    accepted + unproven + replayed + stale + table_full + refused + queries + answers + unasked
}

/// Checks that the sum of the connections' bounds does not exceed the station's bounds, except that
/// each ceiling is rounded up by at most one segment.
fn check_parts(bounds: Bounds, actuation: &Actuation, seen: &Observation) {
    for part in actuation.sockets.iter().map(|(_, part)| part).chain([&actuation.default]) {
        assert_eq!(
            part.ceiling == Segments::MAX,
            bounds.ceiling == Segments::MAX,
            "{bounds}: {part:?}"
        );
        assert!(part.floor <= part.ceiling, "{part:?}");
        assert_eq!(part.pacing.is_none(), bounds.pacing.is_none(), "{part:?}");
        assert!(part.rate <= bounds.rate, "{bounds}: {part:?}");
        assert!(part.small_queue <= bounds.small_queue, "{part:?}");
        assert_eq!(part.receive == Segments::MAX, bounds.receive == Segments::MAX, "{part:?}");
    }
    let bound = |own: &OwnTraffic| -> Vec<u64> { own.windowed().map(|one| one.id).collect() };
    let parts = |ids: Vec<u64>| {
        actuation.sockets.iter().filter(move |(id, _)| ids.contains(id)).map(|(_, part)| part)
    };
    let sockets = || parts(bound(&seen.up));
    if bounds.receive != Segments::MAX {
        let receivers = || parts(bound(&seen.down));
        let windows: u64 = receivers().map(|part| u64::from(part.receive.get())).sum();
        let most = u64::from(bounds.receive.get()) + receivers().count() as u64;
        assert!(windows <= most, "{bounds}: {windows}");
    }
    let floors: u64 = sockets().map(|part| u64::from(part.floor.get())).sum();
    assert!(floors <= u64::from(bounds.floor.get()), "{bounds}: {floors}");
    if bounds.ceiling != Segments::MAX {
        let ceilings: u64 = sockets().map(|part| u64::from(part.ceiling.get())).sum();
        let most = u64::from(bounds.ceiling.get()) + sockets().count() as u64;
        assert!(ceilings <= most, "{bounds}: {ceilings}");
    }
}
