//! Queries and answers of a fleet, as bytes on the wire.

use wakeai_units::{Duration, Segments};

use super::figures::{FAULT_KINDS, LABEL_LEN, StationFigures};
use crate::StationId;
use crate::presence::seal::{MessageFormat, Seal, TAG_LEN};
use crate::presence::wire::WireFields;
use crate::presence::{BootId, Challenge, DecodeError};

/// The largest number of queries that one answer covers.
pub(crate) const MOST_QUERIES: usize = 4;

const QUERY: u8 = 1;
const ANSWER: u8 = 2;

/// The length of the fields that queries and answers have in common, bytes.
const HEAD_LEN: usize = 52;
const QUERIES_AT: usize = HEAD_LEN;
const FIGURES_AT: usize = QUERIES_AT + MOST_QUERIES * 12;
const FIGURES_LEN: usize = 4 + 4 * 8 + 4 * 4 + 8 + 2 + 2 + 4 + 2 + 4 * FAULT_KINDS + 3 * LABEL_LEN;

/// The length of every query of this version, bytes.
pub const QUERY_LEN: usize = HEAD_LEN + 8 + TAG_LEN;
/// The length of every answer of this version, bytes.
pub const ANSWER_LEN: usize = FIGURES_AT + FIGURES_LEN + TAG_LEN;

const SENDING: u32 = 1;
const HAS_MAX_RATE: u32 = 1 << 1;
const HAS_SHARE: u32 = 1 << 2;
const HAS_LINK_RATE: u32 = 1 << 3;
const HAS_MIN_RTT: u32 = 1 << 4;
const HAS_CEILING: u32 = 1 << 5;
const HAS_PACING: u32 = 1 << 6;
const ALL_FLAGS: u32 = (1 << 7) - 1;

/// A query or an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetMessage {
    /// The access point with which the station is associated.
    pub bssid: [u8; 6],
    /// The id of the station.
    pub station: StationId,
    /// The boot id of the station.
    pub boot: BootId,
    /// The sequence number. It grows with each message of this incarnation, presence messages
    /// included.
    pub sequence: u64,
    /// The Unix time of sending, where the station knows it.
    pub unix_time: Option<Duration>,
    /// The content.
    pub content: FleetContent,
}

/// The content of a [`FleetMessage`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetContent {
    /// The query of a station, which asks all others for their figures. It has a challenge: a
    /// number above zero that is unpredictable without the group key. So an answer that repeats the
    /// challenge was written after the query.
    Query(Challenge),
    /// The answer of a station, with its figures.
    Answer {
        /// The answered queries, one to four. Each has its challenge and the time from its arrival
        /// to the sending of the answer, in whole microseconds.
        queries: Vec<(Challenge, Duration)>,
        /// The figures.
        figures: Box<StationFigures>,
    },
}

/// Writes, reads and authenticates queries and answers.
#[derive(Clone)]
pub struct FleetCodec {
    seal: Seal,
}

impl FleetCodec {
    /// A codec for the stations that share `group_key`. It also accepts messages under the keys
    /// `others`.
    pub fn accepting(group_key: &[u8; 32], others: &[[u8; 32]]) -> Self {
        Self { seal: Seal::new(MessageFormat::Fleet, group_key, others) }
    }

    /// Whether the datagram has this format, in any version.
    pub(crate) fn has_format(datagram: &[u8]) -> bool {
        datagram.starts_with(&MessageFormat::Fleet.magic())
    }

    /// Encodes `message`. Values are rounded down to the units of the format. Values that are too
    /// large are reduced to the limit, and queries beyond the fourth are left out.
    pub fn encode(&self, message: &FleetMessage) -> Vec<u8> {
        let mut wire = WireFields::writing(&MessageFormat::Fleet.head());
        fleet_message(&mut wire, &mut message.clone());
        self.seal.close(wire.into_bytes())
    }

    /// Decodes the message in `datagram`.
    ///
    /// # Errors
    /// Fails where the datagram is not an authentic message of this group and version, or where a
    /// field is out of range.
    pub fn decode(&self, datagram: &[u8]) -> Result<FleetMessage, DecodeError> {
        let (message, content) = if datagram.get(5) == Some(&QUERY) {
            let content = FleetContent::Query(Challenge::default());
            (&self.seal.open::<QUERY_LEN>(datagram)?[5..], content)
        } else {
            let content = FleetContent::Answer { queries: Vec::new(), figures: Box::default() };
            (&self.seal.open::<ANSWER_LEN>(datagram)?[5..], content)
        };
        let mut read = FleetMessage {
            bssid: [0; 6],
            station: StationId::default(),
            boot: BootId::default(),
            sequence: 0,
            unix_time: None,
            content,
        };
        let mut wire = WireFields::reading(message);
        fleet_message(&mut wire, &mut read);
        wire.is_valid.then_some(read).ok_or(DecodeError::Invalid)
    }
}

/// The fields of a message.
fn fleet_message(wire: &mut WireFields<'_>, message: &mut FleetMessage) {
    let kind = if matches!(message.content, FleetContent::Query(_)) { QUERY } else { ANSWER };
    let mut read = kind;
    wire.u8(&mut read);
    wire.check(read == kind);
    wire.bytes(&mut message.bssid);
    wire.u64(&mut message.station.0);
    wire.bytes(&mut message.boot.0);
    wire.u64(&mut message.sequence);
    let mut unix_time = message.unix_time.unwrap_or_default();
    wire.nanos(&mut unix_time);
    message.unix_time = Some(unix_time).filter(|time| !time.is_zero());
    match &mut message.content {
        FleetContent::Query(challenge) => {
            wire.u64(&mut challenge.0);
            wire.check(challenge.0 > 0);
        }
        FleetContent::Answer { queries, figures } => {
            answered(wire, queries);
            station_figures(wire, figures);
        }
    }
}

/// The answered queries in an answer. There is at least one, and none follows an empty slot.
fn answered(wire: &mut WireFields<'_>, queries: &mut Vec<(Challenge, Duration)>) {
    let empty = (Challenge::default(), Duration::ZERO);
    queries.resize(MOST_QUERIES, empty);
    for (challenge, _) in &mut *queries {
        wire.u64(&mut challenge.0);
    }
    for (_, held) in &mut *queries {
        wire.micros(held);
    }
    let used = queries.iter().position(|(challenge, _)| challenge.0 == 0).unwrap_or(MOST_QUERIES);
    wire.check(used > 0 && queries[used..].iter().all(|query| *query == empty));
    queries.truncate(used);
}

/// The figures in an answer.
fn station_figures(wire: &mut WireFields<'_>, figures: &mut StationFigures) {
    let StationFigures { agent, announced, share, bounds, senders, peers } = figures;
    wire.flags::<4>(ALL_FLAGS);
    wire.flag(SENDING, &mut announced.up.active);
    wire.rate(&mut announced.up.rate);
    wire.optional(HAS_MAX_RATE, &mut announced.up.max_rate, WireFields::rate);
    wire.optional(HAS_SHARE, share, WireFields::rate);
    wire.optional(HAS_LINK_RATE, &mut announced.link_rate, WireFields::rate);
    wire.optional(HAS_MIN_RTT, &mut announced.up.min_rtt, WireFields::micros);
    wire.micros(&mut announced.up.growth);
    wire.segments(&mut bounds.floor);
    let mut ceiling = Some(bounds.ceiling).filter(|ceiling| *ceiling < Segments::MAX);
    wire.optional(HAS_CEILING, &mut ceiling, WireFields::segments);
    wire.check(ceiling != Some(Segments::MAX));
    bounds.ceiling = ceiling.unwrap_or(Segments::MAX);
    wire.optional(HAS_PACING, &mut bounds.pacing, WireFields::rate);
    wire.u16(senders);
    wire.u16(peers);
    let mut uptime_s = u32::try_from(agent.uptime.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX);
    wire.u32(&mut uptime_s);
    agent.uptime = Duration::from_secs(u64::from(uptime_s));
    wire.u16(&mut agent.lasting);
    for count in &mut agent.faults {
        wire.u32(count);
    }
    for label in [&mut agent.software, &mut agent.state, &mut agent.law] {
        wire.bytes(&mut label.0);
        wire.check(label.is_valid());
    }
}

#[cfg(test)]
mod tests {
    use proptest::option;
    use proptest::prelude::*;

    use wakeai_units::Rate;

    use super::super::figures::{AgentFigures, Label};
    use super::*;
    use crate::presence::OtherVersion;
    use crate::{Announcement, Bounds, Traffic};

    const KEY: [u8; 32] = [7; 32];

    fn codec() -> FleetCodec {
        FleetCodec::accepting(&KEY, &[])
    }

    fn rate() -> impl Strategy<Value = Rate> {
        (0_u64..=1_000_000_000_000).prop_map(Rate::from_bps)
    }

    fn label() -> impl Strategy<Value = Label> {
        "[!-~]{0,24}".prop_map(|name| Label::new(&name))
    }

    prop_compose! {
        fn any_agent()(
            software in label(), state in label(), law in label(), uptime: u32,
            faults: [u32; FAULT_KINDS], lasting: u16,
        ) -> AgentFigures {
            let uptime = Duration::from_secs(u64::from(uptime));
            AgentFigures { software, state, law, uptime, faults, lasting }
        }
    }

    prop_compose! {
        fn any_figures()(
            agent in any_agent(), sending: bool, delivery_rate in rate(),
            rates in proptest::array::uniform4(option::of(rate())),
            min_rtt: Option<u32>, growth: u32, floor: u32, ceiling: Option<u32>,
            senders: u16, peers: u16,
        ) -> StationFigures {
            let span = |micros| Duration::from_micros(u64::from(micros));
            let [max_rate, share, link_rate, pacing] = rates;
            let (min_rtt, growth) = (min_rtt.map(span), span(growth));
            StationFigures {
                agent,
                announced: Announcement {
                    up: Traffic { active: sending, rate: delivery_rate, max_rate, min_rtt, growth },
                    link_rate,
                    ..Announcement::default()
                },
                share,
                bounds: Bounds {
                    floor: Segments::new(floor),
                    ceiling: ceiling.map_or(Segments::MAX, Segments::new),
                    pacing,
                    ..Bounds::NONE
                },
                senders, peers,
            }
        }
    }

    fn any_content() -> impl Strategy<Value = FleetContent> {
        let query = (1_u64.., any::<u32>())
            .prop_map(|(number, held)| (Challenge(number), Duration::from_micros(u64::from(held))));
        let answer = (proptest::collection::vec(query, 1..=MOST_QUERIES), any_figures());
        prop_oneof![
            (1_u64..).prop_map(|number| FleetContent::Query(Challenge(number))),
            answer.prop_map(|(queries, figures)| FleetContent::Answer {
                queries,
                figures: Box::new(figures)
            }),
        ]
    }

    prop_compose! {
        fn any_message()(
            bssid: [u8; 6], station: u64, boot: [u8; 16], sequence: u64,
            unix_time in option::of(1_u64..), content in any_content(),
        ) -> FleetMessage {
            let unix_time = unix_time.map(Duration::from_nanos);
            FleetMessage {
                bssid, station: StationId(station), boot: BootId(boot), sequence, unix_time, content,
            }
        }
    }

    proptest! {
        #[test]
        fn a_message_reads_as_it_was_written(message in any_message()) {
            let bytes = codec().encode(&message);
            let expected = match message.content {
                FleetContent::Query(_) => QUERY_LEN,
                FleetContent::Answer { .. } => ANSWER_LEN,
            };
            prop_assert_eq!(bytes.len(), expected);
            prop_assert_eq!(codec().decode(&bytes), Ok(message));
        }

        #[test]
        fn a_flipped_bit_is_never_authentic(message in any_message(), bit in 0..8 * ANSWER_LEN) {
            let mut bytes = codec().encode(&message);
            let bit = bit % (8 * bytes.len());
            bytes[bit / 8] ^= 1 << (bit % 8);
            let other = OtherVersion { format: MessageFormat::Fleet, version: bytes[4], sender: None };
            let found = codec().decode(&bytes);
            match bit / 8 {
                0..4 => prop_assert_eq!(found, Err(DecodeError::Malformed)),
                4 => prop_assert_eq!(found, Err(DecodeError::WrongVersion(other))),
                // Byte 5 is the kind. A query has the wrong length for another kind, so the error
                // may be `Malformed` and not `Forged`.
                5 => prop_assert!(found.is_err()),
                _ => prop_assert_eq!(found, Err(DecodeError::Forged)),
            }
        }

        #[test]
        fn a_truncated_or_longer_message_is_refused(
            message in any_message(), length in 0..2 * ANSWER_LEN,
        ) {
            let mut bytes = codec().encode(&message);
            let right = length == bytes.len();
            bytes.resize(length, 0);
            prop_assert_eq!(codec().decode(&bytes).is_ok(), right);
        }

        #[test]
        fn an_accepted_message_has_exactly_one_encoding(
            message in any_message(), patch: [u8; 16], at in 5..ANSWER_LEN,
        ) {
            // A member of the group may send any bytes. If they are accepted as a message, its
            // encoding has the same bytes.
            let mut bytes = codec().encode(&message);
            bytes.truncate(bytes.len() - TAG_LEN);
            for (byte, patch) in bytes.iter_mut().skip(at).zip(patch) {
                *byte = patch;
            }
            let bytes = codec().seal.close(bytes);
            if let Ok(read) = codec().decode(&bytes) {
                prop_assert_eq!(codec().encode(&read), bytes);
            }
        }
    }

    #[test]
    fn a_presence_message_and_a_fleet_message_are_told_apart() {
        let content = FleetContent::Query(Challenge(1));
        let message = FleetMessage {
            bssid: [2; 6],
            station: StationId(1),
            boot: BootId([1; 16]),
            sequence: 1,
            unix_time: None,
            content,
        };
        let presence = crate::presence::Codec::new(&KEY);
        let bytes = codec().encode(&message);
        assert_eq!(presence.decode(&bytes), Err(DecodeError::Malformed));
        assert!(FleetCodec::has_format(&bytes));
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let figures = StationFigures {
            agent: AgentFigures {
                software: Label::new("0.1.0"),
                state: Label::new("controlling"),
                law: Label::new("airtime"),
                uptime: Duration::from_secs(86_400),
                faults: std::array::from_fn(|kind| kind as u32),
                lasting: 5,
            },
            announced: Announcement {
                up: Traffic {
                    active: true,
                    rate: Rate::from_mbps(10),
                    max_rate: Some(Rate::from_mbps(50)),
                    min_rtt: Some(Duration::from_millis(20)),
                    growth: Duration::from_millis(40),
                },
                link_rate: Some(Rate::from_mbps(65)),
                ..Announcement::default()
            },
            share: Some(Rate::from_mbps(25)),
            bounds: Bounds {
                pacing: Some(Rate::from_mbps(60)),
                ..Bounds::window(Segments::new(4), Segments::new(99))
            },
            senders: 2,
            peers: 3,
        };
        let queries = vec![(Challenge(0xa1), Duration::from_millis(300))];
        let message = FleetMessage {
            bssid: [0xb0, 1, 2, 3, 4, 5],
            station: StationId(0x1122_3344_5566_7788),
            boot: BootId([0xbb; 16]),
            sequence: 9,
            unix_time: Some(Duration::from_secs(1_700_000_000)),
            content: FleetContent::Answer { queries, figures: Box::new(figures) },
        };
        let bytes = codec().encode(&message);
        let mut at = 0;
        let fields = [
            ("magic", 4),
            ("version", 1),
            ("kind", 1),
            ("bssid", 6),
            ("station", 8),
            ("boot id", 16),
            ("sequence", 8),
            ("Unix time, ns", 8),
            ("queries", 32),
            ("times since they arrived, us", 16),
            ("flags", 4),
            ("delivery rate, bit/s", 8),
            ("max rate, bit/s", 8),
            ("share, bit/s", 8),
            ("link rate, bit/s", 8),
            ("min RTT, us", 4),
            ("queueing delay, us", 4),
            ("floor, segments", 4),
            ("ceiling, segments", 4),
            ("pacing, bit/s", 8),
            ("senders", 2),
            ("peers", 2),
            ("uptime, s", 4),
            ("lasting faults", 2),
            ("faults", 64),
            ("software", 24),
            ("state", 24),
            ("law", 24),
            ("authenticator", 16),
        ];
        let lines = fields.map(|(name, length)| {
            let digits = bytes[at..at + length]
                .iter()
                .fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"));
            let line = format!("{at} {name}: {digits}");
            at += length;
            line
        });
        assert_eq!(at, bytes.len());
        insta::assert_snapshot!(lines.join("\n"));
    }
}
