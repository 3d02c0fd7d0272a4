//! The presence message as bytes on the wire. A station sends it to tell others about itself.

use wakeai_units::{Duration, Rate};

use super::seal::{MessageFormat, OtherVersion, Seal, TAG_LEN};
use super::{BootId, Challenge};
use crate::common::{CommonLaw, LawNumber, QueueParameters};
use crate::{Announcement, Reservation, Share, StationId, Turn, TurnState};

/// The largest number of answers in a message without a request for a turn. An answer repeats the
/// challenge of another station.
pub(super) const ANSWER_SLOTS: usize = 16;
/// The largest number of answers in a message with a request for a turn. The request has the place
/// of the last answer.
const ANSWER_SLOTS_BESIDE_TURN: usize = ANSWER_SLOTS - 1;

/// The places of answers that the station's law takes, before the answers. An agent that does not know
/// of laws in messages reads them as answers to challenges that it never sent, and ignores them.
pub(super) const LAW_SLOTS: usize = 3;
/// The first bytes of a law. A challenge is random, so one in 2^32 begins so; it is not answered, and
/// is replaced within minutes.
const LAW_TAG: [u8; 4] = *b"WLAW";
/// The bytes of a law.
const LAW_LEN: usize = 8 * LAW_SLOTS;
/// The place of a parameter that the law does not have.
const NO_PARAMETER: u32 = u32::MAX;

const MAGIC: [u8; 4] = MessageFormat::Presence.magic();
const VERSION: u8 = MessageFormat::Presence.version();
const RESERVATION_AT: usize = 88;
const CHALLENGE_AT: usize = RESERVATION_AT + RESERVATION_LEN;
const ANSWERS_AT: usize = CHALLENGE_AT + 8;
const TURN_AT: usize = ANSWERS_AT + 8 * ANSWER_SLOTS_BESIDE_TURN;
const TAG_AT: usize = ANSWERS_AT + 8 * ANSWER_SLOTS;

/// The length of every message of this version, bytes.
pub const MESSAGE_LEN: usize = TAG_AT + TAG_LEN;

const SENDING: u8 = 1;
const HAS_MAX_RATE: u8 = 1 << 1;
const HAS_MIN_RTT: u8 = 1 << 2;
const HAS_TIME: u8 = 1 << 3;
const HAS_LINK_RATE: u8 = 1 << 4;
const HAS_RESERVATION: u8 = 1 << 5;
const SHORT: u8 = 1 << 6;
const HAS_TURN: u8 = 1 << 7;

/// The last four bytes of a request for a turn are one number. Its upper 8 bits are the state. Its
/// lower 24 bits are the time (ms) that the rest of the station's transfers would take at the rate
/// that the station reaches alone.
const LEFT_BITS: u32 = 24;
const MAX_LEFT_MS: u64 = (1 << LEFT_BITS) - 1;

/// The longest interval that a station may announce. Even with 1024 stations and a basic rate (the
/// rate of broadcasts) of 6 Mbit/s, the regular intervals are shorter than this.
pub(super) const MAX_INTERVAL: Duration = Duration::from_secs(600);
/// The largest valid rate, 1 Tbit/s. No radio is faster.
const MAX_RATE: Rate = Rate::from_mbps(1_000_000);

/// One presence message of a station.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        let slots = answer_slots(self.announced.turn.is_some());
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
        let announced = &message.announced;
        let mut flags = 0;
        let mut flag = |set: bool, bit: u8| flags |= if set { bit } else { 0 };
        flag(announced.sending, SENDING);
        flag(announced.max_rate.is_some(), HAS_MAX_RATE);
        flag(announced.link_rate.is_some(), HAS_LINK_RATE);
        flag(announced.min_rtt.is_some(), HAS_MIN_RTT);
        flag(message.unix_time.is_some(), HAS_TIME);
        flag(announced.reservation.is_some(), HAS_RESERVATION);
        flag(announced.reservation.is_some_and(|of| of.short), SHORT);
        flag(announced.turn.is_some(), HAS_TURN);
        let interval = message.interval.min(MAX_INTERVAL).as_millis().max(1);

        let mut bytes = Vec::with_capacity(MESSAGE_LEN);
        bytes.extend(MAGIC);
        bytes.extend([VERSION, flags]);
        bytes.extend(message.bssid);
        bytes.extend(message.station.0.to_be_bytes());
        bytes.extend(message.boot.0);
        bytes.extend(message.sequence.to_be_bytes());
        bytes.extend((interval as u32).to_be_bytes());
        bytes.extend(announced.delivery_rate.min(MAX_RATE).bits_per_second().to_be_bytes());
        for rate in [announced.max_rate, announced.link_rate] {
            let rate = rate.unwrap_or(Rate::ZERO).min(MAX_RATE);
            bytes.extend(rate.bits_per_second().to_be_bytes());
        }
        bytes.extend(micros(announced.min_rtt.unwrap_or(Duration::ZERO)).to_be_bytes());
        bytes.extend(micros(announced.growth).to_be_bytes());
        bytes.extend(message.unix_time.unwrap_or(Duration::ZERO).as_nanos().to_be_bytes());
        bytes.extend(reservation(announced.reservation));
        bytes.extend(message.challenge.0.to_be_bytes());
        let mut slots = answer_slots(announced.turn.is_some());
        if let Some(held) = message.law {
            bytes.extend(law(held));
            slots -= LAW_SLOTS;
        }
        for slot in 0..slots {
            bytes.extend(message.answers.get(slot).map_or(0, |answer| answer.0).to_be_bytes());
        }
        if let Some(Turn { ticket, state, left }) = announced.turn {
            let left = left.as_millis().min(MAX_LEFT_MS) as u32;
            bytes.extend(ticket.to_be_bytes());
            bytes.extend((turn_state(state) << LEFT_BITS | left).to_be_bytes());
        }
        self.seal.close(&mut bytes);
        bytes
    }

    /// Decodes the message in `datagram`.
    ///
    /// # Errors
    /// Fails where the datagram is not an authentic message of this group.
    pub fn decode(&self, datagram: &[u8]) -> Result<Presence, DecodeError> {
        parse(self.seal.open(datagram)?).ok_or(DecodeError::Invalid)
    }
}

/// Whether a reader may take this answer for the beginning of a law.
pub(super) fn is_like_a_law(answer: Challenge) -> bool {
    answer.0.to_be_bytes().starts_with(&LAW_TAG)
}

fn law(held: CommonLaw) -> [u8; LAW_LEN] {
    let mut bytes = [0; LAW_LEN];
    bytes[..4].copy_from_slice(&LAW_TAG);
    (bytes[4], bytes[5]) = (held.law.0, held.version);
    let (percent, min, max) = held.queue.map_or((0, NO_PARAMETER, NO_PARAMETER), |of| {
        (of.rounds_percent, micros(of.min), micros(of.max))
    });
    bytes[6..8].copy_from_slice(&percent.to_be_bytes());
    bytes[8..12].copy_from_slice(&min.to_be_bytes());
    bytes[12..16].copy_from_slice(&max.to_be_bytes());
    bytes[16..20].copy_from_slice(&held.access_point_buffer.to_be_bytes());
    bytes[20..].copy_from_slice(&held.reservable.ppm().to_be_bytes());
    bytes
}

/// The law in an authentic message. Where the bytes are no valid law, they are answers.
fn parse_law(message: &[u8; MESSAGE_LEN]) -> Option<CommonLaw> {
    let u32_at = |at| u32::from_be_bytes(field(message, ANSWERS_AT + at));
    let [law, version] = field(message, ANSWERS_AT + 4);
    let percent = u16::from_be_bytes(field(message, ANSWERS_AT + 6));
    let (min, max) = (u32_at(8), u32_at(12));
    let span = |micros: u32| Duration::from_micros(u64::from(micros));
    let queue = (percent > 0).then(|| QueueParameters {
        rounds_percent: percent,
        min: span(min),
        max: span(max),
    });
    let held = CommonLaw {
        law: LawNumber(law),
        version,
        queue,
        access_point_buffer: u32_at(16),
        reservable: Share::from_ppm(u32_at(20)),
    };
    // No place of an answer is zero, so a reader that does not know of laws finds no empty slot.
    let is_valid = field(message, ANSWERS_AT) == LAW_TAG
        && version > 0
        && match queue {
            Some(_) => max > 0 && min <= max,
            None => (min, max) == (NO_PARAMETER, NO_PARAMETER),
        }
        && held.access_point_buffer > 0
        && held.reservable <= Share::WHOLE;
    is_valid.then_some(held)
}

/// The length of a reservation, bytes.
const RESERVATION_LEN: usize = 24;

fn reservation(reservation: Option<Reservation>) -> [u8; RESERVATION_LEN] {
    let mut bytes = [0; RESERVATION_LEN];
    if let Some(of) = reservation {
        bytes[..8].copy_from_slice(&of.rate.min(MAX_RATE).bits_per_second().to_be_bytes());
        bytes[8..16].copy_from_slice(&of.ticket.to_be_bytes());
        bytes[16..20].copy_from_slice(&of.share.ppm().to_be_bytes());
        bytes[20..].copy_from_slice(&of.claim.min(Share::WHOLE).ppm().to_be_bytes());
    }
    bytes
}

/// The reservation in an authentic message; `Err` where a field is out of range.
fn parse_reservation(message: &[u8; MESSAGE_LEN]) -> Result<Option<Reservation>, ()> {
    let u32_at = |at| u32::from_be_bytes(field(message, at));
    let u64_at = |at| u64::from_be_bytes(field(message, at));
    let flags = message[5];
    if flags & HAS_RESERVATION == 0 {
        let nothing = field::<RESERVATION_LEN>(message, RESERVATION_AT) == [0; RESERVATION_LEN];
        return if nothing && flags & SHORT == 0 { Ok(None) } else { Err(()) };
    }
    let reservation = Reservation {
        rate: Rate::from_bps(u64_at(RESERVATION_AT)),
        ticket: u64_at(RESERVATION_AT + 8),
        share: Share::from_ppm(u32_at(RESERVATION_AT + 16)),
        claim: Share::from_ppm(u32_at(RESERVATION_AT + 20)),
        short: flags & SHORT != 0,
    };
    let in_range = (Rate::from_bps(1)..=MAX_RATE).contains(&reservation.rate)
        && reservation.ticket > 0
        && reservation.share > Share::ZERO
        && reservation.claim <= Share::WHOLE;
    if in_range { Ok(Some(reservation)) } else { Err(()) }
}

/// The number of slots for answers in a message.
pub(super) fn answer_slots(has_turn: bool) -> usize {
    if has_turn { ANSWER_SLOTS_BESIDE_TURN } else { ANSWER_SLOTS }
}

/// The number that stands for a state on the wire.
fn turn_state(state: TurnState) -> u32 {
    match state {
        TurnState::Waiting => 0,
        TurnState::Sending => 1,
        TurnState::Additional => 2,
        TurnState::Trying => 3,
    }
}

/// The request for a turn in an authentic message; `Err` where a field is out of range.
fn parse_turn(message: &[u8; MESSAGE_LEN]) -> Result<Option<Turn>, ()> {
    if message[5] & HAS_TURN == 0 {
        return Ok(None);
    }
    let ticket = u32::from_be_bytes(field(message, TURN_AT));
    let word = u32::from_be_bytes(field(message, TURN_AT + 4));
    let (number, left) = (word >> LEFT_BITS, u64::from(word) & MAX_LEFT_MS);
    let states = [TurnState::Waiting, TurnState::Sending, TurnState::Additional, TurnState::Trying];
    let state = states.into_iter().find(|state| turn_state(*state) == number);
    match state.filter(|_| ticket > 0) {
        Some(state) => Ok(Some(Turn { ticket, state, left: Duration::from_millis(left) })),
        None => Err(()),
    }
}

fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

fn field<const N: usize>(message: &[u8; MESSAGE_LEN], at: usize) -> [u8; N] {
    std::array::from_fn(|index| message[at + index])
}

/// The fields of an authentic message; `None` where a field is out of range.
fn parse(message: &[u8; MESSAGE_LEN]) -> Option<Presence> {
    let u32_at = |at| u32::from_be_bytes(field(message, at));
    let u64_at = |at| u64::from_be_bytes(field(message, at));
    let flags = message[5];
    // An absent field is zero, so that every message has exactly one encoding.
    let optional = |bit: u8, value: u64| match (flags & bit != 0, value) {
        (true, value) => Some(Some(value)),
        (false, 0) => Some(None),
        (false, _) => None,
    };
    let interval = Duration::from_millis(u64::from(u32_at(44)));
    let delivery_rate = Rate::from_bps(u64_at(48));
    let max_rate = optional(HAS_MAX_RATE, u64_at(56))?.map(Rate::from_bps);
    let link_rate = optional(HAS_LINK_RATE, u64_at(64))?.map(Rate::from_bps);
    let challenge = Challenge(u64_at(CHALLENGE_AT));
    if interval.is_zero()
        || interval > MAX_INTERVAL
        || challenge.0 == 0
        || [Some(delivery_rate), max_rate, link_rate].into_iter().flatten().any(|r| r > MAX_RATE)
    {
        return None;
    }
    Some(Presence {
        bssid: field(message, 6),
        station: StationId(u64_at(12)),
        boot: BootId(field(message, 20)),
        sequence: u64_at(36),
        interval,
        announced: Announcement {
            sending: flags & SENDING != 0,
            delivery_rate,
            max_rate,
            link_rate,
            min_rtt: optional(HAS_MIN_RTT, u64::from(u32_at(72)))?.map(Duration::from_micros),
            growth: Duration::from_micros(u64::from(u32_at(76))),
            reservation: parse_reservation(message).ok()?,
            turn: parse_turn(message).ok()?,
        },
        unix_time: optional(HAS_TIME, u64_at(80))?.map(Duration::from_nanos),
        challenge,
        law: parse_law(message),
        answers: parse_answers(message)?,
    })
}

/// The answers of an authentic message; `None` where an answer follows an empty slot.
fn parse_answers(message: &[u8; MESSAGE_LEN]) -> Option<Vec<Challenge>> {
    let slot = |slot| Challenge(u64::from_be_bytes(field(message, ANSWERS_AT + 8 * slot)));
    let is_empty = |answer: &Challenge| answer.0 == 0;
    let first = if parse_law(message).is_some() { LAW_SLOTS } else { 0 };
    let mut slots: Vec<Challenge> =
        (first..answer_slots(message[5] & HAS_TURN != 0)).map(slot).collect();
    let used = slots.iter().position(is_empty).unwrap_or(slots.len());
    slots[used..].iter().all(is_empty).then(|| slots.truncate(used))?;
    Some(slots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        fn any_presence()(
            bssid: [u8; 6], station: u64, boot: [u8; 16], sequence: u64,
            interval in 1_u64..=600_000, sending: bool, rate in 0_u64..=1_000_000_000_000,
            max_rate in proptest::option::of(0_u64..=1_000_000_000_000),
            link_rate in proptest::option::of(0_u64..=1_000_000_000_000),
            min_rtt: Option<u32>, growth: u32, unix_time: Option<u64>,
            reservation in proptest::option::of(any_reservation()),
            turn in proptest::option::of(any_turn()),
            challenge in 1_u64.., law in proptest::option::of(any_law()),
            mut answers in proptest::collection::vec(1_u64.., 0..=ANSWER_SLOTS),
        ) -> Presence {
            let slots = answer_slots(turn.is_some());
            answers.truncate(if law.is_some() { slots - LAW_SLOTS } else { slots });
            Presence {
                bssid, station: StationId(station), boot: BootId(boot), sequence,
                interval: Duration::from_millis(interval),
                announced: Announcement {
                    sending,
                    delivery_rate: Rate::from_bps(rate),
                    max_rate: max_rate.map(Rate::from_bps),
                    link_rate: link_rate.map(Rate::from_bps),
                    min_rtt: min_rtt.map(|micros| Duration::from_micros(u64::from(micros))),
                    growth: Duration::from_micros(u64::from(growth)),
                    reservation,
                    turn,
                },
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
            let mut bytes = vec![0; TAG_AT];
            bytes[..4].copy_from_slice(&MAGIC);
            bytes[4] = VERSION;
            (bytes[47], bytes[CHALLENGE_AT]) = (1, 1);
            bytes[at..at + 32].copy_from_slice(&body);
            codec.seal.close(&mut bytes);
            if let Ok(message) = codec.decode(&bytes) {
                prop_assert_eq!(codec.encode(&message), bytes);
            }
        }
    }

    #[test]
    fn a_zero_challenge_and_an_answer_after_an_empty_slot_are_refused() {
        let codec = Codec::new(&[7; 32]);
        let with = |challenge: u8, slot: usize| {
            let mut bytes = vec![0; TAG_AT];
            bytes[..4].copy_from_slice(&MAGIC);
            (bytes[4], bytes[47], bytes[CHALLENGE_AT]) = (VERSION, 1, challenge);
            bytes[ANSWERS_AT + 8 * slot] = 1;
            codec.seal.close(&mut bytes);
            codec.decode(&bytes).map(|message| message.answers.len())
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
        let read = |reservation: [u8; RESERVATION_LEN], flags: u8| {
            let mut bytes = vec![0; TAG_AT];
            bytes[..4].copy_from_slice(&MAGIC);
            (bytes[4], bytes[5], bytes[47], bytes[CHALLENGE_AT]) = (VERSION, flags, 1, 1);
            bytes[RESERVATION_AT..CHALLENGE_AT].copy_from_slice(&reservation);
            codec.seal.close(&mut bytes);
            codec.decode(&bytes).map(|message| message.announced.reservation)
        };
        let good = Reservation {
            rate: Rate::from_mbps(1),
            ticket: 1,
            share: Share::from_ppm(1),
            claim: Share::WHOLE,
            short: false,
        };
        let bytes = reservation(Some(good));
        assert_eq!(read(bytes, HAS_RESERVATION), Ok(Some(good)));
        assert_eq!(read(bytes, 0), Err(DecodeError::Invalid), "not flagged");
        assert_eq!(
            read([0; RESERVATION_LEN], SHORT),
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
                sending: true,
                delivery_rate: Rate::from_mbps(10),
                max_rate: Some(Rate::from_mbps(50)),
                link_rate: Some(Rate::from_mbps(65)),
                min_rtt: Some(Duration::from_millis(512)),
                growth: Duration::from_millis(40),
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
            ("answer 1", hex(144..152)),
            ("answer 2", hex(152..160)),
            ("answers 3 to 13", hex(160..248)),
            ("authenticator", hex(248..264)),
        ];
        let text: Vec<String> = lines.iter().map(|(name, hex)| format!("{name}: {hex}")).collect();
        insta::assert_snapshot!(text.join("\n"));
    }
}
