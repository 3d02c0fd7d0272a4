//! What a medium has carried, and what it has not.

use serde::Serialize;

/// Frames that the medium has not carried, by reason. In a faithful run all but `queue_full`, `unanswered` and
/// `declined_addba` are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NotCarried {
    /// Frames that found their radio's queue in the medium full.
    pub queue_full: u64,
    /// Frames that were given up after their last attempt, because nobody on the channel has their receiver's address,
    /// or because of collisions and errors.
    pub unanswered: u64,
    /// Frames that the driver could not hand over, because the medium's socket was full. They are counted by the gaps
    /// in the numbers that the driver gives to frames.
    pub socket_full: u64,
    /// Frames that the driver had freed before it was told what became of them: the oldest 101 whenever 200 of a radio
    /// wait.
    pub freed_by_driver: u64,
    /// Frames of radios for which the scenario has no access point and no station.
    pub unknown_radio: u64,
    /// Unicast frames that the receiving radio refused: it is switched off, or on another channel.
    pub refused_by_receiver: u64,
    /// Messages of the driver that could not be read, and frames that are too short or too long.
    pub malformed: u64,
    /// Requests for Block Ack that the medium declined in their receiver's place: it aggregates by itself.
    pub declined_addba: u64,
}

/// One radio.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RadioReport {
    /// Its name in the scenario.
    pub name: String,
    /// The address by which the driver tells radios apart.
    pub address: String,
    /// The frequency of its last frame in MHz.
    pub frequency_mhz: u32,
    /// Frames that the medium has read.
    pub sent: u64,
    /// Unicast frames that were acknowledged, and frames to groups that were sent.
    pub carried: u64,
    /// Attempts of all frames.
    pub attempts: u64,
    /// Frames that were given up after their last attempt.
    pub unanswered: u64,
    /// Frames that found its queue full.
    pub queue_full: u64,
    /// Frames that were lost in the full socket.
    pub socket_full: u64,
    /// Unicast frames that it has received.
    pub received: u64,
}

/// The counters of a medium at its end.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The time that it was the medium, in seconds.
    pub seconds: f64,
    /// The radios that have appeared, the access points first.
    pub radios: Vec<RadioReport>,
    /// What was not carried.
    pub not_carried: NotCarried,
    /// Accesses to the air of all radios, and how many of them were part of a collision.
    pub accesses: u64,
    /// Accesses that ended in a collision, each sender counted.
    pub collisions: u64,
    /// MPDUs (frames on the air, retries included) in all unicast transmissions.
    pub mpdus: u64,
    /// Unicast transmissions; an aggregate is one.
    pub ppdus: u64,
    /// Frames that were handed over, to any radio.
    pub deliveries: u64,
    /// 99th percentile of the time by which they were late, in milliseconds.
    pub lateness_p99_ms: f64,
    /// The longest such time, in milliseconds.
    pub lateness_max_ms: f64,
    /// Whether the driver lost or freed no frame.
    pub faithful: bool,
}
