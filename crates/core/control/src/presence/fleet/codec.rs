//! Queries and answers of a fleet, as bytes on the wire.

use wakeai_units::{Duration, Rate, Segments};

use super::figures::{AgentFigures, FAULT_KINDS, LABEL_LEN, Label, StationFigures};
use crate::StationId;
use crate::presence::seal::{MessageFormat, Seal, TAG_LEN};
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

/// The largest valid rate, 1 Tbit/s as in presence messages.
const MAX_RATE: Rate = Rate::from_mbps(1_000_000);

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
    pub(crate) fn is_its(datagram: &[u8]) -> bool {
        datagram.starts_with(&MessageFormat::Fleet.magic())
    }

    /// Encodes `message`. Values are rounded down to the units of the format. Values that are too
    /// large are reduced to the limit, and queries beyond the fourth are left out.
    pub fn encode(&self, message: &FleetMessage) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ANSWER_LEN);
        bytes.extend(MessageFormat::Fleet.magic());
        bytes.push(MessageFormat::Fleet.version());
        bytes.push(match message.content {
            FleetContent::Query(_) => QUERY,
            FleetContent::Answer { .. } => ANSWER,
        });
        bytes.extend(message.bssid);
        bytes.extend(message.station.0.to_be_bytes());
        bytes.extend(message.boot.0);
        bytes.extend(message.sequence.to_be_bytes());
        bytes.extend(message.unix_time.unwrap_or(Duration::ZERO).as_nanos().to_be_bytes());
        match &message.content {
            FleetContent::Query(number) => bytes.extend(number.0.to_be_bytes()),
            FleetContent::Answer { queries, figures } => {
                for slot in 0..MOST_QUERIES {
                    let query = queries.get(slot).map_or(0, |(number, _)| number.0);
                    bytes.extend(query.to_be_bytes());
                }
                for slot in 0..MOST_QUERIES {
                    let held = queries.get(slot).map_or(0, |(_, held)| micros(*held));
                    bytes.extend(held.to_be_bytes());
                }
                write(&mut bytes, figures);
            }
        }
        self.seal.close(&mut bytes);
        bytes
    }

    /// Decodes the message in `datagram`.
    ///
    /// # Errors
    /// Fails where the datagram is not an authentic message of this group and version, or where a
    /// field is out of range.
    pub fn decode(&self, datagram: &[u8]) -> Result<FleetMessage, DecodeError> {
        let is_query = datagram.get(5) == Some(&QUERY);
        let message = if is_query {
            parse(&self.seal.open::<QUERY_LEN>(datagram)?[..])
        } else {
            parse(&self.seal.open::<ANSWER_LEN>(datagram)?[..])
        };
        message.ok_or(DecodeError::Invalid)
    }
}

fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

fn write(bytes: &mut Vec<u8>, figures: &StationFigures) {
    let flags = [
        (figures.sending, SENDING),
        (figures.max_rate.is_some(), HAS_MAX_RATE),
        (figures.share.is_some(), HAS_SHARE),
        (figures.link_rate.is_some(), HAS_LINK_RATE),
        (figures.min_rtt.is_some(), HAS_MIN_RTT),
        (figures.ceiling.is_some(), HAS_CEILING),
        (figures.pacing.is_some(), HAS_PACING),
    ];
    let flags = flags.into_iter().filter(|(set, _)| *set).fold(0, |all, (_, bit)| all | bit);
    bytes.extend(flags.to_be_bytes());
    let rates = [figures.max_rate, figures.share, figures.link_rate];
    for rate in std::iter::once(Some(figures.delivery_rate)).chain(rates) {
        bytes.extend(rate_bits(rate).to_be_bytes());
    }
    bytes.extend(micros(figures.min_rtt.unwrap_or(Duration::ZERO)).to_be_bytes());
    bytes.extend(micros(figures.growth).to_be_bytes());
    bytes.extend(figures.floor.get().to_be_bytes());
    bytes.extend(figures.ceiling.map_or(0, Segments::get).to_be_bytes());
    bytes.extend(rate_bits(figures.pacing).to_be_bytes());
    bytes.extend(figures.senders.to_be_bytes());
    bytes.extend(figures.peers.to_be_bytes());
    let agent = &figures.agent;
    let uptime = u32::try_from(agent.uptime.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX);
    bytes.extend(uptime.to_be_bytes());
    bytes.extend(agent.lasting.to_be_bytes());
    bytes.extend(agent.faults.iter().flat_map(|count| count.to_be_bytes()));
    for label in [agent.software, agent.state, agent.law] {
        bytes.extend(label.bytes());
    }
}

fn rate_bits(rate: Option<Rate>) -> u64 {
    rate.unwrap_or(Rate::ZERO).min(MAX_RATE).bits_per_second()
}

/// Takes the fields of a message one after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_first_chunk().expect("the message has its length");
        self.0 = rest;
        *taken
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take())
    }

    fn rate(&mut self) -> Option<Rate> {
        let rate = Rate::from_bps(self.u64());
        (rate <= MAX_RATE).then_some(rate)
    }
}

/// The fields of an authentic message; `None` where a field is out of range.
fn parse(message: &[u8]) -> Option<FleetMessage> {
    let mut fields = Fields(&message[5..]);
    let [kind] = fields.take();
    let (bssid, station, boot) = (fields.take(), StationId(fields.u64()), BootId(fields.take()));
    let (sequence, unix) = (fields.u64(), fields.u64());
    let content = match kind {
        QUERY => FleetContent::Query(Some(Challenge(fields.u64())).filter(|of| of.0 > 0)?),
        ANSWER => FleetContent::Answer {
            queries: queries(&mut fields)?,
            figures: Box::new(figures(&mut fields)?),
        },
        _ => return None,
    };
    let unix_time = (unix > 0).then(|| Duration::from_nanos(unix));
    Some(FleetMessage { bssid, station, boot, sequence, unix_time, content })
}

/// The answered queries in an answer; `None` where there is no query, where a query follows an
/// empty slot, or where an empty slot has a time.
fn queries(fields: &mut Fields<'_>) -> Option<Vec<(Challenge, Duration)>> {
    let numbers: [u64; MOST_QUERIES] = std::array::from_fn(|_| fields.u64());
    let held: [u32; MOST_QUERIES] = std::array::from_fn(|_| fields.u32());
    let used = numbers.iter().position(|number| *number == 0).unwrap_or(MOST_QUERIES);
    let unused = numbers[used..].iter().all(|number| *number == 0)
        && held[used..].iter().all(|held| *held == 0);
    let of = |(number, held): (&u64, &u32)| {
        (Challenge(*number), Duration::from_micros(u64::from(*held)))
    };
    (unused && used > 0).then(|| numbers[..used].iter().zip(&held).map(of).collect())
}

/// The error where the bytes of an absent field are not zero.
struct NotZero;

/// The figures in an answer. An absent field is zero, so that every answer has exactly one
/// encoding.
fn figures(fields: &mut Fields<'_>) -> Option<StationFigures> {
    fn optional<T: PartialEq>(set: bool, value: T, zero: &T) -> Result<Option<T>, NotZero> {
        if set {
            return Ok(Some(value));
        }
        if value == *zero { Ok(None) } else { Err(NotZero) }
    }
    let flags = fields.u32();
    let has = |bit| flags & bit != 0;
    if flags & !ALL_FLAGS != 0 {
        return None;
    }
    Some(StationFigures {
        sending: has(SENDING),
        delivery_rate: fields.rate()?,
        max_rate: optional(has(HAS_MAX_RATE), fields.rate()?, &Rate::ZERO).ok()?,
        share: optional(has(HAS_SHARE), fields.rate()?, &Rate::ZERO).ok()?,
        link_rate: optional(has(HAS_LINK_RATE), fields.rate()?, &Rate::ZERO).ok()?,
        min_rtt: optional(has(HAS_MIN_RTT), fields.u32(), &0)
            .ok()?
            .map(|span| Duration::from_micros(u64::from(span))),
        growth: Duration::from_micros(u64::from(fields.u32())),
        floor: Segments::new(fields.u32()),
        ceiling: optional(has(HAS_CEILING), Segments::new(fields.u32()), &Segments::ZERO).ok()?,
        pacing: optional(has(HAS_PACING), fields.rate()?, &Rate::ZERO).ok()?,
        senders: fields.u16(),
        peers: fields.u16(),
        agent: AgentFigures {
            uptime: Duration::from_secs(u64::from(fields.u32())),
            lasting: fields.u16(),
            faults: std::array::from_fn(|_| fields.u32()),
            software: Label::from_bytes(fields.take())?,
            state: Label::from_bytes(fields.take())?,
            law: Label::from_bytes(fields.take())?,
        },
    })
}

#[cfg(test)]
mod tests {
    use proptest::option;
    use proptest::prelude::*;

    use super::*;
    use crate::presence::OtherVersion;

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
            StationFigures {
                agent, sending, delivery_rate, max_rate, share, link_rate, pacing,
                min_rtt: min_rtt.map(span), growth: span(growth), floor: Segments::new(floor),
                ceiling: ceiling.map(Segments::new), senders, peers,
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
            codec().seal.close(&mut bytes);
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
        assert!(FleetCodec::is_its(&bytes));
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
            sending: true,
            delivery_rate: Rate::from_mbps(10),
            max_rate: Some(Rate::from_mbps(50)),
            share: Some(Rate::from_mbps(25)),
            link_rate: Some(Rate::from_mbps(65)),
            min_rtt: Some(Duration::from_millis(20)),
            growth: Duration::from_millis(40),
            floor: Segments::new(4),
            ceiling: Some(Segments::new(99)),
            pacing: Some(Rate::from_mbps(60)),
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
