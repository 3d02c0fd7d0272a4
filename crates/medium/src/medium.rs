//! The whole of it: packets in, time, packets out.

use std::collections::VecDeque;

use rand_pcg::Pcg64Mcg;
use wakeai_units::{Duration, Instant};
use wakeai_wifi::{Bss, Contention as Rules};

use crate::access::Attempt;
use crate::access_point::AccessPoint;
use crate::config::{HostQueueKind, WifiConfig, WifiStationConfig};
use crate::contention::Contention;
use crate::counters::{Airtime, ContenderCounters, Counters};
use crate::departures::Departures;
use crate::error::ConfigError;
use crate::frames::{Frames, Shape};
use crate::host_queue::{HostQueue, Room};
use crate::link::{Common, Link};
use crate::node::{Delivery, Destination, Node, Packet};
use crate::reception::Reception;
use crate::validate::validate;
use crate::wired::Wire;

/// One BSS, its access point and the wired leg to the server.
///
/// Order of calls: [`Wifi::enqueue`] and the setters at any time, with `now` never going back;
/// when [`Wifi::next_timeout`] has come, or later, [`Wifi::handle_timeout`]; after it,
/// [`Wifi::poll_delivery`] until it gives `None`.
///
/// A late `handle_timeout` loses no time: everything in here happens at its own virtual instant,
/// each from the virtual end of the one before. Only what is enqueued late is late.
///
/// What it does not have: hidden stations and capture (everybody hears everybody alike), rate
/// adaptation, power saving, beacons and management frames, errors in control frames, A-MSDU,
/// fragments, transmission to several users at once.
#[derive(Clone, Debug)]
pub struct Wifi<P> {
    pub(crate) bss: Common,
    /// By station.
    pub(crate) links: Vec<Link>,
    /// By station: what it sends.
    pub(crate) uplinks: Vec<Frames<P>>,
    /// By station: what its host keeps until there is room in an aggregate, where that is not the
    /// same.
    pub(crate) hosts: Vec<Option<Box<HostQueue<Hosted<P>>>>>,
    pub(crate) access_point: AccessPoint<P>,
    /// The stations, and after them the access point.
    pub(crate) contention: Contention,
    /// By contender.
    pub(crate) txops: Vec<Duration>,
    /// Who sends, until `busy_until`.
    pub(crate) on_air: Vec<Attempt>,
    pub(crate) busy_until: Option<Instant>,
    /// The aggregate under way, if its MPDUs are told apart.
    pub(crate) reception: Option<Reception>,
    /// End of the last exchange.
    pub(crate) quiet_since: Instant,
    pub(crate) wired_up: Wire<Transit<P>>,
    pub(crate) wired_down: Wire<Transit<P>>,
    pub(crate) config: WifiConfig,
    /// The last event.
    pub(crate) clock: Instant,
    pub(crate) deliveries: VecDeque<Delivery<P>>,
    pub(crate) departures: Departures<P>,
    pub(crate) counters: Counters,
    pub(crate) rng: Pcg64Mcg,
    /// Kept for their memory: who begins an access, and who missed a broadcast.
    pub(crate) senders: Vec<u32>,
    pub(crate) damaged: Vec<usize>,
}

/// A packet in a host's queue, which becomes a frame.
pub(crate) type Hosted<P> = (P, Destination, Shape);

/// A packet on the wire.
#[derive(Clone, Debug)]
pub(crate) struct Transit<P> {
    pub(crate) packet: P,
    pub(crate) from: Node,
    pub(crate) to: Destination,
}

/// What can happen next.
#[derive(Clone, Copy)]
enum Event {
    RoomOnTheWire,
    FromServer,
    ToServer,
    MpduEnds,
    AirEnds,
    AirBegins,
}

impl<P: Packet> Wifi<P> {
    /// An idle BSS at [`Instant::ZERO`]. `rng` gives every backoff and every frame error: same
    /// seed, same calls, same run.
    ///
    /// # Errors
    ///
    /// A value out of its range, a rate that the standard does not have, or a station that cannot
    /// speak with the access point.
    pub fn new(config: &WifiConfig, rng: Pcg64Mcg) -> Result<Self, ConfigError> {
        validate(config)?;
        let bss = Common::new(config)?;
        // All by name, so that no new setting is forgotten: those of a link are used in `Link::new`, those
        // of the BSS in `Common::new`.
        let WifiConfig {
            bss:
                Bss {
                    queue,
                    retry_limit,
                    contention: _,
                    standard: _,
                    basic_rate: _,
                    protection: _,
                    rts_threshold: _,
                    control_rate: _,
                    width: _,
                    streams: _,
                    guard_interval: _,
                    ampdu: _,
                    ampdu_subframes: _,
                },
            buffer,
            wired,
            stations: configs,
            eifs_after_collision: _,
            hand_up_after_ppdu: _,
        } = config;
        let links: Result<Vec<Link>, _> =
            configs.iter().map(|station| Link::new(station, &config.bss)).collect();
        let links = links?;
        let stations = links.len();
        let rules = rules(config);
        Ok(Self {
            uplinks: (0..stations).map(|_| Frames::new()).collect(),
            hosts: configs.iter().map(host_queue).collect(),
            access_point: AccessPoint::new(stations, *queue, *buffer),
            contention: Contention::new(bss.sifs, bss.slot, *retry_limit, &rules),
            txops: rules.iter().map(|(rules, _)| rules.txop).collect(),
            on_air: Vec::with_capacity(stations + 1),
            busy_until: None,
            reception: None,
            quiet_since: Instant::ZERO,
            wired_up: Wire::new(wired, stations),
            wired_down: Wire::new(wired, stations + 1),
            config: config.clone(),
            clock: Instant::ZERO,
            deliveries: VecDeque::new(),
            departures: Departures::new(stations),
            counters: Counters {
                stations: vec![ContenderCounters::default(); stations],
                downlinks: vec![Airtime::default(); stations],
                ..Counters::default()
            },
            rng,
            senders: Vec::with_capacity(stations + 1),
            damaged: Vec::with_capacity(stations),
            bss,
            links,
        })
    }

    /// Lets everything happen that is due at or before `now`, in order.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, event)) = self.next_event().filter(|(at, _)| *at <= now) {
            self.clock = at;
            match event {
                Event::RoomOnTheWire => self.wired_down.depart(at),
                Event::FromServer => self.arrive_at_access_point(at),
                Event::ToServer => self.arrive_at_server(at),
                Event::MpduEnds => self.end_mpdu(at),
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
    /// has room again. It may lie in the past where [`Wifi::handle_timeout`] is due.
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
        let mpdu = self.reception.map(|reception| (reception.at, Event::MpduEnds));
        [room, down, up, mpdu, air].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Packets that are somewhere between their sender and [`Wifi::poll_delivery`]: in a queue,
    /// on the air, held for their order, or on the wire.
    pub fn packets_inside(&self) -> usize {
        let up: usize = self.uplinks.iter().map(Frames::packets).sum();
        let air = up + self.access_point.packets();
        let hosts: usize = self.hosts.iter().flatten().map(|host| host.len()).sum();
        air + hosts + self.wired_up.packets() + self.wired_down.packets()
    }

    /// What was counted until the last event.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

fn host_queue<T>(station: &WifiStationConfig) -> Option<Box<HostQueue<T>>> {
    match station.host_queue {
        HostQueueKind::Fifo => None,
        HostQueueKind::FqCodel => {
            Some(Box::new(HostQueue::new(Room::of(station.radio.standard, station.queue))))
        }
    }
}

/// How each contender contends, and whether by EDCA: the stations, and after them the access
/// point.
fn rules(config: &WifiConfig) -> Vec<(Rules, bool)> {
    let stations = config.stations.iter();
    let stations =
        stations.map(|station| (station.radio.contention, station.radio.standard.is_qos()));
    stations.chain([(config.bss.contention, config.bss.standard.is_qos())]).collect()
}
