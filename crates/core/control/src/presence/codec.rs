//! The presence message as bytes on the wire. A station sends it to tell others about itself.

use wakeai_units::{Duration, Rate};

use super::seal::{MessageFormat, OtherVersion, Seal, TAG_LEN};
use super::wire::{MAX_RATE, WireFields, micros};
use super::{BootId, Challenge};
use crate::common::{CommonLaw, QueueParameters};
use crate::{Announcement, Reservation, Share, StationId, Traffic, Turn, TurnState};

/// The largest number of answers in a message without a request for a turn. An answer repeats the
/// challenge of another station.
pub(super) const ANSWER_SLOTS: usize = 16;
/// The largest number of answers in a message with a request for a turn. The request has the place
/// of the last answer.
const ANSWER_SLOTS_BESIDE_TURN: usize = ANSWER_SLOTS - 1;

/// The places of answers that the station's law takes, before the answers. An agent that does not know
/// of laws in messages reads them as answers to challenges that it never sent, and ignores them.
pub(super) const LAW_SLOTS: usize = 3;
/// The first bytes of a law, and of what a station receives. A challenge is random, so one in 2^31
/// begins so; it is not answered, and is replaced within minutes.
const LAW_TAG: [u8; 4] = *b"WLAW";
const DOWN_TAG: [u8; 4] = *b"WRCV";
/// The places of answers that the figures of what the station receives take, behind the law. As with a
/// law, an agent that does not know of them reads them as answers, and ignores them.
pub(super) const DOWN_SLOTS: usize = 4;
/// The place of a parameter that the law does not have, and of a time that is not known.
const NO_PARAMETER: u32 = u32::MAX;
/// The number of a rate that is not known.
const NO_RATE: u64 = u64::MAX;
/// Whether a station receives, or has just received.
const RECEIVES: u32 = 2;
const RECEIVED: u32 = 1;

/// The place of the answers in a message.
const ANSWERS_AT: usize = 120;

/// The length of every message of this version, bytes.
pub const MESSAGE_LEN: usize = ANSWERS_AT + 8 * ANSWER_SLOTS + TAG_LEN;

const SENDING: u32 = 1;
const HAS_MAX_RATE: u32 = 1 << 1;
const HAS_MIN_RTT: u32 = 1 << 2;
const HAS_TIME: u32 = 1 << 3;
const HAS_LINK_RATE: u32 = 1 << 4;
const HAS_RESERVATION: u32 = 1 << 5;
const SHORT: u32 = 1 << 6;
const HAS_TURN: u32 = 1 << 7;
const ALL_FLAGS: u32 = (1 << 8) - 1;

/// The last four bytes of a request for a turn are one number. Its upper 8 bits are the state. Its
/// lower 24 bits are the time (ms) that the rest of the station's transfers would take at the rate
/// that the station reaches alone.
const LEFT_BITS: u32 = 24;
const MAX_LEFT_MS: u64 = (1 << LEFT_BITS) - 1;

/// The longest interval that a station may announce. Even with 1024 stations and a basic rate (the
/// rate of broadcasts) of 6 Mbit/s, the regular intervals are shorter than this.
pub(super) const MAX_INTERVAL: Duration = Duration::from_secs(600);

/// One presence message of a station.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Presence {
    /// The access point with which the station is associated.
    pub bssid: [u8; 6],
    /// The id of the station.
    pub station: StationId,
    /// The boot id of the station, which is new after each start.
    pub boot: BootId,
    /// The sequence number. It grows by one with each presence message that the station sends under
    /// this boot id, and with each query and each answer of `presence::fleet`.
    pub sequence: u64,
    /// The longest time until the station's next message; whole milliseconds, 1 ms to 600 s.
    pub interval: Duration,
    /// The announcement of the station. The minimum RTT and the queueing delay have whole
    /// microseconds.
    pub announced: Announcement,
    /// The Unix time of sending, where the clock of the station is synchronised.
    pub unix_time: Option<Duration>,
    /// The challenge of the station: a number that others repeat to prove that they are live. It is
    /// above zero, because zero marks an empty slot for an answer.
    pub challenge: Challenge,
    /// What the station holds and the others have to hold, too. A message that is full of answers
    /// may leave it out.
    pub law: Option<CommonLaw>,
    /// The answers: challenges of other stations, repeated. There are at most 16; a request for a turn
    /// takes the place of one, and a law that of three.
    pub answers: Vec<Challenge>,
}

impl Presence {
    /// Whether the message has room for a law, or has one.
    pub(super) fn has_room_for_a_law(&self) -> bool {
        let slots = answer_slots(&self.announced);
        self.law.is_some() || self.answers.len() + LAW_SLOTS <= slots
    }
}

/// The reason for which a datagram is not a valid message of this group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The length or the first bytes are wrong.
    #[error(
        "a presence message is {MESSAGE_LEN} bytes that begin with \"WKAI\", and this datagram is not one"
    )]
    Malformed,
    /// The message has another version of the format.
    #[error(
        "{} version {} was found, {} is understood: update the older agent",
        .0.format.name(), .0.version, .0.format.version()
    )]
    WrongVersion(OtherVersion),
    /// The authenticator does not match.
    #[error(
        "the authenticator does not match: the message is forged or damaged, or its group key is another"
    )]
    Forged,
    /// The message is authentic, but a field is out of range.
    #[error("the message is authentic, but a field is out of range")]
    Invalid,
}

/// Writes, reads and authenticates messages with a group key. The codec also reads messages under
/// other accepted keys.
#[derive(Clone)]
pub struct Codec {
    seal: Seal,
}

impl Codec {
    /// A codec for the stations that share `group_key`.
    pub fn new(group_key: &[u8; 32]) -> Self {
        Self::accepting(group_key, &[])
    }

    /// A codec that also accepts messages under the keys `others`. This is needed while a fleet
    /// changes its key.
    pub fn accepting(group_key: &[u8; 32], others: &[[u8; 32]]) -> Self {
        Self { seal: Seal::new(MessageFormat::Presence, group_key, others) }
    }

    /// Encodes `message`. Values are rounded down to the units of the format. Values that are too
    /// large are reduced to the limit, and answers beyond the last slot are left out.
    pub fn encode(&self, message: &Presence) -> Vec<u8> {
        let mut wire = WireFields::writing(&MessageFormat::Presence.head());
        presence(&mut wire, &mut message.clone());
        self.seal.close(wire.into_bytes())
    }

    /// Decodes the message in `datagram`.
    ///
    /// # Errors
    /// Fails where the datagram is not an authentic message of this group.
    pub fn decode(&self, datagram: &[u8]) -> Result<Presence, DecodeError> {
        let message: &[u8; MESSAGE_LEN] = self.seal.open(datagram)?;
        let (mut wire, mut read) = (WireFields::reading(&message[5..]), Presence::default());
        presence(&mut wire, &mut read);
        wire.is_valid.then_some(read).ok_or(DecodeError::Invalid)
    }
}

/// Whether a reader may take this answer for the beginning of a law or of what a station receives.
pub(super) fn is_like_a_tag(answer: Challenge) -> bool {
    let bytes = answer.0.to_be_bytes();
    bytes.starts_with(&LAW_TAG) || bytes.starts_with(&DOWN_TAG)
}

/// The number of slots for answers, and for a law, in a message with this announcement.
pub(super) fn answer_slots(announced: &Announcement) -> usize {
    let down = if announced.down == Traffic::default() { 0 } else { DOWN_SLOTS };
    places(announced.turn.is_some()) - down
}

/// The places of answers in a message.
fn places(has_turn: bool) -> usize {
    if has_turn { ANSWER_SLOTS_BESIDE_TURN } else { ANSWER_SLOTS }
}

/// The fields of a message.
fn presence(wire: &mut WireFields<'_>, message: &mut Presence) {
    wire.flags::<1>(ALL_FLAGS);
    wire.bytes(&mut message.bssid);
    wire.u64(&mut message.station.0);
    wire.bytes(&mut message.boot.0);
    wire.u64(&mut message.sequence);
    let mut interval_ms = message.interval.min(MAX_INTERVAL).as_millis().max(1) as u32;
    wire.u32(&mut interval_ms);
    message.interval = Duration::from_millis(u64::from(interval_ms));
    wire.check(interval_ms > 0 && message.interval <= MAX_INTERVAL);
    let announced = &mut message.announced;
    wire.flag(SENDING, &mut announced.up.active);
    wire.rate(&mut announced.up.rate);
    wire.optional(HAS_MAX_RATE, &mut announced.up.max_rate, WireFields::rate);
    wire.optional(HAS_LINK_RATE, &mut announced.link_rate, WireFields::rate);
    wire.optional(HAS_MIN_RTT, &mut announced.up.min_rtt, WireFields::micros);
    wire.micros(&mut announced.up.growth);
    wire.optional(HAS_TIME, &mut message.unix_time, WireFields::nanos);
    wire.optional(HAS_RESERVATION, &mut announced.reservation, reservation);
    wire.check(announced.reservation.is_none_or(is_valid));
    wire.u64(&mut message.challenge.0);
    wire.check(message.challenge.0 > 0);
    wire.where_valid(&mut message.law, law);
    let mut received = Some(announced.down).filter(|down| *down != Traffic::default());
    wire.where_valid(&mut received, down);
    announced.down = received.unwrap_or_default();
    let mut has_turn = announced.turn.is_some();
    wire.flag(HAS_TURN, &mut has_turn);
    let taken = if message.law.is_some() { LAW_SLOTS } else { 0 };
    let taken = taken + if received.is_some() { DOWN_SLOTS } else { 0 };
    answers(wire, &mut message.answers, places(has_turn) - taken);
    if has_turn {
        turn(wire, announced.turn.get_or_insert_default());
    }
}

fn reservation(wire: &mut WireFields<'_>, reservation: &mut Reservation) {
    reservation.claim = reservation.claim.min(Share::WHOLE);
    wire.rate(&mut reservation.rate);
    wire.u64(&mut reservation.ticket);
    wire.share(&mut reservation.share);
    wire.share(&mut reservation.claim);
    wire.flag(SHORT, &mut reservation.short);
}

fn is_valid(reservation: Reservation) -> bool {
    (Rate::from_bps(1)..=MAX_RATE).contains(&reservation.rate)
        && reservation.ticket > 0
        && reservation.share > Share::ZERO
        && reservation.claim <= Share::WHOLE
}

/// A law. No place of an answer is zero, so a reader that does not know of laws finds no empty slot.
fn law(wire: &mut WireFields<'_>, held: &mut CommonLaw) {
    let mut tag = LAW_TAG;
    wire.bytes(&mut tag);
    wire.check(tag == LAW_TAG);
    wire.u8(&mut held.law.0);
    wire.u8(&mut held.version);
    wire.check(held.version > 0);
    let (mut percent, [mut min, mut max]) = held
        .queue
        .map_or((0, [NO_PARAMETER; 2]), |of| (of.rounds_percent, [of.min, of.max].map(micros)));
    wire.u16(&mut percent);
    wire.u32(&mut min);
    wire.u32(&mut max);
    held.queue = (percent > 0).then(|| QueueParameters {
        rounds_percent: percent,
        min: Duration::from_micros(u64::from(min)),
        max: Duration::from_micros(u64::from(max)),
    });
    wire.check(match held.queue {
        Some(_) => max > 0 && min <= max,
        None => (min, max) == (NO_PARAMETER, NO_PARAMETER),
    });
    wire.u32(&mut held.access_point_buffer);
    wire.share(&mut held.reservable);
    wire.check(held.access_point_buffer > 0 && held.reservable <= Share::WHOLE);
}

/// What a station receives. No place of an answer is zero, as in a law: the second and the third one
/// have a rate and one more.
fn down(wire: &mut WireFields<'_>, traffic: &mut Traffic) {
    let mut tag = DOWN_TAG;
    wire.bytes(&mut tag);
    wire.check(tag == DOWN_TAG);
    let mut min = traffic.min_rtt.map_or(NO_PARAMETER, micros);
    wire.u32(&mut min);
    traffic.min_rtt = (min != NO_PARAMETER).then(|| Duration::from_micros(u64::from(min)));
    traffic.rate = Rate::from_bps(one_less(wire, traffic.rate.bits_per_second(), 0));
    let max = traffic.max_rate.map_or(NO_RATE, Rate::bits_per_second);
    let max = one_less(wire, max, NO_RATE);
    traffic.max_rate = (max != NO_RATE).then(|| Rate::from_bps(max));
    wire.micros(&mut traffic.growth);
    let mut active = if traffic.active { RECEIVES } else { RECEIVED };
    wire.u32(&mut active);
    wire.check([RECEIVES, RECEIVED].contains(&active));
    traffic.active = active == RECEIVES;
    wire.check(*traffic != Traffic::default());
}

/// A rate, bit/s, as a number that is one more and so not zero. `none` stands for no rate, and has the
/// largest number.
fn one_less(wire: &mut WireFields<'_>, rate: u64, none: u64) -> u64 {
    let most = MAX_RATE.bits_per_second();
    let mut number = if rate == NO_RATE { NO_RATE } else { rate.min(most) + 1 };
    wire.u64(&mut number);
    let is_rate = (1..=most + 1).contains(&number);
    wire.check(is_rate || (number == NO_RATE && none == NO_RATE));
    if number == NO_RATE { NO_RATE } else { number.saturating_sub(1) }
}

/// The answers in the slots. No answer follows an empty slot.
fn answers(wire: &mut WireFields<'_>, answers: &mut Vec<Challenge>, slots: usize) {
    answers.resize(slots, Challenge::default());
    for answer in &mut *answers {
        wire.u64(&mut answer.0);
    }
    let used = answers.iter().position(|answer| answer.0 == 0).unwrap_or(slots);
    wire.check(answers[used..].iter().all(|answer| answer.0 == 0));
    answers.truncate(used);
}

fn turn(wire: &mut WireFields<'_>, turn: &mut Turn) {
    wire.u32(&mut turn.ticket);
    let left = turn.left.as_millis().min(MAX_LEFT_MS) as u32;
    let mut word = (turn.state as u32) << LEFT_BITS | left;
    wire.u32(&mut word);
    turn.left = Duration::from_millis(u64::from(word) & MAX_LEFT_MS);
    let state = TurnState::from_repr(word >> LEFT_BITS);
    wire.check(turn.ticket > 0 && state.is_some());
    turn.state = state.unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::LawNumber;
    use proptest::prelude::*;

    const RESERVATION_AT: usize = 88;
    const CHALLENGE_AT: usize = 112;
    const TAG_AT: usize = MESSAGE_LEN - TAG_LEN;
    /// The reservations of the tests have no flag.
    type ReservationBytes = [u8; CHALLENGE_AT - RESERVATION_AT];

    fn empty_message() -> Vec<u8> {
        let mut bytes = MessageFormat::Presence.head().to_vec();
        bytes.resize(TAG_AT, 0);
        bytes
    }

    prop_compose! {
        fn any_reservation()(
            rate in 1_u64..=1_000_000_000_000, ticket in 1_u64.., share in 1_u32..,
            claim in 0_u32..=1_000_000, short: bool,
        ) -> Reservation {
            let (share, claim) = (Share::from_ppm(share), Share::from_ppm(claim));
            Reservation { rate: Rate::from_bps(rate), ticket, share, claim, short }
        }
    }

    prop_compose! {
        fn any_turn()(ticket in 1_u32.., state in 0_usize..4, left in 0..=MAX_LEFT_MS) -> Turn {
            let states =
                [TurnState::Waiting, TurnState::Sending, TurnState::Additional, TurnState::Trying];
            Turn { ticket, state: states[state], left: Duration::from_millis(left) }
        }
    }

    prop_compose! {
        fn any_law()(
            law: u8, version in 1_u8.., percent: u16, min: u32, more in 1_u32..1_000_000,
            buffer in 1_u32.., ppm in 0_u32..=1_000_000,
        ) -> CommonLaw {
            let span = |micros: u32| Duration::from_micros(u64::from(micros));
            let queue = (percent > 0).then(|| QueueParameters {
                rounds_percent: percent, min: span(min), max: span(min.saturating_add(more)),
            });
            CommonLaw {
                law: LawNumber(law), version, queue, access_point_buffer: buffer,
                reservable: Share::from_ppm(ppm),
            }
        }
    }

    prop_compose! {
        fn any_traffic()(
            active: bool, rate in 0_u64..=1_000_000_000_000,
            max_rate in proptest::option::of(0_u64..=1_000_000_000_000),
            min_rtt in proptest::option::of(0..u32::MAX), growth: u32,
        ) -> Traffic {
            let span = |micros| Duration::from_micros(u64::from(micros));
            Traffic {
                active,
                rate: Rate::from_bps(rate),
                max_rate: max_rate.map(Rate::from_bps),
                min_rtt: min_rtt.map(span),
                growth: span(growth),
            }
        }
    }

    prop_compose! {
        fn any_presence()(
            bssid: [u8; 6], station: u64, boot: [u8; 16], sequence: u64,
            interval in 1_u64..=600_000, up in any_traffic(), down in any_traffic(),
            link_rate in proptest::option::of(0_u64..=1_000_000_000_000), unix_time: Option<u64>,
            reservation in proptest::option::of(any_reservation()),
            turn in proptest::option::of(any_turn()),
            challenge in 1_u64.., law in proptest::option::of(any_law()),
            mut answers in proptest::collection::vec(1_u64.., 0..=ANSWER_SLOTS),
        ) -> Presence {
            let link_rate = link_rate.map(Rate::from_bps);
            let announced = Announcement { up, down, link_rate, reservation, turn };
            let slots = answer_slots(&announced);
            answers.truncate(if law.is_some() { slots - LAW_SLOTS } else { slots });
            Presence {
                bssid, station: StationId(station), boot: BootId(boot), sequence,
                interval: Duration::from_millis(interval),
                announced,
                unix_time: unix_time.map(Duration::from_nanos),
                challenge: Challenge(challenge),
                law,
                answers: answers.into_iter().map(Challenge).collect(),
            }
        }
    }

    proptest! {
        #[test]
        fn a_message_reads_as_it_was_written(message in any_presence()) {
            let codec = Codec::new(&[7; 32]);
            let bytes = codec.encode(&message);
            prop_assert_eq!(bytes.len(), MESSAGE_LEN);
            prop_assert_eq!(codec.decode(&bytes), Ok(message));
        }

        #[test]
        fn a_flipped_bit_is_never_authentic(
            message in any_presence(), bit in 0..8 * MESSAGE_LEN,
        ) {
            let codec = Codec::new(&[7; 32]);
            let mut bytes = codec.encode(&message);
            bytes[bit / 8] ^= 1 << (bit % 8);
            let expected = match bit / 8 {
                0..4 => DecodeError::Malformed,
                4 => DecodeError::WrongVersion(OtherVersion {
                    format: MessageFormat::Presence,
                    version: bytes[4],
                    sender: None,
                }),
                _ => DecodeError::Forged,
            };
            prop_assert_eq!(codec.decode(&bytes), Err(expected));
        }

        #[test]
        fn a_truncated_or_longer_message_is_refused(
            message in any_presence(), length in 0..2 * MESSAGE_LEN,
        ) {
            let codec = Codec::new(&[7; 32]);
            let mut bytes = codec.encode(&message);
            bytes.resize(length, 0);
            prop_assert_eq!(codec.decode(&bytes).is_ok(), length == MESSAGE_LEN);
        }

        #[test]
        fn a_message_of_another_group_is_forged(message in any_presence(), key: [u8; 32]) {
            prop_assume!(key != [7; 32]);
            let bytes = Codec::new(&key).encode(&message);
            prop_assert_eq!(Codec::new(&[7; 32]).decode(&bytes), Err(DecodeError::Forged));
        }

        #[test]
        fn an_accepted_message_has_exactly_one_encoding(body: [u8; 32], at in 5..TAG_AT - 32) {
            // A member of the group may send any bytes. If they are accepted as a message, its
            // encoding has the same bytes.
            let codec = Codec::new(&[7; 32]);
            let mut bytes = empty_message();
            (bytes[47], bytes[CHALLENGE_AT]) = (1, 1);
            bytes[at..at + 32].copy_from_slice(&body);
            let bytes = codec.seal.close(bytes);
            if let Ok(message) = codec.decode(&bytes) {
                prop_assert_eq!(codec.encode(&message), bytes);
            }
        }
    }

    #[test]
    fn a_zero_challenge_and_an_answer_after_an_empty_slot_are_refused() {
        let codec = Codec::new(&[7; 32]);
        let with = |challenge: u8, slot: usize| {
            let mut bytes = empty_message();
            (bytes[47], bytes[CHALLENGE_AT]) = (1, challenge);
            bytes[ANSWERS_AT + 8 * slot] = 1;
            codec.decode(&codec.seal.close(bytes)).map(|message| message.answers.len())
        };
        assert_eq!(with(1, 0), Ok(1));
        assert_eq!(with(0, 0), Err(DecodeError::Invalid), "its answer would be an empty slot");
        for slot in 1..ANSWER_SLOTS {
            assert_eq!(with(1, slot), Err(DecodeError::Invalid), "{slot}");
        }
    }

    #[test]
    fn a_reservation_out_of_range_is_refused() {
        let codec = Codec::new(&[7; 32]);
        let read = |reservation: ReservationBytes, flags: u32| {
            let mut bytes = empty_message();
            (bytes[5], bytes[47], bytes[CHALLENGE_AT]) = (flags as u8, 1, 1);
            bytes[RESERVATION_AT..CHALLENGE_AT].copy_from_slice(&reservation);
            codec.decode(&codec.seal.close(bytes)).map(|message| message.announced.reservation)
        };
        let good = Reservation {
            rate: Rate::from_mbps(1),
            ticket: 1,
            share: Share::from_ppm(1),
            claim: Share::WHOLE,
            short: false,
        };
        let mut wire = WireFields::writing(&[]);
        reservation(&mut wire, &mut good.clone());
        let bytes: ReservationBytes = wire.into_bytes().try_into().unwrap();
        assert_eq!(read(bytes, HAS_RESERVATION), Ok(Some(good)));
        assert_eq!(read(bytes, 0), Err(DecodeError::Invalid), "not flagged");
        assert_eq!(
            read([0; CHALLENGE_AT - RESERVATION_AT], SHORT),
            Err(DecodeError::Invalid),
            "short without a reservation"
        );
        // A rate, a ticket or a share of zero is refused. A claim of more than the whole air is
        // refused, too.
        for range in [0..8, 8..16, 16..20] {
            let mut bytes = bytes;
            bytes[range].fill(0);
            assert_eq!(read(bytes, HAS_RESERVATION), Err(DecodeError::Invalid));
        }
        for (at, byte) in [(0, 1), (20, 1)] {
            let mut bytes = bytes;
            bytes[at] = byte;
            assert_eq!(read(bytes, HAS_RESERVATION), Err(DecodeError::Invalid));
        }
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let message = Presence {
            bssid: [0xb0, 1, 2, 3, 4, 5],
            station: StationId(0x1122_3344_5566_7788),
            boot: BootId([0xbb; 16]),
            sequence: 9,
            interval: Duration::from_millis(890),
            announced: Announcement {
                up: Traffic {
                    active: true,
                    rate: Rate::from_mbps(10),
                    max_rate: Some(Rate::from_mbps(50)),
                    min_rtt: Some(Duration::from_millis(512)),
                    growth: Duration::from_millis(40),
                },
                down: Traffic {
                    active: true,
                    rate: Rate::from_mbps(20),
                    max_rate: Some(Rate::from_mbps(40)),
                    min_rtt: Some(Duration::from_millis(300)),
                    growth: Duration::from_millis(30),
                },
                link_rate: Some(Rate::from_mbps(65)),
                reservation: Some(Reservation {
                    rate: Rate::from_mbps(12),
                    ticket: 3,
                    share: Share::from_percent(40),
                    claim: Share::from_percent(30),
                    short: true,
                }),
                turn: None,
            },
            unix_time: None,
            challenge: Challenge(0xc0de),
            law: Some(CommonLaw {
                law: LawNumber(4),
                version: 2,
                queue: Some(QueueParameters {
                    rounds_percent: 100,
                    min: Duration::from_millis(1),
                    max: Duration::from_millis(75),
                }),
                access_point_buffer: 300,
                reservable: Share::from_percent(80),
            }),
            answers: vec![Challenge(0xa1), Challenge(0xa2)],
        };
        let bytes = Codec::new(&[7; 32]).encode(&message);
        let hex = |range: std::ops::Range<usize>| {
            let digits: Vec<String> = bytes[range].iter().map(|b| format!("{b:02x}")).collect();
            digits.concat()
        };
        let lines = [
            ("magic", hex(0..4)),
            ("version", hex(4..5)),
            ("flags", hex(5..6)),
            ("bssid", hex(6..12)),
            ("station", hex(12..20)),
            ("boot id", hex(20..36)),
            ("sequence", hex(36..44)),
            ("interval, ms", hex(44..48)),
            ("delivery rate, bit/s", hex(48..56)),
            ("max rate, bit/s", hex(56..64)),
            ("link rate, bit/s", hex(64..72)),
            ("min RTT, us", hex(72..76)),
            ("RTT growth, us", hex(76..80)),
            ("Unix time, ns", hex(80..88)),
            ("reserved rate, bit/s", hex(88..96)),
            ("ticket", hex(96..104)),
            ("reserved share, ppm", hex(104..108)),
            ("claim, ppm", hex(108..112)),
            ("challenge", hex(112..120)),
            ("law: tag", hex(120..124)),
            ("law: number", hex(124..125)),
            ("law: version", hex(125..126)),
            ("law: queue_rounds_percent", hex(126..128)),
            ("law: queue_min, us", hex(128..132)),
            ("law: queue_max, us", hex(132..136)),
            ("law: access point's buffer", hex(136..140)),
            ("law: reservable, ppm", hex(140..144)),
            ("received: tag", hex(144..148)),
            ("received: min RTT, us", hex(148..152)),
            ("received: rate + 1, bit/s", hex(152..160)),
            ("received: max rate + 1, bit/s", hex(160..168)),
            ("received: RTT growth, us", hex(168..172)),
            ("received: now (2) or before (1)", hex(172..176)),
            ("answer 1", hex(176..184)),
            ("answer 2", hex(184..192)),
            ("answers 3 to 9", hex(192..248)),
            ("authenticator", hex(248..264)),
        ];
        let text: Vec<String> = lines.iter().map(|(name, hex)| format!("{name}: {hex}")).collect();
        insta::assert_snapshot!(text.join("\n"));
    }
}
