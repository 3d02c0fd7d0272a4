//! The configuration of a controller.

use wakeai_units::{Duration, Rate};
use wakeai_wifi::LEGACY_RATES;

use crate::{Share, StationId};

/// Whether the stations' clocks agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clocks {
    /// The clocks may differ. Only the answer to a challenge proves that a message is new.
    #[default]
    Free,
    /// The clocks agree, as with NTP. Messages carry the time, and a message is refused where its
    /// time differs from the own by more than `tolerance`.
    Synchronised {
        /// The Unix time at the epoch of this controller's `now`.
        unix_at_epoch: Duration,
        /// The largest difference between two clocks, the transit time of a message included.
        tolerance: Duration,
    },
}

/// The settings of a [`Controller`](crate::Controller). It has no `Debug`, because that would show
/// the key.
#[derive(Clone, PartialEq, Eq)]
pub struct ControllerConfig {
    /// This station.
    pub station_id: StationId,
    /// The access point with which this station is associated. Messages of stations at other access
    /// points are ignored.
    pub bssid: [u8; 6],
    /// The secret that the stations of the fleet share.
    pub group_key: [u8; 32],
    /// Further keys whose messages are accepted, while the fleet changes its key.
    pub accepted_keys: Vec<[u8; 32]>,
    /// The time between ticks; the controller decides once per tick.
    pub tick: Duration,
    /// The access point's buffer in packets.
    pub access_point_buffer: u32,
    /// Data segments that one ACK acknowledges.
    pub segments_per_ack: u32,
    /// The rate at which the access point sends broadcasts.
    pub basic_rate: Rate,
    /// The rate that this station reaches alone, where it was measured.
    pub max_rate: Option<Rate>,
    /// The rate that this station asks its peers to leave free while it sends.
    pub reserve: Option<Rate>,
    /// The share of the airtime that all stations together may reserve. It has to be the same on
    /// all stations.
    pub reservable: Share,
    /// Whether the stations' clocks agree.
    pub clocks: Clocks,
    /// The largest number of peers that are kept.
    pub peer_limit: usize,
}

impl ControllerConfig {
    /// Defaults: tick 0.5 s, buffer 300 packets, two segments per ACK, basic rate 6 Mbit/s, nothing
    /// reserved, 80 % of the air reservable, clocks free, 1024 peers.
    pub fn new(station_id: StationId, bssid: [u8; 6], group_key: [u8; 32]) -> Self {
        Self {
            station_id,
            bssid,
            group_key,
            accepted_keys: Vec::new(),
            tick: Duration::from_millis(500),
            access_point_buffer: 300,
            segments_per_ack: 2,
            basic_rate: LEGACY_RATES[0],
            max_rate: None,
            reserve: None,
            reservable: Share::from_percent(80),
            clocks: Clocks::Free,
            peer_limit: 1024,
        }
    }
}
