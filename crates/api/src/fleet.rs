//! The stations of one access point. They are the answer to
//! [`Request::Fleet`](crate::Request::Fleet).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The stations of one access point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fleet {
    /// The number of the query.
    pub query: u64,
    /// The longest time until the query ends. It is null while the query waits for its turn to be
    /// sent.
    pub left_s: Option<f64>,
    /// Whether the query has ended. It ends when all peers have answered, or when the time for
    /// answers is over.
    pub done: bool,
    /// The access point.
    pub bssid: String,
    /// This station, its peers, and other stations that have answered. They are sorted by number.
    pub stations: Vec<FleetStation>,
    /// The members of the group whose messages have a version that this agent does not read.
    pub other_versions: Vec<OtherVersion>,
}

/// A station of a fleet. A field that only an answer contains is null until the station answers.
/// Other fields are known from the station's presence messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FleetStation {
    /// The station's number, 16 hexadecimal digits.
    pub station: String,
    /// Whether it is the station of the agent that was asked.
    pub own: bool,
    /// Whether it has answered this query.
    pub answered: bool,
    /// The age of its last answer. That answer may belong to an earlier query. The field is null if
    /// the station has not answered in the last ten minutes.
    pub answer_age_s: Option<f64>,
    /// The time since its last presence message. It is null for the own station, and if the station
    /// is not a peer.
    pub heard_s: Option<f64>,
    /// The version of its agent.
    pub software: Option<String>,
    /// The state of its agent.
    pub state: Option<String>,
    /// The seconds since its agent started.
    pub uptime_s: Option<f64>,
    /// The name of its law.
    pub law: Option<String>,
    /// Whether it is sending.
    pub sending: bool,
    /// The rate that it delivers.
    pub delivery_rate_mbps: f64,
    /// The goodput that the station reaches alone, if the station knows this value.
    pub max_mbps: Option<f64>,
    /// The station's share of the air as a rate, according to the station itself.
    pub share_mbps: Option<f64>,
    /// The station's PHY rate, if the station knows this value.
    pub link_rate_mbps: Option<f64>,
    /// The station's minimum RTT, if the station has one.
    pub min_rtt_ms: Option<f64>,
    /// Its queueing delay.
    pub growth_ms: f64,
    /// The smallest sum of its congestion windows, in segments. Null means no bound.
    pub floor: Option<u32>,
    /// The largest sum of its congestion windows, in segments. Null means no bound.
    pub ceiling: Option<u32>,
    /// The largest rate of all its connections together. Null means no bound.
    pub pacing_mbps: Option<f64>,
    /// The number of stations that send, according to the station itself.
    pub senders: Option<u16>,
    /// The number of its peers.
    pub peers: Option<u16>,
    /// The time by which its clock is ahead of the own station's clock.
    pub clock_ahead_ms: Option<f64>,
    /// The largest error of `clock_ahead_ms`.
    pub clock_error_ms: Option<f64>,
    /// The number of its faults by kind. Kinds without a fault are left out. The field is null without
    /// an answer.
    pub faults: Option<BTreeMap<String, u32>>,
    /// The kinds of faults that have not ended.
    pub lasting_faults: Vec<String>,
}

/// A member of the group whose messages have a version that the agent does not read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherVersion {
    /// The address from which its last message came.
    pub from: String,
    /// The station that its messages name, 16 hexadecimal digits.
    pub station: String,
    /// The format of its messages: `presence` or `fleet`.
    pub format: String,
    /// The version of its messages.
    pub version: u8,
    /// The version that the agent reads.
    pub understood: u8,
    /// The number of its messages.
    pub messages: u64,
    /// The time since its last message.
    pub age_s: f64,
}

impl OtherVersion {
    /// Describes the member in words, and says what the user can do.
    pub fn words(&self) -> String {
        let plural = if self.messages == 1 { "" } else { "s" };
        let older = if self.version < self.understood { "that" } else { "this" };
        format!(
            "{} message{plural} of {} version {} from {} (station {}, {:.0} s ago): update {older} agent, \
             which reads version {}",
            self.messages,
            self.format,
            self.version,
            self.from,
            self.station,
            self.age_s,
            if self.version < self.understood { self.version } else { self.understood },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_agent_is_to_be_updated() {
        let other = OtherVersion {
            from: "192.0.2.7".to_owned(),
            station: format!("{:016x}", 7),
            format: "presence".to_owned(),
            version: 1,
            understood: 2,
            messages: 3,
            age_s: 11.7,
        };
        assert_eq!(
            other.words(),
            "3 messages of presence version 1 from 192.0.2.7 (station 0000000000000007, 12 s ago): \
             update that agent, which reads version 1"
        );
        let newer = OtherVersion { version: 3, messages: 1, ..other };
        assert!(newer.words().starts_with("1 message of presence version 3 from"));
        assert!(newer.words().ends_with("update this agent, which reads version 2"));
    }
}
