//! The whole of it: packets in, time, packets out.

use std::collections::VecDeque;

use rand_pcg::Pcg64Mcg;
use wakeai_units::{Duration, Instant, Rate};

use crate::access_point::AccessPoint;
use crate::config::{ConfigError, Contention as Rules, MediumConfig};
use crate::contention::Contention;
use crate::counters::{ContenderCounters, Counters};
use crate::exchange::Attempt;
use crate::frames::{Frames, mpdu_length};
use crate::link::{Bss, Link, fits_a_frame};
use crate::node::{Delivery, Destination, Node, Packet, StationId};
use crate::validate::{self, validate};
use crate::wired::Wire;

/// One BSS, its access point and the wired leg to the server.
///
/// Order of calls: [`Medium::enqueue`] and the setters at any time, with `now` never going back;
/// when [`Medium::next_timeout`] has come, or later, [`Medium::handle_timeout`]; after it,
/// [`Medium::poll_delivery`] until it gives `None`.
///
/// A late `handle_timeout` loses no time: everything in here happens at its own virtual instant,
/// each from the virtual end of the one before. Only what is enqueued late is late.
///
/// What it does not have: hidden stations and capture (everybody hears everybody alike), rate
/// adaptation, power saving, beacons and management frames, errors in control frames, A-MSDU,
/// fragments, transmission to several users at once.
#[derive(Clone, Debug)]
pub struct Medium<P> {
    pub(crate) bss: Bss,
    /// By station.
    pub(crate) links: Vec<Link>,
    /// By station: what it sends.
    pub(crate) uplinks: Vec<Frames<P>>,
    pub(crate) access_point: AccessPoint<P>,
    /// The stations, and after them the access point.
    pub(crate) contention: Contention,
    /// By contender.
    pub(crate) txops: Vec<Duration>,
    /// Who sends, until `busy_until`.
    pub(crate) on_air: Vec<Attempt>,
    pub(crate) busy_until: Option<Instant>,
    /// End of the last exchange.
    pub(crate) quiet_since: Instant,
    wired_up: Wire<Transit<P>>,
    wired_down: Wire<Transit<P>>,
    config: MediumConfig,
    /// The last event.
    clock: Instant,
    deliveries: VecDeque<Delivery<P>>,
    pub(crate) counters: Counters,
    pub(crate) rng: Pcg64Mcg,
    /// Kept for their memory: who begins an access, and who missed a broadcast.
    pub(crate) senders: Vec<u32>,
    pub(crate) damaged: Vec<usize>,
}

/// A packet on the wire.
#[derive(Clone, Debug)]
struct Transit<P> {
    packet: P,
    from: Node,
    to: Destination,
}

/// What can happen next.
#[derive(Clone, Copy)]
enum Event {
    RoomOnTheWire,
    FromServer,
    ToServer,
    AirEnds,
    AirBegins,
}

impl<P: Packet> Medium<P> {
    /// An idle BSS at [`Instant::ZERO`]. `rng` gives every backoff and every frame error: same
    /// seed, same calls, same run.
    ///
    /// # Errors
    ///
    /// A value out of its range, a rate that the standard does not have, or a station that cannot
    /// speak with the access point.
    pub fn new(config: &MediumConfig, rng: Pcg64Mcg) -> Result<Self, ConfigError> {
        validate(config)?;
        let point = &config.access_point;
        let bss = Bss::new(point)?;
        let links: Result<Vec<Link>, _> =
            config.stations.iter().map(|station| Link::new(station, point)).collect();
        let links = links?;
        let stations = links.len();
        let rules = rules(config);
        Ok(Self {
            uplinks: (0..stations).map(|_| Frames::new()).collect(),
            access_point: AccessPoint::new(stations + 1, point.queue, point.buffer),
            contention: Contention::new(bss.sifs, bss.slot, point.retry_limit, &rules),
            txops: rules.iter().map(|(rules, _)| rules.txop).collect(),
            on_air: Vec::with_capacity(stations + 1),
            busy_until: None,
            quiet_since: Instant::ZERO,
            wired_up: Wire::new(&config.wired, stations),
            wired_down: Wire::new(&config.wired, stations + 1),
            config: config.clone(),
            clock: Instant::ZERO,
            deliveries: VecDeque::new(),
            counters: Counters {
                stations: vec![ContenderCounters::default(); stations],
                ..Counters::default()
            },
            rng,
            senders: Vec::with_capacity(stations + 1),
            damaged: Vec::with_capacity(stations),
            bss,
            links,
        })
    }

    /// Takes a packet from a node's host.
    ///
    /// Nothing else happens; a `now` before the last event counts as that event's.
    ///
    /// # Errors
    ///
    /// The packet itself: the sender's queue is full (counted as a queue drop), or nobody can
    /// receive it (counted as refused).
    pub fn enqueue(
        &mut self,
        now: Instant,
        from: Node,
        to: Destination,
        packet: P,
    ) -> Result<(), P> {
        if !self.is_deliverable(from, to) || !fits_a_frame(packet.len()) {
            self.counters.refused += 1;
            return Err(packet);
        }
        let now = now.max(self.clock);
        match from {
            Node::Server => self.enqueue_server(now, to, packet),
            Node::Station(id) => self.enqueue_station(now, id.index(), to, packet),
        }
    }

    fn is_deliverable(&self, from: Node, to: Destination) -> bool {
        let exists = |node| match node {
            Node::Server => true,
            Node::Station(id) => id.index() < self.links.len(),
        };
        exists(from)
            && match to {
                Destination::Unicast(node) => node != from && exists(node),
                Destination::Broadcast => true,
            }
    }

    fn enqueue_server(&mut self, now: Instant, to: Destination, packet: P) -> Result<(), P> {
        let flow = match to {
            Destination::Unicast(Node::Station(id)) => id.index(),
            Destination::Unicast(Node::Server) | Destination::Broadcast => self.links.len(),
        };
        let extra = self.links.get(flow).map_or(Duration::ZERO, |link| link.wired_delay);
        let length = packet.len();
        let transit = Transit { packet, from: Node::Server, to };
        let counters = &mut self.counters.wired_down;
        let sent = self.wired_down.send(now, flow, extra, length, transit, counters);
        sent.map_err(|transit| transit.packet)
    }

    fn enqueue_station(
        &mut self,
        now: Instant,
        station: usize,
        to: Destination,
        packet: P,
    ) -> Result<(), P> {
        let (link, uplink) = (&self.links[station], &mut self.uplinks[station]);
        let counters = &mut self.counters.stations[station];
        counters.offered += 1;
        if uplink.waiting() >= link.queue {
            counters.queue_drops += 1;
            return Err(packet);
        }
        let mpdu = mpdu_length(link.standard.is_qos(), packet.len());
        uplink.push(packet, Node::Station(StationId(station as u32)), to, mpdu);
        if !self.contention.is_active(station) {
            self.contention.request(station, now, &mut self.rng);
        }
        Ok(())
    }

    /// Lets everything happen that is due at or before `now`, in order.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, event)) = self.next_event().filter(|(at, _)| *at <= now) {
            self.clock = at;
            match event {
                Event::RoomOnTheWire => self.wired_down.depart(at),
                Event::FromServer => self.arrive_at_access_point(at),
                Event::ToServer => self.arrive_at_server(at),
                Event::AirEnds => self.end_access(at),
                Event::AirBegins => self.begin_access(at),
            }
        }
    }

    /// The next packet that has arrived, in the order of arrival.
    pub fn poll_delivery(&mut self) -> Option<Delivery<P>> {
        self.deliveries.pop_front()
    }

    /// When something happens next, if nothing is enqueued before: also when a queue that was full
    /// has room again. It may lie in the past where [`Medium::handle_timeout`] is due.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.next_event().map(|(at, _)| at)
    }

    /// At the same instant the wire goes first, so that what arrives can still be sent.
    fn next_event(&self) -> Option<(Instant, Event)> {
        let air = match self.busy_until {
            Some(end) => Some((end, Event::AirEnds)),
            None => self.contention.next_access().map(|at| (at, Event::AirBegins)),
        };
        let room = self.wired_down.next_room().map(|at| (at, Event::RoomOnTheWire));
        let down = self.wired_down.next_arrival().map(|at| (at, Event::FromServer));
        let up = self.wired_up.next_arrival().map(|at| (at, Event::ToServer));
        [room, down, up, air].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn arrive_at_access_point(&mut self, at: Instant) {
        let Some(transit) = self.wired_down.arrive(&mut self.counters.wired_down) else { return };
        let Transit { packet, from, to } = transit;
        let receiver = match to {
            Destination::Unicast(Node::Station(id)) => id.index(),
            Destination::Unicast(Node::Server) | Destination::Broadcast => self.links.len(),
        };
        self.send_down(at, receiver, from, to, packet);
    }

    fn arrive_at_server(&mut self, at: Instant) {
        let Some(transit) = self.wired_up.arrive(&mut self.counters.wired_up) else { return };
        self.deliver(at, Node::Server, transit.from, transit.packet);
    }

    /// The access point puts a packet on the wire; a full queue drops it.
    pub(crate) fn send_up(&mut self, at: Instant, station: usize, packet: P) {
        let from = Node::Station(StationId(station as u32));
        let to = Destination::Unicast(Node::Server);
        let (length, extra) = (packet.len(), self.links[station].wired_delay);
        let counters = &mut self.counters.wired_up;
        let transit = Transit { packet, from, to };
        // The packet that is given back is a drop, and counted there.
        let _ = self.wired_up.send(at, station, extra, length, transit, counters);
    }

    /// The access point puts a packet into its queue for a station, or for all.
    pub(crate) fn send_down(
        &mut self,
        at: Instant,
        receiver: usize,
        from: Node,
        to: Destination,
        packet: P,
    ) {
        let me = self.links.len();
        let qos = self.links.get(receiver).is_some_and(|link| link.standard.is_qos());
        let mpdu = mpdu_length(qos, packet.len());
        let own = self.on_air.iter().find(|attempt| attempt.sender == me);
        let on_air = own.map(|attempt| (attempt.link, attempt.psdu.span));
        let kept = self.access_point.push(receiver, (packet, from, to, mpdu), on_air);
        let counters = &mut self.counters.access_point;
        counters.offered += 1;
        counters.queue_drops += u64::from(!kept);
        if !self.contention.is_active(me) {
            self.contention.request(me, at, &mut self.rng);
        }
    }

    pub(crate) fn deliver(&mut self, at: Instant, to: Node, from: Node, packet: P) {
        self.deliveries.push_back(Delivery { at, to, from, packet });
    }

    /// Packets that still fit into the queue that `from` sends through: a station's own, or for
    /// the server the wired leg's, as of the last event.
    pub fn room(&self, from: Node) -> usize {
        match from {
            Node::Server => self.wired_down.room(self.clock),
            Node::Station(id) => self
                .links
                .get(id.index())
                .map_or(0, |link| link.queue.saturating_sub(self.uplinks[id.index()].waiting())),
        }
    }

    /// Packets that are somewhere between their sender and [`Medium::poll_delivery`]: in a queue,
    /// on the air, held for their order, or on the wire.
    pub fn packets_inside(&self) -> usize {
        let frames = self.uplinks.iter().chain(&self.access_point.frames);
        let air: usize = frames.map(Frames::packets).sum();
        air + self.wired_up.packets() + self.wired_down.packets()
    }

    /// Changes a station's extra wired delay, each way, for the packets that leave from now on.
    /// Those of one station and direction never overtake each other.
    ///
    /// # Errors
    ///
    /// There is no such station, or the delay is more than an hour.
    pub fn set_wired_delay(
        &mut self,
        _now: Instant,
        station: StationId,
        delay: Duration,
    ) -> Result<(), ConfigError> {
        self.change(station, |config| config.wired_delay = delay)
    }

    /// Changes a station's PHY rate for the frames that start from now on, to it and from it.
    ///
    /// # Errors
    ///
    /// There is no such station, or no such rate.
    pub fn set_rate(
        &mut self,
        _now: Instant,
        station: StationId,
        rate: Rate,
    ) -> Result<(), ConfigError> {
        self.change(station, |config| config.rate = rate)
    }

    /// Changes a station's share of damaged MPDUs, in parts per million, for the frames that end
    /// from now on, to it and from it.
    ///
    /// # Errors
    ///
    /// There is no such station, or the share is more than a million.
    pub fn set_frame_error_rate(
        &mut self,
        _now: Instant,
        station: StationId,
        ppm: u32,
    ) -> Result<(), ConfigError> {
        self.change(station, |config| config.frame_error_ppm = ppm)
    }

    fn change(
        &mut self,
        station: StationId,
        change: impl FnOnce(&mut crate::StationConfig),
    ) -> Result<(), ConfigError> {
        let stations = self.links.len();
        let place = station.index();
        let current = self.config.stations.get(place);
        let mut changed =
            current.ok_or(ConfigError::NoSuchStation { found: station.0, stations })?.clone();
        change(&mut changed);
        validate::station(place, &changed, &self.config.access_point)?;
        self.links[place] = Link::new(&changed, &self.config.access_point)?;
        self.config.stations[place] = changed;
        Ok(())
    }

    /// What was counted until the last event.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// How each contender contends, and whether by EDCA: the stations, and after them the access
/// point.
fn rules(config: &MediumConfig) -> Vec<(Rules, bool)> {
    let point = &config.access_point;
    let stations = config.stations.iter().map(|station| {
        let default = || Rules::of(station.standard);
        let rules = station.contention.or(point.contention).unwrap_or_else(default);
        (rules, station.standard.is_qos())
    });
    let own = point.contention.unwrap_or_else(|| Rules::of(point.standard));
    stations.chain([(own, point.standard.is_qos())]).collect()
}
