//! Agents on Linux's own 802.11 stack: how their messages travel.

use serde_json::Value;

use crate::air::THREE;
use crate::{Said, run};

/// What an agent said of itself after a word of the script.
fn status(said: &Said, word: &str, name: &str) -> Value {
    let mut all = said.json(&format!("{word} {name} "));
    all["status"].take()
}

/// The messages since the association began that were counted under a name.
fn messages(status: &Value, name: &str) -> u64 {
    status["presence"][name].as_u64().unwrap_or(0)
}

/// The agents end when they are told to, with status 0.
fn ended_well(said: &Said) {
    for name in ["a", "b"] {
        let word = format!("ENDED {name} ");
        assert_eq!(said.lines(&word).next(), Some("0"), "{}", said.console);
    }
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
