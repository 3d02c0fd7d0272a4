//! Tests of channel access: slots, interframe spaces and backoffs.

use rand_pcg::Pcg64Mcg;
use wakeai_wifi::Standard;

use super::*;
use crate::generator;

const SIFS_US: u64 = 16;
const SLOT_US: u64 = 9;

/// Contention rules with a constant window. With a window of 0 every drawn backoff is 0.
fn rules(aifsn: u8, cw: u16) -> Rules {
    Rules { aifsn, cw_min: cw, cw_max: cw, txop: Duration::ZERO }
}

fn contention(rules: &[(Rules, bool)]) -> Contention {
    let (sifs, slot) = (Duration::from_micros(SIFS_US), Duration::from_micros(SLOT_US));
    let one =
        |(rules, qos): &(Rules, bool)| ContenderRules { rules: *rules, qos: *qos, retry_limit: 7 };
    let rules: Vec<ContenderRules> = rules.iter().map(one).collect();
    Contention::new(sifs, slot, &rules, |_| true)
}

fn micros(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

/// The time of boundary `slots` where the medium became idle at `idle`.
fn boundary(idle: u64, slots: u64) -> Instant {
    micros(idle + SIFS_US + slots * SLOT_US)
}

fn senders(contention: &mut Contention, rng: &mut Pcg64Mcg) -> Vec<u32> {
    let mut senders = Vec::new();
    contention.begin(&mut senders, rng);
    senders
}

/// Makes a contender count down from `slots` slots on an idle medium.
fn counting(contention: &mut Contention, contender: usize, slots: u64) {
    let backoff = &mut contention.contenders[contender];
    let class = &mut contention.classes[backoff.class];
    backoff.ends_at = class.count + slots;
    backoff.phase = ContenderPhase::Counting;
    class.waiting.insert(contender as u32, backoff.ends_at);
}

/// Slots that a counting contender has to go.
fn left(contention: &Contention, contender: usize) -> u64 {
    let backoff = &contention.contenders[contender];
    backoff.ends_at - contention.classes[backoff.class].count
}

#[test]
fn dcf_waits_difs_and_its_backoff() {
    let mut contention = contention(&[(Rules::of(Standard::A), false)]);
    counting(&mut contention, 0, 5);
    contention.idle_from(micros(1_000), 0);
    assert_eq!(contention.next_access(), Some(boundary(1_000, 2 + 5)));
}

#[test]
fn a_smaller_aifsn_goes_first() {
    let mut rng = generator(1);
    let mut contention = contention(&[(rules(3, 15), true), (rules(7, 15), true)]);
    counting(&mut contention, 0, 4);
    counting(&mut contention, 1, 1);
    contention.idle_from(micros(0), 0);
    assert_eq!(contention.next_access(), Some(boundary(0, 7)));
    assert_eq!(senders(&mut contention, &mut rng), [0]);
}

#[test]
fn equal_boundaries_send_together_whatever_their_aifsn() {
    let mut rng = generator(1);
    let mut contention = contention(&[(rules(3, 15), true), (rules(7, 15), true)]);
    counting(&mut contention, 0, 5);
    counting(&mut contention, 1, 1);
    contention.idle_from(micros(0), 0);
    assert_eq!(senders(&mut contention, &mut rng), [0, 1]);
}

#[test]
fn dcf_counts_whole_idle_slots_and_edca_the_boundary_of_the_access_too() {
    for (qos, remaining) in [(false, 6), (true, 5)] {
        let mut rng = generator(1);
        let mut contention = contention(&[(rules(2, 15), qos), (rules(2, 15), qos)]);
        counting(&mut contention, 0, 4);
        counting(&mut contention, 1, 10);
        contention.idle_from(micros(0), 0);
        assert_eq!(senders(&mut contention, &mut rng), [0]);
        assert_eq!(left(&contention, 1), remaining);
    }
}

#[test]
fn who_is_beaten_before_its_aifs_counts_nothing() {
    let mut rng = generator(1);
    let mut contention = contention(&[(rules(2, 15), true), (rules(7, 15), true)]);
    counting(&mut contention, 0, 3);
    counting(&mut contention, 1, 10);
    contention.idle_from(micros(0), 0);
    assert_eq!(senders(&mut contention, &mut rng), [0]);
    assert_eq!(left(&contention, 1), 10);
}

#[test]
fn eifs_holds_everybody_but_the_sender() {
    let mut rng = generator(1);
    let mut contention = contention(&[(rules(2, 0), false), (rules(2, 0), false)]);
    counting(&mut contention, 0, 0);
    counting(&mut contention, 1, 3);
    contention.idle_from(micros(0), 0);
    assert_eq!(senders(&mut contention, &mut rng), [0]);
    // The sender's frame was damaged. Its ACK timeout is 5 slots, and the others wait 7 more slots
    // (EIFS).
    contention.idle_from(micros(500), 7);
    contention.finish(0, true, 5, &mut rng);
    assert_eq!(contention.next_access(), Some(boundary(500, 5 + 2)));
    assert_eq!(senders(&mut contention, &mut rng), [0]);
    assert_eq!(left(&contention, 1), 3, "its EIFS was not over");
    // A frame without errors ends the EIFS of the others.
    contention.idle_from(micros(900), 0);
    assert_eq!(contention.next_access(), Some(boundary(900, 2 + 3)));
}

#[test]
fn one_bystander_may_wait_eifs_alone() {
    let mut rng = generator(1);
    let mut contention = contention(&[(rules(2, 0), false); 3]);
    counting(&mut contention, 0, 0);
    counting(&mut contention, 1, 1);
    counting(&mut contention, 2, 4);
    contention.idle_from(micros(0), 0);
    assert_eq!(senders(&mut contention, &mut rng), [0]);
    contention.idle_from(micros(500), 0);
    contention.finish(0, false, 0, &mut rng);
    contention.defer_one(1, 7);
    assert_eq!(contention.next_access(), Some(boundary(500, 2 + 4)));
    assert_eq!(senders(&mut contention, &mut rng), [2]);
    assert_eq!(left(&contention, 1), 1);
}

#[test]
fn colliders_begin_after_their_timeout() {
    let mut rng = generator(1);
    let mut contention = contention(&[(rules(2, 0), false); 3]);
    counting(&mut contention, 0, 0);
    counting(&mut contention, 1, 0);
    counting(&mut contention, 2, 4);
    contention.idle_from(micros(0), 0);
    let mut colliders = senders(&mut contention, &mut rng);
    colliders.sort_unstable();
    assert_eq!(colliders, [0, 1]);
    contention.idle_from(micros(500), 0);
    contention.finish(0, true, 5, &mut rng);
    contention.finish(1, true, 5, &mut rng);
    assert_eq!(senders(&mut contention, &mut rng), [2]);
    contention.idle_from(micros(900), 0);
    assert_eq!(contention.next_access(), Some(boundary(900, 2)));
}

#[test]
fn a_packet_on_a_medium_that_is_idle_for_difs_goes_at_the_next_boundary() {
    let mut rng = generator(1);
    // With such a window a drawn backoff is almost never 0.
    let mut contention = contention(&[(rules(2, 32_767), false)]);
    let difs = micros(SIFS_US + 2 * SLOT_US);
    contention.request(0, difs, &mut rng);
    assert_eq!(contention.next_access(), Some(difs));
}

#[test]
fn a_packet_on_a_medium_that_is_not_idle_for_difs_draws_a_backoff() {
    let mut rng = generator(1);
    let mut contention = contention(&[(rules(2, 32_767), false)]);
    contention.request(0, micros(SIFS_US + 2 * SLOT_US - 1), &mut rng);
    assert_eq!(contention.next_access(), Some(boundary(0, 2 + left(&contention, 0))));
    assert!(left(&contention, 0) > 0);
}

#[test]
fn a_post_backoff_that_is_not_over_goes_on() {
    let mut rng = generator(1);
    let mut contention = contention(&[(rules(2, 32_767), false)]);
    contention.request(0, micros(1_000), &mut rng);
    assert_eq!(senders(&mut contention, &mut rng), [0]);
    contention.idle_from(micros(2_000), 0);
    contention.finish(0, false, 0, &mut rng);
    assert_eq!(contention.next_access(), None, "it has nothing to send");
    let drawn = left(&contention, 0);
    assert!(drawn > 100);
    // 100 slots later its next packet waits for exactly the rest of the drawn backoff.
    contention.request(0, boundary(2_000, 100), &mut rng);
    assert_eq!(contention.next_access(), Some(boundary(2_000, 2 + drawn)));
}

#[test]
fn who_found_the_medium_idle_but_is_beaten_draws_a_backoff() {
    let mut rng = generator(1);
    let mut contention = contention(&[(rules(2, 0), false), (rules(2, 32_767), false)]);
    counting(&mut contention, 0, 50);
    contention.idle_from(micros(0), 0);
    // A late driver enqueues at a time after an access that it has not processed yet.
    contention.request(1, boundary(0, 80), &mut rng);
    assert_eq!(senders(&mut contention, &mut rng), [0]);
    assert!(left(&contention, 1) > 0);
}

#[test]
fn the_window_doubles_until_the_retry_limit_resets_it() {
    let rules = Rules { aifsn: 2, cw_min: 15, cw_max: 1_023, txop: Duration::ZERO };
    let mut backoff = Backoff::new(rules, 0, 7);
    let mut rng = generator(1);
    let mut greatest = |backoff: &Backoff| (0..20_000).map(|_| backoff.draw(&mut rng)).max();
    for window in [15, 31, 63, 127, 255, 511, 1_023] {
        assert_eq!(greatest(&backoff), Some(window));
        backoff.failed();
    }
    assert_eq!(greatest(&backoff), Some(15), "seven attempts have failed");
    backoff.failed();
    backoff.succeeded();
    assert_eq!(greatest(&backoff), Some(15), "a success resets it as well");
}
