//! The cheap part of the validation page: the simulator compared with stored results of ns-3.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::path::PathBuf;

use wakeai_validation::bianchi::{AfterCollision, saturated};
use wakeai_validation::context::Context;
use wakeai_validation::reference::{Case, Congestion, Reference};
use wakeai_validation::sections::{cases, saturation, single};
use wakeai_validation::statistics::{deviation, mean};

fn context(seeds: u32) -> Context {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    Context { root, seeds, jobs: 2 }
}

fn reference() -> Reference {
    Reference::load(&context(1).root.join("validation/ns3/reference.json")).unwrap()
}

#[test]
fn a_saturated_uplink_is_within_5_percent_of_ns3_and_of_bianchi() {
    let reference = reference();
    let rows: Vec<_> = reference.saturated(false).chain(reference.saturated(true)).collect();
    assert_eq!(rows.len(), 14);
    for row in rows {
        let found = context(1).one(&saturation::job(row.case.stations, row.rts)).unwrap();
        let mbps = found.run.total_goodput_mbps;
        let model = saturated(row.case.stations, row.rts, AfterCollision::Difs).mbps;
        for expected in [row.goodput_mbps.unwrap(), model] {
            let off = deviation(mbps, expected);
            assert!(off.abs() <= 0.05, "{}: {mbps:.2}, expected {expected:.2}", row.command);
        }
    }
}

#[test]
fn one_tcp_connection_is_within_5_percent_of_ns3() {
    let reference = reference();
    for (standard, rts) in single::SETTINGS {
        for direction in ["up", "down"] {
            let expected = mean(&reference.single(standard, rts, direction)).unwrap();
            let found = context(1).one(&single::job(standard, rts, direction)).unwrap();
            let off = deviation(found.run.total_goodput_mbps, expected);
            assert!(off.abs() <= 0.05, "{standard} {rts} {direction}: {:+.1} %", off * 100.0);
        }
    }
}

const ALGORITHMS: [Congestion; 3] = [Congestion::Cubic, Congestion::RfcCubic, Congestion::Reno];

/// The transfers of 10 stations that are compared, by direction, algorithm and buffer.
fn case(up: bool, congestion: Congestion, buffer: u32) -> Case {
    let direction = if up { "up" } else { "down" }.to_owned();
    Case { direction, congestion, stations: 10, buffer }
}

fn ten(up: bool, congestion: Congestion, buffer: u32) -> cases::CaseRow {
    let case = case(up, congestion, buffer);
    cases::compare(&context(5), &reference(), &case).unwrap().unwrap()
}

fn all_but(unexplained: Option<(Congestion, u32)>, up: bool) {
    for (congestion, buffer) in ALGORITHMS.into_iter().flat_map(|one| [(one, 300), (one, 100)]) {
        let compared = ten(up, congestion, buffer);
        assert!(compared.mean_holds && compared.ends_hold, "{compared:#?}");
        let counts = compared.counts_hold;
        assert!(counts || unexplained == Some((congestion, buffer)), "{compared:#?}");
    }
}

#[test]
fn ten_uploads_are_within_the_bounds_of_ns3() {
    // ns-3 has more timeouts than the simulator only with the CUBIC that we gave to it. The cause
    // was not found (see the page).
    all_but(Some((Congestion::RfcCubic, 100)), true);
}

#[test]
fn ten_downloads_are_within_all_bounds_of_ns3() {
    all_but(None, false);
}

#[test]
fn the_seed_alone_makes_a_run() {
    let job = cases::job(&case(true, Congestion::Cubic, 300));
    let run = || {
        let mut run = context(1).one(&job).unwrap();
        run.run.wall_s = 0.0;
        let transfers = run.transfers();
        (run.run, transfers)
    };
    assert_eq!(run(), run());
}
