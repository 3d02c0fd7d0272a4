//! An 802.11 BSS: stations that contend for the air with their access point.
//!
//! The model leaves out hidden stations, capture, rate adaptation, power saving, beacons and
//! management frames, errors in control frames, A-MSDU, fragments, and transmission to several
//! users at once.

mod access;
mod access_point;
mod attempt;
mod config;
mod contention;
mod frames;
mod host_queue;
mod link;
mod outcome;
mod phy;
mod ports;
mod reception;
mod wheel;

use rand_pcg::Pcg64Mcg;
use wakeai_units::{Duration, Instant};
use wakeai_wifi::{Bss, Contention as Rules};

use access_point::AccessPoint;
use attempt::Attempt;
pub use config::{HostQueueKind, WifiConfig, WifiStationConfig};
use contention::Contention;
use frames::{Frames, Shape};
use host_queue::{HostQueue, Room};
use link::{Common, StationLink};
use reception::Reception;

use crate::base::{Base, WiredEvent, earlier};
use crate::error::ConfigError;
use crate::node::{Destination, Packet, StationId};

/// One BSS and the wired leg to the server. [`crate::Medium`] documents the order of calls.
#[derive(Clone, Debug)]
pub(crate) struct Wifi<P> {
    pub(crate) base: Base<P>,
    bss: Common,
    /// The link of each station.
    links: Vec<StationLink>,
    /// For each station, the frames that it sends.
    uplinks: Vec<Frames<P>>,
    /// For each station, the FQ-CoDel queue from which its frames are taken. `None` for a station
    /// with a FIFO: its frames are the queue.
    hosts: Vec<Option<Box<HostQueue<Hosted<P>>>>>,
    access_point: AccessPoint<P>,
    /// The backoffs of the stations, and after them of the access point.
    contention: Contention,
    /// For each contender, the limit of its TXOP (the time of one access, for one or several
    /// exchanges).
    txops: Vec<Duration>,
    /// The transmissions on the air, until `busy_until`.
    on_air: Vec<Attempt>,
    busy_until: Option<Instant>,
    /// The reception of the aggregate on the air, as long as an MPDU (frame) is to arrive before
    /// the last one.
    reception: Option<Reception>,
    /// The end of the last exchange.
    quiet_since: Instant,
    config: WifiConfig,
    rng: Pcg64Mcg,
    /// Buffers that are kept for reuse: the contenders that begin an access, and the stations that
    /// did not receive a broadcast.
    senders: Vec<u32>,
    damaged: Vec<usize>,
}

/// A packet in a host's queue, which becomes a frame.
type Hosted<P> = (P, Destination, Shape);

/// An event of the medium.
#[derive(Clone, Copy)]
pub(crate) enum AirEvent {
    Wired(WiredEvent),
    /// An MPDU of the aggregate on the air has arrived.
    MpduEnds,
    /// All frames on the air have ended.
    AirEnds,
    /// A backoff is over.
    AirBegins,
}

impl<P: Packet> Wifi<P> {
    pub(crate) fn new(config: &WifiConfig, rng: Pcg64Mcg) -> Result<Self, ConfigError> {
        config::validate(config)?;
        let bss = Common::new(config)?;
        // Each setting is named here, so that a new setting that nothing uses does not compile. The
        // settings of a link are used in `StationLink::new`, and the settings of the BSS in `Common::new`.
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
        let links: Result<Vec<StationLink>, _> =
            configs.iter().map(|station| StationLink::new(station, &config.bss)).collect();
        let links = links?;
        let stations = links.len();
        let rules = rules(config);
        let delays = configs.iter().map(|station| station.wired_delay).collect();
        Ok(Self {
            base: Base::new(wired, delays),
            uplinks: (0..stations).map(|_| Frames::new()).collect(),
            hosts: configs.iter().map(host_queue).collect(),
            access_point: AccessPoint::new(stations, *queue, *buffer),
            contention: Contention::new(bss.sifs, bss.slot, *retry_limit, &rules),
            txops: rules.iter().map(|(rules, _)| rules.txop).collect(),
            on_air: Vec::with_capacity(stations + 1),
            busy_until: None,
            reception: None,
            quiet_since: Instant::ZERO,
            config: config.clone(),
            rng,
            senders: Vec::with_capacity(stations + 1),
            damaged: Vec::with_capacity(stations),
            bss,
            links,
        })
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, event)) = self.next_event().filter(|(at, _)| *at <= now) {
            self.base.advance(at);
            match event {
                AirEvent::Wired(event) => {
                    if let Some(transit) = self.base.handle(at, event) {
                        self.send_down(at, transit.from, transit.to, transit.packet);
                    }
                }
                AirEvent::MpduEnds => self.end_mpdu(at),
                AirEvent::AirEnds => self.end_access(at),
                AirEvent::AirBegins => self.begin_access(at),
            }
        }
    }

    /// The next event. Where several events have the same time, the wire comes first, so that a
    /// packet that arrives can still be sent.
    pub(crate) fn next_event(&self) -> Option<(Instant, AirEvent)> {
        let air = match self.busy_until {
            Some(end) => Some((end, AirEvent::AirEnds)),
            None => self.contention.next_access().map(|at| (at, AirEvent::AirBegins)),
        };
        let wired = self.base.next_event().map(|(at, event)| (at, AirEvent::Wired(event)));
        let mpdu = self.reception.map(|reception| (reception.at, AirEvent::MpduEnds));
        earlier(earlier(wired, mpdu), air)
    }

    pub(crate) fn packets(&self) -> usize {
        let up: usize = self.uplinks.iter().map(Frames::packets).sum();
        let hosts: usize = self.hosts.iter().flatten().map(|host| host.packets).sum();
        up + self.access_point.packets() + hosts
    }

    /// Changes a station's configuration for the frames that start from now on.
    pub(crate) fn change(
        &mut self,
        station: StationId,
        change: impl FnOnce(&mut WifiStationConfig),
    ) -> Result<(), ConfigError> {
        let place = self.base.check_station(station)?;
        let mut changed = self.config.stations[place].clone();
        change(&mut changed);
        config::validate_station(place, &changed, &self.config.bss)?;
        self.links[place] = StationLink::new(&changed, &self.config.bss)?;
        self.config.stations[place] = changed;
        Ok(())
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

/// The contention parameters of each contender, and whether it uses EDCA. The stations come first,
/// and the access point last.
fn rules(config: &WifiConfig) -> Vec<(Rules, bool)> {
    let stations = config.stations.iter();
    let stations =
        stations.map(|station| (station.radio.contention, station.radio.standard.is_qos()));
    stations.chain([(config.bss.contention, config.bss.standard.is_qos())]).collect()
}
