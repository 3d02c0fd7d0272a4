//! Tests the behaviour that distinguishes each algorithm from the others.

use std::time::{Duration, Instant};

use wakeai_kernel::{CongestionState, Figures, snapshot};

use crate::path::PathConfig;
use crate::rig::{Registration, Rig};
use crate::watch::{monitor, poll, watch, watch_each};

/// Repeats the check until it holds, at most for a minute.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let give_up = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < give_up, "not within a minute: {what}");
    }
}

#[test]
fn wakeai_reno_halves_its_window_and_grows_by_a_segment_per_rtt() {
    let Some(_registration) = Registration::share() else { return };
    let rig = Rig::with_path(PathConfig::LOSSY);
    let _flow = rig.flow(77, "wakeai_reno");
    let samples = watch(&rig, None, Duration::from_secs(6));
    let is_reduced = |figures: &Figures| figures.congestion_state == CongestionState::Recovery;
    // A sample has the window from before its ACK. The state Disorder, which comes before Recovery,
    // does not change the window.
    let mut reductions = 0;
    for pair in samples.windows(2).filter(|pair| pair[0].cwnd >= pair[0].ssthresh) {
        let [before, after] = pair else { unreachable!("windows of two") };
        let (cwnd, ssthresh) = (before.cwnd.get(), after.ssthresh.get());
        if is_reduced(before) {
            continue;
        }
        if is_reduced(after) {
            reductions += 1;
            assert!(ssthresh.abs_diff(cwnd / 2) <= 1, "ssthresh {ssthresh} of {cwnd}");
        } else if after.congestion_state == CongestionState::Open {
            assert!(after.cwnd.get() <= cwnd + 1, "{cwnd} to {}", after.cwnd.get());
        }
    }
    assert!(reductions > 0);
}

/// A stage of congestion avoidance, as it is at its first ACK.
struct Stage {
    /// The windows before and after the loss, in segments.
    window: (f64, f64),
    k_s: f64,
    smoothed_rtt_s: f64,
}

impl Stage {
    /// The first stage after a loss. It is the first stage that grows back to an earlier window.
    fn after_a_loss(samples: &[Figures]) -> Option<Self> {
        let is_reduced = |figures: &Figures| figures.congestion_state == CongestionState::Recovery;
        let lost = samples.iter().position(is_reduced)?;
        let began = samples[lost..].iter().find(|figures| figures.k.is_some())?;
        let segments = |figures: &Figures| f64::from(figures.cwnd.get());
        Some(Self {
            window: (segments(&samples[lost - 1]), segments(began)),
            k_s: began.k?.as_secs_f64(),
            smoothed_rtt_s: began.smoothed_rtt?.as_secs_f64(),
        })
    }

    /// K of CUBIC, the time in which the window grows back, by equation 2 of RFC 9438. C is 0.4.
    fn cubics_k_s(&self) -> f64 {
        let (found, left) = self.window;
        ((found - left) / 0.4).cbrt()
    }
}

#[test]
fn k_is_cubics_and_k_prime_of_wakeai_rtt_goes_by_the_rtt() {
    let Some(_registration) = Registration::share() else { return };
    for one_way_ms in [10, 100, 200] {
        for (name, reference_s) in [("wakeai_cubic", None), ("wakeai_rtt", Some(0.2))] {
            // A machine that is busy delays packets and so changes the RTT between loss and sample.
            let mut ratios = Vec::new();
            let fits = (0..3).any(|_| {
                let stage = stage_on_a_path(one_way_ms, name);
                // The factor of K' to K is equation 3 of Kozu et al.
                let factor =
                    reference_s.map_or(1.0, |seconds: f64| (seconds / stage.smoothed_rtt_s).cbrt());
                ratios.push(stage.k_s / (stage.cubics_k_s() * factor));
                ratios.last().is_some_and(|ratio| (0.85..1.15).contains(ratio))
            });
            assert!(fits, "{name}, {one_way_ms} ms: {ratios:?}");
        }
    }
}

/// The stage of this algorithm after the loss of one packet.
fn stage_on_a_path(one_way_ms: u64, algorithm: &'static str) -> Stage {
    // The path is so fast that no queue builds up.
    let rig = Rig::with_path(PathConfig {
        one_way_delay: Duration::from_millis(one_way_ms),
        bits_per_second: 1_000_000_000,
        queue_packets: 10_000,
        lose_nth: 400,
        ..PathConfig::CALM
    });
    let mut monitor = monitor(&rig);
    let _flow = rig.flow(77, algorithm);
    let (mut samples, mut stage) = (Vec::new(), None);
    eventually("a stage after the loss", || {
        poll(&mut monitor, &mut samples);
        let figures: Vec<_> = samples.iter().map(|sample| sample.figures).collect();
        stage = Stage::after_a_loss(&figures);
        stage.is_some()
    });
    stage.unwrap()
}

#[test]
fn only_our_algorithms_with_a_curve_have_a_k() {
    let Some(_registration) = Registration::share() else { return };
    let names =
        ["wakeai_cubic", "wakeai_rtt", "wakeai_reno", "wakeai_bbr", "wakeai_av", "wakeai_compound"];
    let rig = Rig::with_path(PathConfig::LOSSY);
    let _flows = names.map(|name| rig.flow(77, name));
    let _kernels = rig.flow(77, "cubic");
    for (name, samples) in watch_each(&rig, None, Duration::from_secs(3)) {
        let is_expected = names[..2].contains(&&*name);
        assert_eq!(samples.iter().any(|figures| figures.k.is_some()), is_expected, "{name}");
    }
}

#[test]
fn wakeai_av_follows_a_target_that_is_set_changed_and_removed_while_it_runs() {
    let Some(registration) = Registration::share() else { return };
    // With a loss in a thousand Reno sends 40 segments per RTT, which is 0.55 MB/s. The path
    // carries 5 MB/s.
    let one_way_delay = Duration::from_millis(50);
    let rig = Rig::with_path(PathConfig { one_way_delay, queue_packets: 400, ..PathConfig::LOSSY });
    let flow = rig.flow(77, "wakeai_av");
    let connections = rig.sender.run(|| snapshot(None)).unwrap().unwrap();
    let set = |target| registration.0.set_target(connections[0].socket.cookie, target).unwrap();
    let goodput = || flow.goodput(Duration::from_secs(2));
    eventually("Reno without a target", || goodput() < 1_000_000);
    set(3_000_000);
    eventually("the target", || goodput() > 2_700_000);
    set(1_500_000);
    eventually("the lower target", || (1_350_000..2_200_000).contains(&goodput()));
    set(0);
    eventually("Reno again", || goodput() < 1_000_000);
}

#[test]
fn wakeai_compounds_delay_window_gives_way_to_a_queue_without_a_loss() {
    let Some(_registration) = Registration::share() else { return };
    for (name, has_delay_window) in [("wakeai_compound", true), ("wakeai_reno", false)] {
        let rig = Rig::with_path(PathConfig::CALM);
        let _flow = rig.flow(77, name);
        let samples = watch(&rig, None, Duration::from_secs(4));
        let is_open = |figures: &Figures| figures.congestion_state == CongestionState::Open;
        let gave_way = samples
            .windows(2)
            .filter(|pair| pair.iter().all(is_open) && pair[1].cwnd < pair[0].cwnd);
        let mut times = 0;
        for pair in gave_way {
            times += 1;
            // Compound reduces the delay window when 30 or more segments are queued.
            let latest = pair[1].latest_rtt.unwrap().as_secs_f64();
            let waited = latest - pair[1].min_rtt.unwrap().as_secs_f64();
            let queued = f64::from(pair[0].cwnd.get()) * waited / latest;
            assert!(queued > 25.0, "{queued} segments queued: {pair:?}");
        }
        assert_eq!(times > 0, has_delay_window, "{name}: {times} times");
    }
}

/// Its queue is compared with CUBIC's in the tests of the virtual lab, because a busy machine delivers in bursts, from which BBR
/// estimates a bandwidth that is too high.
#[test]
fn wakeai_bbr_fills_the_path_and_probes_its_rtt() {
    let Some(_registration) = Registration::share() else { return };
    let rig = Rig::with_path(PathConfig::CALM);
    let flow = rig.flow(77, "wakeai_bbr");
    let goodput = flow.goodput(Duration::from_secs(2));
    // 40 Mbit/s, of which 1448 of 1500 bytes are payload.
    assert!((4_200_000..5_000_000).contains(&goodput), "{goodput} bytes/s");
    // PROBE_RTT comes when no RTT was the shortest for ten seconds. On a busy machine a shorter one may be found late.
    let mut windows = Vec::new();
    eventually("the window of PROBE_RTT", || {
        let samples = watch(&rig, None, Duration::from_secs(11));
        windows.extend(samples.iter().map(|figures| figures.cwnd.get()));
        windows.contains(&4)
    });
    // The path holds 67 segments. The window has room for twice that, for three bursts, and for what the path aggregates.
    windows.sort_unstable();
    let median = windows[windows.len() / 2];
    assert!((134..220).contains(&median), "{median} segments");
    assert_eq!(windows[0], 4, "no window is shorter");
}

#[test]
fn wakeai_bbr_keeps_its_bandwidth_where_random_losses_halve_reno() {
    let Some(_registration) = Registration::share() else { return };
    let lossy = PathConfig { loss_ppm: 10_000, ..PathConfig::CALM };
    let goodput = |name, path| {
        let rig = Rig::with_path(path);
        let flow = rig.flow(77, name);
        flow.goodput(Duration::from_secs(1));
        flow.goodput(Duration::from_secs(3))
    };
    let (bbr, reno) = (goodput("wakeai_bbr", lossy), goodput("wakeai_reno", lossy));
    // Rates of the same run are compared, because a busy machine lowers them all.
    let calm = goodput("wakeai_bbr", PathConfig::CALM);
    assert!(
        bbr > 2 * reno && bbr * 4 > calm * 3,
        "{bbr}, {reno} and, without loss, {calm} bytes/s"
    );
}
