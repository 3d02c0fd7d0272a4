//! Agents on Linux's own 802.11 stack: what they learn from nl80211 and bound, how their messages travel, and what they make of
//! events that a TUN does not have.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::air::THREE;
use crate::control::{captured, fields};
use crate::{Said, run};

const FIRST: &str = "02:00:00:00:00:00";
const OTHER: &str = "02:00:00:00:01:00";

/// What an agent said of itself after a word of the script.
fn status(said: &Said, word: &str, name: &str) -> Value {
    let mut all = said.json(&format!("{word} {name} "));
    all["status"].take()
}

/// The messages since the association began that were counted under a name.
fn messages(status: &Value, name: &str) -> u64 {
    status["presence"][name].as_u64().unwrap_or(0)
}

fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap_or_else(|| panic!("{key}: {of}"))
}

/// The agents end when they are told to, with status 0.
fn ended_well(said: &Said) {
    for name in ["a", "b"] {
        let word = format!("ENDED {name} ");
        assert_eq!(said.lines(&word).next(), Some("0"), "{}", said.console);
    }
}

/// Uploads and downloads of two stations at MCS 7 under `airtime`.
#[test]
#[ignore = "boots a guest: minutes"]
fn agents_find_bssid_and_rate_by_nl80211_and_bound_both_directions() {
    let scenario = THREE.replace("802.11g", "802.11n");
    let Some(said) = run("bulk", &[("/air.toml", &scenario)]) else { return };
    for name in ["a", "b"] {
        let up = status(&said, "UP", name);
        println!("{name}: {up}");
        assert_eq!(up["state"], "controlling");
        assert_eq!(up["bssid"], FIRST);
        assert_eq!(up["link_rate_mbps"], 65.0);
        assert_eq!((&up["senders"], &up["peers"]), (&Value::from(2), &Value::from(1)));
        let mut senders = up["connections"].as_array().unwrap().iter();
        assert!(
            senders.any(|one| one["sending"] == true && one["algorithm"] == "wakeai_cubic"),
            "{up}"
        );
        // What one of them sends at a moment is some part of what the channel carries at MCS 7.
        assert!((1.0..60.0).contains(&number(&up, "delivery_rate_mbps")), "{up}");
        let down = status(&said, "DOWN", name);
        assert!((1.0..60.0).contains(&number(&down["received"], "rate_mbps")), "{down}");
    }
    let carried = |word: &str| -> Vec<f64> {
        let lines = said.lines("GOT ").filter_map(|line| line.strip_prefix(word));
        let all = lines.map(|line| serde_json::from_str::<Value>(line.trim()).unwrap());
        all.map(|one| number(&one["end"]["sum_received"], "bits_per_second") / 1e6).collect()
    };
    for word in ["UP", "DOWN"] {
        let mbps = carried(word);
        println!("{word}: {mbps:.1?} Mbit/s");
        assert!(mbps.len() == 2 && mbps.iter().all(|one| *one > 15.0), "{word}: {mbps:?}");
        assert!((40.0..60.0).contains(&mbps.iter().sum()), "{word}: {mbps:?}");
    }
    ended_well(&said);
    assert_eq!(said.json("COUNTED")["faithful"], true);
}

/// Presence by broadcast while stations sleep, new group keys, isolation, reassociation, roaming, and a radio that is unplugged.
#[test]
#[ignore = "boots a guest: minutes"]
fn agents_meet_part_and_meet_again_as_802_11_lets_them() {
    let scenario =
        format!("{THREE}[[bss]]\nname = \"one\"\n[[bss]]\nname = \"other\"\nchannel = 6\n")
            .replace("count = 2", "count = 2\nbss = \"one\"");
    let Some(said) = run("presence", &[("/air.toml", &scenario)]) else { return };
    let both = |word: &str| ["a", "b"].map(|name| status(&said, word, name));
    let peers = |word: &str| both(word).map(|one| one["peers"].as_u64().unwrap_or(u64::MAX));
    let bssid =
        |word: &str| both(word).map(|one| one["bssid"].as_str().unwrap_or("none").to_owned());
    for word in ["MET", "SLEPT", "REKEYED", "ISOLATED", "TOGETHER", "APART", "ROAMED"] {
        println!(
            "{word}: peers {:?}, {:?}, {:?}",
            peers(word),
            bssid(word),
            both(word).map(|one| one["presence"].clone())
        );
    }

    assert_eq!((peers("MET"), bssid("MET")), ([1, 1], [FIRST, FIRST].map(str::to_owned)));
    // Asleep they go on hearing each other.
    assert_eq!(peers("SLEPT"), [1, 1]);
    for (before, after) in both("MET").iter().zip(&both("SLEPT")) {
        assert!(
            messages(after, "accepted") >= messages(before, "accepted") + 5,
            "{before} {after}"
        );
    }
    presence_waited_for_the_dtim(&said);

    // New keys on all stations cost no message.
    assert_eq!(peers("REKEYED"), [1, 1]);
    assert!(both("REKEYED").iter().all(|one| messages(one, "forged") == 0));
    let stranger = status(&said, "STRANGE", "b");
    assert!(messages(&stranger, "forged") > 0, "the old key is out of use: {stranger}");

    // An access point that separates its clients carries no presence from one to the other. The agent says so.
    assert_eq!(peers("ISOLATED"), [0, 0]);
    for one in both("ISOLATED") {
        assert_eq!(
            (&one["state"], messages(&one, "accepted")),
            (&Value::from("controlling"), 0),
            "{one}"
        );
        assert!(messages(&one, "sent") >= 3, "{one}");
    }
    let advice: Vec<&str> = said.lines("ADVICE ").collect();
    assert!(advice.iter().any(|line| line.contains("client isolation")), "{advice:?}");
    // After the next association everything is as before.
    assert_eq!((peers("TOGETHER"), bssid("TOGETHER")), ([1, 1], [FIRST, FIRST].map(str::to_owned)));

    // Each of two access points has one station, and what comes over the bridge is of another BSS.
    let moved: BTreeSet<&str> = said.lines("ROAM ").collect();
    assert_eq!(moved, BTreeSet::from(["a OK", "b OK"]));
    assert_eq!((peers("APART"), bssid("APART")), ([0, 0], [OTHER, FIRST].map(str::to_owned)));
    assert!(both("APART").iter().all(|one| messages(one, "wrong_bssid") > 0));
    assert_eq!((peers("ROAMED"), bssid("ROAMED")), ([1, 1], [OTHER, OTHER].map(str::to_owned)));

    assert_eq!(said.lines("UNPLUG ").next(), Some("0"));
    let gone = status(&said, "UNPLUGGED", "a");
    assert_eq!(
        (&gone["state"], &gone["bssid"]),
        (&Value::from("waiting-for-interface"), &Value::Null),
        "{gone}"
    );
    assert_eq!(status(&said, "UNPLUGGED", "b")["peers"], 0);
    ended_well(&said);
}

/// While a station sleeps, a frame for everybody follows a beacon that announces it as a DTIM. It is sent at a basic rate, once.
fn presence_waited_for_the_dtim(said: &Said) {
    let names = [
        "frame.time_epoch",
        "wlan.fc.type_subtype",
        "wlan.fc.ds",
        "wlan.fc.pwrmgt",
        "wlan.da",
        "radiotap.datarate",
        "radiotap.data_retries",
        "wlan.tim.dtim_count",
        "wlan.tim.bmapctl.multicast",
        "wlan.ta",
    ];
    let Some(rows) = captured(&said.console, &names) else { return };
    let (mut asleep, mut dtim, mut waited, mut others) = (BTreeSet::new(), None, Vec::new(), 0);
    for row in fields(&rows) {
        let [time, kind, direction, sleeps, to, rate, retries, count, announced, from] = row[..]
        else {
            panic!("{row:?}")
        };
        let time: f64 = time.parse().unwrap();
        let is_true = |field: &str| field == "1" || field == "True";
        if kind == "0x0008" {
            dtim = (count == "0" && is_true(announced)).then_some(time);
        } else if direction == "0x01" {
            if is_true(sleeps) {
                asleep.insert(from)
            } else {
                asleep.remove(from)
            };
        } else if direction == "0x02" && to == "ff:ff:ff:ff:ff:ff" {
            if asleep.len() < 2 {
                others += 1;
                continue;
            }
            assert_eq!((rate, retries), ("6", "0"), "{row:?}");
            waited.push(dtim.map_or(f64::INFINITY, |beacon| time - beacon));
        }
    }
    let latest = waited.iter().copied().fold(0.0, f64::max);
    println!(
        "{others} broadcasts to awake stations, {} to sleeping ones at most {:.2} ms after a DTIM",
        waited.len(),
        latest * 1e3
    );
    assert!(waited.len() >= 10 && latest < 0.02, "{waited:?}");
}

/// hostapd changes the key for groups every two seconds.
#[test]
#[ignore = "boots a guest: minutes"]
fn agents_hear_each_other_through_new_keys_of_the_access_point() {
    let Some(said) = run("rekey", &[("/air.toml", THREE)]) else { return };
    for name in ["a", "b"] {
        let [before, after] = ["BEFORE", "AFTER"].map(|word| status(&said, word, name));
        println!("{name}: {} {}", before["presence"], after["presence"]);
        assert_eq!((&before["peers"], &after["peers"]), (&Value::from(1), &Value::from(1)));
        let heard = messages(&after, "accepted") - messages(&before, "accepted");
        let sent = messages(&after, "sent") - messages(&before, "sent");
        // Each hears about as many as it sends; a key that changes between sending and hearing may cost one.
        assert!(sent >= 10 && heard + 3 >= sent, "{sent} {heard}");
    }
    let handshakes = said.lines("HANDSHAKES ").next().unwrap_or_default();
    let enough =
        handshakes.split(' ').all(|count| count.parse::<u32>().is_ok_and(|count| count >= 10));
    assert!(enough, "{handshakes}");
    ended_well(&said);
    assert_eq!(said.json("COUNTED")["faithful"], true);
}
