//! The configuration of a BSS (an access point with its stations): plain data, with the defaults of
//! each standard and the ranges.

use std::fmt::Display;

use wakeai_units::Duration;
use wakeai_wifi::{Bss, Contention, QueueLimit, Standard, StationRadio, Wired};

use crate::error::ConfigError;
use crate::ranges::{self, range};

/// Access points with their stations, and the wire behind each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WifiConfig {
    /// The access points. Those on one channel share its air.
    pub access_points: Vec<AccessPointConfig>,
    /// The stations, in the order of their [`StationId`](crate::StationId).
    pub stations: Vec<WifiStationConfig>,
    /// Pairs of zones whose stations and access points do not hear each other, either way. A pair of a
    /// zone with itself means that its members do not hear one another. A station and its own access point
    /// always hear each other.
    pub hidden: Vec<(u32, u32)>,
    /// Whether the other stations wait EIFS (the wait after a damaged frame) also after a
    /// collision. By default they do not: no station can decode the preamble of a collided frame,
    /// so the other stations only see a busy medium.
    pub eifs_after_collision: bool,
    /// Whether receivers hand up all packets of an aggregate at its end, as firmware does that
    /// reports whole PPDUs. By default they hand up each packet when its own frame has arrived.
    pub hand_up_after_ppdu: bool,
    /// Whether the medium is only the air between radios that decide everything else themselves. Then each access
    /// point is a radio, and the station with the same index is that radio as a receiver; further stations are receivers
    /// that are no radios. Frames come from [`Medium::transmit`](crate::Medium::transmit), go to any station, and
    /// nothing is forwarded. [`WifiConfig::hidden`] must be empty.
    pub radios: bool,
}

impl WifiConfig {
    /// `stations` equal stations at an access point of `standard`, all with the defaults.
    pub fn new(standard: Standard, stations: usize) -> Self {
        let bss = Bss::new(standard);
        Self {
            access_points: vec![AccessPointConfig::new(bss)],
            stations: vec![WifiStationConfig::new(standard, &bss); stations],
            hidden: Vec::new(),
            eifs_after_collision: false,
            hand_up_after_ppdu: false,
            radios: false,
        }
    }
}

/// One access point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessPointConfig {
    /// The channel. Access points with the same number share the air, and do not hear those of other
    /// numbers.
    pub channel: u32,
    /// The zone, for [`WifiConfig::hidden`].
    pub zone: u32,
    /// The settings that the access point decides for its whole BSS.
    pub bss: Bss,
    /// The limit of what the access point keeps for the air, over all stations together.
    pub buffer: QueueLimit,
    /// The wired leg between the access point and the server.
    pub wired: Wired,
}

impl AccessPointConfig {
    /// An access point on channel 0 and in zone 0, with a buffer of 300 packets and the default wire.
    pub fn new(bss: Bss) -> Self {
        Self { channel: 0, zone: 0, bss, buffer: QueueLimit::Packets(300), wired: Wired::default() }
    }
}

/// One station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WifiStationConfig {
    /// The position of its access point in [`WifiConfig::access_points`].
    pub access_point: u32,
    /// The zone, for [`WifiConfig::hidden`].
    pub zone: u32,
    /// The station's standard, rate and contention parameters.
    pub radio: StationRadio,
    /// The most packets that the station keeps for the air.
    pub queue: usize,
    /// The queue discipline of those packets.
    pub host_queue: HostQueueKind,
    /// The share of damaged MPDUs (frames within an aggregate), to the station and from it, in
    /// parts per million.
    pub frame_error_ppm: u32,
    /// The extra delay, each way, between the wired leg and the server of this station.
    pub wired_delay: Duration,
}

impl WifiStationConfig {
    /// The defaults of a station of `standard` in `bss`.
    pub fn new(standard: Standard, bss: &Bss) -> Self {
        Self {
            access_point: 0,
            zone: 0,
            radio: StationRadio::new(standard, bss),
            queue: 1_000,
            host_queue: HostQueueKind::Fifo,
            frame_error_ppm: 0,
            wired_delay: Duration::ZERO,
        }
    }
}

/// The queue discipline of a station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostQueueKind {
    /// First in, first out. A full queue refuses the new packet.
    #[default]
    Fifo,
    /// FQ-CoDel (RFC 8290) by [`Packet::flow`](crate::Packet::flow) with the settings of mac80211:
    /// a target of 20 ms and an interval of 100 ms.
    ///
    /// It refuses no packet, and does not report its drops to the host. It drops packets that have
    /// waited too long. It also drops packets of the longest flow where all flows together exceed
    /// [`WifiStationConfig::queue`] packets or a memory of 4 MiB (16 MiB from ac on). Frames leave
    /// it when an aggregate is built, so frames that are retried are no longer in it.
    FqCodel,
}

/// The most access points.
const MOST_ACCESS_POINTS: u64 = 1_000;

/// Checks everything except the rates, which are looked up where they are used.
pub(super) fn validate(config: &WifiConfig) -> Result<(), ConfigError> {
    let access_points = &config.access_points;
    let count = access_points.len() as u64;
    range("access_points", count, 1, MOST_ACCESS_POINTS, "1 to 1000")?;
    for (place, one) in access_points.iter().enumerate() {
        ranges::limit("buffer", one.buffer)?;
        bss(&one.bss)?;
        ranges::wired(&one.wired)?;
        let before = access_points[..place].iter().find(|other| other.channel == one.channel);
        if let Some(other) =
            before.filter(|other| !other.bss.standard.shares_band(one.bss.standard))
        {
            let (found, other) = (one.bss.standard, other.bss.standard);
            return Err(ConfigError::Band { channel: one.channel, found, other });
        }
    }
    ranges::stations(config.stations.len())?;
    for (place, one) in config.stations.iter().enumerate() {
        range(
            "access_point",
            u64::from(one.access_point),
            0,
            count - 1,
            "the place of an access point",
        )?;
        validate_station(place, one, &access_points[one.access_point as usize].bss)?;
    }
    Ok(())
}

fn bss(bss: &Bss) -> Result<(), ConfigError> {
    let standard = bss.standard;
    let longest = Standard::Ax.longest_ampdu();
    range("retry_limit", u64::from(bss.retry_limit), 1, 255, "1 to 255 attempts")?;
    range("ampdu", bss.ampdu.get(), 1, longest.get(), "1 to 6500631 bytes")?;
    range("ampdu_subframes", u64::from(bss.ampdu_subframes), 1, 256, "1 to 256")?;
    contention(&bss.contention)?;
    let most = standard.most_streams();
    range("streams", u64::from(bss.streams), 1, u64::from(most), &format!("1 to {most}"))?;
    one_of("width", &bss.width, standard.widths())?;
    one_of("guard_interval", &bss.guard_interval, standard.guard_intervals())
}

fn one_of<T: Display + PartialEq>(
    what: &'static str,
    found: &T,
    allowed: &[T],
) -> Result<(), ConfigError> {
    if allowed.contains(found) {
        return Ok(());
    }
    let names: Vec<String> = allowed.iter().map(T::to_string).collect();
    Err(ConfigError::Word { what, found: found.to_string(), allowed: names.join(", ") })
}

/// Checks one station.
pub(super) fn validate_station(
    place: usize,
    one: &WifiStationConfig,
    bss: &Bss,
) -> Result<(), ConfigError> {
    let StationRadio { standard, rate: _, contention: rules } = &one.radio;
    if !standard.can_join(bss.standard) {
        let (found, access_point) = (*standard, bss.standard);
        return Err(ConfigError::Standard { station: place, found, access_point });
    }
    ranges::packets("queue", one.queue)?;
    let ppm = u64::from(one.frame_error_ppm);
    range("frame_error_ppm", ppm, 0, 1_000_000, "0 to 1000000 parts per million")?;
    ranges::delay("wired_delay", one.wired_delay)?;
    contention(rules)
}

fn contention(rules: &Contention) -> Result<(), ConfigError> {
    let Contention { aifsn, cw_min, cw_max, txop } = *rules;
    range("aifsn", u64::from(aifsn), 1, u64::from(Contention::MOST_AIFSN), "1 to 15")?;
    let largest = u64::from(Contention::LARGEST_WINDOW);
    range("cw_max", u64::from(cw_max), 0, largest, "cw_min to 32767")?;
    range("cw_min", u64::from(cw_min), 0, u64::from(cw_max), "0 to cw_max")?;
    range(
        "txop in us",
        txop.as_micros(),
        0,
        65_535 * 32,
        "0 to 2097120 us, the most that 16 bits of 32 us hold",
    )
}
