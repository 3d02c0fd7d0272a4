//! 802.11: stations that contend for the air of a channel with their access points.
//!
//! The model leaves out capture, rate adaptation, power saving, management frames other than beacons,
//! errors in control frames, fragments, and transmission to several users at once.

mod access;
mod access_point;
mod attempt;
mod channel;
mod config;
mod contention;
mod frames;
mod hidden;
mod host_queue;
mod link;
mod outcome;
mod phy;
mod ports;
mod radios;
mod reception;
mod wheel;

use rand_pcg::Pcg64Mcg;
use wakeai_units::{Duration, Instant};
use wakeai_wifi::{Bss, Mode};

use access_point::AccessPoint;
use channel::Channel;
pub use config::{AccessPointConfig, HostQueueKind, WifiConfig, WifiStationConfig};
use contention::ContenderRules;
use frames::{Frames, Shape};
use host_queue::{HostQueue, Room};
use link::{Common, StationLink};

use crate::base::{Base, WiredEvent};
use crate::error::ConfigError;
use crate::node::{Destination, Packet, StationId};

/// Access points, their stations, and the wired legs to the server. [`crate::Medium`] documents the
/// order of calls.
#[derive(Clone, Debug)]
pub(crate) struct Wifi<P> {
    pub(crate) base: Base<P>,
    /// By access point.
    access_points: Vec<AccessPointState<P>>,
    /// For each station, the index of its access point.
    access_point_of: Vec<u32>,
    /// The link of each station.
    links: Vec<StationLink>,
    /// For each station, the frames that it sends.
    uplinks: Vec<Frames<P>>,
    /// For each station, the FQ-CoDel queue from which its frames are taken. `None` for a station
    /// with a FIFO: its frames are the queue.
    hosts: Vec<Option<Box<HostQueue<Hosted<P>>>>>,
    /// For each station, the modulation of its link, where the senders of frames choose it.
    modulations: Vec<Option<Mode>>,
    /// For each contender, the limit of its TXOP (the time of one access, for one or several
    /// exchanges). The stations come first, and the access points last.
    txops: Vec<Duration>,
    channels: Vec<Channel>,
    /// The number of each channel.
    channel_numbers: Vec<u32>,
    /// How each contender contends.
    rules: Vec<ContenderRules>,
    config: WifiConfig,
    /// Buffers that are kept for reuse: the contenders that begin an access, and the stations that
    /// did not receive a broadcast.
    senders: Vec<u32>,
    damaged: Vec<usize>,
}

/// One access point.
#[derive(Clone, Debug)]
struct AccessPointState<P> {
    queues: AccessPoint<P>,
    /// The index of its channel.
    channel: u32,
    common: Common,
    retry_limit: u8,
    /// Its stations, in order.
    stations: Vec<u32>,
}

/// A packet in a host's queue, which becomes a frame.
type Hosted<P> = (P, Destination, Shape);

/// An event of the medium.
#[derive(Clone, Copy)]
pub(crate) enum AirEvent {
    Wired(WiredEvent),
    /// An MPDU of the aggregate on the air of this channel has arrived.
    MpduEnds(u32),
    /// All frames on the air of this channel have ended.
    AirEnds(u32),
    /// A backoff on this channel is over.
    AirBegins(u32),
    /// Something happens on this channel, on which not all hear each other.
    Partial(u32),
}

impl<P: Packet> Wifi<P> {
    pub(crate) fn new(config: &WifiConfig, rng: Pcg64Mcg) -> Result<Self, ConfigError> {
        config::validate(config)?;
        // Each setting is named here, so that a new setting that nothing uses does not compile. The
        // settings of a link are used in `StationLink::new`, those of an access point in
        // `AccessPointState::new`.
        let WifiConfig {
            access_points,
            stations: configs,
            hidden: _,
            eifs_after_collision: _,
            hand_up_after_ppdu: _,
            radios: _,
        } = config;
        let bss_of =
            |station: &WifiStationConfig| &access_points[station.access_point as usize].bss;
        let links: Result<Vec<StationLink>, _> =
            configs.iter().map(|station| StationLink::new(station, bss_of(station))).collect();
        let links = links?;
        let stations = links.len();
        let rules = rules(config);
        let delays = configs.iter().map(|station| station.wired_delay).collect();
        let wires = access_points.iter().map(|one| &one.wired);
        let access_point_of: Vec<u32> =
            configs.iter().map(|station| station.access_point).collect();
        let base = Base::new(wires, access_point_of.clone(), delays, &rng);
        let channels = channel::channels(config, &rules, rng)?;
        let states: Result<Vec<_>, _> = (0..)
            .zip(access_points)
            .map(|(place, one)| {
                let number = channels.numbers.iter().position(|channel| *channel == one.channel);
                let channel = number.expect("each access point has a channel") as u32;
                let mut state = AccessPointState::new(one, place, channel, &access_point_of)?;
                if config.radios {
                    state.stations = (0..config.stations.len() as u32).collect();
                }
                Ok(state)
            })
            .collect();
        Ok(Self {
            base,
            access_points: states?,
            access_point_of,
            uplinks: (0..stations).map(|_| Frames::new()).collect(),
            hosts: configs.iter().map(host_queue).collect(),
            modulations: vec![None; stations],
            txops: rules.iter().map(|one| one.rules.txop).collect(),
            rules,
            channel_numbers: channels.numbers,
            channels: channels.channels,
            config: config.clone(),
            senders: Vec::with_capacity(stations + 1),
            damaged: Vec::with_capacity(stations),
            links,
        })
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, event)) = self.next_event().filter(|(at, _)| *at <= now) {
            self.base.advance(at);
            match event {
                AirEvent::Wired(event) => {
                    if let Some((place, transit)) = self.base.handle(at, event) {
                        self.send_down(at, place, transit.from, transit.to, transit.packet);
                    }
                }
                AirEvent::MpduEnds(channel) => self.end_mpdu(channel as usize, at),
                AirEvent::AirEnds(channel) => self.end_access(channel as usize, at),
                AirEvent::AirBegins(channel) => self.begin_access(channel as usize, at),
                AirEvent::Partial(channel) => self.step_partial(channel as usize, at),
            }
        }
    }

    /// The next event. Where several events have the same time, the wire comes first, so that a
    /// packet that arrives can still be sent.
    #[inline]
    pub(crate) fn next_event(&self) -> Option<(Instant, AirEvent)> {
        let wired = self.base.next_event().map(|(at, event)| (at, AirEvent::Wired(event)));
        // Most media have one channel, and this is asked for before each event.
        match &self.channels[..] {
            [channel] => channel.next_event(0, wired),
            channels => {
                let numbered = (0..).zip(channels);
                numbered.fold(wired, |next, (number, channel)| channel.next_event(number, next))
            }
        }
    }

    pub(crate) fn packets(&self) -> usize {
        let up: usize = self.uplinks.iter().map(Frames::packets).sum();
        let hosts: usize = self.hosts.iter().flatten().map(|host| host.packets).sum();
        let down: usize = self.access_points.iter().map(|one| one.queues.packets()).sum();
        up + down + hosts
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
        let bss = &self.config.access_points[self.access_point_of[place] as usize].bss;
        config::validate_station(place, &changed, bss)?;
        self.links[place] = StationLink::new(&changed, bss)?;
        self.modulations[place] = None;
        self.config.stations[place] = changed;
        Ok(())
    }
}

impl<P: Packet> AccessPointState<P> {
    /// The state of the access point `place`, whose stations are those that `access_point_of` gives it.
    fn new(
        config: &AccessPointConfig,
        place: u32,
        channel: u32,
        access_point_of: &[u32],
    ) -> Result<Self, ConfigError> {
        let AccessPointConfig {
            channel: _,
            zone: _,
            bss:
                Bss {
                    queue,
                    retry_limit,
                    contention: _,
                    standard: _,
                    basic_rate: _,
                    short_preamble: _,
                    protection: _,
                    rts_threshold: _,
                    control_rate: _,
                    width: _,
                    streams: _,
                    guard_interval: _,
                    ampdu: _,
                    ampdu_subframes: _,
                    amsdu: _,
                },
            buffer,
            wired: _,
        } = *config;
        let mine = (0..).zip(access_point_of).filter(|(_, of)| **of == place);
        Ok(Self {
            queues: AccessPoint::new(access_point_of.len(), queue, buffer),
            channel,
            common: Common::new(&config.bss)?,
            retry_limit,
            stations: mine.map(|(station, _)| station).collect(),
        })
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

/// How each contender contends. The stations come first, and the access points last.
fn rules(config: &WifiConfig) -> Vec<ContenderRules> {
    let WifiConfig { access_points, stations, .. } = config;
    let stations = stations.iter().map(|station| ContenderRules {
        rules: station.radio.contention,
        qos: station.radio.standard.is_qos(),
        retry_limit: access_points[station.access_point as usize].bss.retry_limit,
    });
    let access_points = access_points.iter().map(|one| ContenderRules {
        rules: one.bss.contention,
        qos: one.bss.standard.is_qos(),
        retry_limit: one.bss.retry_limit,
    });
    stations.chain(access_points).collect()
}
