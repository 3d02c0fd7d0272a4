//! Tests of whole runs on this kernel. They need root, iperf3 and BPF.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "helpers of tests panic and print as tests do"
)]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wakeai_host::{Holder, holders};
use wakeai_lab::{LabError, LabOptions};
use wakeai_results::result::Run;
use wakeai_scenario::Scenario;
use wakeai_world::{Options, Silent};

/// The largest number of runs of a scenario. On a shared machine the lab may sometimes lose the
/// processor for tens of milliseconds, which spoils a run. An error of the lab shows in every run.
const TRIES: usize = 3;

fn able() -> bool {
    let able = nix::unistd::geteuid().is_root() && Path::new("/dev/net/tun").exists();
    if !able {
        assert!(std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_none(), "root and TUN are needed");
        println!("skipped: this needs root and /dev/net/tun");
    }
    able
}

/// Makes the labs of one process take turns: a process has only one lease, and labs disturb each other's measurements.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn options() -> LabOptions {
    LabOptions {
        run: Options::default(),
        lateness_p99: wakeai_units::Duration::from_millis(1),
        lateness_max: wakeai_units::Duration::from_millis(20),
        waits_p99: wakeai_units::Duration::from_millis(50),
        wakeai: "/nonexistent/wakeai".into(),
        metrics: None,
        in_guest: false,
    }
}

/// Runs the scenario, up to [`TRIES`] times, until `check` finds no error in a run.
fn run(scenario: &str, check: impl Fn(&Run) -> Result<(), String>) {
    let scenario = Scenario::parse(scenario).unwrap();
    let mut wrong = Vec::new();
    while wrong.len() < TRIES {
        let report = match wakeai_lab::run(&options(), &scenario, &Silent) {
            Ok(report) => report,
            Err(LabError::Unfaithful { report, .. }) => *report,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(report.runs.len(), 1);
        match check(&report.runs[0]) {
            Ok(()) => return,
            Err(found) => wrong.push((found, report.runs[0].lateness)),
        }
    }
    panic!("wrong in every run: {wrong:#?}")
}

/// An error with the text of `found` where `holds` is false.
fn ensure(holds: bool, found: impl std::fmt::Debug) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{found:?}")) }
}

/// The objects of this process on the host: namespaces, leases and files.
fn left_of(pid: u32) -> Vec<String> {
    let mark = format!("wakeai-{pid}-");
    let names = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let namespaces = names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(&mark));
    let of = |holder: &Holder| holder.process.pid.unsigned_abs() == pid;
    let leases = holders().unwrap().into_iter().filter(of).map(|holder| format!("{holder:?}"));
    let files = [format!("/run/wakeai/lab-{pid}")];
    let files = files.into_iter().filter(|path| Path::new(path).exists());
    namespaces.chain(leases).chain(files).collect()
}

/// In ns-3 3.37 a saturated 802.11g uplink of one station carries 29.7 Mbit/s of UDP payload with
/// the same settings.
#[test]
fn one_saturated_station_reaches_ns_3_s_goodput_and_leaves_nothing() {
    if !able() {
        return;
    }
    let _alone = alone();
    let scenario = r#"
        name = "one-station"
        duration = "5s"
        warmup = "1s"
        [access_point]
        standard = "802.11g"
        [[stations]]
        name = "tablet"
        max = "30Mbit/s"
        [[flows]]
        from = "tablet"
        to = "server"
        kind = "udp"
        "#;
    run(scenario, |run| {
        let goodput = run.total_goodput_mbps;
        assert_eq!(run.mean_utilisation, Some(goodput / 30.0));
        ensure((goodput / 29.7 - 1.0).abs() < 0.05, format!("{goodput} Mbit/s instead of 29.7"))
    });
    let left = left_of(std::process::id());
    assert!(left.is_empty(), "{left:?}");
}

/// An aggregate of 4 frames (an A-MPDU) is on the air for 800 us. With the waits and the
/// acknowledgement around it, it takes 958.5 us, which makes 49.1 Mbit/s of payload. Aggregates of
/// 28 frames carry 59.8 Mbit/s (crates/experiment/sim/tests/aggregation.rs has the calculation).
#[test]
fn an_ampdu_has_as_many_subframes_as_the_scenario_says() {
    if !able() {
        return;
    }
    let _alone = alone();
    let scenario = r#"
        name = "four"
        duration = "4s"
        warmup = "1s"
        [access_point]
        standard = "802.11n"
        ampdu_subframes = 4
        [[stations]]
        name = "tablet"
        max = "50Mbit/s"
        [[flows]]
        from = "tablet"
        to = "server"
        kind = "udp"
        "#;
    run(scenario, |run| {
        let goodput = run.total_goodput_mbps;
        ensure((goodput / 49.1 - 1.0).abs() < 0.05, format!("{goodput} Mbit/s instead of 49.1"))
    });
}

#[test]
fn sized_flows_arrive_whole_and_end_the_run() {
    if !able() {
        return;
    }
    let _alone = alone();
    let scenario = r#"
        name = "sized"
        duration = "60s"
        [access_point]
        standard = "802.11n"
        [[stations]]
        name = "tablet"
        count = 2
        max = "50Mbit/s"
        [[flows]]
        from = "tablet"
        to = "server"
        size = "3MB"
        chunks = 4
        [[flows]]
        from = "server"
        to = "tablet1"
        size = "1MB"
        algorithm = "reno"
        "#;
    run(scenario, |run| {
        let bytes: Vec<_> = run.flows.iter().map(|flow| flow.bytes).collect();
        assert_eq!(bytes, [3_000_000, 3_000_000, 1_000_000]);
        assert!(run.flows.iter().all(|flow| flow.completion_s.is_some()), "{:?}", run.flows);
        let last = run.flows.iter().filter_map(|flow| flow.completion_s).fold(0.0, f64::max);
        assert!((run.simulated_s - last).abs() < 1e-6, "the run ends with its last byte");
        assert_eq!(run.flows[2].algorithm.as_deref(), Some("reno"));
        Ok(())
    });
}

#[test]
fn a_flow_with_a_limit_carries_that_and_no_more() {
    if !able() {
        return;
    }
    let _alone = alone();
    let scenario = r#"
        name = "limited"
        duration = "4s"
        [access_point]
        standard = "802.11n"
        [[stations]]
        name = "camera"
        max = "50Mbit/s"
        [[flows]]
        from = "camera"
        to = "server"
        limit = "2Mbit/s"
        [[flows]]
        from = "server"
        to = "camera"
        limit = "2Mbit/s"
        size = "500kB"
        chunks = 3
        "#;
    run(scenario, |run| {
        assert_eq!(run.flows[1].bytes, 500_000);
        let completion = run.flows[1].completion_s.unwrap();
        assert!(completion >= 2.0, "500 kB are not there before {completion} s");
        assert_eq!(run.errors.unwrap().local_overflow, 0);
        // The limit is 250 bytes per millisecond, over 4 s. The last segment may still be under
        // way.
        let most = 4_000 * 250;
        assert!(run.flows[0].bytes <= most, "{:?}", run.flows);
        ensure(run.flows[0].bytes >= most * 95 / 100, &run.flows)?;
        // A small round-trip time shows that no queue builds up.
        ensure(run.rtt_ms.p50.unwrap() < 20.0, run.rtt_ms)
    });
}

#[test]
fn an_endless_flow_is_counted_from_both_ends_alike() {
    if !able() {
        return;
    }
    let _alone = alone();
    let scenario = r#"
        name = "endless"
        duration = "6s"
        warmup = "2s"
        [access_point]
        standard = "802.11g"
        [[stations]]
        name = "tablet"
        wired_delay = "20ms"
        max = "30Mbit/s"
        [[flows]]
        from = "tablet"
        to = "server"
        [[flows]]
        from = "server"
        to = "tablet"
        start = "1s"
        "#;
    run(scenario, |run| {
        // The kernel measures the round-trip times, and each packet crosses the wire's 20 ms twice.
        assert!(run.rtt_ms.p50.unwrap() >= 40.0, "{:?}", run.rtt_ms);
        // The download's ACKs wait in the queue of the upload. So the download gets only 0.8 to
        // 2.5 MB, depending on where its slow start ends.
        ensure(run.flows.iter().all(|flow| flow.bytes > 400_000), &run.flows)?;
        // TCP's ACKs take air, too: its goodput is between half and all of the 29.7 Mbit/s of UDP.
        let goodput = run.total_goodput_mbps;
        ensure((14.8..29.7).contains(&goodput), goodput)
    });
}

#[test]
fn quic_flows_have_the_figures_of_their_sender_and_their_receiver() {
    if !able() {
        return;
    }
    let _alone = alone();
    let scenario = r#"
        name = "quic"
        duration = "6s"
        [access_point]
        standard = "802.11g"
        [[stations]]
        name = "tablet"
        wired_delay = "20ms"
        max = "30Mbit/s"
        [[flows]]
        from = "tablet"
        to = "server"
        kind = "quic"
        limit = "4Mbit/s"
        [[flows]]
        from = "server"
        to = "tablet"
        kind = "quic"
        algorithm = "reno"
        size = "3MB"
        [[flows]]
        from = "tablet"
        to = "server"
        kind = "quic"
        start = "4s"
        "#;
    run(scenario, |run| {
        // Each packet crosses the wire's 20 ms twice.
        assert!(run.rtt_ms.p50.unwrap() >= 40.0, "{:?}", run.rtt_ms);
        let [limited, sized, endless] = &run.flows[..] else { panic!("{:?}", run.flows) };
        let algorithms = run.flows.iter().map(|flow| flow.algorithm.as_deref());
        assert!(algorithms.eq([Some("cubic"), Some("reno"), Some("cubic")]), "{:?}", run.flows);
        assert!(limited.bytes <= 3_000_000, "4 Mbit/s for 6 s: {limited:?}");
        ensure(limited.bytes >= 2_500_000, limited)?;
        ensure(sized.bytes == 3_000_000 && sized.completion_s.is_some(), sized)?;
        ensure(endless.bytes > 1_000_000, endless)
    });
    let left = left_of(std::process::id());
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_agent_that_cannot_start_fails_the_run_and_leaves_nothing() {
    if !able() {
        return;
    }
    let _alone = alone();
    let scenario = Scenario::parse(
        r#"
        name = "no-agent"
        duration = "2s"
        [access_point]
        standard = "802.11g"
        [[stations]]
        name = "tablet"
        max = "30Mbit/s"
        [[flows]]
        from = "tablet"
        to = "server"
        [[conditions]]
        name = "bounded"
        law = "airtime"
        "#,
    )
    .unwrap();
    let options = LabOptions { wakeai: "/bin/false".into(), ..options() };
    let error = wakeai_lab::run(&options, &scenario, &Silent).unwrap_err();
    assert!(matches!(&error, LabError::Child { program: "the agent", .. }), "{error}");
    assert_eq!(error.exit_status(), 1);
    let left = left_of(std::process::id());
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_proxy_that_cannot_start_fails_the_run_and_leaves_nothing() {
    if !able() {
        return;
    }
    let _alone = alone();
    let scenario = Scenario::parse(
        r#"
        name = "no-proxy"
        duration = "2s"
        [access_point]
        standard = "802.11g"
        [[stations]]
        name = "player"
        proxy = true
        max = "30Mbit/s"
        [[flows]]
        from = "player"
        to = "server"
        "#,
    )
    .unwrap();
    let options = LabOptions { wakeai: "/bin/false".into(), ..options() };
    let error = wakeai_lab::run(&options, &scenario, &Silent).unwrap_err();
    assert!(matches!(&error, LabError::Child { program: "the proxy", .. }), "{error}");
    let left = left_of(std::process::id());
    assert!(left.is_empty(), "{left:?}");
}

/// The UDP flow fills the queue of the wire for minutes, and the SYN of the TCP flow, or the exchange of iperf3 before it,
/// waits there. iperf3 then reports no interval, or one of the machine's uptime.
#[test]
fn a_tcp_flow_that_is_starved_is_a_result() {
    if !able() {
        return;
    }
    let _alone = alone();
    let scenario = r#"
        name = "starved"
        duration = "8s"
        [access_point]
        standard = "802.11n"
        [wired]
        rate = "64kbit/s"
        [[stations]]
        name = "tablet"
        max = "60Mbit/s"
        [[flows]]
        from = "server"
        to = "tablet"
        [[flows]]
        from = "server"
        to = "tablet"
        kind = "udp"
        rate = "5Mbit/s"
        "#;
    run(scenario, |run| {
        // 8 s of 64 kbit/s are 64 kB.
        let bytes: u64 = run.flows.iter().map(|flow| flow.bytes).sum();
        ensure(bytes <= 64_000, bytes)
    });
}

/// In 1 ms 65 Mbit/s are 8125 bytes.
#[test]
fn a_run_of_a_millisecond_has_no_byte_that_came_later() {
    if !able() {
        return;
    }
    let _alone = alone();
    let scenario = r#"
        name = "short"
        duration = "1ms"
        [access_point]
        standard = "802.11n"
        [[stations]]
        name = "tablet"
        count = 2
        max = "60Mbit/s"
        [[flows]]
        from = "tablet"
        to = "server"
        "#;
    for flows in ["", "limit = \"60Mbit/s\""] {
        run(&format!("{scenario}\n{flows}"), |run| {
            let bytes: u64 = run.flows.iter().map(|flow| flow.bytes).sum();
            ensure(bytes <= 8_125, bytes)
        });
    }
}

/// A lab that runs for long. The test of `kill -9` starts it in a process of its own, and kills it.
#[test]
#[ignore = "started by the test of kill -9"]
fn a_long_run() {
    let scenario = Scenario::parse(
        r#"
        name = "long"
        duration = "300s"
        [access_point]
        standard = "802.11g"
        [[stations]]
        name = "tablet"
        count = 2
        max = "30Mbit/s"
        [[flows]]
        from = "tablet"
        to = "server"
        "#,
    );
    let _ = wakeai_lab::run(&options(), &scenario.unwrap(), &Silent);
}

/// A lab in a process of its own, with two senders and two receivers running.
fn start_long_run() -> (Child, Vec<u32>) {
    let lab = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "a_long_run"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = lab.id();
    for _ in 0..600 {
        if children_of(pid).len() >= 4 {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let children = children_of(pid);
    assert_eq!(children.len(), 4);
    assert!(left_of(pid).len() > 3, "{:?}", left_of(pid));
    (lab, children)
}

/// The first process of `processes` that still runs after a while; `None` if all have ended.
fn survivor(processes: &[u32]) -> Option<u32> {
    let alive =
        |pid: &u32| wakeai_host::ProcessId::of(*pid).is_ok_and(wakeai_host::ProcessId::is_alive);
    for _ in 0..100 {
        if !processes.iter().any(alive) {
            return None;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    processes.iter().copied().find(alive)
}

#[test]
fn after_kill_9_the_next_sweep_removes_everything() {
    if !able() {
        return;
    }
    let _alone = alone();
    let (mut lab, children) = start_long_run();
    lab.kill().unwrap();
    lab.wait().unwrap();
    // Another command on this machine may have undone the changes before, so the list of what this
    // sweep removed is not checked.
    let (_, failed) = wakeai_host::sweep(wakeai_kernel::UNDO);
    assert!(failed.is_empty(), "{failed:?}");
    let left = left_of(lab.id());
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(survivor(&children), None);
}

fn children_of(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let text = lists.collect::<Vec<_>>().join(" ");
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}
