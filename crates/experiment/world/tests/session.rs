//! How a session makes its runs: the lengths of solo runs, and what a command keeps where a run fails.

#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::path::Path;
use std::sync::Mutex;

use wakeai_results::figures::DurationHistogram;
use wakeai_results::records;
use wakeai_results::records::Output;
use wakeai_results::result::{ErrorCounts, Report};
use wakeai_scenario::Scenario;
use wakeai_tables::TableReader;
use wakeai_units::{Duration, Instant};
use wakeai_world::{
    Asked, KnownSolos, Made, Options, Outcome, Progress, ReceiverMeter, RunError, SoloKey, Span,
    Task, World, session,
};

/// A world in which each flow gets up to 1000 bytes in each millisecond. The run with the name `fails` fails at
/// half of its time.
struct Fake {
    fails: &'static str,
    slow_s: u64,
    /// The lengths of the solo runs, in seconds.
    solos: Mutex<Vec<u64>>,
    /// The name and the seed of each run.
    order: Mutex<Vec<(String, u64)>>,
    progress: Interrupted,
}

struct Interrupted(bool);

impl Progress for Interrupted {
    fn is_interrupted(&self) -> bool {
        self.0
    }
}

impl World for Fake {
    const NAME: &'static str = "sim";
    type Error = RunError;

    fn after(error: RunError, made: Made) -> RunError {
        RunError::After { error: Box::new(error), made: Box::new(made) }
    }

    fn progress(&self) -> &dyn Progress {
        &self.progress
    }

    fn run(&self, task: Task<'_>) -> Result<Outcome, RunError> {
        let scenario = &task.condition.experiment;
        self.order.lock().unwrap().push((task.name.clone(), task.seed));
        if task.place.is_none() {
            self.solos.lock().unwrap().push(scenario.duration.as_millis() / 1_000);
        }
        let expanded = scenario.expand(task.seed);
        let span = Span::new(Instant::ZERO, scenario);
        let flow = &expanded.flows[0];
        let meter = ReceiverMeter::new(span, flow, Duration::ZERO);
        let mut meter = meter.recording(task.sink.clone(), 0);
        // The flow gains speed as long as it is `slow`.
        let slow = self.slow_s * 1_000;
        for millis in 1..=scenario.duration.as_millis() {
            if task.name == self.fails && millis * 2 > scenario.duration.as_millis() {
                let (asked, remedy) = ("what it asks".to_owned(), "no remedy".to_owned());
                return Err(RunError::Unsupported { world: "the test", asked, remedy });
            }
            let amount = if millis <= slow { 1_000 * millis / slow } else { 1_000 };
            meter.on_received(Instant::ZERO + Duration::from_millis(millis), amount);
        }
        meter.end(span.end);
        Ok(Outcome {
            flows: vec![meter.measured(flow, span.end)],
            stations: expanded.stations,
            end: scenario.duration,
            rtt: vec![DurationHistogram::default()],
            errors: Some(ErrorCounts::default()),
            lateness: None,
            packets_digest: None,
            frames: None,
            drops: None,
            wall_s: None,
            field: None,
        })
    }
}

fn scenario() -> Scenario {
    let text = "name = \"x\"\nduration = \"500s\"\naccess_point = { standard = \"802.11g\" }\n\
                stations = [{ name = \"a\", max = \"9Mbit/s\" }]\nflows = [{ from = \"a\", to = \"server\" }]\n\
                conditions = [{ name = \"one\" }, { name = \"two\" }]\n";
    Scenario::parse(text).unwrap()
}

/// Makes two conditions with two repeats, and records them in `directory`.
fn made(fake: &Fake, directory: Option<&Path>, force: bool) -> Result<Report, RunError> {
    let scenario = scenario();
    let out = directory.map(|directory| Output { force, ..Output::from(directory) });
    let options = Options { repeat: 2, out, ..Options::default() };
    let asked = Asked::new(&scenario, &options)?;
    let recorder = asked.recorder(&options, "sim")?;
    session::report(1, fake, &asked, recorder)
}

fn fake(fails: &'static str) -> Fake {
    let (solos, order) = Default::default();
    Fake { fails, slow_s: 0, solos, order, progress: Interrupted(false) }
}

/// The condition, the repeat and the number of rows of each run in a table.
fn rows(table: &Path) -> Vec<(String, u64, usize)> {
    let mut reader = TableReader::open(table).unwrap().expect(records::SCHEMA).unwrap();
    let mut found: Vec<(String, u64, usize)> = Vec::new();
    while let Some(group) = reader.next_group().unwrap() {
        for row in 0..group.rows() {
            let condition = group.text("condition", row).unwrap().unwrap();
            let repeat = group.u64("repeat", row).unwrap().unwrap();
            match found.last_mut() {
                Some((last, of, rows)) if last == condition && *of == repeat => *rows += 1,
                _ => found.push((condition.to_owned(), repeat, 1)),
            }
        }
    }
    found
}

#[test]
fn the_runs_before_the_one_that_failed_are_kept_with_their_records() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let error = made(&fake("two 2"), Some(&out), false).unwrap_err();
    assert_eq!(error.exit_status(), 2, "that of the failure");
    assert!(error.to_string().contains("what it asks"), "{error}");
    let RunError::After { made, .. } = error else { panic!("{error}") };
    let names = made.report.runs.iter().map(|run| (run.condition.as_str(), run.repeat));
    assert_eq!(names.collect::<Vec<_>>(), [("one", 0), ("one", 1), ("two", 0)]);
    let failed = made.report.failed.as_ref().unwrap();
    assert_eq!((failed.run.as_str(), failed.asked), ("two 2", 4));
    assert!(failed.reason.contains("what it asks"), "{}", failed.reason);

    assert_eq!(made.records.unwrap().unwrap(), out);
    let text = std::fs::read_to_string(out.join("result.json")).unwrap();
    assert_eq!(text, made.report.to_json() + "\n");
    // The failed run has written some of its rows already. They are not there.
    let rows = rows(&out.join("goodput.parquet"));
    let whole = |name: &str, repeat| (name.to_owned(), repeat, 5_000);
    assert_eq!(rows, [whole("one", 0), whole("one", 1), whole("two", 0)]);
    let manifest: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(out.join("run.json")).unwrap()).unwrap();
    assert_eq!(
        (&manifest["rows"]["goodput"], &manifest["rows"]["flows"]),
        (&15_000.into(), &3.into())
    );
}

#[test]
fn an_earlier_result_stays_where_a_later_command_fails() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let whole = made(&fake(""), Some(&out), false).unwrap();
    let error = made(&fake("one 2"), Some(&out), true).unwrap_err();
    let RunError::After { made, .. } = error else { panic!("{error}") };
    assert_eq!(made.records.unwrap().unwrap(), out.join("result-1"));
    let read = |path: &str| std::fs::read_to_string(out.join(path)).unwrap();
    assert_eq!(read("result.json"), whole.to_json() + "\n");
    assert_eq!(read("result-1/result.json"), made.report.to_json() + "\n");
    assert_eq!(rows(&out.join("result-1/goodput.parquet")), [("one".to_owned(), 0, 5_000)]);
}

#[test]
fn where_the_first_run_fails_and_after_an_interruption_nothing_is_kept() {
    let interrupted = Fake { progress: Interrupted(true), ..fake("two 1") };
    for fake in [fake("one 1"), interrupted] {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("out");
        let error = made(&fake, Some(&out), false).unwrap_err();
        assert!(matches!(error, RunError::Unsupported { .. }), "{error}");
        assert!(!out.exists());
    }
    let error = made(&fake("two 1"), None, false).unwrap_err();
    let RunError::After { made, .. } = error else { panic!("{error}") };
    assert!(made.records.is_none() && made.report.runs.len() == 2 && made.words().is_none());
}

#[test]
fn a_solo_run_is_made_longer_while_its_flow_gains_speed_and_never_longer_than_the_scenario() {
    let text = "name = \"x\"\nduration = \"500s\"\naccess_point = { standard = \"802.11g\" }\n\
                stations = [{ name = \"a\" }]\nflows = [{ from = \"a\", to = \"server\" }]\n";
    let scenario = Scenario::parse(text).unwrap();
    for (slow_s, lengths, utilisation) in [
        (0, &[60][..], 1.0..=1.0),
        (5, &[60], 1.0..=1.05),
        (20, &[60, 240], 1.0..=1.05),
        (500, &[60, 240, 500], 1.0..=1.0),
    ] {
        let fake = Fake { slow_s, ..fake("") };
        let asked = Asked::new(&scenario, &Options::default()).unwrap();
        let report = session::report(1, &fake, &asked, None).unwrap();
        assert_eq!(*fake.solos.lock().unwrap(), lengths, "{slow_s}");
        let found = report.runs[0].mean_utilisation.unwrap();
        assert!(utilisation.contains(&found), "{slow_s}: {found}");
        let alone = session::alone(&fake, &solo(&scenario), asked.seed).unwrap();
        assert_eq!(Some(alone), report.runs[0].stations[0].max_mbps);
    }
}

/// The condition of the solo run of the only station.
fn solo(scenario: &Scenario) -> wakeai_scenario::ResolvedCondition {
    wakeai_scenario::solo_plan(&scenario.conditions()[0])[0].condition.clone()
}

/// Three conditions, the last of which has another rate.
fn three() -> Scenario {
    let text = "name = \"x\"\nduration = \"5s\"\naccess_point = { standard = \"802.11g\" }\n\
                stations = [{ name = \"a\" }]\nflows = [{ from = \"a\", to = \"server\" }]\n\
                [[conditions]]\nname = \"one\"\n\
                [[conditions]]\nname = \"two\"\nset = { \"flows.1.size\" = \"1MB\" }\n\
                [[conditions]]\nname = \"three\"\nset = { \"stations.a.rate\" = \"9Mbit/s\" }\n";
    Scenario::parse(text).unwrap()
}

/// Makes two repeats of [`three`]. Returns the report, and the names and seeds of the runs in the order in which
/// they began.
fn twice(jobs: usize, known: KnownSolos) -> (Report, Vec<(String, u64)>) {
    let options = Options { seed: 7, repeat: 2, known, ..Options::default() };
    let (scenario, fake) = (three(), fake(""));
    let asked = Asked::new(&scenario, &options).unwrap();
    let report = session::report(jobs, &fake, &asked, None).unwrap();
    (report, fake.order.into_inner().unwrap())
}

#[test]
fn a_solo_run_is_made_once_and_before_the_conditions_that_need_it() {
    let (report, mut order) = twice(1, KnownSolos::new());
    let run = |(name, seed): (&str, u64)| (name.to_owned(), seed);
    let conditions =
        [("one 1", 7), ("one 2", 8), ("two 1", 7), ("two 2", 8), ("three 1", 7), ("three 2", 8)];
    assert_eq!(order.split_off(4), conditions.map(run));
    // The second condition has the solo runs of the first, because a solo run has no size.
    order.sort();
    assert_eq!(order, [7, 7, 8, 8].map(|seed| run(("one station alone", seed))));

    let (at_once, mut order) = twice(3, KnownSolos::new());
    assert_eq!(at_once.runs.len(), report.runs.len());
    for (at_once, alone) in at_once.runs.iter().zip(&report.runs) {
        assert_eq!((&at_once.condition, at_once.repeat), (&alone.condition, alone.repeat));
        assert_eq!(at_once.stations, alone.stations);
    }
    assert!(order.drain(..4).all(|(name, _)| name == "one station alone"));
}

#[test]
fn a_known_solo_run_is_not_made_and_its_goodput_is_used() {
    let run = wakeai_scenario::solo_plan(&three().conditions()[0])[0].key();
    let known = KnownSolos::from([(SoloKey { run, seed: 7 }, 12.5)]);
    let (report, order) = twice(1, known);
    assert_eq!(order.len(), 3 + 6);
    let maxima = report.runs.iter().map(|run| run.stations[0].max_mbps == Some(12.5));
    assert_eq!(maxima.collect::<Vec<_>>(), [true, false, true, false, false, false]);
}
