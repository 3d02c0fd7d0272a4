//! The air itself: rates, losses, order, and who shares it.

use serde_json::Value;

use crate::{Said, run};

pub(crate) const THREE: &str = r#"
name = "three"
duration = "10s"
[access_point]
standard = "802.11g"
[[stations]]
name = "sta"
count = 2
[[flows]]
from = "sta"
to = "server"
[[conditions]]
name = "default"
"#;

/// What iperf3's server has counted of a flow of UDP.
struct Udp {
    mbps: f64,
    lost: i64,
    out_of_order: i64,
    received: i64,
}

impl Udp {
    fn of(said: &Said, word: &str) -> Self {
        let all = said.json(word);
        let flow = &all["end"]["streams"][0]["udp"];
        let count = |key: &str| flow[key].as_i64().unwrap_or_else(|| panic!("{key}: {flow}"));
        let lost = count("lost_packets");
        let received = &all["end"]["sum_received"]["bits_per_second"];
        Self {
            mbps: received.as_f64().unwrap() / 1e6,
            lost,
            out_of_order: count("out_of_order"),
            received: count("packets") - lost,
        }
    }
}

/// What the medium has counted of a radio.
fn radio<'a>(counted: &'a Value, name: &str) -> &'a Value {
    let mut radios = counted["radios"].as_array().unwrap().iter();
    radios.find(|radio| radio["name"] == name).unwrap_or_else(|| panic!("{name}: {counted}"))
}

/// Three radios, hostapd, `wpa_supplicant` twice, UDP of 100 Mbit/s offered to the air by each station.
#[test]
#[ignore = "boots a guest: minutes"]
fn two_stations_share_the_capacity_of_their_channel() {
    let Some(said) = run("share", &[("/air.toml", THREE)]) else { return };
    let flows = ["A", "B"].map(|word| Udp::of(&said, word));
    for flow in &flows {
        let Udp { mbps, lost, out_of_order, .. } = *flow;
        println!("{mbps:.2} Mbit/s, {lost} lost, {out_of_order} out of order");
        // Two stations of 802.11g at 54 Mbit/s have 30.3 Mbit/s in the simulator.
        assert!((14.25..15.75).contains(&mbps), "{mbps}");
        assert_eq!((lost, out_of_order), (0, 0));
    }
    let counted = said.json("COUNTED");
    assert_eq!(counted["faithful"], true, "{counted}");
    let collided = counted["collisions"].as_f64().unwrap() / counted["ppdus"].as_f64().unwrap();
    // Two stations that always have something to send collide with a probability of 10.6 % (Bianchi, window 16).
    assert!((0.09..0.13).contains(&collided), "{collided}");
    for (name, flow) in ["sta1", "sta2"].into_iter().zip(&flows) {
        let own = radio(&counted, name);
        assert!(own["carried"].as_i64().unwrap() >= flow.received, "{own}");
        assert!(own["attempts"].as_i64() > own["sent"].as_i64(), "collisions are retried: {own}");
        assert_eq!(own["frequency_mhz"], 2412);
    }
}

/// Four sockets of one station offer more than its queue takes: each loss is counted, and nothing else is lost or changes its
/// place.
#[test]
#[ignore = "boots a guest: minutes"]
fn at_overload_the_losses_are_those_that_the_medium_counts() {
    let Some(said) = run("overload", &[("/air.toml", THREE)]) else { return };
    let refusals = [
        ("BUFFER", "2 wakeai: access_point.buffer is 200 packets: at most 180"),
        ("QUEUE", "2 wakeai: stations has the key queue:"),
        ("HOST_QUEUE", "2 wakeai: stations has the key host_queue:"),
        ("BUSY", "1 wakeai: another program is the medium of these radios"),
    ];
    for (word, expected) in refusals {
        let word = format!("{word} ");
        let found = said.lines(&word).next().unwrap_or_default();
        assert!(found.starts_with(expected), "{word}: {found}");
    }
    let flows = |word| said.json(word)["end"]["streams"].as_array().unwrap().clone();
    let sum = |flows: &[Value], key: &str| -> i64 {
        flows.iter().map(|flow| flow["udp"][key].as_i64().unwrap()).sum()
    };
    let (sent, got) = (flows("SENT "), flows("GOT "));
    assert_eq!((sent.len(), sum(&got, "out_of_order")), (4, 0));
    let lost = sum(&sent, "packets") - (sum(&got, "packets") - sum(&got, "lost_packets"));
    let counted = said.json("COUNTED");
    let not_carried = &counted["not_carried"];
    let count = |key: &str| not_carried[key].as_i64().unwrap();
    println!("{lost} datagrams lost, {} frames found the queue full", count("queue_full"));
    // The connection over which iperf3 agrees with its server loses a few frames, too.
    let counted_losses = count("queue_full") + count("unanswered");
    assert!(lost > 1_000 && (lost..lost + 50).contains(&counted_losses), "{lost}: {not_carried}");
    assert_eq!(counted["faithful"], true, "{counted}");
}

const TWO_OF_N: &str = r#"
name = "two-of-n"
duration = "5s"
warmup = "1s"
[access_point]
standard = "802.11n"
[[stations]]
name = "sta"
count = 2
[[flows]]
from = "sta"
to = "server"
kind = "udp"
rate = "100Mbit/s"
[[conditions]]
name = "default"
"#;

/// The goodput of each station in the simulator, of as many as the scenario has, in Mbit/s.
fn simulated(scenario: &str, stations: f64) -> f64 {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("scenario.toml");
    std::fs::write(&file, scenario).unwrap();
    let run = std::process::Command::new(wakeai_tests::program())
        .arg("sim")
        .arg(&file)
        .arg("--json")
        .output()
        .unwrap();
    let said: Value = serde_json::from_slice(&run.stdout).unwrap();
    said["runs"][0]["total_goodput_mbps"].as_f64().unwrap() / stations
}

/// What two stations of 802.11n get at MCS 7, without encryption or with it.
fn aggregates(script: &str) -> Option<Said> {
    let said = run(script, &[("/air.toml", TWO_OF_N)])?;
    let expected = simulated(TWO_OF_N, 2.0);
    let counted = said.json("COUNTED");
    let count = |key: &str| counted[key].as_f64().unwrap();
    println!("{:.1} MPDUs in a PPDU", count("mpdus") / count("ppdus"));
    let mut sum = 0.0;
    for word in ["A", "B"] {
        let Udp { mbps, lost, out_of_order, .. } = Udp::of(&said, word);
        println!("{word}: {mbps:.2} Mbit/s, {lost} lost; the simulator has {expected:.2}");
        // Of the some 500 transmissions in two seconds one station may have a few more than the other.
        assert!((0.8..1.2).contains(&(mbps / expected)), "{word}: {mbps}");
        assert_eq!(out_of_order, 0, "{word}");
        sum += mbps;
    }
    assert!((0.95..1.05).contains(&(sum / 2.0 / expected)), "{sum}");
    assert!(count("mpdus") > 10.0 * count("ppdus"), "{counted}");
    assert_eq!(counted["faithful"], true, "{counted}");
    Some(said)
}

/// The driver never sees a session for Block Ack: the medium declines each and aggregates by itself.
#[test]
#[ignore = "boots a guest: minutes"]
fn stations_of_802_11n_send_aggregates() {
    let Some(said) = aggregates("aggregate") else { return };
    let declined = said.json("COUNTED")["not_carried"]["declined_addba"].as_i64();
    assert!(declined.unwrap() > 0);
    let ms = said.console.split("time=").nth(1).unwrap().split(' ').next().unwrap();
    assert!(ms.parse::<f64>().unwrap() < 100.0, "the first ping took {ms} ms");
}

/// `wpa_supplicant` by WPA2, and by WPA3 with protected management frames.
#[test]
#[ignore = "boots a guest: minutes"]
fn stations_of_wpa2_and_wpa3_send_aggregates_too() {
    let Some(said) = aggregates("secure") else { return };
    let states: Vec<&str> = said.console.lines().filter(|line| line.contains("STATE ")).collect();
    assert!(states[0].contains("key_mgmt=WPA2-PSK"), "{states:?}");
    assert!(states[1].contains("key_mgmt=SAE"), "{states:?}");
}

const TWO: &str = r#"
name = "two"
duration = "10s"
[access_point]
standard = "802.11g"
[[bss]]
name = "one"
channel = 1
[[bss]]
name = "other"
channel = 1
[[stations]]
name = "sta"
count = 2
bss = "one"
[[flows]]
from = "sta"
to = "server"
[[conditions]]
name = "default"
"#;

/// Two access points with a station each. The second one moves to another channel, where its station finds it.
#[test]
#[ignore = "boots a guest: minutes"]
fn two_access_points_share_one_channel_and_have_two_for_themselves() {
    let Some(said) = run("two", &[("/air.toml", TWO)]) else { return };
    // One station of 802.11g at 54 Mbit/s has 30.0 Mbit/s in the simulator, and two have 30.3 together.
    let cases = [("SAME_A", 15.1), ("SAME_B", 15.1), ("APART_A", 30.0), ("APART_B", 30.0)];
    for (word, expected) in cases {
        let Udp { mbps, lost, out_of_order, .. } = Udp::of(&said, word);
        println!("{word}: {mbps:.2} Mbit/s, {lost} lost, {out_of_order} out of order");
        assert!((0.95..1.05).contains(&(mbps / expected)), "{word}: {mbps}");
        assert_eq!(out_of_order, 0, "{word}");
    }
    let counted = said.json("COUNTED");
    assert_eq!(counted["faithful"], true, "{counted}");
    let channels =
        ["one", "other", "sta1", "sta2"].map(|name| &radio(&counted, name)["frequency_mhz"]);
    assert_eq!(channels, [2412, 2437, 2412, 2437]);
}

/// Saturation by UDP beside Bianchi's model of DCF (2000), with 802.11g's times: 54 Mbit/s, datagrams of 1472 bytes, ACKs at
/// 24 Mbit/s.
#[test]
#[ignore = "boots a guest: minutes"]
fn saturation_of_1_6_and_12_stations_is_that_of_bianchi_s_model() {
    let scenario = THREE.replace("count = 2", "count = 12");
    let Some(said) = run("saturation", &[("/air.toml", &scenario)]) else { return };
    let found: Vec<Value> =
        said.lines("SATURATED").map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected = [(1, 29.93), (6, 29.10), (12, 27.14)];
    assert_eq!(found.len(), expected.len(), "{}", said.console);
    for (row, (stations, expected)) in found.iter().zip(expected) {
        let number = |key: &str| row[key].as_f64().unwrap();
        assert_eq!(row["stations"], stations);
        let seconds = number("until") - number("since");
        let mbps = number("datagrams") * 1472.0 * 8.0 / seconds / 1e6;
        println!("{stations} stations: {mbps:.2} Mbit/s, the model has {expected}");
        assert!((0.95..1.05).contains(&(mbps / expected)), "{stations}: {mbps}");
    }
    assert_eq!(said.json("COUNTED")["faithful"], true);
}
