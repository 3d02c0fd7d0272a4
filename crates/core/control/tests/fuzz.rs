//! A million mutated presence datagrams change nothing but counters.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ether;
mod random;

use ether::{Ether, shown, station};
use random::Random;
use wakeai_units::{Duration, Instant};

const DATAGRAMS: u64 = 1_000_000;

/// Changes `bytes` in one to four ways.
fn mutate(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=random.below(4) {
        let length = bytes.len() as u64;
        match random.below(8) {
            0 => bytes.truncate(random.below(length + 1) as usize),
            1 => bytes.extend((0..random.below(64)).map(|_| 0xa5)),
            2 => bytes.clear(),
            3 if length > 4 => bytes[4] = random.below(256) as u8,
            4 if length > 0 => {
                let at = random.below(length) as usize;
                let end = bytes.len().min(other.len()).max(at);
                let tail = other.get(at..end).unwrap_or_default().to_vec();
                bytes.truncate(at);
                bytes.extend(tail);
            }
            _ if length > 0 => {
                let at = random.below(length) as usize;
                bytes[at] ^= 1 << random.below(8);
            }
            _ => bytes.push(random.below(256) as u8),
        }
    }
}

#[test]
fn a_million_mutated_datagrams_change_nothing_but_counters() {
    let mut ether = Ether::new((0..4).map(|id| station(Instant::ZERO, id, 1)).collect());
    ether.run(Duration::from_secs(10));
    let now = ether.now;
    let victim = &mut ether.stations[0];
    while victim.poll_event().is_some() {}
    victim.handle_datagram(now, &[]);
    let before = (shown(victim), *victim.counters());

    let seed = 20_260_101;
    let mut random = Random::new(seed);
    let heard: Vec<&Vec<u8>> = ether.recorded.iter().map(|(_, datagram)| datagram).collect();
    for _ in 0..DATAGRAMS {
        let pick = |random: &mut Random| heard[random.below(heard.len() as u64) as usize];
        let (mut datagram, other) = (pick(&mut random).clone(), pick(&mut random));
        mutate(&mut random, &mut datagram, other);
        victim.handle_datagram(now, &datagram);
    }

    let (picture, counters) = (shown(victim), *victim.counters());
    assert_eq!(picture, before.0, "seed {seed}");
    assert_eq!(victim.poll_event(), None, "seed {seed}");
    assert_eq!(counters.accepted, before.1.accepted, "seed {seed}");
    // Two mutations may cancel each other. The datagram is then a replay, or one of the station's
    // own messages.
    let refused = |c: wakeai_control::PresenceCounters| {
        [c.malformed, c.wrong_version, c.forged, c.replayed, c.own]
    };
    let (after, before) = (refused(counters), refused(before.1));
    let grown: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    assert_eq!(grown.iter().sum::<u64>(), DATAGRAMS, "seed {seed}: {grown:?}");
    assert!(grown[..3].iter().all(|count| *count > 10_000), "seed {seed}: {grown:?}");
}
