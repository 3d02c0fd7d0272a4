//! What carries the packets: an 802.11 access point or a cellular base station.

use wakeai_units::{Bytes, Duration, Rate};

use crate::rates;

/// An 802.11 standard. 802.11b is not one of them: everything here is OFDM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standard {
    /// 802.11a: DCF at 5 GHz.
    A,
    /// 802.11g: DCF at 2.4 GHz, with signal extension.
    G,
    /// 802.11n at 5 GHz: EDCA best effort, A-MPDU.
    N,
    /// 802.11ac: EDCA best effort, A-MPDU.
    Ac,
    /// 802.11ax, single user: EDCA best effort, A-MPDU.
    Ax,
}

impl Standard {
    /// All of them, in the order of the reference.
    pub const ALL: [Self; 5] = [Self::A, Self::G, Self::N, Self::Ac, Self::Ax];

    /// The name in a scenario file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "802.11a",
            Self::G => "802.11g",
            Self::N => "802.11n",
            Self::Ac => "802.11ac",
            Self::Ax => "802.11ax",
        }
    }

    /// Whether stations use EDCA best effort and A-MPDU (n, ac, ax) rather than DCF (a, g).
    pub const fn aggregates(self) -> bool {
        matches!(self, Self::N | Self::Ac | Self::Ax)
    }

    /// The channel widths that the standard has, in MHz.
    pub const fn widths_mhz(self) -> &'static [u32] {
        match self {
            Self::A | Self::G => &[20],
            Self::N => &[20, 40],
            Self::Ac | Self::Ax => &[20, 40, 80, 160],
        }
    }

    /// The channel width in MHz where a file names none.
    pub const fn default_width_mhz(self) -> u32 {
        match self {
            Self::A | Self::G | Self::N => 20,
            Self::Ac | Self::Ax => 80,
        }
    }

    /// The most spatial streams.
    pub const fn max_streams(self) -> u32 {
        match self {
            Self::A | Self::G => 1,
            Self::N => 4,
            Self::Ac | Self::Ax => 8,
        }
    }

    /// The guard intervals that the standard has, in nanoseconds; the first is the default.
    pub const fn guard_intervals_ns(self) -> &'static [u64] {
        match self {
            Self::A | Self::G => &[800],
            Self::N | Self::Ac => &[800, 400],
            Self::Ax => &[800, 1600, 3200],
        }
    }

    /// The contention parameters where a file names none: those of DCF for a and g (DIFS is SIFS
    /// and two slots), of EDCA best effort for n, ac and ax (802.11-2016, table 9-137).
    pub const fn default_contention(self) -> Contention {
        let aifsn = if self.aggregates() { 3 } else { 2 };
        Contention { aifsn, cw_min: 15, cw_max: 1023, txop: Duration::ZERO }
    }

    /// Most bytes and most subframes of an A-MPDU where a file names none; one frame at a time for
    /// a and g.
    pub const fn default_aggregation(self) -> (Bytes, u32) {
        let (_, subframes) = self.most_aggregation();
        if self.aggregates() { (Bytes::new(65_535), subframes) } else { (Bytes::ZERO, subframes) }
    }

    /// The most bytes of an A-MPDU by 802.11-2020 (9.4.2.55.3 for HT, 9.4.2.157.2 for VHT) and
    /// 802.11ax-2021 (9.4.2.248.2), and the most subframes: the window of a
    /// `BlockAck`.
    pub const fn most_aggregation(self) -> (Bytes, u32) {
        match self {
            Self::A | Self::G => (Bytes::ZERO, 1),
            Self::N => (Bytes::new(65_535), 64),
            Self::Ac => (Bytes::new(1_048_575), 64),
            Self::Ax => (Bytes::new(6_500_631), 256),
        }
    }

    /// The highest rate of one PHY setting: 54 Mbit/s for a and g, MCS 7 for n, MCS 9 for ac (MCS
    /// 8 at 20 MHz and one stream, which has no MCS 9), MCS 11 for ax.
    pub fn top_rate(self, width_mhz: u32, streams: u32, guard_interval: Duration) -> Rate {
        let mcs = rates::of(self, width_mhz, streams, guard_interval);
        mcs.into_iter().max().expect("every setting has its MCS 0")
    }

    /// All rates of every width up to `width_mhz` and every number of streams up to `streams`,
    /// ascending.
    pub fn rates(self, width_mhz: u32, streams: u32, guard_interval: Duration) -> Vec<Rate> {
        let widths = self.widths_mhz().iter().filter(|width| **width <= width_mhz);
        let streams = 1..=streams.min(self.max_streams());
        let settings =
            widths.flat_map(|width| streams.clone().map(move |streams| (*width, streams)));
        let mut all: Vec<Rate> = settings
            .flat_map(|(width, streams)| rates::of(self, width, streams, guard_interval))
            .collect();
        all.sort();
        all.dedup();
        all
    }
}

/// How one transmit queue contends for the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contention {
    /// Slots after SIFS that the medium must be idle.
    pub aifsn: u32,
    /// The smallest contention window, in slots: one less than a power of two.
    pub cw_min: u32,
    /// The largest contention window, in slots: one less than a power of two.
    pub cw_max: u32,
    /// The longest stay on the air after a won contention; zero is one frame exchange.
    pub txop: Duration,
}

/// The radio of one station, every default resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationRadio {
    /// The standard that it and the access point use between each other.
    pub standard: Standard,
    /// PHY rate of data frames in both directions.
    pub rate: Rate,
    /// Channel width in MHz.
    pub width_mhz: u32,
    /// Spatial streams.
    pub streams: u32,
    /// Guard interval of an OFDM symbol.
    pub guard_interval: Duration,
    /// Most bytes of an A-MPDU; zero where the standard does not aggregate.
    pub ampdu: Bytes,
    /// Most subframes of an A-MPDU; 1 where the standard does not aggregate.
    pub ampdu_subframes: u32,
    /// Transmissions after which a frame is given up, the first one counted.
    pub retry_limit: u32,
    /// How the station's queue contends.
    pub contention: Contention,
    /// `control_rate` where the file names one; see [`StationRadio::control_rate`].
    pub given_control_rate: Option<Rate>,
}

impl StationRadio {
    /// The rate of ACK, `BlockAck`, RTS and CTS around data frames of `data_rate`: the one given, or
    /// the highest of 6, 12 and 24 Mbit/s that is not above `data_rate` (6 below that).
    pub fn control_rate(&self, data_rate: Rate) -> Rate {
        self.given_control_rate.unwrap_or_else(|| default_control_rate(data_rate))
    }
}

/// The highest mandatory OFDM rate (6, 12, 24 Mbit/s) not above `data_rate`; 6 where all are.
pub fn default_control_rate(data_rate: Rate) -> Rate {
    let mandatory = [Rate::from_mbps(24), Rate::from_mbps(12)];
    mandatory.into_iter().find(|rate| *rate <= data_rate).unwrap_or(Rate::from_mbps(6))
}

/// The access point's queue towards the stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueDiscipline {
    /// One queue across all stations.
    Fifo,
    /// One per station, served airtime-fair.
    Fq,
}

/// What is sent ahead of a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Nothing.
    None,
    /// A CTS to the sender itself.
    CtsToSelf,
    /// RTS and CTS.
    RtsCts,
}

/// The access point as one 802.11 BSS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wifi {
    /// The standard of stations that name none.
    pub standard: Standard,
    /// The queue towards the stations.
    pub queue: QueueDiscipline,
    /// What is sent ahead of a data frame.
    pub protection: Protection,
    /// With RTS/CTS, data frames that are longer than this are protected (dot11RTSThreshold).
    pub rts_threshold: Bytes,
    /// The rate of broadcasts.
    pub basic_rate: Rate,
    /// The rate of control frames where the file names one; see [`StationRadio::control_rate`].
    pub control_rate: Option<Rate>,
    /// Transmissions after which a frame is given up, the first one counted.
    pub retry_limit: u32,
    /// How the access point's queue contends.
    pub contention: Contention,
    /// The radio of a station that names none of the radio's keys.
    pub station: StationRadio,
}

/// Who is served next on a cellular link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// By the ratio of present rate to what was served of late.
    ProportionalFair,
    /// In turn.
    RoundRobin,
}

/// A cellular base station: no contention and no broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cellular {
    /// What the cell carries from the stations.
    pub uplink: Rate,
    /// What the cell carries to the stations.
    pub downlink: Rate,
    /// Who is served next.
    pub scheduler: Scheduler,
}

/// What carries the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// An 802.11 BSS.
    Wifi(Wifi),
    /// A cellular link.
    Cellular(Cellular),
}

/// What the stations share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessPoint {
    /// Its buffer towards the stations, in packets: of all together on Wi-Fi, of each on cellular.
    pub buffer: u32,
    /// What carries the packets.
    pub medium: Medium,
}

impl AccessPoint {
    /// The Wi-Fi settings, unless this is a cellular base station.
    pub fn wifi(&self) -> Option<&Wifi> {
        match &self.medium {
            Medium::Wifi(wifi) => Some(wifi),
            Medium::Cellular(_) => None,
        }
    }
}
