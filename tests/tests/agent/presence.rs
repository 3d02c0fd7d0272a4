//! Presence messages: which agents receive them, and what happens to forged ones.

use std::fs;
use std::net::UdpSocket;

use nix::sys::signal::Signal;

use wakeai_api::Request;

use wakeai_tests::agent::{Agent, BSSID, Fleet};
use wakeai_tests::bss::{Bss, WIFI};
use wakeai_tests::{Machine, stdout, wait_for, wakeai};

#[test]
fn two_agents_on_one_link_see_each_other_and_none_of_another_access_point() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b", "c"]);
    let fleet = Fleet::new();
    let first = fleet.start(&bss, "a", 1, "");
    let second = fleet.start(&bss, "b", 2, "");
    let stranger = fleet.start_at(&bss, "c", 3, "02:00:5e:10:00:02", "");
    wait_for("the first agent hears the second", || (first.peers() == [2]).then_some(()));
    wait_for("the second agent hears the first", || (second.peers() == [1]).then_some(()));
    wait_for("both sides count the messages of the other access point", || {
        (first.metric("presence_wrong_bssid") > 0 && stranger.metric("presence_wrong_bssid") > 0)
            .then_some(())
    });
    assert_eq!(stranger.peers(), [0_u64; 0]);
    assert_eq!(first.peers(), [2]);
}

#[test]
fn agents_hear_each_other_whatever_addresses_their_interfaces_have() {
    let Some(_machine) = Machine::take() else { return };
    let plain = ["10.77.0.1/24", "10.77.0.2/24"];
    let mixed = ["10.77.0.1/24", "10.77.0.2/24 brd +"];
    let pair = ["10.77.0.0/31", "10.77.0.1/31"];
    let single = ["10.77.0.1/32", "10.77.0.2/32"];
    let only_v6 = ["fd77::1/64", "fd77::2/64"];
    for addresses in [plain, mixed, pair, single, only_v6] {
        let bss = Bss::without_addresses(&["a", "b"]);
        for (station, address) in ["a", "b"].into_iter().zip(addresses) {
            bss.ip(station, &format!("addr add {address} dev {WIFI}"));
        }
        let fleet = Fleet::new();
        let agents = [("a", 1, 2), ("b", 2, 1)]
            .map(|(name, own, other)| (fleet.start(&bss, name, own, ""), other));
        for (agent, other) in &agents {
            wait_for(&format!("{addresses:?}: {other} is heard"), || {
                (agent.peers() == [*other]).then_some(())
            });
        }
    }
}

#[test]
fn status_names_the_destination_and_gives_advice_without_peers() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::without_addresses(&["a"]);
    bss.ip("a", &format!("addr add 10.77.0.1/24 dev {WIFI}"));
    let agent = Fleet::new().start(&bss, "a", 1, "");
    let goes_to =
        "presence messages are sent to 255.255.255.255:19719 (wlan0 has no IPv4 broadcast address)";
    assert!(agent.log().contains(goes_to), "{}", agent.log());
    wait_for("the agent has heard itself", || {
        (agent.metric("presence_sent") >= 3 && agent.metric("presence_own") >= 1).then_some(())
    });
    let socket = agent.socket.display().to_string();
    let said = stdout(&wakeai(&["status", "--socket", &socket]));
    let line = said.lines().find(|line| line.contains("none received except this station's own"));
    let line = line.unwrap_or_else(|| panic!("{said}"));
    assert!(
        line.contains(" sent to 255.255.255.255:19719, none received except this station's own"),
        "{line}"
    );
    for tip in ["the same group key", "client isolation", "UDP port 19719", "presence.broadcast"] {
        assert!(said.contains(tip), "{tip} is not in {said}");
    }
    let status = agent.ask(Request::Status);
    assert_eq!(status["presence_to"], "255.255.255.255:19719");
}

#[test]
fn messages_under_another_key_are_counted_as_forged() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b"]);
    let (fleet, other) = (Fleet::new(), Fleet::new());
    let agent = fleet.start(&bss, "a", 1, "");
    let _foreign = other.start(&bss, "b", 2, "");
    wait_for("the forged message is counted", || {
        (agent.metric("presence_forged") > 0).then_some(())
    });
    assert_eq!(agent.peers(), [0_u64; 0]);
}

#[test]
fn a_running_fleet_changes_its_key_by_sighup() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b", "c"]);
    let fleet = Fleet::new();
    let file = fleet.path("group.key");
    let old = fs::read_to_string(&file).unwrap();
    let new = format!("{}\n", "5a".repeat(32));
    let agents = [fleet.start(&bss, "a", 1, ""), fleet.start(&bss, "b", 2, "")];
    let heard = || (agents[0].peers() == [2] && agents[1].peers() == [1]).then_some(());
    wait_for("the agents hear each other", heard);

    for content in [format!("{old}{new}"), format!("{new}{old}"), new.clone()] {
        fs::write(&file, content).unwrap();
        for agent in &agents {
            let reads = || agent.log().matches("group keys read again").count();
            let before = reads();
            agent.signal(Signal::SIGHUP);
            wait_for("the key is read again", || (reads() > before).then_some(()));
            let accepted = agents.each_ref().map(|agent| agent.metric("presence_accepted"));
            wait_for("both agents hear each other's next messages", || {
                let now = agents.each_ref().map(|agent| agent.metric("presence_accepted"));
                now.iter().zip(&accepted).all(|(now, before)| now > before).then_some(())
            });
        }
    }
    let newcomer = fleet.start(&bss, "c", 3, "");
    let all_heard = || {
        let peers = agents.each_ref().map(Agent::peers);
        (peers == [[2, 3], [1, 3]] && newcomer.peers() == [1, 2]).then_some(())
    };
    wait_for("a station that has only the new key is a peer", all_heard);
    assert_eq!(agents.each_ref().map(|agent| agent.metric("presence_forged")), [0, 0]);

    fs::write(&file, "no key\n").unwrap();
    agents[0].signal(Signal::SIGHUP);
    wait_for("the bad key is reported", || {
        agents[0].log().contains("the previous ones stay in use").then_some(())
    });
    wait_for("the agents hear each other", all_heard);
}

#[test]
fn presence_is_neither_sent_nor_heard_on_another_interface() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b"]);
    // The two stations share a wire, too, and only one of them uses it as its Wi-Fi interface.
    let fleet = Fleet::new();
    bss.wire("a", "b");
    bss.ip("b", &format!("link set {WIFI} down"));
    let listener = bss.namespace("b").run(|| UdpSocket::bind("0.0.0.0:19719").unwrap()).unwrap();
    listener.set_nonblocking(true).unwrap();
    let agent = fleet.start(&bss, "a", 1, "");
    wait_for("the agent has sent presence messages", || {
        (agent.metric("presence_sent") > 3).then_some(())
    });
    assert!(listener.recv(&mut [0; 512]).is_err(), "nothing came over the wire");
    let shout = || {
        let socket = UdpSocket::bind("10.88.0.2:0").unwrap();
        socket.set_broadcast(true).unwrap();
        for _ in 0..100 {
            socket.send_to(b"over the wire", "10.88.0.255:19719").unwrap();
        }
    };
    bss.namespace("b").run(shout).unwrap();
    let ticks = agent.metric("ticks");
    wait_for("some ticks pass", || (agent.metric("ticks") > ticks + 2).then_some(()));
    assert_eq!(agent.metric("presence_malformed"), 0);
}

#[test]
fn a_flood_of_bad_messages_changes_only_counters() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b", "liar"]);
    let fleet = Fleet::new();
    let agent = fleet.start(&bss, "a", 1, "");
    let _peer = fleet.start(&bss, "b", 2, "");
    wait_for("the peer is heard", || (agent.peers() == [2]).then_some(()));
    let before = agent.ask(Request::Bounds);
    let memory = resident_pages(agent.serving());

    // The attacker receives a real message, and sends it damaged, cut and repeated among random datagrams.
    let flood = || {
        let socket = UdpSocket::bind("0.0.0.0:19719").unwrap();
        socket.set_broadcast(true).unwrap();
        let mut message = [0; 512];
        let length = socket.recv(&mut message).unwrap();
        let message = &message[..length];
        let mut sent = 0_u32;
        for round in 0..40_000_usize {
            let mut bad = message.to_vec();
            match round % 4 {
                0 => bad[round / 4 % length] ^= 1 + (round % 255) as u8,
                1 => bad.truncate(round % length),
                2 => {} // replayed
                _ => bad = vec![(round % 251) as u8; round % 500],
            }
            // If the socket's send queue is full, the datagram is not sent.
            sent += u32::from(socket.send_to(&bad, "10.77.0.255:19719").is_ok());
        }
        sent
    };
    let sent = bss.namespace("liar").run(flood).unwrap();
    assert!(sent > 10_000);
    let bad = |agent: &Agent| {
        let names = ["malformed", "wrong_version", "forged", "invalid", "replayed", "unproven"];
        names.map(|name| agent.metric(&format!("presence_{name}"))).iter().sum::<u64>()
    };
    wait_for("the bad messages are counted", || (bad(&agent) > 1000).then_some(()));
    let ticks = agent.metric("ticks");
    wait_for("the agent continues to tick", || (agent.metric("ticks") > ticks + 4).then_some(()));
    println!("{sent} sent, {} counted as bad", bad(&agent));
    assert_eq!(agent.peers(), [2]);
    let after = agent.ask(Request::Bounds);
    assert_eq!((&after["floor"], &after["ceiling"]), (&before["floor"], &before["ceiling"]));
    assert!(resident_pages(agent.serving()) < memory + 512, "memory grew by 2 MB or more");
    assert_eq!(agent.ask(Request::Status)["bssid"], BSSID);
}

/// The resident set in pages: the second field of `statm` (proc(5)).
fn resident_pages(pid: u32) -> u64 {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap();
    statm.split(' ').nth(1).unwrap().parse().unwrap()
}
