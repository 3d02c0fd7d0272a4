//! The next command after `kill -9` undoes the changes of the killed process.

use std::net::Ipv4Addr;

use nix::sys::signal::Signal;

use wakeai_tests::agent::Fleet;
use wakeai_tests::bss::Bss;
use wakeai_tests::traffic::Upload;
use wakeai_tests::{Machine, leftovers, nothing_left, stderr, wait_for, wakeai};

#[test]
fn after_kill_9_bounds_end_and_any_command_undoes_the_changes() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let upload = Upload::start(
        bss.namespace("a"),
        &bss.namespace("server"),
        Ipv4Addr::new(10, 77, 0, 2),
        "cubic",
    );
    bss.set_default("a", "cubic");
    let before = bss.default("a");
    let law = "[law]\nname = \"fixed\"\nceiling = 6\n";
    let mut agent = Fleet::new().start(&bss, "a", 1, law);
    wait_for("the window is bound", || (upload.largest_cwnd() <= 6).then_some(()));

    agent.end(Signal::SIGKILL);
    let killed = std::time::Instant::now();
    wait_for("the window grows again", || (upload.cwnd() > 6).then_some(()));
    println!("free {} ms after the agent's death", killed.elapsed().as_millis());
    assert!(!leftovers().is_empty(), "a killed agent undoes nothing itself");

    let any = wakeai(&["completion", "bash"]);
    assert!(any.status.success());
    assert!(stderr(&any).contains("removed "), "{}", stderr(&any));
    nothing_left();
    assert_eq!(bss.default("a"), before);
    assert_eq!(upload.algorithm(), "cubic");
    assert_eq!(stderr(&wakeai(&["completion", "bash"])), "", "the second command finds nothing");
}

#[test]
fn undoing_a_dead_agents_changes_leaves_a_living_agent_alone() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b", "server"]);
    let fleet = Fleet::new();
    let law = "[law]\nname = \"fixed\"\nceiling = 6\n";
    let mut dying = fleet.start(&bss, "a", 1, law);
    let living = fleet.start(&bss, "b", 2, law);
    let upload = Upload::start(
        bss.namespace("b"),
        &bss.namespace("server"),
        Ipv4Addr::new(10, 77, 0, 3),
        "cubic",
    );
    wait_for("the window is bound", || (upload.largest_cwnd() <= 6).then_some(()));
    dying.end(Signal::SIGKILL);
    assert!(wakeai(&["sweep"]).status.success());
    assert_eq!(upload.algorithm(), "wakeai_cubic");
    assert!(upload.largest_cwnd() <= 6);
    assert!(!dying.socket.exists());
    assert_eq!(living.state(), "controlling");
    // Another agent may start in the namespace of the dead one.
    let next = fleet.start(&bss, "a", 1, law);
    assert_eq!(next.state(), "controlling");
}
