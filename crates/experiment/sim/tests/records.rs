//! The records of a simulation.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]
#![allow(clippy::disallowed_methods, reason = "the records are files, and read back here")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::{UP, scenario};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::RowAccessor as _;
use wakeai_results::result::Report;
use wakeai_world::{Options, Silent};

const TWO: &str = "size = \"2MB\"\n[[conditions]]\nname = \"default\"\n\
    [[conditions]]\nname = \"airtime\"\nlaw = \"airtime\"";

fn record(directory: &Path, jobs: usize) -> Report {
    let scenario = scenario("802.11g", 3, UP, TWO);
    let options = Options { repeat: 2, out: Some(directory.into()), ..Options::default() };
    wakeai_sim::run(&options, jobs, &scenario, &Silent).unwrap()
}

fn reader(directory: &Path, name: &str) -> SerializedFileReader<std::fs::File> {
    SerializedFileReader::new(std::fs::File::open(directory.join(name)).unwrap()).unwrap()
}

#[test]
fn records_are_the_same_for_any_number_of_jobs() {
    let (one, four) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    record(one.path(), 1);
    record(four.path(), 4);
    for name in ["samples", "events", "goodput", "queues", "airtime", "flows"] {
        let bytes =
            |directory: &Path| std::fs::read(directory.join(format!("{name}.parquet"))).unwrap();
        assert!(bytes(one.path()) == bytes(four.path()), "{name} differs");
        let rows =
            reader(one.path(), &format!("{name}.parquet")).metadata().file_metadata().num_rows();
        assert!(rows > 0, "{name} is empty");
    }
}

#[test]
fn goodput_adds_up_to_what_the_flows_received_and_has_no_gaps() {
    let directory = tempfile::tempdir().unwrap();
    let report = record(directory.path(), 1);
    // The bytes of each flow, and the end of its last interval.
    let mut found = BTreeMap::<(String, u32, u32), (u64, u64)>::new();
    for row in reader(directory.path(), "goodput.parquet").get_row_iter(None).unwrap() {
        let row = row.unwrap();
        let (repeat, flow) = (row.get_uint(1).unwrap(), row.get_uint(3).unwrap());
        let flow = found.entry((row.get_string(0).unwrap().clone(), repeat, flow));
        let (at, interval) = (row.get_ulong(2).unwrap(), row.get_ulong(6).unwrap());
        let (bytes, last) = flow.or_insert((0, at - interval));
        assert_eq!((at - interval, interval > 0), (*last, true));
        assert!(interval <= 100_000_000);
        (*bytes, *last) = (*bytes + row.get_ulong(7).unwrap(), at);
    }
    assert_eq!(found.len(), report.runs.len() * 3);
    for run in &report.runs {
        for (index, flow) in run.flows.iter().enumerate() {
            let (bytes, last) = found[&(run.condition.clone(), run.repeat, index as u32)];
            assert_eq!(bytes, flow.bytes);
            assert!((last as f64 * 1e-9 - flow.completion_s.unwrap()).abs() < 1e-6);
        }
    }
}

#[test]
fn airtime_adds_up_and_has_presence_only_under_a_law() {
    let directory = tempfile::tempdir().unwrap();
    let report = record(directory.path(), 1);
    // The airtime in nanoseconds, by condition, sender and kind.
    let mut air = BTreeMap::<(String, String, String), u64>::new();
    let mut last = BTreeMap::<(String, u32), u64>::new();
    for row in reader(directory.path(), "airtime.parquet").get_row_iter(None).unwrap() {
        let row = row.unwrap();
        let text = |column: usize| row.get_string(column).unwrap().clone();
        *air.entry((text(0), text(3), text(5))).or_default() += row.get_ulong(6).unwrap();
        let at = last.entry((text(0), row.get_uint(1).unwrap())).or_default();
        *at = row.get_ulong(2).unwrap().max(*at);
    }
    let of = |condition: &str, of: &str, kind: &str| {
        air.get(&(condition.to_owned(), of.to_owned(), kind.to_owned())).copied().unwrap_or(0)
    };
    let kinds = ["data", "tcp_ack", "presence", "mac_ack", "protection", "collision", "idle"];
    let all: u64 = kinds.iter().map(|kind| of("default", "all", kind)).sum();
    let time: u64 =
        last.iter().filter(|((condition, _), _)| condition == "default").map(|(_, at)| at).sum();
    let end: f64 = report.runs[..2].iter().map(|run| run.simulated_s).sum();
    assert!((end - time as f64 / 1e9).abs() < 0.02, "{end} s, and rows to {time} ns");
    // Airtime is counted when a frame ends, so in each of two repeats one frame may be missing.
    assert!(all.abs_diff(time) < 2_000_000, "{all} ns of {time} ns");
    assert!(of("default", "up", "data") > 10 * of("default", "up", "tcp_ack"));
    assert!(of("default", "down", "tcp_ack") > 0);
    assert_eq!(of("default", "all", "presence"), 0);
    assert!(of("airtime", "up", "presence") > 0 && of("airtime", "access_point", "presence") > 0);
}

#[test]
fn a_sample_has_cubics_k_once_a_loss_has_begun_a_stage() {
    let flows = "from = \"tablet1\"\nto = \"server\"\nalgorithm = \"cubic\"\n\
        [[flows]]\nfrom = \"tablet2\"\nto = \"server\"\nalgorithm = \"reno\"\n";
    let shallow = "[wired]\nrate = \"10Mbit/s\"\ndelay = \"20ms\"\nqueue = 50";
    let scenario = scenario("802.11g", 2, flows, shallow);
    let directory = tempfile::tempdir().unwrap();
    let options = Options { out: Some(directory.path().into()), ..Options::default() };
    wakeai_sim::run(&options, 1, &scenario, &Silent).unwrap();
    // For each flow, the number of samples without K, and the largest K.
    let mut without = [0, 0];
    let mut largest_ms = [None, None];
    for row in reader(directory.path(), "samples.parquet").get_row_iter(None).unwrap() {
        let row = row.unwrap();
        let flow = row.get_uint(3).unwrap() as usize;
        match row.get_double(20) {
            Ok(k_ms) => largest_ms[flow] = largest_ms[flow].max(Some(k_ms as u64)),
            Err(_) => without[flow] += 1,
        }
    }
    assert!(without.iter().all(|&samples| samples > 0));
    assert!(
        largest_ms[0].is_some_and(|k_ms| k_ms > 0) && largest_ms[1].is_none(),
        "{largest_ms:?}"
    );
}
