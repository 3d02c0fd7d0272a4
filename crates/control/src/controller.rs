//! The whole brain.

use std::collections::VecDeque;

use wakeai_units::{Duration, Instant};

use crate::presence::{Announcement, BootId, Endpoint, PeerChange, PresenceCounters};
use crate::rates::RateWatch;
use crate::{
    Bounds, ControllerConfig, Event, Law, Observation, PeerView, Reason, RttWatch, StationView,
};

/// Events that wait for [`Controller::poll_event`]; the oldest make room.
const EVENT_LIMIT: usize = 4096;

/// Presence, RTT watch and law of one station.
///
/// Order of calls: whenever something happens, first [`Controller::handle_datagram`] for each
/// datagram and [`Controller::handle_tick`] at each tick; then [`Controller::poll_transmit`] and
/// [`Controller::poll_event`] until they give `None`; then wait until
/// [`Controller::next_timeout`]. `now` never goes back.
pub struct Controller {
    config: ControllerConfig,
    law: Box<dyn Law + Send>,
    presence: Endpoint,
    rtt: RttWatch,
    rates: RateWatch,
    observation: Observation,
    bounds: Bounds,
    now: Instant,
    next_tick: Instant,
    events: VecDeque<Event>,
}

impl Controller {
    /// A controller whose first tick is due at once. `boot_id` is random and new at every start.
    pub fn new(
        now: Instant,
        config: ControllerConfig,
        boot_id: [u8; 16],
        law: Box<dyn Law + Send>,
    ) -> Self {
        let observation = Observation {
            access_point_buffer: config.access_point_buffer,
            segments_per_ack: config.segments_per_ack,
            max_rate: config.max_rate,
            ..Observation::default()
        };
        Self {
            presence: Endpoint::new(now, &config, BootId(boot_id)),
            rtt: RttWatch::new(),
            rates: RateWatch::new(config.max_rate),
            config,
            law,
            observation,
            bounds: Bounds::NONE,
            now,
            next_tick: now,
            events: VecDeque::new(),
        }
    }

    /// Takes a datagram that came on the presence port, whatever it is. A bad one only counts.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) {
        self.now = now;
        self.presence.handle_datagram(now, datagram);
        self.take_changes();
    }

    /// Takes the kernel's view of this station and decides until the next tick.
    ///
    /// The next tick is due one tick after the one that was due, so that a late call does not
    /// delay all later ones; ticks that were missed altogether are left out.
    pub fn handle_tick(&mut self, now: Instant, own: &StationView) -> Bounds {
        self.now = now;
        self.next_tick = (self.next_tick + self.config.tick).max(now + self.config.tick / 2);
        self.presence.expire(now);
        self.take_changes();
        self.observe(now, own);
        let mut reasons: Vec<Reason> = Vec::new();
        self.bounds = self.law.on_tick(now, &self.observation, &mut reasons);
        let law = self.law.name();
        self.push(Event::Bounds { at: now, law, bounds: self.bounds, reasons });
        self.bounds
    }

    fn observe(&mut self, now: Instant, own: &StationView) {
        let peers: Vec<PeerView> = self.presence.peers(now).collect();
        let sending = own.connections.iter().any(|connection| connection.sending);
        if sending && self.observation.sending().next().is_none() {
            self.presence.announce_soon(now);
        }
        let sending_peers = peers.iter().filter(|peer| peer.sending).count();
        let senders = sending_peers + usize::from(sending);
        let observation = &mut self.observation;
        observation.senders = u32::try_from(senders).unwrap_or(u32::MAX).max(1);
        observation.rtt = self.rtt.on_tick(now, own);
        let growth = observation.rtt.map_or(Duration::ZERO, |rtt| rtt.growth);
        self.rates.on_tick(now, own, &peers, growth);
        observation.delivery_rate = self.rates.delivered();
        observation.mean_rate = self.rates.mean();
        observation.total_rate = self.rates.total();
        observation.max_rate = self.rates.alone();
        observation.own = own.clone();
        observation.peers = peers;
    }

    /// A presence datagram that is due, to be broadcast on the Wi-Fi interface.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.now = now;
        let seen = &self.observation;
        let own = Announcement {
            sending: seen.sending().next().is_some(),
            delivery_rate: seen.mean_rate,
            max_rate: seen.max_rate,
            min_rtt: seen.rtt.map(|rtt| rtt.min),
            growth: seen.rtt.map_or(Duration::ZERO, |rtt| rtt.growth),
            link_rate: seen.own.link_rate,
        };
        self.presence.poll_transmit(now, &own)
    }

    /// When to call again: the next tick or the next presence message.
    pub fn next_timeout(&self) -> Option<Instant> {
        Some(self.next_tick.min(self.presence.next_timeout()))
    }

    /// When the next [`Controller::handle_tick`] is due.
    pub fn next_tick(&self) -> Instant {
        self.next_tick
    }

    /// What happened since the last call, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What became of the datagrams.
    pub fn counters(&self) -> &PresenceCounters {
        self.presence.counters()
    }

    /// The live peers, by id.
    pub fn peers(&self) -> impl Iterator<Item = PeerView> {
        self.presence.peers(self.now)
    }

    /// What the law saw at the last tick, and what it decided.
    pub fn last(&self) -> (&Observation, Bounds) {
        (&self.observation, self.bounds)
    }

    /// The law's name.
    pub fn law(&self) -> &'static str {
        self.law.name()
    }

    fn take_changes(&mut self) {
        let at = self.now;
        while let Some(change) = self.presence.poll_change() {
            self.push(match change {
                PeerChange::Joined(station) => Event::PeerJoined { at, station },
                PeerChange::Left(station) => Event::PeerLeft { at, station },
                PeerChange::Restarted(station) => Event::PeerRestarted { at, station },
            });
        }
    }

    fn push(&mut self, event: Event) {
        if self.events.len() == EVENT_LIMIT {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}
