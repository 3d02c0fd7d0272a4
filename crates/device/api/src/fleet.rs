//! The stations of one access point. They are the answer to
//! [`Request::Fleet`](crate::Request::Fleet).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Received;

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
    /// The peers that hold another law than this agent, or other parameters.
    #[serde(default)]
    pub other_laws: Vec<OtherLaw>,
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
    /// Whether it holds what the agent that was asked holds, according to its presence messages. It is
    /// null if no message has said it yet.
    #[serde(default)]
    pub holds: Option<Holds>,
    /// Whether it is sending.
    pub sending: bool,
    /// The rate that it delivers.
    pub delivery_rate_mbps: f64,
    /// The goodput that the station reaches alone, if the station knows this value.
    pub max_mbps: Option<f64>,
    /// The station's share of the airtime as a rate (`docs/reference/figures.md`), according to the
    /// station itself.
    pub share_mbps: Option<f64>,
    /// The station's PHY rate, if the station knows this value.
    pub link_rate_mbps: Option<f64>,
    /// The station's minimum RTT, if the station has one.
    pub min_rtt_ms: Option<f64>,
    /// Its queueing delay.
    pub growth_ms: f64,
    /// What it receives, if anything: from its presence messages, since an answer has no place for it.
    #[serde(default)]
    pub received: Option<Received>,
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

/// Whether a peer holds what all stations have to hold in common: the law, its version, its parameters.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Holds {
    /// It holds the same as the agent that was asked.
    Same,
    /// It holds something else.
    Other,
    /// It does not say what it holds, because its agent is of an earlier version.
    Unannounced,
}

impl Holds {
    /// The name, as an answer contains it.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Peers that hold something else than this agent, although all have to hold the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherLaw {
    /// The peers' numbers, 16 hexadecimal digits each.
    pub stations: Vec<String>,
    /// The name of their law. It is null if they announce none: their agents are of an earlier version.
    pub law: Option<String>,
    /// The version of their law's formula.
    pub law_version: Option<u8>,
    /// What differs. It is empty if they announce no law.
    pub differs: Vec<LawDifference>,
}

/// Something that stations have to hold in common, and that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LawDifference {
    /// The key of the agent's configuration. `law.version` is the version of the law's formula, which
    /// the program sets.
    pub what: String,
    /// What this agent holds.
    pub own: String,
    /// What the others hold.
    pub theirs: String,
}

/// The largest number of stations that are named in words.
const MOST_NAMED: usize = 8;

impl OtherLaw {
    /// Describes the peers in words, and says what the user can do.
    pub fn words(&self) -> String {
        let named = self.stations.iter().take(MOST_NAMED).map(String::as_str);
        let mut who = named.collect::<Vec<_>>().join(", ");
        let more = self.stations.len().saturating_sub(MOST_NAMED);
        if more > 0 {
            who = format!("{who} and {more} more");
        }
        let (station, hold) =
            if self.stations.len() == 1 { ("station", "holds") } else { ("stations", "hold") };
        if self.law.is_none() {
            let s = if self.stations.len() == 1 { "s" } else { "" };
            return format!(
                "{station} {who} announce{s} no law, as agents of an earlier version do: they may \
                 hold other windows than this station. Update them"
            );
        }
        let differs: Vec<String> = self.differs.iter().map(LawDifference::words).collect();
        let is_version = |of: &LawDifference| of.what == "law.version";
        let version = self.differs.iter().find(|of| is_version(of)).map(|of| {
            let number = |text: &str| text.parse::<u32>().unwrap_or(0);
            if number(&of.theirs) > number(&of.own) { "update this agent" } else { "update them" }
        });
        let configured = self.differs.iter().any(|of| !is_version(of));
        let configured = configured.then_some("configure the same on all stations");
        let todo: Vec<&str> = version.into_iter().chain(configured).collect();
        format!(
            "{station} {who} {hold} another law than this one, so the shares are not equal: {}. To \
             mend it, {}",
            differs.join("; "),
            todo.join(", and ")
        )
    }
}

impl LawDifference {
    fn words(&self) -> String {
        let Self { what, own, theirs } = self;
        format!("{what} is {theirs} there and {own} here")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differing(what: &str, own: &str, theirs: &str) -> OtherLaw {
        OtherLaw {
            stations: vec![format!("{:016x}", 7)],
            law: Some("airtime".to_owned()),
            law_version: Some(2),
            differs: vec![LawDifference {
                what: what.to_owned(),
                own: own.to_owned(),
                theirs: theirs.to_owned(),
            }],
        }
    }

    #[test]
    fn what_differs_and_what_to_do_are_said() {
        assert_eq!(
            differing("law.queue_max", "75ms", "50ms").words(),
            "station 0000000000000007 holds another law than this one, so the shares are not equal: \
             law.queue_max is 50ms there and 75ms here. To mend it, configure the same on all stations"
        );
        let older = differing("law.version", "3", "2").words();
        assert!(older.ends_with("To mend it, update them"), "{older}");
        let newer = differing("law.version", "3", "4").words();
        assert!(newer.ends_with("To mend it, update this agent"), "{newer}");
        let mut both = differing("law.version", "3", "2");
        both.differs.extend(differing("access_point.buffer", "300", "75").differs);
        assert!(both.words().ends_with("update them, and configure the same on all stations"));
    }

    #[test]
    fn a_peer_without_a_law_is_to_be_updated() {
        let earlier = OtherLaw {
            stations: (0..20).map(|station| format!("{station:016x}")).collect(),
            law: None,
            law_version: None,
            differs: Vec::new(),
        };
        let words = earlier.words();
        assert!(words.contains("0000000000000007 and 12 more announce no law"), "{words}");
        assert!(words.ends_with("Update them"), "{words}");
    }

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
