//! Reservations over the air are held, refused, given back, and never ignored without a note.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Mutex;

use wakeai_results::result::{FlowReservation, ReservationOutcome, Run};
use wakeai_scenario::Scenario;
use wakeai_world::{Options, Progress};

/// Four uploads over 802.11g. Each reaches some 24 Mbit/s alone, and some 6 Mbit/s beside the
/// others.
fn four(flows: &str, conditions: &str) -> Scenario {
    let text = format!(
        "name = \"reservations\"\nduration = \"60s\"\nwarmup = \"10s\"\n\
         access_point = {{ standard = \"802.11g\" }}\nwired = {{ delay = \"2.5ms\" }}\n\
         stations = [{{ name = \"camera\", count = 2 }}, {{ name = \"tablet\", count = 2 }}]\n\
         flows = [{flows}]\nconditions = [{conditions}]\n"
    );
    Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}"))
}

fn camera(number: u32, rate: &str, more: &str) -> String {
    format!(
        "{{ from = \"camera{number}\", to = \"server\", algorithm = \"wakeai_av\", \
         rate = \"{rate}\", reserve = true{more} }},"
    )
}

const TABLETS: &str = "{ from = \"tablet\", to = \"server\", algorithm = \"wakeai_reno\" },";
const LAW: &str = "{ name = \"law\", law = \"airtime\" },";

fn runs(scenario: &Scenario) -> Vec<Run> {
    common::report(scenario, &Options::default()).runs
}

fn reservation(run: &Run, flow: usize) -> FlowReservation {
    run.flows[flow].reservation.unwrap()
}

#[test]
fn a_reserved_target_beyond_the_fair_share_is_held() {
    let flows = camera(1, "10Mbit/s", "") + "{ from = \"camera2\", to = \"server\" }," + TABLETS;
    let conditions = format!(
        "{{ name = \"plain\" }}, {{ name = \"away\", agents = \"tablet\", law = \"airtime\" }}, {LAW}"
    );
    let runs = runs(&four(&flows, &conditions));
    let avr = |run: usize| runs[run].flows[0].avr.unwrap();
    assert!(avr(0) < 0.5, "{}", avr(0));
    assert!(avr(2) >= 0.9, "{}", avr(2));
    assert_eq!(reservation(&runs[0], 0).outcome, ReservationOutcome::NoAgent);
    assert_eq!(reservation(&runs[1], 0).outcome, ReservationOutcome::NoAgent);
    let held = reservation(&runs[2], 0);
    assert_eq!(held.outcome, ReservationOutcome::Admitted);
    assert!((0.40..0.43).contains(&held.share.unwrap()) && held.admitted_s > 57.0, "{held:?}");
    let others: Vec<f64> = runs[2].flows[1..].iter().map(|flow| flow.goodput_mbps).collect();
    assert!(wakeai_results::figures::jain(&others).unwrap() > 0.95, "{others:?}");
    assert!(runs[2].total_goodput_mbps > 0.92 * runs[0].total_goodput_mbps);
}

#[test]
fn two_reservations_are_held_and_a_third_is_refused() {
    let both = camera(1, "6Mbit/s", "") + &camera(2, "9Mbit/s", "") + TABLETS;
    let five = Options { repeat: 5, ..Options::default() };
    let all = common::report(&four(&both, LAW), &five).runs;
    for flow in 0..2 {
        let avr: Vec<f64> = all.iter().map(|run| run.flows[flow].avr.unwrap()).collect();
        assert!(avr.iter().all(|avr| *avr >= 0.8), "{avr:?}");
        for run in &all {
            assert_eq!(reservation(run, flow).outcome, ReservationOutcome::Admitted);
        }
    }
    let late = camera(1, "12Mbit/s", "") + &camera(2, "9Mbit/s", ", start = \"20s\"") + TABLETS;
    let run = &runs(&four(&late, LAW))[0];
    assert_eq!(reservation(run, 0).outcome, ReservationOutcome::Admitted);
    let refused = reservation(run, 1);
    assert_eq!(refused.outcome, ReservationOutcome::Refused);
    assert_eq!(refused.limit, Some(0.8));
    assert!(refused.words().starts_with("refused: 37."), "{}", refused.words());
}

#[test]
fn an_owner_that_is_done_gives_the_air_back() {
    // 25 MB at 10 Mbit/s and somewhat more are sent before the figures begin.
    let flows = camera(1, "10Mbit/s", ", size = \"25MB\"") + TABLETS;
    let conditions = "{ name = \"alone\", law = \"airtime\", set = { \"flows.1.start\" = \"59s\" } }, \
         { name = \"law\", law = \"airtime\" }";
    let scenario = four(&flows, conditions);
    let scenario = scenario.with_overrides(&[("warmup".into(), "30s".into())]).unwrap();
    let runs = runs(&scenario);
    assert!(runs[1].flows[0].completion_s.unwrap() < 25.0);
    assert!((15.0..28.0).contains(&reservation(&runs[1], 0).admitted_s));
    let tablets = |run: &Run| run.flows[1..].iter().map(|flow| flow.goodput_mbps).sum::<f64>();
    assert!(tablets(&runs[1]) > 0.97 * tablets(&runs[0]), "{runs:?}");
}

#[test]
fn what_an_owner_s_application_does_not_send_is_left_to_the_others() {
    let flows = camera(1, "10Mbit/s", ", limit = \"2Mbit/s\"") + TABLETS;
    let conditions = "{ name = \"without\", law = \"airtime\", set = { \"flows.1.reserve\" = false } }, \
         { name = \"law\", law = \"airtime\" }";
    let runs = runs(&four(&flows, conditions));
    assert_eq!(reservation(&runs[1], 0).outcome, ReservationOutcome::Admitted);
    let tablets = |run: &Run| run.flows[1..].iter().map(|flow| flow.goodput_mbps).sum::<f64>();
    assert!(tablets(&runs[1]) > 0.9 * tablets(&runs[0]), "{runs:?}");
    assert!(runs[1].flows[0].goodput_mbps > 1.98, "{runs:?}");
}

/// Keeps the notes to the user.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Progress for Notes {
    fn note(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

#[test]
fn a_condition_in_which_nobody_hears_it_says_so() {
    let scenario = four(&camera(1, "10Mbit/s", ""), &format!("{{ name = \"plain\" }}, {LAW}"));
    let notes = Notes::default();
    wakeai_sim::run(&Options::default(), 1, &scenario, &notes).unwrap();
    let notes = notes.0.into_inner().unwrap();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("\"plain\"") && notes[0].contains("flows.1.reserve"), "{notes:?}");
}
