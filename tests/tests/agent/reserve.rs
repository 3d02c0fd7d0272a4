//! `wakeai reserve` with a running agent.

use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output};

use nix::sys::signal::Signal;
use serde_json::Value;
use wakeai_api::Request;

use wakeai_tests::agent::{Agent, Fleet, send};
use wakeai_tests::bss::Bss;
use wakeai_tests::traffic::Upload;
use wakeai_tests::{Machine, stderr, stdout, wait_for, wakeai};

const MAX: &str = "max = \"20Mbit/s\"\n";

fn reserve(agent: &Agent, arguments: &[&str]) -> Output {
    let socket = agent.socket.to_str().unwrap();
    wakeai(&[&["reserve", "--socket", socket], arguments].concat())
}

fn reservation(agent: &Agent) -> Value {
    agent.ask(Request::Status)["reservation"].clone()
}

#[test]
fn a_request_replaces_the_configuration_until_it_is_withdrawn() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let agent = Fleet::new().start(&bss, "a", 1, &format!("reserve = \"2Mbit/s\"\n{MAX}"));
    wait_for("the first tick", || (reservation(&agent)["rate_mbps"] == 2.0).then_some(()));
    let said = reserve(&agent, &["5Mbit/s"]);
    assert!(said.status.success(), "{}", stderr(&said));
    assert!(stdout(&said).contains("5 Mbit/s: waiting for data to send"), "{}", stdout(&said));
    assert_eq!(reservation(&agent)["rate_mbps"], 5.0);
    let said = reserve(&agent, &["none", "--json"]);
    assert_eq!(stdout(&said), "null\n");
    assert_eq!(reservation(&agent), Value::Null);
    assert_eq!(reserve(&agent, &["0bit/s"]).status.code(), Some(2));
    assert_eq!(reserve(&agent, &["much"]).status.code(), Some(2));
}

#[test]
fn a_rate_that_fits_is_admitted_and_a_higher_one_is_refused() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let agent = Fleet::new().start(&bss, "a", 1, MAX);
    let (from, to) = (bss.namespace("a"), bss.namespace("server"));
    let _upload = Upload::start(from, &to, Ipv4Addr::from([10, 77, 0, 2]), "cubic");
    reserve(&agent, &["5Mbit/s"]);
    wait_for("the reservation is admitted", || {
        (reservation(&agent)["admitted"] == true).then_some(())
    });
    let said = reserve(&agent, &["5Mbit/s", "--json"]);
    assert!(said.status.success(), "{}", stderr(&said));
    let own: Value = serde_json::from_str(&stdout(&said)).unwrap();
    assert_eq!((&own["standing"], &own["share"]), (&"admitted".into(), &0.25.into()));
    wait_for("19 of 20 Mbit/s are refused", || {
        let said = reserve(&agent, &["19Mbit/s"]);
        (said.status.code() == Some(1) && stderr(&said).contains("refused: it takes 95.0 %"))
            .then_some(())
    });
}

#[test]
fn members_of_the_group_may_ask_and_not_reserve() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let fleet = Fleet::new();
    let agent = fleet.start(&bss, "a", 1, &format!("{MAX}[api]\ngroup = 4242\n"));
    let mut command = Command::new(fleet.program());
    command.args(["reserve", "5Mbit/s", "--socket"]).arg(&agent.socket).uid(65534).gid(4242);
    let said = command.output().unwrap();
    assert_eq!(said.status.code(), Some(1));
    assert!(stderr(&said).contains("only root and the agent's user may reserve"));
    wait_for("the refused request is counted", || {
        (agent.metric("api_forbidden") == 1).then_some(())
    });
    let ticks = agent.metric("ticks");
    wait_for("two ticks", || (agent.metric("ticks") >= ticks + 2).then_some(()));
    assert_eq!(reservation(&agent), Value::Null);
}

#[test]
fn a_request_that_a_stopped_agent_did_not_answer_changes_nothing_later() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let agent = Fleet::new().start(&bss, "a", 1, MAX);
    wait_for("the first tick", || (agent.metric("ticks") > 0).then_some(()));
    let serving = agent.serving();
    send(serving, Signal::SIGSTOP);
    let socket = agent.socket.to_str().unwrap();
    for said in [reserve(&agent, &["5Mbit/s"]), wakeai(&["status", "--socket", socket])] {
        assert_eq!(said.status.code(), Some(1));
        let text = stderr(&said);
        let remedy = format!("process {serving} is stopped, and `kill -CONT {serving}`");
        assert!(text.contains(&remedy) && text.contains("changes nothing"), "{text}");
        assert!(!text.contains("os error"), "{text}");
    }
    send(serving, Signal::SIGCONT);
    let ticks = agent.metric("ticks");
    wait_for("some ticks pass", || (agent.metric("ticks") > ticks + 2).then_some(()));
    assert_eq!(reservation(&agent), Value::Null);
}
