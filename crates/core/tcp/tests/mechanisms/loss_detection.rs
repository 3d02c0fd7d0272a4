//! The ways in which a loss is detected.

use wakeai_connection::CongestionState;
use wakeai_tcp::{Profile, TcpConfig, by_name};

use crate::script::{SenderScript, at_ms};

/// A sender on a path with an RTT of 100 ms. It has sent its first ten segments at 100 ms.
fn flight(profile: Profile) -> SenderScript {
    let mut tcp = established(profile);
    tcp.supply(None).sends(0..10);
    tcp
}

fn established(profile: Profile) -> SenderScript {
    let config = TcpConfig::new(profile);
    let cubic = by_name("cubic", &config).expect("it is known");
    SenderScript::established(&config, cubic, 100)
}

fn state(tcp: &SenderScript) -> CongestionState {
    tcp.sender.figures().congestion_state
}

#[test]
fn limited_transmit_sends_new_data_for_two_duplicates() {
    for profile in [Profile::Linux, Profile::Classic] {
        let mut tcp = flight(profile);
        tcp.at(200).ack_with(0, &[1..2]).sends([10]);
        assert_eq!(state(&tcp), CongestionState::Disorder);
        tcp.at(201).ack_with(0, &[1..3]).sends([11]);
        assert_eq!(state(&tcp), CongestionState::Disorder);
        assert_eq!(tcp.sender.figures().cwnd.get(), 10);
    }
}

#[test]
fn three_segments_that_arrived_above_a_hole_make_it_a_loss() {
    for profile in [Profile::Linux, Profile::Classic] {
        let mut tcp = flight(profile);
        tcp.at(200).ack_with(0, &[1..3]).sends([10, 11]);
        tcp.ack_with(0, &[1..4]).sends([0]);
        assert_eq!(state(&tcp), CongestionState::Recovery);
        assert_eq!(tcp.sender.figures().ssthresh.get(), 7);
    }
}

#[test]
fn only_the_holes_of_the_scoreboard_are_sent_again() {
    for profile in [Profile::Linux, Profile::Classic] {
        let mut tcp = flight(profile);
        // Segments 0, 3 and 5 are lost. Only the second ACK reports segments 7 to 9.
        tcp.at(200).ack_with(0, &[6..7, 4..5, 1..3]);
        tcp.ack_with(0, &[6..10, 4..5, 1..3]);
        let mut again = Vec::new();
        while let Some(segment) = tcp.take() {
            again.push((segment.seq - 1) / crate::script::MSS);
        }
        tcp.at(300).ack_with(3, &[6..10, 4..5]);
        tcp.ack_with(5, &[6..10]);
        while let Some(segment) = tcp.take() {
            again.push((segment.seq - 1) / crate::script::MSS);
        }
        again.retain(|segment| *segment < 10);
        assert_eq!(again, [0, 3, 5]);
        assert_eq!(tcp.sender.counters().retransmits, 3);
    }
}

#[test]
fn rack_finds_a_loss_after_a_quarter_of_the_rtt() {
    let mut tcp = established(Profile::Linux);
    tcp.supply(Some(3)).sends(0..3);
    tcp.at(200).ack_with(0, &[1..3]).sends_nothing();
    assert_eq!(state(&tcp), CongestionState::Disorder);
    tcp.at(224).sends_nothing();
    tcp.at_next_timeout();
    assert!((at_ms(225)..=at_ms(234)).contains(&tcp.now()), "{}", tcp.now());
    tcp.sends([0]);
    assert_eq!(state(&tcp), CongestionState::Recovery);
}

#[test]
fn the_classic_sender_waits_for_the_timeout_there() {
    let mut tcp = established(Profile::Classic);
    tcp.supply(Some(3)).sends(0..3);
    tcp.at(200).ack_with(0, &[1..3]).sends_nothing();
    tcp.at(299).sends_nothing();
    tcp.at_next_timeout();
    tcp.sends([0]);
    assert_eq!((state(&tcp), tcp.sender.counters().timeouts), (CongestionState::Loss, 1));
}

/// Segment 0 and its retransmission at 200 ms are lost; the segments sent after that arrive.
fn lost_retransmission(profile: Profile) -> SenderScript {
    let mut tcp = flight(profile);
    tcp.at(200).ack_with(0, &[1..3]).sends([10, 11]);
    tcp.ack_with(0, &[1..4]).sends([0]);
    tcp.at(201).ack_with(0, &[1..5]).sends([12]);
    tcp.at(202).ack_with(0, &[1..10]);
    while tcp.take().is_some() {}
    tcp.at(301).ack_with(0, &[1..13]);
    tcp
}

#[test]
fn rack_finds_a_retransmission_that_was_lost() {
    let mut tcp = lost_retransmission(Profile::Linux);
    assert_eq!(tcp.take().map(|segment| segment.seq), Some(1), "segment 0 once more");
    assert_eq!(tcp.sender.counters().lost_retransmits, 1);
    assert_eq!(tcp.sender.counters().timeouts, 0);
}

#[test]
fn the_classic_sender_repairs_a_lost_retransmission_by_timeout() {
    let mut tcp = lost_retransmission(Profile::Classic);
    while let Some(segment) = tcp.take() {
        assert_ne!(segment.seq, 1);
    }
    while tcp.sender.counters().timeouts == 0 {
        tcp.at_next_timeout();
    }
    assert_eq!(tcp.take().map(|segment| segment.seq), Some(1));
}

#[test]
fn a_lost_tail_is_probed_and_repaired_without_a_timeout() {
    let mut tcp = established(Profile::Linux);
    tcp.supply(Some(3)).sends(0..3);
    tcp.at(299).sends_nothing();
    tcp.at_next_timeout();
    assert!((at_ms(300)..=at_ms(309)).contains(&tcp.now()), "{}", tcp.now());
    tcp.sends([2]);
    let probed = (tcp.now() - at_ms(0)).as_millis();
    tcp.at(probed + 100).ack_with(0, &[2..3]);
    tcp.sends([0]);
    tcp.at(probed + 200).ack_with(1, &[2..3]).sends([1]);
    let counters = tcp.sender.counters();
    assert_eq!((counters.tail_loss_probes, counters.timeouts), (1, 0));
    assert_eq!(state(&tcp), CongestionState::Recovery);
}

#[test]
fn a_probe_is_new_data_where_there_is_some() {
    let mut tcp = flight(Profile::Linux);
    tcp.at_next_timeout();
    tcp.sends([10]);
    assert_eq!(tcp.sender.counters().tail_loss_probes, 1);
    assert_eq!(tcp.sender.counters().retransmits, 0);
}

#[test]
fn a_loss_that_the_probe_itself_repaired_reduces_the_window() {
    let mut tcp = established(Profile::Linux);
    tcp.supply(Some(3)).sends(0..3);
    tcp.at(200).ack(2).sends_nothing();
    tcp.at_next_timeout();
    tcp.sends([2]);
    let probed = (tcp.now() - at_ms(0)).as_millis();
    tcp.supply(Some(5)).sends([3, 4]);
    tcp.at(probed + 100).ack(5);
    let sample = tcp.sender.figures();
    assert_eq!((tcp.sender.counters().tail_losses, sample.ssthresh.get()), (1, 7));
}

#[test]
fn a_probe_that_was_needless_costs_nothing() {
    let mut tcp = established(Profile::Linux);
    tcp.supply(Some(3)).sends(0..3);
    tcp.at(200).ack(2).sends_nothing();
    tcp.at_next_timeout();
    tcp.sends([2]);
    let probed = (tcp.now() - at_ms(0)).as_millis();
    tcp.at(probed + 50).ack(3);
    tcp.at(probed + 100).ack_with(3, &[2..3]);
    let sample = tcp.sender.figures();
    assert_eq!((tcp.sender.counters().tail_losses, sample.cwnd.get()), (0, 10));
    assert_eq!(sample.congestion_state, CongestionState::Open);
}

#[test]
fn the_classic_sender_does_not_probe() {
    let mut tcp = established(Profile::Classic);
    tcp.supply(Some(3)).sends(0..3);
    tcp.at_next_timeout();
    tcp.sends([0]);
    let counters = tcp.sender.counters();
    assert_eq!((counters.tail_loss_probes, counters.timeouts), (0, 1));
}
