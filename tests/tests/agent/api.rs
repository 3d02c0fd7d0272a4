//! The local API: the rights of its clients, and clients that send bad requests or nothing.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use serde_json::Value;

use wakeai_tests::agent::{Agent, Fleet};
use wakeai_tests::bss::Bss;
use wakeai_tests::{Machine, stderr, stdout, wait_for, wakeai};

fn raw(agent: &Agent, line: &[u8]) -> Value {
    let mut stream = UnixStream::connect(&agent.socket).unwrap();
    stream.write_all(line).unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap()
}

#[test]
fn every_request_is_answered_under_its_name_and_the_command_shows_all() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let law = "max = \"20Mbit/s\"\n[law]\nname = \"fixed\"\nfloor = 3\nceiling = 9\n";
    let agent = Fleet::new().start(&bss, "a", 7, law);
    wait_for("the first tick", || (agent.state() == "controlling").then_some(()));
    for request in ["status", "peers", "bounds", "targets", "metrics"] {
        let line = format!("{{\"version\":1,\"request\":\"{request}\"}}\n");
        let answer = raw(&agent, line.as_bytes());
        assert_eq!(answer["version"], 1);
        assert!(!answer[request].is_null(), "{answer}");
    }
    let shown = wakeai(&["status", "--json"]);
    let lines: Vec<Value> =
        stdout(&shown).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let own = lines.iter().find(|line| line["status"]["pid"] == agent.serving()).unwrap();
    assert_eq!(own["status"]["station"], "0000000000000007");
    assert_eq!((&own["bounds"]["floor"], &own["bounds"]["ceiling"]), (&3.into(), &9.into()));
    assert_eq!(own["targets"]["share_mbps"], 20.0);
    assert!(!own["bounds"]["why"].as_array().unwrap().is_empty());
    let text = stdout(&wakeai(&["status"]));
    assert!(text.contains("window 3..9 segments"), "{text}");
}

#[test]
fn a_bad_request_is_refused_in_words_and_counted() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let agent = Fleet::new().start(&bss, "a", 1, "");
    let long = [b"x".repeat(5000), b"\n".to_vec()].concat();
    let cases: [(&[u8], &str); 5] = [
        (b"{\"version\":2,\"request\":\"status\"}\n", "found version 2, allowed is 1"),
        (b"{\"version\":1,\"request\":\"stop\"}\n", "`stop`, expected one of `status`, `peers`"),
        (b"hello\n", "the request is not"),
        (b"\xff\xfe\n", "the request is not"),
        (&long, "found 4096 bytes without a newline, expected a line of at most 4096 bytes"),
    ];
    for (line, expected) in cases {
        let answer = raw(&agent, line);
        let error = answer["error"].as_str().unwrap();
        assert!(error.contains(expected), "{error}");
    }
    wait_for("the bad requests are counted", || {
        (agent.metric("api_bad_requests") == 5).then_some(())
    });
}

#[test]
fn a_stranger_is_turned_away_and_counted() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let fleet = Fleet::new();
    let agent = fleet.start(&bss, "a", 1, "[api]\ngroup = 4242\n");
    let program = fleet.program();
    let ask = |uid: u32, gid: u32| {
        let mut command = Command::new(&program);
        command.args(["status", "--json", "--socket"]).arg(&agent.socket);
        command.uid(uid).gid(gid).output().unwrap()
    };
    let stranger = ask(65534, 65534);
    assert_eq!(stranger.status.code(), Some(1));
    assert!(stderr(&stranger).contains("only root, the agent's user and members of api.group"));
    let member = ask(65534, 4242);
    assert!(member.status.success(), "{}", stderr(&member));
    wait_for("the stranger is counted", || (agent.metric("api_strangers") == 1).then_some(()));
}

#[test]
fn silent_clients_do_not_delay_the_agent() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let agent = Fleet::new().start(&bss, "a", 1, "");
    let ticks = agent.metric("ticks");
    let mut silent: Vec<_> = (0..40).map(|_| UnixStream::connect(&agent.socket).unwrap()).collect();
    // Clients over the limit are refused at once. The others are disconnected, because they stay
    // silent.
    for stream in &mut silent {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.is_empty() || text.contains("too many clients"), "{text}");
    }
    // The limit is 16 clients.
    wait_for("the clients over the limit are counted", || {
        (agent.metric("api_crowded") >= 24).then_some(())
    });
    wait_for("a silent client is counted", || (agent.metric("api_slow") >= 1).then_some(()));
    assert!(agent.metric("ticks") > ticks, "the agent continued to tick");
}
