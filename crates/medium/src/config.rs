//! What a medium is made from: plain data, with the defaults of each standard.

use wakeai_units::Duration;
use wakeai_wifi::{Bss, Standard, StationRadio, Wired};

/// A BSS and the wire behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WifiConfig {
    /// What the access point decides for the whole BSS.
    pub bss: Bss,
    /// Packets that the access point keeps for the air, over all stations together.
    pub buffer: usize,
    /// Between the access point and the server.
    pub wired: Wired,
    /// The stations, in the order of their [`StationId`](crate::StationId).
    pub stations: Vec<WifiStationConfig>,
    /// Whether bystanders wait EIFS after a collision as well. Without it nobody could decode the
    /// preamble of any collided frame, so to them the medium was merely busy.
    pub eifs_after_collision: bool,
    /// Whether receivers hand up the packets of an aggregate all at its end, as those do whose
    /// firmware reports whole PPDUs; otherwise each when its own MPDU has arrived.
    pub hand_up_after_ppdu: bool,
}

impl WifiConfig {
    /// `stations` equal stations on an access point of `standard`, all with their defaults.
    pub fn new(standard: Standard, stations: usize) -> Self {
        let bss = Bss::new(standard);
        Self {
            bss,
            buffer: 300,
            wired: Wired::default(),
            stations: vec![WifiStationConfig::new(standard, &bss); stations],
            eifs_after_collision: false,
            hand_up_after_ppdu: false,
        }
    }
}

/// One station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WifiStationConfig {
    /// Its standard and rate, and how it contends.
    pub radio: StationRadio,
    /// Packets that the station keeps for the air.
    pub queue: usize,
    /// How those packets take turns.
    pub host_queue: HostQueueKind,
    /// Share of MPDUs, to the station and from it, that arrive damaged, in parts per million.
    pub frame_error_ppm: u32,
    /// Delay each way between this station's server and the wired leg, on top of the leg's own.
    pub wired_delay: Duration,
}

impl WifiStationConfig {
    /// The defaults of a station of `standard` in `bss`.
    pub fn new(standard: Standard, bss: &Bss) -> Self {
        Self {
            radio: StationRadio::new(standard, bss),
            queue: 1_000,
            host_queue: HostQueueKind::Fifo,
            frame_error_ppm: 0,
            wired_delay: Duration::ZERO,
        }
    }
}

/// How the packets in a station take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostQueueKind {
    /// First in, first out; the newcomer is refused when it is full.
    #[default]
    Fifo,
    /// FQ-CoDel (RFC 8290) by [`Packet::flow`](crate::Packet::flow) with the settings of mac80211: 20
    /// and 100 ms. It refuses nothing: what is too much, or has waited for too long, it drops without a
    /// word to the host, beyond the [`WifiStationConfig::queue`] packets and the 4 MiB (from ac on 16) of
    /// memory of all flows together from the one that has most. Frames are taken from it when an
    /// aggregate is built, and those that have to be retried are not in it any more.
    FqCodel,
}
