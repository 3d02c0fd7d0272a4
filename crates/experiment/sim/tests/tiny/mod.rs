//! Makes a tiny random scenario from bytes, runs it, and checks its figures. The fuzz targets use this file, too.

use std::fmt::Write as _;

use wakeai_results::result::{Report, RttMillis, Run};
use wakeai_scenario::{Expanded, Experiment, FlowKind, Node, Scenario};
use wakeai_units::{Duration, Rate};
use wakeai_world::{Options, Silent};

/// Reads choices from bytes, one byte each. After the last byte each choice is the first one.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn below(&mut self, count: usize) -> usize {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        usize::from(*first) % count
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// True in one of `count` cases.
    fn rarely(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }

    /// A line `key = value`, in one of three cases.
    fn line(&mut self, text: &mut String, key: &str, of: &[&str]) {
        if self.rarely(3) {
            let value = self.one(of);
            let _ = writeln!(text, "{key} = {value}");
        }
    }
}

const STANDARDS: [&str; 5] = ["802.11a", "802.11g", "802.11n", "802.11ac", "802.11ax"];
const DURATIONS_MS: [u32; 10] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000];
const BUFFERS: [&str; 7] = ["1", "2", "10", "100", "1000", "\"2296B\"", "\"60kB\""];
const RATES: [&str; 6] =
    ["\"1kbit/s\"", "\"64kbit/s\"", "\"1Mbit/s\"", "\"20Mbit/s\"", "\"1Gbit/s\"", "\"1000Gbit/s\""];
const DELAYS: [&str; 5] = ["\"0s\"", "\"1us\"", "\"1ms\"", "\"100ms\"", "\"60s\""];
const ALGORITHMS: [&str; 10] = [
    "cubic",
    "reno",
    "wakeai_cubic",
    "wakeai_reno",
    "wakeai_rtt",
    "wakeai_compound",
    "wakeai_av",
    "ns3_cubic",
    "bbr",
    "wakeai_bbr",
];
/// Names of the groups of stations.
const GROUPS: [&str; 3] = ["a", "b", "c"];

/// A scenario with at most six stations that lasts at most a second. Not every one is valid.
pub(crate) fn scenario(bytes: &[u8]) -> String {
    let mut choices = Choices(bytes);
    let duration = choices.one(&DURATIONS_MS);
    let mut text = format!("name = \"tiny\"\nduration = \"{duration}ms\"\n");
    if choices.rarely(4) {
        let _ =
            writeln!(text, "warmup = \"{}us\"", duration * 1_000 / 255 * choices.below(255) as u32);
    }
    let standard = access_point(&mut text, &mut choices);
    text.push_str("[wired]\n");
    choices.line(&mut text, "rate", &RATES);
    choices.line(&mut text, "delay", &DELAYS);
    choices.line(&mut text, "queue", &BUFFERS);
    let groups = 1 + choices.below(GROUPS.len());
    for name in &GROUPS[..groups] {
        stations(&mut text, name, standard, &mut choices);
    }
    for _ in 0..=choices.below(4) {
        flow(&mut text, &GROUPS[..groups], duration, &mut choices);
    }
    if choices.rarely(4) {
        let (at, group) = (choices.below(duration as usize), choices.one(&GROUPS[..groups]));
        let _ = write!(text, "[[events]]\nat = \"{at}ms\"\nstation = \"{group}\"\nwired_delay = ");
        let _ = writeln!(text, "{}", choices.one(&DELAYS));
    }
    text.push_str("[[conditions]]\nname = \"plain\"\n");
    let law = choices.one(&[
        "\"airtime\"",
        "\"shimada-before\"",
        "\"shimada-after\"",
        "{ name = \"airtime\", queue_min = \"10s\", queue_max = \"10s\" }",
        "{ name = \"airtime\", queue_rounds_percent = 1 }",
        "\"fixed\"",
    ]);
    let _ = writeln!(text, "[[conditions]]\nname = \"law\"\nlaw = {law}");
    if law == "\"fixed\"" {
        let bounds = choices.one(&["ceiling = 1", "floor = 1000000", "floor = 2, ceiling = 3"]);
        let _ = writeln!(text, "bounds = [{{ stations = \"a\", {bounds} }}]");
    }
    text
}

/// Returns the standard; `None` on a cellular link.
fn access_point(text: &mut String, choices: &mut Choices<'_>) -> Option<usize> {
    text.push_str("[access_point]\n");
    choices.line(text, "buffer", &BUFFERS);
    if choices.rarely(8) {
        text.push_str("medium = \"cellular\"\n");
        for key in ["uplink", "downlink"] {
            let _ = writeln!(text, "{key} = {}", choices.one(&RATES));
        }
        choices.line(text, "scheduler", &["\"round-robin\""]);
        return None;
    }
    let standard = choices.below(STANDARDS.len());
    let _ = writeln!(text, "standard = \"{}\"", STANDARDS[standard]);
    choices.line(text, "queue", &["\"fq\""]);
    choices.line(text, "protection", &["\"cts-to-self\"", "\"rts-cts\""]);
    choices.line(text, "retry_limit", &["1", "2", "255"]);
    choices.line(
        text,
        "contention",
        &[
            "{ cw_min = 0, cw_max = 0 }",
            "{ cw_min = 0, cw_max = 32767 }",
            "{ aifsn = 15, cw_min = 1023 }",
            "{ aifsn = 1, txop = \"8160us\" }",
        ],
    );
    if standard >= 2 {
        let widths = ["\"20MHz\"", "\"40MHz\"", "\"80MHz\"", "\"160MHz\""];
        let streams = ["1", "2", "3", "4", "5", "6", "7", "8"];
        let wide = if standard == 2 { (2, 4) } else { (4, 8) };
        choices.line(text, "width", &widths[..wide.0]);
        choices.line(text, "streams", &streams[..wide.1]);
        choices.line(text, "ampdu", &["1", "1500", "65535"]);
        choices.line(text, "ampdu_subframes", &["1", "2", "64"]);
        choices.line(
            text,
            "guard_interval",
            if standard == 4 { &["\"1600ns\"", "\"3200ns\""] } else { &["\"400ns\""] },
        );
    }
    Some(standard)
}

fn stations(text: &mut String, name: &str, standard: Option<usize>, choices: &mut Choices<'_>) {
    let _ = writeln!(text, "[[stations]]\nname = \"{name}\"\ncount = {}", 1 + choices.below(2));
    choices.line(text, "queue", &["1", "2", "50"]);
    choices.line(text, "wired_delay", &DELAYS);
    choices.line(text, "max", &RATES);
    let tcp = choices.rarely(4);
    if tcp {
        text.push_str("tcp = \"classic\"\n");
    } else if standard.is_some() {
        choices.line(text, "host_queue", &["\"tsq\"", "\"mac80211\""]);
    }
    let Some(standard) = standard else { return };
    choices.line(text, "frame_error_rate", &["0.01", "0.2", "0.6", "0.99", "1.0"]);
    // The lowest rates are those of every width and number of streams, with the long guard interval.
    match standard {
        0 | 1 => choices.line(text, "rate", &["\"6Mbit/s\"", "\"24Mbit/s\""]),
        4 if !text.contains("guard_interval") => choices.line(text, "rate", &["\"8.6Mbit/s\""]),
        2 | 3 if !text.contains("guard_interval") => choices.line(text, "rate", &["\"6.5Mbit/s\""]),
        _ => {}
    }
    if standard >= 3 && !text.contains("\nrate = \"8.6") && !text.contains("\nrate = \"6.5") {
        choices.line(text, "standard", &["\"802.11n\"", "\"802.11a\""]);
    }
}

fn flow(text: &mut String, groups: &[&str], duration: u32, choices: &mut Choices<'_>) {
    let group = choices.one(groups);
    let other = choices.one(groups);
    let (from, to) = match choices.below(4) {
        0 => ("server", group),
        1 if other != group => (group, other),
        _ => (group, "server"),
    };
    let _ = writeln!(text, "[[flows]]\nfrom = \"{from}\"\nto = \"{to}\"");
    let start = choices.below(duration as usize);
    if choices.rarely(3) {
        let _ = writeln!(text, "start = \"{start}ms\"");
    } else {
        let _ = writeln!(text, "jitter = \"{start}ms\"");
    }
    let sized = choices.rarely(2);
    if sized {
        let _ = writeln!(
            text,
            "size = {}",
            choices.one(&["\"1B\"", "\"1449B\"", "\"100kB\"", "\"1TB\""])
        );
    }
    if choices.rarely(3) {
        if choices.rarely(3) {
            let algorithm = choices.one(&["cubic", "reno"]);
            let _ = writeln!(text, "kind = \"quic\"\nalgorithm = \"{algorithm}\"");
            return choices.line(text, "limit", &RATES);
        }
        text.push_str("kind = \"udp\"\n");
        choices.line(text, "rate", &RATES[..5]);
        return;
    }
    let algorithm = choices.one(&ALGORITHMS);
    let _ = writeln!(text, "algorithm = \"{algorithm}\"");
    if algorithm == "wakeai_av" || choices.rarely(4) {
        let _ = writeln!(text, "rate = {}", choices.one(&RATES));
        choices.line(text, "reserve", &["true"]);
    }
    choices.line(text, "limit", &RATES);
    if sized {
        choices.line(text, "chunks", &["2", "100", "\"auto\""]);
        choices.line(text, "turns", &["true"]);
    }
}

/// Runs the scenario that the bytes stand for, and checks the figures. Returns whether it was valid.
///
/// # Panics
/// Panics where a run fails or a figure is not a possible one.
pub(crate) fn runs(bytes: &[u8], seed: u64) -> bool {
    let Ok(scenario) = Scenario::parse(&scenario(bytes)) else { return false };
    let options = Options { seed, ..Options::default() };
    let run = || {
        let mut report = wakeai_sim::run(&options, 1, &scenario, &Silent).expect("it runs");
        report.runs.iter_mut().for_each(|run| run.wall_s = 0.0);
        report
    };
    let report = run();
    assert_eq!(report.runs.len(), scenario.conditions().len());
    for (condition, run) in scenario.conditions().iter().zip(&report.runs) {
        let experiment = &condition.experiment;
        Possible { experiment, expanded: &experiment.expand(seed), run }.check();
    }
    let text = report.to_json();
    assert!(!text.contains("-0.0"), "a figure is minus zero");
    let read = |text: &str| Report::from_json(text).expect("it is read back");
    let rounded = read(&text);
    assert!(read(&rounded.to_json()).runs == rounded.runs, "it is read back as another");
    assert!(run().to_json() == text, "the same scenario and seed have another result");
    true
}

/// A run and what bounds its figures.
struct Possible<'a> {
    experiment: &'a Experiment,
    expanded: &'a Expanded,
    run: &'a Run,
}

/// Rates are rounded down to whole bits per second, so sums of them may be a little less.
const ROUNDED: f64 = 1e-4;

impl Possible<'_> {
    fn check(&self) {
        // A new figure needs a look here.
        let Run {
            condition: _,
            repeat: _,
            simulated_s,
            wall_s: _,
            total_goodput_mbps,
            jain,
            capacity_normalised,
            mean_utilisation,
            rtt_ms,
            errors,
            stations,
            groups,
            flows,
            lateness,
            packets_digest,
            frames,
            drops,
            field: _,
        } = self.run;
        let duration = self.experiment.duration.as_secs_f64();
        let warmup = self.experiment.warmup.as_secs_f64();
        assert!((0.0..=duration).contains(simulated_s), "{simulated_s} of {duration}");
        let share = |index: &f64| (0.0..=1.0 + 1e-9).contains(index);
        let least = 1.0 / stations.len() as f64 - 1e-9;
        assert!(jain.is_none_or(|index| share(&index) && index >= least), "{jain:?}");
        assert!(capacity_normalised.is_none_or(|index| share(&index) && index >= least));
        assert!(mean_utilisation.is_none_or(|mean| mean.is_finite() && mean >= 0.0));
        assert!(lateness.is_none() && packets_digest.is_none() && drops.is_some());
        assert!(frames.is_some_and(|sent| sent.mpdus >= sent.ppdus), "{frames:?}");
        self.check_rtt(rtt_ms);
        for group in groups {
            assert!(group.goodput_mbps.is_finite() && group.goodput_mbps >= 0.0, "{group:?}");
            assert!(group.jain.is_none_or(|index| share(&index)), "{group:?}");
            self.check_rtt(&group.rtt_ms);
        }
        for station in stations {
            assert!(station.goodput_mbps.is_finite() && station.goodput_mbps >= 0.0);
            assert!(station.max_mbps.is_none_or(|max| max.is_finite() && max >= 0.0));
        }
        self.check_flows();
        let bytes: u64 = flows.iter().map(|flow| flow.bytes).sum();
        let window = (simulated_s - warmup).max(0.0);
        let most = bytes as f64 * 8e-6;
        assert!(total_goodput_mbps * window <= most + ROUNDED, "{total_goodput_mbps}, {bytes}");
        let errors = errors.expect("the simulator counts them");
        let timeouts: u64 = flows.iter().filter_map(|flow| flow.timeouts).sum();
        assert!(errors.timeout <= timeouts, "{} entered Loss, {timeouts} timeouts", errors.timeout);
        self.check_air();
    }

    /// Percentiles are in order, and no round trip is shorter than the wire.
    fn check_rtt(&self, rtt: &RttMillis) {
        let all = [rtt.p50, rtt.p95, rtt.p99];
        assert!(all.iter().all(Option::is_some) || all.iter().all(Option::is_none), "{rtt:?}");
        let known: Vec<f64> = all.into_iter().flatten().collect();
        assert!(known.is_sorted(), "{rtt:?}");
        let crosses = |node: Node| node == Node::Server;
        let all_cross =
            self.expanded.flows.iter().all(|flow| crosses(flow.from) || crosses(flow.to));
        let wire = self.experiment.wired.delay.as_secs_f64() * 2e3;
        let least = if all_cross { wire } else { 0.0 };
        assert!(known.iter().all(|rtt| rtt.is_finite() && *rtt >= least), "{rtt:?}, {least} ms");
    }

    fn check_flows(&self) {
        let end = self.run.simulated_s;
        assert_eq!(self.run.flows.len(), self.expanded.flows.len());
        for (flow, spec) in self.run.flows.iter().zip(&self.expanded.flows) {
            let about = || format!("{flow:?}\n{spec:?}");
            let left = (end - spec.start.as_secs_f64()).max(0.0);
            assert!(flow.goodput_mbps.is_finite() && flow.goodput_mbps >= 0.0, "{}", about());
            assert!(
                flow.goodput_mbps * left.min(end) <= flow.bytes as f64 * 8e-6 + ROUNDED
                    || self.experiment.warmup > Duration::ZERO
                    || flow.completion_s.is_some(),
                "{}",
                about()
            );
            assert!(spec.size.is_none_or(|size| flow.bytes <= size.get()), "{}", about());
            let is_whole = spec.size.is_some_and(|size| flow.bytes == size.get());
            assert_eq!(flow.completion_s.is_some(), is_whole, "{}", about());
            assert!(
                flow.completion_s.is_none_or(|at| (0.0..=left + 1e-6).contains(&at)),
                "{}",
                about()
            );
            assert_eq!(flow.avr, None, "there is no window of 5 s");
            if let Some(simulated) = &flow.simulated {
                let within = |time: f64| (0.0..=end + 1e-6).contains(&time);
                assert!(
                    within(simulated.syn_wait_s) && within(simulated.longest_stall_s),
                    "{}",
                    about()
                );
                assert!(simulated.syn_timeouts == 0 || simulated.syn_wait_s > 0.0, "{}", about());
            }
            if spec.kind == FlowKind::Udp {
                assert_eq!(
                    (flow.retransmits, flow.timeouts, &flow.algorithm),
                    (Some(0), Some(0), &None),
                    "{}",
                    about()
                );
                // A datagram leaves at the flow's start and then at its rate.
                let most = spec.rate.map(|rate| rate.as_mbps_f64() * left / 8e-6 + 2.0 * 1472.0);
                assert!(most.is_none_or(|most| flow.bytes as f64 <= most), "{}", about());
            }
        }
    }

    /// Nothing arrives faster than the air and the wire carry it.
    fn check_air(&self) {
        let sum = |is_it: &dyn Fn(Node, Node) -> bool| -> f64 {
            let flows = self.run.flows.iter().zip(&self.expanded.flows);
            let bytes =
                flows.filter(|(_, spec)| is_it(spec.from, spec.to)).map(|(flow, _)| flow.bytes);
            bytes.sum::<u64>() as f64 * 8.0
        };
        let carries = |rate: Rate| rate.as_mbps_f64() * 1e6 * self.run.simulated_s;
        for bits in [sum(&|_, to| to == Node::Server), sum(&|from, _| from == Node::Server)] {
            let most = carries(self.experiment.wired.rate);
            assert!(bits <= most, "{bits} bits over a wire of {most}");
        }
        let rates =
            self.experiment.stations.iter().map(|group| group.radio.map(|radio| radio.rate));
        if let Some(fastest) =
            rates.collect::<Option<Vec<_>>>().map(|rates| rates.into_iter().max())
        {
            let bits = sum(&|from, to| (from, to) != (Node::Server, Node::Server));
            let most = carries(fastest.expect("a station"));
            assert!(bits <= most, "{bits} bits over air of {most}");
        }
    }
}
