//! The whole of it: enqueue packets, let time pass, take deliveries.

use std::collections::{BTreeMap, VecDeque};

use rand_pcg::Pcg64Mcg;
use wakeai_units::{Bytes, Duration, Instant, Rate, Serializer};

use crate::{
    ConfigError, ContenderCounters, Counters, Delivery, Destination, MAX_PACKET, MediumConfig,
    Node, Packet, StationId,
};

/// One BSS, its access point and the wired leg to the server.
///
/// Order of calls: [`Medium::enqueue`] and the setters at any time, with `now` never going back;
/// when [`Medium::next_timeout`] has come, or later, [`Medium::handle_timeout`]; after it,
/// [`Medium::poll_delivery`] until it gives `None`. A late `handle_timeout` loses no time:
/// everything in here happens at its own virtual instant, each from the virtual end of the one
/// before.
pub struct Medium<P> {
    config: MediumConfig,
    air: Serializer,
    clock: Instant,
    sequence: u64,
    arrivals: BTreeMap<(Instant, u64), Delivery<P>>,
    deliveries: VecDeque<Delivery<P>>,
    counters: Counters,
}

impl<P: Packet> Medium<P> {
    /// An idle BSS. `rng` gives every backoff and every frame error: same seed, same run.
    pub fn new(config: &MediumConfig, _rng: Pcg64Mcg) -> Result<Self, ConfigError> {
        let stations = vec![ContenderCounters::default(); config.stations.len()];
        Ok(Self {
            config: config.clone(),
            air: Serializer::new(Rate::from_mbps(25)),
            clock: Instant::ZERO,
            sequence: 0,
            arrivals: BTreeMap::new(),
            deliveries: VecDeque::new(),
            counters: Counters { stations, ..Counters::default() },
        })
    }

    /// Takes a packet from a node's host. `Err` gives it back: the sender's queue is full (a
    /// queue drop), or nobody can receive it (refused).
    pub fn enqueue(
        &mut self,
        now: Instant,
        from: Node,
        to: Destination,
        packet: P,
    ) -> Result<(), P> {
        if packet.len() > MAX_PACKET || to == Destination::Unicast(from) {
            self.counters.refused += 1;
            return Err(packet);
        }
        if self.room(from) == 0 {
            return Err(packet);
        }
        let now = now.max(self.clock);
        let at = self.air.send(now, Bytes::new(packet.len() as u64)) + self.config.wired.delay;
        for to in self.receivers(from, to) {
            self.sequence += 1;
            let packet = packet.clone();
            self.arrivals.insert((at, self.sequence), Delivery { at, to, from, packet });
        }
        Ok(())
    }

    fn receivers(&self, from: Node, to: Destination) -> Vec<Node> {
        let all = (0..self.config.stations.len() as u32).map(|id| Node::Station(StationId(id)));
        match to {
            Destination::Unicast(node) => vec![node],
            Destination::Broadcast => all.filter(|node| *node != from).collect(),
        }
    }

    /// Lets everything happen that is due at or before `now`, in order.
    pub fn handle_timeout(&mut self, now: Instant) {
        while self.arrivals.first_key_value().is_some_and(|((at, _), _)| *at <= now) {
            if let Some(((at, _), delivery)) = self.arrivals.pop_first() {
                self.clock = at;
                self.deliveries.push_back(delivery);
            }
        }
    }

    /// The next packet that has arrived, in the order of arrival.
    pub fn poll_delivery(&mut self) -> Option<Delivery<P>> {
        self.deliveries.pop_front()
    }

    /// When something happens next, if nothing is enqueued before.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.arrivals.first_key_value().map(|((at, _), _)| *at)
    }

    /// Packets that still fit into the queue that `from` sends through: a station's own, or for
    /// the server the wired leg's.
    pub fn room(&self, from: Node) -> usize {
        let limit = match from {
            Node::Server => self.config.wired.queue,
            Node::Station(id) => self.config.stations.get(id.index()).map_or(0, |s| s.queue),
        };
        limit.saturating_sub(self.arrivals.len())
    }

    /// Changes a station's extra wired delay for the packets that leave from now on.
    pub fn set_wired_delay(
        &mut self,
        _now: Instant,
        station: StationId,
        delay: Duration,
    ) -> Result<(), ConfigError> {
        self.station(station)?.wired_delay = delay;
        Ok(())
    }

    /// Changes a station's PHY rate for the frames that start from now on.
    pub fn set_rate(
        &mut self,
        _now: Instant,
        station: StationId,
        rate: Rate,
    ) -> Result<(), ConfigError> {
        self.station(station)?.rate = rate;
        Ok(())
    }

    /// Changes a station's share of damaged MPDUs, in parts per million, for the frames that end
    /// from now on.
    pub fn set_frame_error_rate(
        &mut self,
        _now: Instant,
        station: StationId,
        ppm: u32,
    ) -> Result<(), ConfigError> {
        self.station(station)?.frame_error_ppm = ppm;
        Ok(())
    }

    fn station(&mut self, id: StationId) -> Result<&mut crate::StationConfig, ConfigError> {
        let stations = self.config.stations.len();
        let found = self.config.stations.get_mut(id.index());
        found.ok_or(ConfigError::NoSuchStation { found: id.0, stations })
    }

    /// What was counted until the last event.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}
