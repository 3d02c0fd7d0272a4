//! The reader of presence messages as it was before messages had a law, from the sources of that time.
//! Do not change it with the format: it stands for agents in the field.

#![allow(clippy::option_option, reason = "the outer one is a refusal, as in the former reader")]

use wakeai_control::presence::Challenge;
use wakeai_control::{Announcement, Reservation, Share, Traffic, Turn, TurnState};
use wakeai_units::{Duration, Rate};

const ANSWER_SLOTS: usize = 16;
const RESERVATION_AT: usize = 88;
const RESERVATION_LEN: usize = 24;
const CHALLENGE_AT: usize = RESERVATION_AT + RESERVATION_LEN;
const ANSWERS_AT: usize = CHALLENGE_AT + 8;
const TURN_AT: usize = ANSWERS_AT + 8 * (ANSWER_SLOTS - 1);
const TAG_AT: usize = ANSWERS_AT + 8 * ANSWER_SLOTS;
const MESSAGE_LEN: usize = TAG_AT + 16;
const MAX_RATE: Rate = Rate::from_mbps(1_000_000);

/// What the former reader found in a message.
pub(crate) struct Former {
    pub(crate) announced: Announcement,
    pub(crate) answers: Vec<Challenge>,
}

/// Authenticates and reads a message; `None` where the former reader refused it.
pub(crate) fn decode(key: &[u8; 32], datagram: &[u8]) -> Option<Former> {
    let message: &[u8; MESSAGE_LEN] = datagram.try_into().ok()?;
    if message[..5] != *b"WKAI\x02" {
        return None;
    }
    let key = blake3::derive_key("Wakeai presence v2 authenticator", key);
    let (body, tag) = message.split_at(TAG_AT);
    if blake3::keyed_hash(&key, body).as_bytes()[..16] != *tag {
        return None;
    }
    let flags = message[5];
    let u32_at = |at| u32::from_be_bytes(field(message, at));
    let u64_at = |at| u64::from_be_bytes(field(message, at));
    let optional = |bit: u8, value: u64| match (flags & bit != 0, value) {
        (true, value) => Some(Some(value)),
        (false, 0) => Some(None),
        (false, _) => None,
    };
    let interval = Duration::from_millis(u64::from(u32_at(44)));
    let delivery_rate = Rate::from_bps(u64_at(48));
    let max_rate = optional(2, u64_at(56))?.map(Rate::from_bps);
    let link_rate = optional(16, u64_at(64))?.map(Rate::from_bps);
    if interval.is_zero()
        || interval > Duration::from_secs(600)
        || u64_at(CHALLENGE_AT) == 0
        || [Some(delivery_rate), max_rate, link_rate].into_iter().flatten().any(|r| r > MAX_RATE)
    {
        return None;
    }
    optional(8, u64_at(80))?;
    Some(Former {
        announced: Announcement {
            up: Traffic {
                active: flags & 1 != 0,
                rate: delivery_rate,
                max_rate,
                min_rtt: optional(4, u64::from(u32_at(72)))?.map(Duration::from_micros),
                growth: Duration::from_micros(u64::from(u32_at(76))),
            },
            down: Traffic::default(),
            link_rate,
            reservation: reservation(message)?,
            turn: turn(message)?,
        },
        answers: answers(message)?,
    })
}

fn field<const N: usize>(message: &[u8; MESSAGE_LEN], at: usize) -> [u8; N] {
    std::array::from_fn(|index| message[at + index])
}

fn reservation(message: &[u8; MESSAGE_LEN]) -> Option<Option<Reservation>> {
    let u32_at = |at| u32::from_be_bytes(field(message, at));
    let u64_at = |at| u64::from_be_bytes(field(message, at));
    let short = message[5] & 64 != 0;
    if message[5] & 32 == 0 {
        let nothing = field::<RESERVATION_LEN>(message, RESERVATION_AT) == [0; RESERVATION_LEN];
        return (nothing && !short).then_some(None);
    }
    let reservation = Reservation {
        rate: Rate::from_bps(u64_at(RESERVATION_AT)),
        ticket: u64_at(RESERVATION_AT + 8),
        share: Share::from_ppm(u32_at(RESERVATION_AT + 16)),
        claim: Share::from_ppm(u32_at(RESERVATION_AT + 20)),
        short,
    };
    let in_range = (Rate::from_bps(1)..=MAX_RATE).contains(&reservation.rate)
        && reservation.ticket > 0
        && reservation.share > Share::ZERO
        && reservation.claim <= Share::WHOLE;
    in_range.then_some(Some(reservation))
}

fn turn(message: &[u8; MESSAGE_LEN]) -> Option<Option<Turn>> {
    if message[5] & 128 == 0 {
        return Some(None);
    }
    let ticket = u32::from_be_bytes(field(message, TURN_AT));
    let word = u32::from_be_bytes(field(message, TURN_AT + 4));
    let states = [TurnState::Waiting, TurnState::Sending, TurnState::Additional, TurnState::Trying];
    let state = *states.get((word >> 24) as usize)?;
    let left = Duration::from_millis(u64::from(word & 0x00ff_ffff));
    (ticket > 0).then_some(Some(Turn { ticket, state, left }))
}

fn answers(message: &[u8; MESSAGE_LEN]) -> Option<Vec<Challenge>> {
    let count = if message[5] & 128 == 0 { ANSWER_SLOTS } else { ANSWER_SLOTS - 1 };
    let slot = |slot| Challenge(u64::from_be_bytes(field(message, ANSWERS_AT + 8 * slot)));
    let is_empty = |answer: &Challenge| answer.0 == 0;
    let mut slots: Vec<Challenge> = (0..count).map(slot).collect();
    let used = slots.iter().position(is_empty).unwrap_or(slots.len());
    slots[used..].iter().all(is_empty).then(|| slots.truncate(used))?;
    Some(slots)
}
