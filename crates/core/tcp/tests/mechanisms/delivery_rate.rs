//! BBR in the sender: samples of the delivery rate, and pacing.

use wakeai_connection::Bounds;
use wakeai_tcp::{Algorithm, Profile, Receiver, Sender, TcpConfig, by_name};
use wakeai_units::{Duration, Instant, Rate};

use crate::script::{Link, Loss, MSS, Pair, SenderScript, ms};

fn bbr(config: &TcpConfig) -> Algorithm {
    by_name("bbr", config).expect("it is known")
}

/// A BBR connection over a bottleneck with an RTT of 20 ms and a long queue, opened at `at`.
fn opened(loss: Loss, at: Duration) -> Pair {
    let config = TcpConfig::new(Profile::Linux);
    let mut pair = Pair {
        sender: Sender::new(&config, bbr(&config)),
        receiver: Receiver::new(&config),
        forward: Link::new(RATE, ms(10), 1_000, loss),
        back: Link::new(RATE, ms(10), 1_000, Loss::Never),
        now: Instant::ZERO + at,
    };
    pair.sender.open(pair.now);
    pair.flush();
    pair
}

/// Such a connection with data without end, opened at time zero and run until `at`.
fn flow(loss: Loss, at: Duration) -> Pair {
    let mut pair = opened(loss, Duration::ZERO);
    pair.sender.supply(None);
    pair.run_until(Instant::ZERO + at);
    pair
}

const RATE: Rate = Rate::from_bps(20_000_000);
/// 20 Mbit/s over 20 ms, in packets of 1500 bytes.
const BDP: u32 = 33;

/// The payload received between two times, as a share of what the link carries.
fn share(pair: &mut Pair, from: Duration, to: Duration) -> f64 {
    pair.run_until(Instant::ZERO + from);
    let before = pair.receiver.bytes_read();
    pair.run_until(Instant::ZERO + to);
    let received = (pair.receiver.bytes_read() - before) as f64 * 8.0;
    received / ((to - from).as_micros() as f64 * 20.0 * 1448.0 / 1500.0)
}

#[test]
fn bbr_fills_a_link_and_keeps_the_queue_short() {
    let mut pair = flow(Loss::Never, Duration::from_secs(2));
    let used = share(&mut pair, Duration::from_secs(2), Duration::from_secs(9));
    assert!((0.97..=1.001).contains(&used), "{used}");
    let figures = pair.sender.figures();
    let rtt_ms = figures.smoothed_rtt.expect("it is known").as_micros() / 1_000;
    assert!((20..30).contains(&rtt_ms), "{rtt_ms} ms");
    let cwnd = figures.cwnd.get();
    assert!((2 * BDP..3 * BDP).contains(&cwnd), "{cwnd}");
}

#[test]
fn random_losses_do_not_slow_bbr_down() {
    // Two of a hundred packets are lost. CUBIC would hold a window of about ten packets.
    let mut pair = flow(Loss::Random(1_311, 7), Duration::from_secs(2));
    let used = share(&mut pair, Duration::from_secs(2), Duration::from_secs(9));
    assert!((0.93..1.0).contains(&used), "{used}");
}

#[test]
fn probe_rtt_comes_after_ten_seconds_and_drains_the_path() {
    let mut pair = flow(Loss::Never, Duration::from_secs(9));
    let mut least = u32::MAX;
    for step in 0..300 {
        pair.run_until(Instant::ZERO + ms(9_000 + 10 * step));
        least = least.min(pair.sender.figures().cwnd.get());
    }
    assert_eq!(least, 4);
    let used = share(&mut pair, ms(12_000), ms(18_000));
    assert!(used > 0.97, "{used} afterwards");
}

#[test]
fn a_pause_of_the_application_is_no_drop_of_the_bandwidth() {
    let mut pair = opened(Loss::Never, Duration::ZERO);
    let mut written = 4_000 * MSS;
    pair.sender.supply(Some(written));
    pair.run_until(Instant::ZERO + ms(4_000));
    let before = pair.sender.algorithm().sk_pacing_rate;
    // A segment every 5 ms is a tenth of the link, for 100 round trips.
    for step in 0..400 {
        written += MSS;
        pair.sender.supply(Some(written));
        pair.flush();
        pair.run_until(Instant::ZERO + ms(4_005 + 5 * step));
    }
    let after = pair.sender.algorithm().sk_pacing_rate;
    assert!(2 * after > before, "{before} and {after}");
}

#[test]
fn segments_leave_at_the_pacing_rate_of_the_algorithm() {
    let config = TcpConfig::new(Profile::Linux);
    let mut tcp = SenderScript::established(&config, bbr(&config), 100);
    tcp.supply(None);
    while tcp.take().is_some() {}
    tcp.at(200).ack(10);
    let mut times = vec![tcp.now()];
    while times.len() < 10 {
        let due = tcp.sender.next_timeout().expect("the next segment waits");
        tcp.sender.handle_timeout(due);
        times.extend(tcp.sender.poll_transmit(due).map(|_| due));
        assert!(tcp.sender.poll_transmit(due).is_none(), "two at once");
    }
    // 10 segments per 100 ms, times 2 / ln 2, less 1 %: one in 3.5 ms.
    // After the pause the second may follow in half the time.
    for pair in times[1..].windows(2) {
        let apart_us = (pair[1] - pair[0]).as_micros();
        assert!((3_480..=3_520).contains(&apart_us), "{times:?}");
    }
}

#[test]
fn bounds_limit_bbr_and_end() {
    let mut pair = flow(Loss::Never, Duration::from_secs(2));
    pair.sender.set_bounds(Bounds::from_numbers(0, 16, 0, 0));
    let used = share(&mut pair, Duration::from_secs(3), Duration::from_secs(6));
    // 16 of the 33 packets that the path holds.
    assert!((0.42..0.5).contains(&used), "{used}");
    pair.sender.set_bounds(Bounds::from_numbers(0, 0, 625_000, 0));
    let used = share(&mut pair, Duration::from_secs(7), Duration::from_secs(9));
    assert!((0.24..0.27).contains(&used), "{used}"); // 5 Mbit/s of payload
    pair.sender.set_bounds(Bounds::NONE);
    let used = share(&mut pair, Duration::from_secs(14), Duration::from_secs(19));
    assert!(used > 0.95, "{used}");
}

#[test]
fn a_connection_that_begins_late_does_not_begin_with_probe_rtt() {
    let mut pair = opened(Loss::Never, Duration::from_secs(60));
    pair.sender.supply(None);
    pair.run_until(Instant::ZERO + ms(60_300));
    let cwnd = pair.sender.figures().cwnd.get();
    assert!(cwnd > BDP, "{cwnd}");
}
