//! What a result has of a run on real machines, beside the figures of every world.

use serde::{Deserialize, Serialize};

/// What the machines of a run did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FieldRun {
    /// The number of the block, from 0. A block has every condition once.
    pub block: u32,
    /// The place of the run in its block, from 0.
    pub position: u32,
    /// Whether the run counts: every machine took part from the beginning to the end.
    pub counts: bool,
    /// The time between the flow that began earliest and the one that began latest, each beside its start in the scenario,
    /// milliseconds.
    pub start_skew_ms: Option<f64>,
    /// The most by which that may be wrong, because the clocks of two machines are compared over their connections,
    /// milliseconds.
    pub clock_error_ms: f64,
    /// The machines: the server, then the stations.
    pub stations: Vec<FieldStation>,
    /// What else may explain the figures: the air, the machines, in words.
    pub verdict: Vec<String>,
}

/// What one machine did in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FieldStation {
    /// The station's name, or `server`.
    pub station: String,
    /// Where the machine is, as the machines file names it.
    pub machine: String,
    /// Whether its part of the run counts.
    pub counts: bool,
    /// Why not.
    pub reason: Option<String>,
    /// The bytes that the applications of its flows received.
    pub delivered_bytes: u64,
    /// Whether it ran an agent.
    pub agent: bool,
    /// The peers that its agent knew at the end.
    pub peers: Option<u64>,
    /// Whether its kernel was monitored. Otherwise its round-trip times are those of `tcp_info`, which are smoothed, and there are
    /// no congestion events.
    pub monitored: bool,
    /// The release of its kernel.
    pub kernel: Option<String>,
    /// What its Wi-Fi driver told before the run.
    pub before: Option<RadioReading>,
    /// The same after the run.
    pub after: Option<RadioReading>,
    /// The same over the run, in which it was asked every second.
    #[serde(default)]
    pub during: Option<RadioMeans>,
    /// The share of its channel's time that others used, per cent: the larger one of the time right before the run, in
    /// which nothing of the experiment was sent, and of the run itself. `None` where the driver does not tell.
    #[serde(default)]
    pub others_percent: Option<f64>,
    /// The busy share of its busiest processor.
    pub busiest_processor: Option<f64>,
}

/// What a Wi-Fi driver told over a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RadioMeans {
    /// The number of readings.
    pub readings: u32,
    /// The mean signal strength.
    pub signal_dbm: Option<f64>,
    /// The mean PHY rate to the access point.
    pub tx_mbps: Option<f64>,
    /// The mean PHY rate from the access point.
    pub rx_mbps: Option<f64>,
    /// The access points, one after another.
    pub bssids: Vec<String>,
}

/// What a Wi-Fi driver tells at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RadioReading {
    /// The access point's address.
    pub bssid: Option<String>,
    /// The centre of the primary channel.
    pub frequency_mhz: Option<u32>,
    /// The width of the whole channel.
    pub width_mhz: Option<u32>,
    /// The signal strength.
    pub signal_dbm: Option<i64>,
    /// The PHY rate of the last frame to the access point.
    pub tx_mbps: Option<f64>,
    /// The PHY rate of the last frame from the access point.
    pub rx_mbps: Option<f64>,
    /// The time that the radio was on its channel.
    pub active_ms: Option<u64>,
    /// The part of it in which the radio sensed the channel as busy.
    pub busy_ms: Option<u64>,
}
