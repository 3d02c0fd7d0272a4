//! Compares our algorithms without bounds with the kernel's own. Ours have the hook `cong_control`,
//! so they must do themselves what the kernel does for algorithms without that hook. The tests
//! cover situations in which this matters. `make test-packetdrill` covers more of them;
//! `crates/core/tcp/tests/mechanisms/as_linux.rs` has the same situations in the simulator.

use std::fmt::Debug;
use std::slice;
use std::time::Duration;

use crate::peer::Peer;
use crate::rig::Registration;

const CUBIC: [&str; 2] = ["wakeai_cubic", "cubic"];
const RENO: [&str; 2] = ["wakeai_reno", "reno"];

/// The kernel's numbers of the congestion states `TCP_CA_Recovery` and `TCP_CA_Loss`.
const RECOVERY: u8 = 3;
const LOSS: u8 = 4;

const RTT: Duration = Duration::from_millis(100);

/// Runs the same script with our algorithm and with the kernel's, until both have the outcome
/// `expected`, at most five times. On a busy machine the script itself may be late. If it notices
/// this, its outcome is `None`.
fn same<Outcome: PartialEq + Debug>(
    pairs: &[[&str; 2]],
    script: impl Fn(&str) -> Option<Outcome>,
    expected: impl Fn(&Outcome) -> bool,
) {
    let Some(_registration) = Registration::share() else { return };
    for pair in pairs {
        let mut seen = Vec::new();
        let agree = (0..5).any(|_| {
            seen.push(pair.map(&script));
            matches!(seen.last(), Some([Some(ours), Some(theirs)])
                if ours == theirs && expected(ours))
        });
        assert!(agree, "{pair:?}: {seen:?}");
    }
}

/// A connection with a window of 40 segments. It has sent 30 segments, which are acknowledged, and
/// `more` segments after them.
fn window_of_40(algorithm: &str, rtt: Duration, more: u32) -> Option<Peer> {
    let mut peer = Peer::connect(algorithm, rtt);
    peer.write(30 + more);
    for (first, end) in [(0, 10), (10, 30), (30, 30 + more)] {
        peer.ack(first, &[]);
        if peer.listen(rtt) != (first..end).collect::<Vec<_>>() {
            return None;
        }
    }
    (peer.window().0 == 40).then_some(peer)
}

#[test]
fn a_recovery_that_racks_timer_begins_retransmits_one_segment() {
    let sent = |algorithm: &str| {
        let mut peer = window_of_40(algorithm, RTT, 40)?;
        // 39 segments are lost, and the last arrives. One duplicate ACK is too few for a
        // retransmission, so the kernel's loss detection by time (RACK) waits.
        peer.ack(30, slice::from_ref(&(69..70)));
        let sent = peer.listen(RTT + RTT / 2);
        (peer.window().1 == RECOVERY).then_some(sent)
    };
    same(&[CUBIC, RENO], sent, |sent| sent == &[30]);
}

#[test]
fn the_first_burst_after_an_idle_time_is_the_restart_window() {
    let burst = |algorithm: &str| {
        let mut peer = window_of_40(algorithm, RTT, 10)?;
        peer.ack(40, &[]);
        peer.listen(20 * RTT);
        // A burst may be as large as the window was before the idle time.
        peer.burst(40);
        peer.write(100);
        Some(peer.listen(RTT / 2).len())
    };
    same(&[CUBIC, RENO], burst, |&burst| burst == 10);
}

#[test]
fn idle_time_is_counted_from_the_last_segment_and_not_from_its_ack() {
    let burst = |algorithm: &str| {
        let mut peer = window_of_40(algorithm, 3 * RTT, 10)?;
        peer.ack(40, &[]);
        // It is 0.9 s since the last segments were sent, and 0.6 s since their ACK. The timeout is
        // between these two times.
        peer.listen(6 * RTT);
        peer.write(100);
        Some(peer.listen(2 * RTT).len())
    };
    same(&[CUBIC, RENO], burst, |&burst| burst == 20);
}

#[test]
fn sacks_let_the_window_grow_once_the_path_is_known_to_reorder() {
    let windows = |algorithm: &str| {
        // The reordering timer, a quarter of the RTT, does not expire meanwhile, because the RTT is
        // long.
        let mut peer = Peer::connect(algorithm, 5 * RTT);
        peer.write(10);
        peer.listen(5 * RTT);
        // Segment 3 arrives after segment 9. It was reordered, and no segment is lost.
        Some([(0, Some(9..10)), (0, Some(3..4)), (10, None)].map(|(acknowledged, block)| {
            peer.ack(acknowledged, block.as_slice());
            peer.window().0
        }))
    };
    same(&[CUBIC, RENO], windows, |&windows| windows == [10, 11, 19]);
}

#[test]
fn a_small_window_grows_as_renos_at_the_ack_where_linux_looks() {
    // After a timeout at a window of 10, slow start goes up to 7. Then the window grows at each
    // ACK. Linux computes the growth anew only after 1/32 s.
    let windows = |algorithm: &str| {
        let mut peer = Peer::connect(algorithm, RTT);
        for first in 0..2 {
            peer.ack(first, &[]);
            peer.write(1);
            if peer.listen(RTT) != [first] {
                return None;
            }
        }
        // A tail loss probe is sent, and then the timeout comes.
        while peer.window().1 != LOSS {
            peer.listen(RTT / 4);
        }
        peer.listen(RTT / 2);
        peer.ack(2, &[]);
        peer.write(200);
        let (mut acknowledged, mut windows) = (2, Vec::new());
        for flight in [2, 4, 7, 7, 4] {
            peer.listen(RTT);
            for _ in 0..flight {
                acknowledged += 1;
                peer.ack(acknowledged, &[]);
                peer.listen(Duration::from_millis(2));
                windows.push(peer.window().0);
            }
        }
        Some(windows)
    };
    same(&[CUBIC], windows, |windows| windows.last() == Some(&8));
}
