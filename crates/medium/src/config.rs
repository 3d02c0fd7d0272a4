//! What a medium is made from: plain data, with the defaults of each standard.

use wakeai_units::{Bytes, Duration, Rate};

use crate::Standard;

/// A BSS and the wire behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediumConfig {
    /// The access point and what it decides for the whole BSS.
    pub access_point: AccessPointConfig,
    /// Between the access point and the server.
    pub wired: WiredConfig,
    /// The stations, in the order of their [`StationId`](crate::StationId).
    pub stations: Vec<StationConfig>,
}

impl MediumConfig {
    /// `stations` equal stations on an access point of `standard`, all with their defaults.
    pub fn new(standard: Standard, stations: usize) -> Self {
        Self {
            access_point: AccessPointConfig::new(standard),
            wired: WiredConfig::default(),
            stations: vec![StationConfig::new(standard); stations],
        }
    }
}

/// The access point and what it decides for the whole BSS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessPointConfig {
    /// The newest standard that is spoken here.
    pub standard: Standard,
    /// Packets that the access point keeps for the air, over all stations together.
    pub buffer: usize,
    /// How those packets take turns.
    pub queue: QueueKind,
    /// What goes ahead of a unicast exchange.
    pub protection: Protection,
    /// With [`Protection::RtsCts`], unicast data frames are protected whose PSDU is longer than this
    /// (dot11RTSThreshold).
    pub rts_threshold: Bytes,
    /// Rate of broadcasts: one of 6, 9, 12, 18, 24, 36, 48 and 54 Mbit/s.
    pub basic_rate: Rate,
    /// Rate of ACK, BlockAck, RTS and CTS; `None`: for each station the highest of 6, 12 and 24
    /// Mbit/s that is not above its data rate.
    pub control_rate: Option<Rate>,
    /// Widest channel in use (n, ac, ax).
    pub width: Width,
    /// Most spatial streams in use (n, ac, ax).
    pub streams: u8,
    /// Guard interval of data symbols (n, ac, ax), of a station whose standard has it; of others
    /// 0.8 us.
    pub guard_interval: GuardInterval,
    /// Longest A-MPDU (n, ac, ax), of a station whose standard has it so long.
    pub ampdu: Bytes,
    /// Most subframes of an A-MPDU, and the window of a BlockAck agreement; more than 64 with
    /// stations of ax only. `None`: 64 for n and ac, 256 for ax.
    pub ampdu_subframes: Option<u16>,
    /// Attempts after which a frame is given up, the first one counted (dot11ShortRetryLimit).
    pub retry_limit: u8,
    /// How the access point's queue contends, and each station's unless it has its own;
    /// `None`: the defaults of each one's standard, [`Contention::of`].
    pub contention: Option<Contention>,
    /// Whether bystanders wait EIFS after a collision as well. Without it nobody could decode the
    /// preamble of any collided frame, so to them the medium was merely busy.
    pub eifs_after_collision: bool,
    /// Whether receivers hand up the packets of an aggregate all at its end, as those do whose
    /// firmware reports whole PPDUs; otherwise each when its own MPDU has arrived.
    pub hand_up_after_ppdu: bool,
}

impl AccessPointConfig {
    /// The defaults of `standard`.
    pub fn new(standard: Standard) -> Self {
        Self {
            standard,
            buffer: 300,
            queue: QueueKind::Fifo,
            protection: Protection::None,
            rts_threshold: Bytes::new(500),
            basic_rate: Rate::from_mbps(6),
            control_rate: None,
            width: match standard {
                Standard::A | Standard::G | Standard::N => Width::Mhz20,
                Standard::Ac | Standard::Ax => Width::Mhz80,
            },
            streams: 1,
            guard_interval: GuardInterval::Ns800,
            ampdu: Bytes::new(65_535),
            ampdu_subframes: None,
            retry_limit: 7,
            contention: None,
            eifs_after_collision: false,
            hand_up_after_ppdu: false,
        }
    }
}

/// The wired leg between the access point and the server, alike in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WiredConfig {
    /// Rate of each direction, in bits of IP packets.
    pub rate: Rate,
    /// Delay of each direction: the RTT grows by twice this.
    pub delay: Duration,
    /// Packets that each direction keeps, the one on the wire included.
    pub queue: usize,
}

impl Default for WiredConfig {
    /// 1 Gbit/s, 1 ms, 1000 packets.
    fn default() -> Self {
        Self { rate: Rate::from_mbps(1_000), delay: Duration::from_millis(1), queue: 1_000 }
    }
}

/// One station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StationConfig {
    /// What the station and the access point speak with each other.
    pub standard: Standard,
    /// PHY rate of data frames, to the station and from it.
    pub rate: Rate,
    /// Packets that the station keeps for the air.
    pub queue: usize,
    /// How those packets take turns.
    pub host_queue: HostQueueKind,
    /// Share of MPDUs, to the station and from it, that arrive damaged, in parts per million.
    pub frame_error_ppm: u32,
    /// Delay each way between this station's server and the wired leg, on top of the leg's own.
    pub wired_delay: Duration,
    /// How the station's queue contends; `None`: as [`AccessPointConfig::contention`] says.
    pub contention: Option<Contention>,
}

impl StationConfig {
    /// The defaults of `standard`.
    pub fn new(standard: Standard) -> Self {
        Self {
            standard,
            rate: standard.default_rate(),
            queue: 1_000,
            host_queue: HostQueueKind::Fifo,
            frame_error_ppm: 0,
            wired_delay: Duration::ZERO,
            contention: None,
        }
    }
}

/// How one queue contends for the medium (802.11-2020 10.3 for DCF, 10.23.2 for EDCA).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Contention {
    /// Slots between SIFS and the first backoff slot; DIFS is SIFS and 2 slots.
    pub aifsn: u8,
    /// Least contention window: a backoff is drawn from 0 to this.
    pub cw_min: u16,
    /// Greatest contention window, after repeated failures.
    pub cw_max: u16,
    /// How long one won access may last; zero: one exchange of any length.
    pub txop: Duration,
}

impl Contention {
    /// DCF for a and g; for n, ac and ax the best-effort category of EDCA (table 9-155), with a
    /// TXOP of zero as the Wi-Fi Alliance's WMM and every common access point have it.
    pub const fn of(standard: Standard) -> Self {
        let aifsn = if standard.is_qos() { 3 } else { 2 };
        Self { aifsn, cw_min: 15, cw_max: 1_023, txop: Duration::ZERO }
    }
}

/// How the packets in the access point take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueKind {
    /// First in, first out over all stations; the newcomer is dropped when it is full.
    #[default]
    Fifo,
    /// One queue per station, served by deficit round robin in airtime; when all together are
    /// full, the longest loses its last packet.
    Fq,
}

/// How the packets in a station take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostQueueKind {
    /// First in, first out; the newcomer is refused when it is full.
    #[default]
    Fifo,
    /// FQ-CoDel (RFC 8290) by [`Packet::flow`](crate::Packet::flow) with the settings of mac80211: 20
    /// and 100 ms. It refuses nothing: what is too much, or has waited for too long, it drops without a
    /// word to the host, beyond the [`StationConfig::queue`] packets and the 4 MiB (from ac on 16) of
    /// memory of all flows together from the one that has most. Frames are taken from it when an
    /// aggregate is built, and those that have to be retried are not in it any more.
    FqCodel,
}

/// What goes ahead of a unicast exchange, so that stations far off or old stay silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protection {
    /// Nothing.
    #[default]
    None,
    /// The sender's own CTS: air without an answer.
    CtsToSelf,
    /// RTS and its CTS: a collision costs an RTS, not a data frame.
    RtsCts,
}

/// Width of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// 20 MHz.
    Mhz20,
    /// 40 MHz.
    Mhz40,
    /// 80 MHz.
    Mhz80,
    /// 160 MHz.
    Mhz160,
}

/// Guard interval of a data symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuardInterval {
    /// 0.4 us: the short one of n and ac.
    Ns400,
    /// 0.8 us: the long one of n and ac, the shortest of ax.
    Ns800,
    /// 1.6 us, ax only.
    Ns1600,
    /// 3.2 us, ax only.
    Ns3200,
}
