//! All data arrives once and in order, whatever the path does.

use proptest::prelude::*;
use wakeai_connection::Bounds;
use wakeai_units::{Duration, Instant, Rate};

use super::path::{Direction, SimulatedPath};
use crate::{Profile, Reading, TcpConfig};

fn plain(profile: Profile, bytes: u64) -> SimulatedPath {
    let config = TcpConfig::new(profile);
    let mut path = SimulatedPath::new(&config, "cubic", Direction::of(10), Direction::of(10));
    path.open(Some(bytes));
    path
}

#[test]
fn a_clean_path_takes_as_many_round_trips_as_slow_start() {
    // 10 + 20 + 40 + 80 segments take a handshake and four round trips. The FINs take one more.
    for profile in [Profile::Linux, Profile::Classic] {
        let mut path = plain(profile, 150 * 1448);
        let end = path.finish(10);
        assert!(end.as_nanos() <= 150_000_000, "{end}");
        assert_eq!(path.receiver.bytes_read(), 150 * 1448);
        assert_eq!(path.sender.counters().retransmits, 0);
        assert_eq!(path.sender.counters().timeouts, 0);
    }
}

#[test]
fn every_size_arrives_whole() {
    for profile in [Profile::Linux, Profile::Classic] {
        for bytes in [0, 1, 1447, 1448, 1449, 14_480, 14_481, 1_000_000] {
            let mut path = plain(profile, bytes);
            path.finish(100);
            assert_eq!(path.receiver.bytes_read(), bytes);
        }
    }
}

#[test]
fn what_is_sent_again_is_paced_like_the_rest() {
    let config = TcpConfig::new(Profile::Linux);
    let up = Direction { loss: 10, ..Direction::of(10) };
    let mut path = SimulatedPath::new(&config, "wakeai_cubic", up, Direction::of(10));
    path.sender.set_bounds(Bounds::from_numbers(20, 20, 100_000, 0));
    path.open(Some(1_000_000));
    let end = path.finish(100);
    assert!(path.sender.counters().retransmits > 50, "{:?}", path.sender.counters());
    // 1.1 MB take 11 s at 100 kB/s. With a timeout for each hole they would take far longer.
    assert!((10_000..14_000).contains(&(end.as_nanos() / 1_000_000)), "{end}");
}

#[test]
fn what_has_not_left_the_host_is_not_sent_again() {
    // The host's queue stalls for two seconds, far beyond the retransmission timeout.
    for told in [true, false] {
        let mut config = TcpConfig::new(Profile::Linux);
        config.small_queues = told;
        let mut path = SimulatedPath::new(&config, "cubic", Direction::of(10), Direction::of(10));
        path.open(None);
        path.run_until(Instant::ZERO + Duration::from_millis(100));
        assert_eq!(path.sender.counters().retransmits, 0);
        path.stall(Duration::from_secs(2));
        path.run_until(Instant::ZERO + Duration::from_millis(2_000));
        assert!(path.sender.counters().timeouts > 0);
        assert_eq!(path.sender.counters().retransmits == 0, told);
    }
}

#[derive(Clone, Debug)]
struct Weather {
    bytes: u64,
    up: Direction,
    down: Direction,
    local_drop: u64,
    small_queues: bool,
    small_buffer: bool,
    /// Bytes per second at which the receiving application reads; 0: at once.
    read_rate: u64,
    /// Floor, ceiling, pacing rate and share of the host's queue; 0: none.
    bounds: Option<(u32, u32, u64, u64)>,
    seed: u64,
}

fn direction() -> impl Strategy<Value = Direction> {
    let rate = prop_oneof![Just(0), 10_000..2_000_000_u64];
    let often = |least: u64| prop_oneof![3 => Just(0), 2 => least..200];
    (often(4), often(2), often(2), 0..200_u64, 0..300_u64, rate, 4..300_u64).prop_map(
        |(loss, copy, reorder, delay, extra, serialization, queue)| Direction {
            loss,
            copy,
            reorder,
            delay: Duration::from_millis(delay),
            extra: Duration::from_millis(extra),
            serialization: Duration::from_nanos(serialization),
            queue,
        },
    )
}

fn weather() -> impl Strategy<Value = Weather> {
    let drops = prop_oneof![3 => Just(0), 1 => 5..100_u64];
    let reads = prop_oneof![3 => Just(0), 1 => 100_000..2_000_000_u64];
    let paced = prop_oneof![Just(0), 50_000..5_000_000_u64];
    let bounds = prop::option::weighted(0.3, (0..20_u32, 0..20_u32, paced, 0..100_000_u64));
    let hosts = (drops, any::<bool>(), any::<bool>(), reads, bounds);
    (0..600_000_u64, direction(), direction(), hosts, any::<u64>()).prop_map(
        |(bytes, up, down, (local_drop, small_queues, small_buffer, read_rate, bounds), seed)| {
            Weather {
                bytes,
                up,
                down,
                local_drop,
                small_queues,
                small_buffer,
                read_rate,
                bounds,
                seed,
            }
        },
    )
}

fn transfer(profile: Profile, algorithm: &str, weather: &Weather) -> SimulatedPath {
    let mut config = TcpConfig::new(profile);
    config.small_queues = weather.small_queues;
    if weather.small_buffer {
        config.receive_buffer_limit = 20_000;
    }
    // Linux would rightly give up on some paths. With these settings it does not.
    config.syn_retries = 100;
    config.retries = 1000;
    config.max_timeout = Duration::from_secs(2);
    let mut path =
        SimulatedPath::new(&config, algorithm, weather.up, weather.down).seeded(weather.seed);
    path.local_drop = weather.local_drop;
    if weather.read_rate > 0 {
        path.receiver.set_reading(path.now, Reading::At(Rate::from_bps(8 * weather.read_rate)));
    }
    if let Some((floor, ceiling, pacing, small_queue)) = weather.bounds {
        path.sender.set_bounds(Bounds::from_numbers(floor, ceiling, pacing, small_queue));
    }
    path.open(Some(weather.bytes));
    path.finish(100_000);
    path
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn everything_arrives_over_any_path(weather in weather()) {
        for profile in [Profile::Linux, Profile::Classic] {
            for algorithm in ["cubic", "reno", "bbr"] {
                let path = transfer(profile, algorithm, &weather);
                prop_assert_eq!(path.receiver.bytes_read(), weather.bytes);
                prop_assert_eq!(path.sender.figures().send_queue.get(), 0);
            }
        }
    }
}
