//! The whole brain.

use std::collections::VecDeque;

use wakeai_units::Instant;

use crate::presence::PresenceCounters;
use crate::{
    Bounds, ControllerConfig, Event, Law, Observation, PeerView, Reason, RttWatch, StationView,
};

/// Events that wait for [`Controller::poll_event`]; older ones make room.
const EVENT_LIMIT: usize = 1024;

/// Presence, RTT watch and law of one station.
///
/// Order of calls: whenever something happens, first `handle_datagram` for each datagram and
/// `handle_tick` at each tick; then `poll_transmit` and `poll_event` until they give `None`; then
/// wait until [`Controller::next_timeout`]. `now` never goes back.
pub struct Controller {
    config: ControllerConfig,
    law: Box<dyn Law + Send>,
    rtt: RttWatch,
    observation: Observation,
    bounds: Bounds,
    next_tick: Instant,
    counters: PresenceCounters,
    peers: Vec<PeerView>,
    events: VecDeque<Event>,
}

impl Controller {
    /// A controller whose first tick is due at once. `boot_id` is random and new at every start.
    pub fn new(
        now: Instant,
        config: ControllerConfig,
        _boot_id: [u8; 16],
        law: Box<dyn Law + Send>,
    ) -> Self {
        Self {
            config,
            law,
            rtt: RttWatch::default(),
            observation: Observation::default(),
            bounds: Bounds::NONE,
            next_tick: now,
            counters: PresenceCounters::default(),
            peers: Vec::new(),
            events: VecDeque::new(),
        }
    }

    /// Takes a datagram that came on the presence port, whatever it is. A bad one only counts.
    pub fn handle_datagram(&mut self, _now: Instant, _datagram: &[u8]) {
        self.counters.malformed += 1;
    }

    /// Takes the kernel's view of this station and decides until the next tick.
    pub fn handle_tick(&mut self, now: Instant, own: &StationView) -> Bounds {
        self.next_tick = now + self.config.tick;
        self.observation.own = own.clone();
        self.observation.rtt = self.rtt.on_tick(now, own);
        let mut reasons: Vec<Reason> = Vec::new();
        self.bounds = self.law.on_tick(now, &self.observation, &mut reasons);
        if self.events.len() == EVENT_LIMIT {
            self.events.pop_front();
        }
        self.events.push_back(Event::Bounds {
            at: now,
            law: self.law.name(),
            bounds: self.bounds,
            reasons,
        });
        self.bounds
    }

    /// A presence datagram that is due, to be broadcast on the Wi-Fi interface.
    pub fn poll_transmit(&mut self, _now: Instant) -> Option<Vec<u8>> {
        None
    }

    /// When to call again: the next tick or the next presence message.
    pub fn next_timeout(&self) -> Option<Instant> {
        Some(self.next_tick)
    }

    /// What happened since the last call, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What became of the datagrams.
    pub fn counters(&self) -> &PresenceCounters {
        &self.counters
    }

    /// The live peers, by id.
    pub fn peers(&self) -> impl Iterator<Item = PeerView> {
        self.peers.iter().cloned()
    }

    /// What the law saw at the last tick, and what it decided.
    pub fn last(&self) -> (&Observation, Bounds) {
        (&self.observation, self.bounds)
    }
}
