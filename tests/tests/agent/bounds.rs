//! Which connections an agent bounds, and which it does not.

use std::net::Ipv4Addr;

use nix::sys::signal::Signal;
use serde_json::Value;
use wakeai_api::Request;

use wakeai_tests::agent::{Fleet, send};
use wakeai_tests::bss::{Bss, WIFI};
use wakeai_tests::traffic::Upload;
use wakeai_tests::{Machine, must, wait_for};

const CEILING: u32 = 7;
const LAW: &str = "[law]\nname = \"fixed\"\nceiling = 7\n";

fn upload(bss: &Bss, to: [u8; 4], algorithm: &str) -> Upload {
    Upload::start(bss.namespace("a"), &bss.namespace("server"), Ipv4Addr::from(to), algorithm)
}

fn bound(upload: &Upload) {
    wait_for("the window is at its ceiling", || {
        (upload.algorithm() == "wakeai_cubic" && upload.largest_cwnd() <= CEILING).then_some(())
    });
}

#[test]
fn traffic_over_another_interface_is_not_bound() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    bss.wire("a", "server");
    let agent = Fleet::new().start(&bss, "a", 1, LAW);
    let over_wifi = upload(&bss, [10, 77, 0, 2], "cubic");
    let over_wire = upload(&bss, [10, 88, 0, 2], "cubic");
    // A connection over the other interface is not bounded, not even one with a bounded algorithm.
    let ours_over_wire = upload(&bss, [10, 88, 0, 2], "wakeai_cubic");
    bound(&over_wifi);
    assert_eq!(over_wire.algorithm(), "cubic");
    wait_for("the windows of the other connections grow", || {
        (over_wire.cwnd() > CEILING && ours_over_wire.cwnd() > CEILING).then_some(())
    });
    let seen = agent.ask(Request::Status)["connections"].as_array().unwrap().len();
    assert_eq!(seen, 1, "the agent sees only the connections of its interface");
}

#[test]
fn a_connection_is_bound_from_the_moment_that_the_agent_is_ready() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let _agent = Fleet::new().start(&bss, "a", 1, LAW);
    let early = upload(&bss, [10, 77, 0, 2], "wakeai_cubic");
    assert!(early.largest_cwnd() <= CEILING);
}

#[test]
fn a_stations_bounds_are_divided_among_its_sending_connections() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let law = "[law]\nname = \"fixed\"\nceiling = 40\n";
    let agent = Fleet::new().start(&bss, "a", 1, law);
    let uploads: Vec<_> = (0..4).map(|_| upload(&bss, [10, 77, 0, 2], "cubic")).collect();
    wait_for("the four share 40 segments", || {
        let status = agent.ask(Request::Status);
        let connections = status["connections"].as_array().unwrap();
        let moved = |connection: &&Value| connection["algorithm"] == "wakeai_cubic";
        let windows = connections.iter().filter(moved).map(|c| c["cwnd"].as_u64().unwrap());
        let windows: Vec<_> = windows.collect();
        // Each connection has a part of the ceiling, and the sum of the windows does not exceed the
        // ceiling.
        (windows.len() == uploads.len() && windows.iter().sum::<u64>() <= 40).then_some(())
    });
}

#[test]
fn bounds_of_an_agent_that_hangs_are_taken_back_until_it_runs_again() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let agent = Fleet::new().start(&bss, "a", 1, LAW);
    let upload = upload(&bss, [10, 77, 0, 2], "cubic");
    bound(&upload);
    let (serving, kept) =
        (agent.serving(), || (entries("interface_bounds"), entries("heartbeats")));
    assert_eq!(kept(), (1, 1));
    send(serving, Signal::SIGSTOP);
    wait_for("the window grows", || (upload.cwnd() > CEILING).then_some(()));
    wait_for("the other process takes the bounds back", || (kept() == (0, 0)).then_some(()));
    assert!(agent.log().contains("no heartbeat"), "{}", agent.log());
    send(serving, Signal::SIGCONT);
    bound(&upload);
    assert_eq!(kept(), (1, 1));
}

/// The entries of a map that all agents share.
fn entries(map: &str) -> usize {
    let dump = must("bpftool", &format!("--json map dump pinned /sys/fs/bpf/wakeai/{map}"));
    serde_json::from_str::<Value>(&dump).unwrap().as_array().unwrap().len()
}

#[test]
fn an_interface_that_comes_back_is_bound_and_of_the_earlier_one_no_entry_is_left() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let agent = Fleet::new().start(&bss, "a", 1, LAW);
    for _ in 0..2 {
        bound(&upload(&bss, [10, 77, 0, 2], "cubic"));
        bss.ip("a", &format!("link del {WIFI}"));
        wait_for("the agent waits for the interface", || {
            (agent.state() == "waiting-for-interface").then_some(())
        });
        assert_eq!((entries("interface_bounds"), entries("heartbeats")), (0, 0));
        bss.plug("a", WIFI);
        bss.ip("a", &format!("addr add 10.77.0.1/24 brd + dev {WIFI}"));
        wait_for("the agent controls again", || (agent.state() == "controlling").then_some(()));
    }
    bound(&upload(&bss, [10, 77, 0, 2], "cubic"));
    assert_eq!((entries("interface_bounds"), entries("heartbeats")), (1, 1));
}
