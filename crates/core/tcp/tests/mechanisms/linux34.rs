//! Behaviour of Linux 3.4 that today's Linux does not have (`docs/concepts/sim.md` names the versions).

use wakeai_connection::CongestionState;
use wakeai_tcp::{Profile, TcpConfig, by_name};

use crate::script::{MSS, SenderScript};

/// A path with an RTT of 100 ms. Ten segments of an endless stream leave at 100 ms.
fn of(profile: Profile) -> SenderScript {
    let mut tcp = established(profile);
    tcp.supply(None).sends(0..10);
    tcp
}

fn established(profile: Profile) -> SenderScript {
    let config = TcpConfig::new(profile);
    let cubic = by_name("cubic", &config).expect("it is known");
    SenderScript::established(&config, cubic, 100)
}

fn numbers(tcp: &mut SenderScript) -> Vec<u64> {
    let taken = std::iter::from_fn(|| tcp.take());
    taken.map(|segment| (segment.seq - 1) / MSS).collect()
}

#[test]
fn in_slow_start_an_acknowledgement_adds_one_segment_whatever_it_acknowledges() {
    for (profile, window) in [(Profile::Linux, 18), (Profile::Linux34, 11)] {
        let mut tcp = of(profile);
        tcp.at(200).ack(8);
        assert_eq!(tcp.sender.figures().cwnd.get(), window, "{profile:?}");
    }
}

#[test]
fn a_tail_is_not_probed() {
    for (profile, probes) in [(Profile::Linux, 1), (Profile::Linux34, 0)] {
        let mut tcp = established(profile);
        tcp.supply(Some(3)).sends(0..3);
        tcp.at_next_timeout();
        tcp.take().expect("the probe, or what the timeout repeats");
        assert_eq!(tcp.sender.counters().tail_loss_probes, probes, "{profile:?}");
        assert_eq!(tcp.sender.counters().timeouts, 1 - probes, "{profile:?}");
    }
}

#[test]
fn one_segment_far_above_shows_the_losses_below() {
    // Segments 0 to 4 are more than three below segment 8; 5 to 7 may still be on the way.
    let mut tcp = of(Profile::Linux34);
    tcp.at(200).ack_with(0, &[8..9]);
    assert_eq!(tcp.sender.figures().congestion_state, CongestionState::Recovery);
    assert_eq!(tcp.sender.figures().lost_out.get(), 6);
    let mut tcp = of(Profile::Classic);
    tcp.at(200).ack_with(0, &[8..9]);
    assert_eq!(tcp.sender.figures().lost_out.get(), 0);
}

#[test]
fn a_lost_retransmission_is_repeated_once_a_later_segment_but_one_has_arrived() {
    let mut tcp = of(Profile::Linux34);
    tcp.at(200).ack_with(0, &[1..3]).sends([10, 11]);
    tcp.ack_with(0, &[1..4]).sends([0]);
    tcp.at(201).ack_with(0, &[1..5]).sends([12]);
    tcp.at(202).ack_with(0, &[1..10]);
    let later = numbers(&mut tcp);
    assert!(!later.contains(&0), "{later:?}");
    // The next new segment was 12 when 0 was repeated: 12 may have overtaken it, 13 has not.
    tcp.at(301).ack_with(0, &[1..13]);
    assert!(!numbers(&mut tcp).contains(&0));
    tcp.at(302).ack_with(0, &[1..14]);
    assert_eq!(numbers(&mut tcp).first(), Some(&0));
    assert_eq!((tcp.sender.counters().lost_retransmits, tcp.sender.counters().timeouts), (1, 0));
}
