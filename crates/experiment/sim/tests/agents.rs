//! Agents: the connections with bounds, and the presence messages that arrive.

mod common;

use common::{DOWN, UP, goodput, scenario, simulate};
use wakeai_medium::{Destination, Node};
use wakeai_sim::{Job, Observer, Seen};
use wakeai_units::Duration;

fn law(name: &str, more: &str) -> String {
    format!("[[conditions]]\nname = \"one\"\nlaw = \"{name}\"\n{more}")
}

#[test]
fn a_ceiling_binds_uploads_and_not_downloads() {
    let fixed = law(
        "fixed",
        "bounds = [{ stations = \"tablet\", floor = 1, ceiling = 2 }]\n\
                              set = { \"stations.tablet.wired_delay\" = \"50ms\" }",
    );
    let (bound, ()) = simulate(&scenario("802.11g", 2, UP, &fixed), 1, ());
    // Two segments per round trip of 102 ms, from two stations, are 0.45 Mbit/s.
    assert!((0.35..0.5).contains(&goodput(&bound)), "{}", goodput(&bound));
    assert_eq!(bound.outcome.flows[0].algorithm.as_deref(), Some("wakeai_cubic"));
    let (free, ()) = simulate(&scenario("802.11g", 2, DOWN, &fixed), 1, ());
    assert!(goodput(&free) > 15.0, "{}", goodput(&free));
    assert_eq!(free.outcome.flows[0].algorithm.as_deref(), Some("cubic"));
}

#[test]
fn a_receive_window_binds_downloads_and_not_uploads() {
    let fixed = law(
        "fixed",
        "bounds = [{ stations = \"tablet\", receive = 2 }]\n\
                              set = { \"stations.tablet.wired_delay\" = \"50ms\" }",
    );
    let (bound, ()) = simulate(&scenario("802.11g", 2, DOWN, &fixed), 1, ());
    // Two segments per round trip are 0.45 Mbit/s. In the first seconds the growing buffers lift the limit.
    assert!((0.4..3.0).contains(&goodput(&bound)), "{}", goodput(&bound));
    let (free, ()) = simulate(&scenario("802.11g", 2, UP, &fixed), 1, ());
    assert!(goodput(&free) > 15.0, "{}", goodput(&free));
}

#[test]
fn uploads_and_downloads_share_the_air_under_the_law_airtime() {
    let more = "[[conditions]]\nname = \"default\"\n[[conditions]]\nname = \"airtime\"\nlaw = \"airtime\"\n\
         [[stations]]\nname = \"reader\"\ncount = 3\n[[flows]]\nfrom = \"server\"\nto = \"reader\"\n";
    let scenario = scenario("802.11n", 3, UP, more);
    let report = common::report(&scenario, &wakeai_world::Options::default());
    let [default, airtime] = &report.runs[..] else { panic!("two runs") };
    let index = |run: &wakeai_results::result::Run| run.capacity_normalised.expect("all sent");
    assert!(index(default) < 0.8 && index(airtime) > 0.95, "{:?}", index(airtime));
    assert!(airtime.total_goodput_mbps > 0.95 * default.total_goodput_mbps);
    assert!(airtime.rtt_ms.p95 < default.rtt_ms.p95.map(|rtt| rtt / 2.0));
}

#[test]
fn an_upload_beside_a_connection_that_sends_little_takes_no_longer_than_without_a_law() {
    let little = format!("{UP}\nlimit = \"50kbit/s\"");
    // At all parts of a tick of 500 ms.
    for (start, delay) in (5_000..5_500).step_by(50).flat_map(|start| [(start, 0), (start, 20)]) {
        let more = format!(
            "[[flows]]\n{UP}\nsize = \"4MB\"\nstart = \"{start}ms\"\n[wired]\ndelay = \"{delay}ms\"\n\
             [[conditions]]\nname = \"default\"\n[[conditions]]\nname = \"airtime\"\nlaw = \"airtime\""
        );
        let scenario = scenario("802.11n", 1, &little, &more);
        let report = common::report(&scenario, &wakeai_world::Options::default());
        let took = report.runs.iter().map(|run| run.flows[1].completion_s.expect("4 MB in 5 s"));
        let [without, airtime] = took.collect::<Vec<_>>()[..] else { panic!("two runs") };
        assert!(
            airtime < 1.2 * without,
            "{start} ms, a path of twice {delay} ms: {airtime} s, {without} s without a law"
        );
    }
}

#[test]
fn where_no_rate_is_expected_an_upload_beside_one_that_sends_little_takes_no_longer() {
    let little = format!("{UP}\nlimit = \"50kbit/s\"");
    for start in (5_000..5_500).step_by(50) {
        let bulk = format!("[[flows]]\n{UP}\nsize = \"4MB\"\nstart = \"{start}ms\"\n");
        let more = bulk + "[[conditions]]\nname = \"default\"\n" + &law("airtime", "");
        let scenario = scenario("802.11n", 1, &little, &more);
        let conditions = scenario.conditions();
        let took = conditions.iter().map(|condition| {
            // Without facts neither the PHY rate nor the rate that the station reaches alone is known.
            let job = Job { condition, seed: 1, facts: &[], sink: None, progress: Duration::ZERO };
            let flows = wakeai_sim::simulate(&job, ()).expect("it runs").0.outcome.flows;
            flows[1].completion.expect("4 MB in 5 s")
        });
        let [without, airtime] = took.collect::<Vec<_>>()[..] else { panic!("two runs") };
        assert!(airtime * 10 < without * 11, "{start} ms: {airtime:?}, {without:?} without a law");
    }
}

#[test]
fn a_ceiling_is_shared_among_the_connections_of_a_station() {
    let fixed = law(
        "fixed",
        "bounds = [{ stations = \"tablet\", ceiling = 8 }]\n\
                              set = { \"stations.tablet.wired_delay\" = \"50ms\" }",
    );
    let one = simulate(&scenario("802.11g", 1, UP, &fixed), 1, ()).0;
    let four = format!("{UP}\n[[flows]]\n{UP}\n[[flows]]\n{UP}\n[[flows]]\n{UP}");
    let four = simulate(&scenario("802.11g", 1, &four, &fixed), 1, ()).0;
    assert_eq!(four.outcome.flows.len(), 4);
    assert!((goodput(&four) / goodput(&one) - 1.0).abs() < 0.15);
}

/// Counts the presence messages that were sent and heard.
#[derive(Default)]
struct Presence {
    sent: u32,
    heard: u32,
    first: Option<Duration>,
}

impl Observer for Presence {
    fn on_sent(&mut self, at: Duration, _: Node, to: Destination, packet: Seen<'_>) {
        if let Seen::Presence(bytes) = packet {
            assert_eq!((to, bytes.len()), (Destination::Broadcast, 264));
            self.first.get_or_insert(at);
            self.sent += 1;
        }
    }

    fn on_received(&mut self, _: Duration, _: Node, _: Node, packet: Seen<'_>) {
        self.heard += u32::from(matches!(packet, Seen::Presence(_)));
    }
}

#[test]
fn presence_crosses_the_air_and_reaches_every_other_station() {
    let watching = law("airtime", "");
    let quiet = format!("{UP}\nkind = \"udp\"\nrate = \"100kbit/s\"");
    let scenario = scenario("802.11g", 4, &quiet, &watching);
    let (outcome, heard) = simulate(&scenario, 1, Presence::default());
    assert!(heard.sent >= 4 * 3, "{}", heard.sent);
    assert_eq!(heard.first, Some(Duration::ZERO), "agents begin before the run");
    // A broadcast that collides is not sent again.
    assert!(heard.heard > heard.sent * 3 * 9 / 10, "{} of {}", heard.heard, heard.sent * 3);
    assert!(outcome.counters.access_point.broadcasts > 0);
}

#[test]
fn the_law_airtime_shortens_the_queue_at_full_goodput() {
    let more =
        "[[conditions]]\nname = \"default\"\n[[conditions]]\nname = \"airtime\"\nlaw = \"airtime\"";
    let scenario = scenario("802.11n", 6, UP, more);
    let report = common::report(&scenario, &wakeai_world::Options::default());
    let [default, airtime] = &report.runs[..] else { panic!("two runs") };
    assert!(airtime.total_goodput_mbps > 0.95 * default.total_goodput_mbps);
    assert!(airtime.rtt_ms.p95 < default.rtt_ms.p95.map(|rtt| rtt / 2.0));
}

#[test]
fn phones_without_peers_keep_a_short_queue_on_a_cellular_link() {
    let text = include_str!("../../../../scenarios/lte.toml");
    let text = text.replace("duration = \"60s\"", "duration = \"30s\"");
    let scenario = wakeai_scenario::Scenario::parse(&text).expect("a valid scenario");
    let conditions = vec!["default".to_owned(), "airtime".to_owned()];
    let options = wakeai_world::Options { conditions, ..Default::default() };
    let report = common::report(&scenario, &options);
    let [default, airtime] = &report.runs[..] else { panic!("two runs") };
    assert!(airtime.total_goodput_mbps > 0.97 * default.total_goodput_mbps);
    assert!(airtime.rtt_ms.p95 < default.rtt_ms.p95.map(|rtt| rtt / 4.0));
}
