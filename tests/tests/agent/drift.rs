//! Other programs that undo what an agent holds on the host.

use std::fs;

use nix::sys::signal::Signal;
use wakeai_api::Request;

use wakeai_tests::agent::Fleet;
use wakeai_tests::bss::Bss;
use wakeai_tests::{Machine, nothing_left, stdout, wait_for, wakeai};

#[test]
fn a_default_and_a_socket_that_another_program_changes_are_put_back_and_told() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let before = bss.default("a");
    let fleet = Fleet::new();
    for options in [&[] as &[&str], &["--user", "nobody"]] {
        let mut agent = fleet.start_as(&bss, "a", 1, options);
        let held = bss.default("a");
        assert_ne!(held, before);
        let socket = format!("/run/wakeai/agent-{}.sock", bss.namespace("a").id().0);
        fs::remove_file(&socket).unwrap();
        assert!(bss.set_default("a", &before));
        wait_for("the default is back", || (bss.default("a") == held).then_some(()));
        wait_for("the socket is back", || fs::exists(&socket).unwrap().then_some(()));
        wait_for("the agent counts both", || (agent.metric("drifts_put_back") == 2).then_some(()));
        let drifts = agent.ask(Request::Status)["drifts"].clone();
        assert_eq!(drifts.as_array().unwrap().len(), 2, "{drifts}");
        let said = stdout(&wakeai(&["status", "--socket", &socket]));
        let expected = "sysctl net.ipv4.tcp_congestion_control was changed by another program";
        assert!(said.contains(expected), "{said}");
        assert!(agent.log().contains("another program has changed"), "{}", agent.log());
        assert!(agent.end(Signal::SIGTERM).success());
        assert_eq!(bss.default("a"), before);
    }
    wakeai(&["sweep"]);
    nothing_left();
}
