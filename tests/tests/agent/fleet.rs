//! `wakeai status --all`: the stations of an access point in one table.

use std::net::UdpSocket;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use serde_json::Value;
use wakeai_api::Request;

use wakeai_tests::agent::{Agent, BSSID, Fleet};
use wakeai_tests::bss::Bss;
use wakeai_tests::{Machine, stderr, stdout, wait_for, wakeai};

fn all(agent: &Agent, more: &[&str]) -> String {
    let socket = agent.socket.display().to_string();
    let output = wakeai(&[&["status", "--all", "--socket", &socket], more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

/// The stations as JSON, after a query that every peer has answered. A datagram may be lost.
fn answered(agent: &Agent) -> Vec<Value> {
    wait_for("all peers answer a query", || {
        let view: Value = serde_json::from_str(&all(agent, &["--json"])).unwrap();
        let stations = view["fleet"]["stations"].as_array().unwrap().clone();
        stations.iter().all(|station| station["answered"] == true).then_some(stations)
    })
}

#[test]
fn three_agents_show_each_other_in_one_table() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b", "c"]);
    let fleet = Fleet::new();
    let law = "max = \"20Mbit/s\"\n[law]\nname = \"fixed\"\nfloor = 3\nceiling = 9\n";
    let agents = [
        fleet.start(&bss, "a", 1, ""),
        fleet.start(&bss, "b", 2, law),
        fleet.start(&bss, "c", 3, "[law]\nname = \"none\"\n"),
    ];
    wait_for("the agents hear each other", || {
        (agents.each_ref().map(Agent::peers) == [[2, 3], [1, 3], [1, 2]]).then_some(())
    });
    let stations = answered(&agents[0]);
    let field = |name: &str| stations.iter().map(|of| of[name].clone()).collect::<Vec<_>>();
    let number = |station: u64| Value::from(format!("{station:016x}"));
    assert_eq!(field("station"), [number(1), number(2), number(3)]);
    assert_eq!(field("own"), [true, false, false]);
    assert_eq!(field("software"), [env!("CARGO_PKG_VERSION"); 3]);
    assert_eq!(field("state"), ["controlling"; 3]);
    assert_eq!(field("law"), ["airtime", "fixed", "none"]);
    assert_eq!(field("holds"), ["same", "other", "other"]);
    assert_eq!(field("peers"), [2, 2, 2]);
    assert_eq!((&stations[1]["floor"], &stations[1]["ceiling"]), (&3.into(), &9.into()));
    assert_eq!(stations[1]["share_mbps"], 20.0);
    for other in &stations[1..] {
        // All agents read the clock of this machine.
        let (ahead, error) =
            (other["clock_ahead_ms"].as_f64().unwrap(), other["clock_error_ms"].as_f64().unwrap());
        assert!(ahead.abs() <= error + 1.0, "{ahead} ± {error}");
        assert!(other["faults"].is_object() && other["heard_s"].is_number(), "{other}");
    }
    assert_eq!(agents[0].metric("presence_queries"), 0);
    // An agent publishes its counters at each tick.
    wait_for("the second station has counted the query and the third one's answer", || {
        let counted = |name| agents[1].metric(name) >= 1;
        (counted("presence_queries") && counted("presence_unasked")).then_some(())
    });

    let text = all(&agents[2], &[]);
    assert!(text.starts_with(&format!("access point {BSSID}: ")), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("controlling")).collect();
    assert_eq!(rows.len(), 3, "{text}");
    assert!(rows[2].contains("itself") && rows[1].contains(" 3..9 "), "{text}");
    for agent in &agents {
        assert_eq!((agent.metric("presence_forged"), agent.metric("presence_malformed")), (0, 0));
    }
}

#[test]
fn members_with_other_parameters_name_each_other_and_say_what_to_do() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b", "c"]);
    let fleet = Fleet::new();
    let shorter = "[law]\nname = \"airtime\"\nqueue_max = \"50ms\"\n";
    let agents = [
        fleet.start(&bss, "a", 1, ""),
        fleet.start(&bss, "b", 2, shorter),
        fleet.start(&bss, "c", 3, ""),
    ];
    wait_for("the agents hear each other", || {
        (agents.each_ref().map(Agent::peers) == [[2, 3], [1, 3], [1, 2]]).then_some(())
    });
    let number = |station: u64| format!("{station:016x}");
    let status = wait_for("the other law is known", || {
        let status = agents[0].ask(Request::Status);
        (!status["other_laws"].as_array().unwrap().is_empty()).then_some(status)
    });
    assert!(status["law_version"].as_u64().unwrap() >= 2, "{status}");
    let differs = serde_json::json!({ "what": "law.queue_max", "own": "75ms", "theirs": "50ms" });
    let other = serde_json::json!([{
        "stations": [number(2)],
        "law": "airtime",
        "law_version": status["law_version"],
        "differs": [differs],
    }]);
    assert_eq!(status["other_laws"], other);
    let peers = agents[0].ask(Request::Peers);
    assert_eq!((&peers[0]["holds"], &peers[1]["holds"]), (&"other".into(), &"same".into()));

    let words = format!(
        "station {} holds another law than this one, so the shares are not equal: law.queue_max is \
         50ms there and 75ms here. To mend it, configure the same on all stations",
        number(2)
    );
    let socket = agents[0].socket.display().to_string();
    let alone = stdout(&wakeai(&["status", "--socket", &socket]));
    for text in [&alone, &all(&agents[0], &[])] {
        assert!(text.contains(&words), "{text}");
    }
    assert!(all(&agents[0], &[]).contains("airtime (other)"));
    let two = agents[1].ask(Request::Status)["other_laws"].clone();
    assert_eq!(two[0]["stations"], serde_json::json!([number(1), number(3)]));
    let said = "holds another law: law.queue_max is 50ms there and 75ms here";
    assert_eq!(agents[0].log().matches(said).count(), 1, "{}", agents[0].log());
}

#[test]
fn members_of_the_group_may_ask_for_the_fleet_and_strangers_may_not() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let fleet = Fleet::new();
    let agent = fleet.start(&bss, "a", 1, "[api]\ngroup = 4242\n");
    let program = fleet.program();
    let ask = |user: u32, group: u32| {
        let mut command = Command::new(&program);
        command.args(["status", "--all", "--json", "--socket"]).arg(&agent.socket);
        command.uid(user).gid(group).output().unwrap()
    };
    let stranger = ask(65534, 65534);
    assert_eq!(stranger.status.code(), Some(1));
    assert!(stderr(&stranger).contains("only root, the agent's user and members of api.group"));
    let member = ask(65534, 4242);
    assert!(member.status.success(), "{}", stderr(&member));
    let view: Value = serde_json::from_str(&stdout(&member)).unwrap();
    assert_eq!(view["fleet"]["stations"][0]["own"], true);
    assert_eq!(view["fleet"]["stations"].as_array().unwrap().len(), 1);
}

/// A presence message of another version with the fleet's key: what every version has, and other bytes.
fn of_version(version: u8, length: usize, station: u64, key: &[u8; 32]) -> Vec<u8> {
    let mut bytes = b"WKAI".to_vec();
    bytes.extend([version, 0xff]);
    bytes.extend([0x02, 0x00, 0x5e, 0x10, 0x00, 0x01]);
    bytes.extend(station.to_be_bytes());
    bytes.resize(length - 16, 0xff);
    let context = format!("Wakeai presence v{version} authenticator");
    let hash = blake3::keyed_hash(&blake3::derive_key(&context, key), &bytes);
    bytes.extend(&hash.as_bytes()[..16]);
    bytes
}

#[test]
fn senders_of_other_versions_are_named_and_never_taken_for_peers() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b", "old"]);
    let fleet = Fleet::new();
    let agent = fleet.start(&bss, "a", 1, "");
    let _peer = fleet.start(&bss, "b", 2, "");
    wait_for("the peer is heard", || (agent.peers() == [2]).then_some(()));
    let bounds = agent.ask(Request::Bounds);

    let key = std::fs::read_to_string(fleet.path("group.key")).unwrap();
    let digits = key.lines().find(|line| line.len() == 64).unwrap();
    let key: [u8; 32] =
        std::array::from_fn(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap());
    // Version 1 had 240 bytes. Version 3 may have any length, also that of version 2.
    let datagrams = [
        of_version(1, 240, 7, &key),
        of_version(3, 264, 8, &key),
        of_version(3, 300, 8, &key),
        of_version(1, 240, 9, &[0; 32]), // of a stranger
    ];
    let send = || {
        let socket = UdpSocket::bind("10.77.0.3:0").unwrap();
        socket.set_broadcast(true).unwrap();
        for datagram in &datagrams {
            socket.send_to(datagram, "10.77.0.255:19719").unwrap();
        }
    };
    bss.namespace("old").run(send).unwrap();
    wait_for("the messages are counted", || {
        (agent.metric("presence_wrong_version") == 4).then_some(())
    });
    let named = wait_for("the members are named", || {
        let named = agent.ask(Request::Status)["other_versions"].as_array().unwrap().clone();
        (named.len() == 2).then_some(named)
    });
    let of = |name: &str| named.iter().map(|member| member[name].clone()).collect::<Vec<_>>();
    assert_eq!(of("from"), ["10.77.0.3", "10.77.0.3"]);
    assert_eq!(of("station"), [format!("{:016x}", 7), format!("{:016x}", 8)]);
    assert_eq!(
        (of("version"), of("messages")),
        (vec![1.into(), 3.into()], vec![1.into(), 2.into()])
    );

    let words = [
        "1 message of presence version 1 from 10.77.0.3 (station 0000000000000007",
        "2 messages of presence version 3 from 10.77.0.3 (station 0000000000000008",
    ];
    let socket = agent.socket.display().to_string();
    for text in [stdout(&wakeai(&["status", "--socket", &socket])), all(&agent, &[])] {
        for words in words {
            assert!(text.contains(words), "{text}");
        }
        assert!(text.contains("update that agent") && text.contains("update this agent"), "{text}");
        assert!(!text.contains("0000000000000009"), "a stranger is not named: {text}");
    }
    assert!(agent.log().contains(words[0]), "{}", agent.log());
    assert_eq!((agent.peers(), agent.state()), (vec![2], "controlling".to_owned()));
    let after = agent.ask(Request::Bounds);
    assert_eq!((&after["floor"], &after["ceiling"]), (&bounds["floor"], &bounds["ceiling"]));
}
