//! The configuration of a controller: station, group keys, the access point, rates, reservation, clocks, limit of
//! peers.

use wakeai_units::{Duration, Rate};
use wakeai_wifi::LEGACY_RATES;

use crate::{CommonLaw, Share, StationId};

/// Whether the stations' clocks agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clocks {
    /// The clocks may differ. Only an answer to this station's challenge proves that a message is
    /// new and not a recording.
    #[default]
    Free,
    /// The clocks agree, as with NTP. Messages carry the time. A message is refused where its time
    /// differs from this station's time by more than `tolerance`.
    Synchronised {
        /// The Unix time when this controller's `now` is zero.
        unix_at_epoch: Duration,
        /// The largest difference between the time in a message and the time at its arrival. It
        /// includes the transit time of the message.
        tolerance: Duration,
    },
}

/// The settings of a [`Controller`](crate::Controller). The type does not implement `Debug`,
/// because its output would show the key.
#[derive(Clone, PartialEq, Eq)]
pub struct ControllerConfig {
    /// The id of this station.
    pub station_id: StationId,
    /// The access point with which this station is associated. Messages of stations at other access
    /// points are ignored.
    pub bssid: [u8; 6],
    /// The secret that the stations of the fleet share.
    pub group_key: [u8; 32],
    /// Further group keys under which messages are accepted. They are needed while the fleet
    /// changes its key.
    pub accepted_keys: Vec<[u8; 32]>,
    /// The access point's buffer in packets.
    pub access_point_buffer: u32,
    /// The number of data segments that one ACK acknowledges.
    pub segments_per_ack: u32,
    /// The basic rate: the rate at which the access point sends broadcasts.
    pub basic_rate: Rate,
    /// The rate that this station reaches alone as a sender, where the configuration has it.
    pub max_rate: Option<Rate>,
    /// The rate that it reaches alone as a receiver, where the configuration has it.
    pub max_down_rate: Option<Rate>,
    /// The rate that this station asks its peers to leave free while this station sends.
    pub reserve: Option<Rate>,
    /// The share of the airtime that all stations together may reserve. All stations need the same
    /// value.
    pub reservable: Share,
    /// Whether the stations' clocks agree.
    pub clocks: Clocks,
    /// What this station announces that it holds, and that all others have to hold, too; `None`
    /// announces nothing, as agents before this announcement did.
    pub common_law: Option<CommonLaw>,
    /// The largest number of peers in the table.
    pub peer_limit: usize,
}

impl ControllerConfig {
    /// The defaults: a buffer of 300 packets, two segments per ACK, a basic rate
    /// of 6 Mbit/s, no reservation, 80 % of the airtime reservable, clocks that may differ, 1024
    /// peers, no announced law.
    pub fn new(station_id: StationId, bssid: [u8; 6], group_key: [u8; 32]) -> Self {
        Self {
            station_id,
            bssid,
            group_key,
            accepted_keys: Vec::new(),
            access_point_buffer: 300,
            segments_per_ack: 2,
            basic_rate: LEGACY_RATES[0],
            max_rate: None,
            max_down_rate: None,
            reserve: None,
            reservable: Share::from_percent(80),
            clocks: Clocks::Free,
            common_law: None,
            peer_limit: 1024,
        }
    }
}
