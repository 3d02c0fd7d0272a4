//! The amendments of 802.11 that Wakeai supports. Each has its timing, its widths and its limits
//! here.

use std::fmt;

use wakeai_units::{Bytes, Duration, Rate};

use crate::rates::{DSSS_RATES, LEGACY_RATES};

/// The longest duration of an HT, VHT or HE PPDU (transmission): `aPPDUMaxTime` (802.11-2020 19.4.4
/// and 21.4.4).
pub const LONGEST_PPDU: Duration = Duration::from_micros(5_484);

/// An amendment of IEEE 802.11, as a BSS (an access point with its stations) or one station uses
/// it. All but 802.11b use OFDM.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr, strum::Display,
)]
#[strum(serialize_all = "lowercase")]
pub enum Standard {
    /// 802.11a: OFDM at 5 GHz (802.11-2020 clause 17), DCF.
    #[strum(to_string = "802.11a")]
    A,
    /// 802.11b: DSSS and CCK at 2.4 GHz with the long slot (clauses 15 and 16), DCF.
    #[strum(to_string = "802.11b")]
    B,
    /// 802.11g: ERP-OFDM at 2.4 GHz with the short slot (clause 18), DCF.
    #[strum(to_string = "802.11g")]
    G,
    /// 802.11n: HT, mixed format, at 5 GHz (clause 19), EDCA best effort.
    #[strum(to_string = "802.11n")]
    N,
    /// 802.11ac: VHT single user (clause 21), EDCA best effort.
    #[strum(to_string = "802.11ac")]
    Ac,
    /// 802.11ax: HE single user (802.11ax-2021 clause 27), EDCA best effort.
    #[strum(to_string = "802.11ax")]
    Ax,
}

impl Standard {
    /// All standards, from the oldest to the newest.
    pub const ALL: [Self; 6] = [Self::A, Self::B, Self::G, Self::N, Self::Ac, Self::Ax];

    /// aSIFSTime: 16 us at 5 GHz (17.4.4, 19.4.4), 10 us at 2.4 GHz (16.3.3, 18.5).
    pub const fn sifs(self) -> Duration {
        match self {
            Self::B | Self::G => Duration::from_micros(10),
            Self::A | Self::N | Self::Ac | Self::Ax => Duration::from_micros(16),
        }
    }

    /// aSlotTime: 20 us of 802.11b (16.3.3), 9 us of all others. 802.11g uses its short slot because there are no
    /// 802.11b stations in its BSS.
    pub const fn slot(self) -> Duration {
        match self {
            Self::B => Duration::from_micros(20),
            Self::A | Self::G | Self::N | Self::Ac | Self::Ax => Duration::from_micros(9),
        }
    }

    /// aCWmin of DCF, and of EDCA's best effort: 31 slots of 802.11b (16.3.3), 15 of all others.
    pub const fn least_window(self) -> u16 {
        match self {
            Self::B => 31,
            Self::A | Self::G | Self::N | Self::Ac | Self::Ax => 15,
        }
    }

    /// The rates of broadcasts and control frames, ascending: DSSS and CCK, or non-HT OFDM.
    pub const fn legacy_rates(self) -> &'static [Rate] {
        match self {
            Self::B => &DSSS_RATES,
            Self::A | Self::G | Self::N | Self::Ac | Self::Ax => &LEGACY_RATES,
        }
    }

    /// The silence at the end of every ERP-OFDM frame. It gives enough time to a decoder that needs
    /// a SIFS of 16 us (18.3.2.4, aSignalExtension). It is a part of the frame's time on the air.
    pub const fn signal_extension(self) -> Duration {
        match self {
            Self::G => Duration::from_micros(6),
            Self::A | Self::B | Self::N | Self::Ac | Self::Ax => Duration::ZERO,
        }
    }

    /// Whether frames carry a QoS field, contend by EDCA and may be aggregated (HT and later).
    pub const fn is_qos(self) -> bool {
        matches!(self, Self::N | Self::Ac | Self::Ax)
    }

    /// The channel widths that the standard has, ascending.
    pub const fn widths(self) -> &'static [Width] {
        match self {
            Self::A | Self::B | Self::G => &[Width::Mhz20],
            Self::N => &[Width::Mhz20, Width::Mhz40],
            Self::Ac | Self::Ax => &Width::ALL,
        }
    }

    /// The channel width of a BSS for which none is configured.
    pub const fn default_width(self) -> Width {
        match self {
            Self::A | Self::B | Self::G | Self::N => Width::Mhz20,
            Self::Ac | Self::Ax => Width::Mhz80,
        }
    }

    /// The most spatial streams.
    pub const fn most_streams(self) -> u8 {
        match self {
            Self::A | Self::B | Self::G => 1,
            Self::N => 4,
            Self::Ac | Self::Ax => 8,
        }
    }

    /// The guard intervals of the standard. The first is the default: 0.8 us in every standard.
    pub const fn guard_intervals(self) -> &'static [GuardInterval] {
        match self {
            Self::A | Self::B | Self::G => &[GuardInterval::Ns800],
            Self::N | Self::Ac => &[GuardInterval::Ns800, GuardInterval::Ns400],
            Self::Ax => &[GuardInterval::Ns800, GuardInterval::Ns1600, GuardInterval::Ns3200],
        }
    }

    /// The longest A-MPDU (aggregate) that a receiver accepts; zero for a and g, which do not
    /// aggregate (802.11-2020 9.4.2.55.3 for HT, 9.4.2.157.2 for VHT; 802.11ax-2021 9.4.2.248.2).
    pub const fn longest_ampdu(self) -> Bytes {
        match self {
            Self::A | Self::B | Self::G => Bytes::ZERO,
            Self::N => Bytes::new(65_535),
            Self::Ac => Bytes::new(1_048_575),
            Self::Ax => Bytes::new(6_500_631),
        }
    }

    /// The longest A-MSDU that a receiver accepts; zero for a and g. HT has 7935 bytes (802.11-2020 9.4.2.55.2), VHT
    /// and HE what an MPDU of 11454 bytes holds beside its header of 26 bytes and its check sequence of 4
    /// (9.4.2.157.2).
    pub const fn longest_amsdu(self) -> Bytes {
        match self {
            Self::A | Self::B | Self::G => Bytes::ZERO,
            Self::N => Bytes::new(7_935),
            Self::Ac | Self::Ax => Bytes::new(11_424),
        }
    }

    /// The most subframes of an A-MPDU, which is also the largest window of a BlockAck agreement
    /// (802.11-2020 10.25, 802.11ax-2021); 1 for a and g.
    pub const fn most_subframes(self) -> u16 {
        match self {
            Self::A | Self::B | Self::G => 1,
            Self::N | Self::Ac => 64,
            Self::Ax => 256,
        }
    }

    /// Whether stations of both standards can share the air of a channel: those of 5 GHz, those of g, and those of b,
    /// each among themselves. A channel of b and g together has the long slot, and frames that stations of b cannot
    /// decode; it is not modelled.
    pub fn shares_band(self, other: Self) -> bool {
        [Self::B, Self::G].into_iter().all(|one| (self == one) == (other == one))
    }

    /// Whether a station of this standard can join an access point of the standard `access_point`.
    /// They have to [share a band](Self::shares_band), and the station's standard must not be newer.
    pub fn can_join(self, access_point: Self) -> bool {
        self == access_point || (self.shares_band(access_point) && self < access_point)
    }
}

/// Width of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
pub enum Width {
    /// 20 MHz.
    #[strum(to_string = "20MHz")]
    Mhz20,
    /// 40 MHz.
    #[strum(to_string = "40MHz")]
    Mhz40,
    /// 80 MHz.
    #[strum(to_string = "80MHz")]
    Mhz80,
    /// 160 MHz.
    #[strum(to_string = "160MHz")]
    Mhz160,
}

impl Width {
    /// All widths, ascending.
    pub const ALL: [Self; 4] = [Self::Mhz20, Self::Mhz40, Self::Mhz80, Self::Mhz160];
}

/// Guard interval of a data symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuardInterval {
    /// 0.4 us, the short interval of n and ac.
    Ns400,
    /// 0.8 us, the long interval of n and ac, and the shortest of ax.
    Ns800,
    /// 1.6 us, ax only.
    Ns1600,
    /// 3.2 us, ax only.
    Ns3200,
}

impl GuardInterval {
    /// The length of the interval.
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(match self {
            Self::Ns400 => 400,
            Self::Ns800 => 800,
            Self::Ns1600 => 1_600,
            Self::Ns3200 => 3_200,
        })
    }
}

impl fmt::Display for GuardInterval {
    /// Formats the interval in nanoseconds: `1600ns`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.duration().as_nanos())
    }
}
