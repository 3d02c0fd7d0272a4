//! A replay shows what was seen.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::support::{LARGE, live, minute, terminal, text};
use tempfile::TempDir;
use wakeai_top::{Reading, RecordError, Recorder, Replay, RunChoice, View};
use wakeai_units::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn record(directory: &Path, readings: &[Arc<Reading>]) {
    let mut recorder = Recorder::create(directory, SECOND).unwrap();
    for reading in readings {
        recorder.push(Arc::clone(reading)).unwrap();
    }
    recorder.finish().unwrap();
}

fn open(directory: &Path) -> Result<Replay, String> {
    Replay::open(directory, &RunChoice::default()).map_err(|error| error.to_string())
}

/// Two minutes in which connections come and go, and what is missing changes.
fn eventful() -> Vec<Arc<Reading>> {
    let readings = (0..120).map(|second| {
        let mut reading = crate::support::reading(second, 30 + second % 7);
        if second % 10 == 3 {
            reading.missing = vec!["congestion events: \"gone\", for now".to_owned()];
            reading.connections.iter_mut().for_each(|connection| connection.events = None);
        }
        if second == 60 {
            reading.connections.clear();
        }
        Arc::new(reading)
    });
    readings.collect()
}

#[test]
fn a_replay_equals_what_was_seen_frame_by_frame_in_any_order() {
    let scratch = TempDir::new().unwrap();
    let seen = eventful();
    record(scratch.path(), &seen);
    let mut replay = open(scratch.path()).unwrap();
    let times: Vec<_> = seen.iter().map(|reading| reading.at).collect();
    assert_eq!(replay.times(), times);
    let view = View::default();
    let forward = 0..seen.len();
    let backward = (0..seen.len()).rev();
    let jumping = (0..seen.len()).map(|index| index * 77 % seen.len());
    for index in forward.chain(backward).chain(jumping) {
        let first = index.saturating_sub(60);
        let replayed = replay.window(index).unwrap();
        assert!(replayed == seen[first..=index], "reading {index}"); // too long to be printed
        if index % 13 == 0 {
            let frame = |window: &[Arc<Reading>]| text(&terminal(&view, &[window], &live(), LARGE));
            assert_eq!(frame(&replayed), frame(&seen[first..=index]), "frame {index}");
        }
    }
}

#[test]
fn a_recording_that_was_cut_has_all_but_its_last_seconds() {
    let seen = minute(5);
    for cut in [4, 17, 59] {
        let scratch = TempDir::new().unwrap();
        let mut recorder = Recorder::create(scratch.path(), SECOND).unwrap();
        for reading in &seen[..cut] {
            recorder.push(Arc::clone(reading)).unwrap();
        }
        std::mem::forget(recorder); // as `kill -9`
        // The process was killed while it wrote this part.
        fs::write(scratch.path().join("connections-000999.partial"), b"PAR1").unwrap();
        let replay = open(scratch.path()).unwrap();
        assert!(replay.times().len() + 4 > cut, "{} of {cut}", replay.times().len());
    }
}

#[test]
fn another_schema_and_a_damaged_file_are_named() {
    let scratch = TempDir::new().unwrap();
    record(scratch.path(), &minute(2)[..4]);
    let readings = scratch.path().join("readings-000001.parquet");
    let connections = scratch.path().join("connections-000001.parquet");
    let whole = fs::read(&readings).unwrap();

    let other = replaced(&whole, b"top 2", b"top 7");
    fs::write(&readings, other).unwrap();
    let error = open(scratch.path()).unwrap_err();
    assert!(error.contains(r#"has the schema "top 7", expected "top 2""#), "{error}");
    assert!(error.contains("readings-000001.parquet"), "{error}");

    fs::write(&readings, &whole[..whole.len() / 2]).unwrap();
    let error = open(scratch.path()).unwrap_err();
    assert!(error.contains("is no table that can be read"), "{error}");

    fs::write(&readings, &whole).unwrap();
    fs::write(&connections, b"no table").unwrap();
    let error = open(scratch.path()).unwrap().reading(0).unwrap_err().to_string();
    assert!(error.contains("connections-000001.parquet"), "{error}");
}

/// Replaces `from`, which `bytes` must contain, by `to`, which must have the same length.
fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let places: Vec<_> = bytes.windows(from.len()).enumerate().collect();
    let found: Vec<_> = places.iter().filter(|(_, at)| *at == from).map(|(at, _)| *at).collect();
    assert!(!found.is_empty());
    for at in found {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    bytes
}

#[test]
fn a_file_of_the_user_is_never_replaced() {
    let scratch = TempDir::new().unwrap();
    fs::write(scratch.path().join("diary.txt"), "mine").unwrap();
    let create = |path: &Path| Recorder::create(path, SECOND);
    assert!(matches!(create(scratch.path()), Err(RecordError::InTheWay(_))));
    let file = scratch.path().join("diary.txt");
    assert!(matches!(create(&file), Err(RecordError::InTheWay(_))));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    let error = open(scratch.path()).unwrap_err();
    assert!(error.contains("neither a recording"), "{error}");
}

#[test]
fn a_recording_cannot_send_commands_to_the_terminal() {
    let scratch = TempDir::new().unwrap();
    let mut reading = crate::support::reading(1, 1);
    reading.connections[0].owner = "\u{1b}]0;title\u{7}curl".into();
    record(scratch.path(), &[reading.into()]);
    let read = open(scratch.path()).unwrap().reading(0).unwrap();
    assert_eq!(&*read.connections[0].owner, "]0;titlecurl");
}
