//! The amendments of 802.11 that are known here, and what each fixes: timing, headers, limits.

use std::fmt;
use std::str::FromStr;

use wakeai_units::{Duration, Rate};

use crate::error::ConfigError;

/// An amendment of IEEE 802.11, as a BSS or one station speaks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standard {
    /// 802.11a: OFDM at 5 GHz (802.11-2020 clause 17), DCF.
    A,
    /// 802.11g: ERP-OFDM at 2.4 GHz with the short slot (clause 18), DCF.
    G,
    /// 802.11n: HT, mixed format, at 5 GHz (clause 19), EDCA best effort.
    N,
    /// 802.11ac: VHT single user (clause 21), EDCA best effort.
    Ac,
    /// 802.11ax: HE single user (802.11ax-2021 clause 27), EDCA best effort.
    Ax,
}

impl Standard {
    const NAMES: [(&'static str, Self); 5] = [
        ("802.11a", Self::A),
        ("802.11g", Self::G),
        ("802.11n", Self::N),
        ("802.11ac", Self::Ac),
        ("802.11ax", Self::Ax),
    ];

    /// aSIFSTime: 16 us at 5 GHz (17.4.4, 19.4.4), 10 us at 2.4 GHz (18.5).
    pub const fn sifs(self) -> Duration {
        match self {
            Self::G => Duration::from_micros(10),
            Self::A | Self::N | Self::Ac | Self::Ax => Duration::from_micros(16),
        }
    }

    /// aSlotTime: 9 us in each; for g the short slot, without 802.11b stations around.
    pub const fn slot(self) -> Duration {
        Duration::from_micros(9)
    }

    /// The silence that ends every ERP-OFDM frame, so that a decoder made for 16 us of SIFS has
    /// its time (18.3.2.4, aSignalExtension). Part of the frame's time on the air.
    pub const fn signal_extension(self) -> Duration {
        match self {
            Self::G => Duration::from_micros(6),
            Self::A | Self::N | Self::Ac | Self::Ax => Duration::ZERO,
        }
    }

    /// Whether frames carry a QoS field, contend by EDCA and may be aggregated (HT and later).
    pub const fn is_qos(self) -> bool {
        matches!(self, Self::N | Self::Ac | Self::Ax)
    }

    /// The standard's name, as it is written in a scenario: `802.11ax`.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }

    /// The rate that a station has when nothing else is asked: the highest of one stream, at
    /// 20 MHz for a, g and n and at 80 MHz for ac and ax.
    pub const fn default_rate(self) -> Rate {
        match self {
            Self::A | Self::G => Rate::from_mbps(54),
            Self::N => Rate::from_mbps(65),
            Self::Ac => Rate::from_mbps(390),
            Self::Ax => Rate::from_bps(600_500_000),
        }
    }

    /// The longest A-MPDU that its receivers take, in bytes (802.11-2020 9.4.2.55.3 for HT,
    /// 9.4.2.157.2 for VHT; 802.11ax-2021 9.4.2.248.2); a and g do not aggregate.
    pub(crate) const fn longest_ampdu(self) -> u32 {
        match self {
            Self::A | Self::G | Self::N => 65_535,
            Self::Ac => 1_048_575,
            Self::Ax => 6_500_631,
        }
    }

    /// The largest window of a BlockAck agreement, in frames (802.11-2020 10.25, 802.11ax-2021).
    pub(crate) const fn block_ack_window(self) -> u16 {
        if matches!(self, Self::Ax) { 256 } else { 64 }
    }

    /// Whether a station of this standard can join an access point of standard `access_point`:
    /// the same band, and nothing newer than the access point.
    pub fn can_join(self, access_point: Self) -> bool {
        self == access_point || (self != Self::G && access_point != Self::G && self < access_point)
    }
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Standard {
    type Err = ConfigError;
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let known = Self::NAMES.iter().find(|(name, _)| *name == text);
        known.map(|(_, standard)| *standard).ok_or_else(|| ConfigError::Word {
            what: "standard",
            found: text.to_owned(),
            allowed: "802.11a, 802.11g, 802.11n, 802.11ac, 802.11ax",
        })
    }
}
