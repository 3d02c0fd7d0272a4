//! What a station of a lab reaches alone, beside the figures of the same scenario's own solo runs.

use std::path::Path;

use serde_json::Value;

use crate::lab::{Lab, SERVER};
use crate::support::{Machine, nothing_left, stderr, stdout, wait_for, wakeai};
use crate::{Listener, inside};

fn solo(lab: &Lab, more: &[&str]) -> Value {
    let mut listener = Listener::start(inside(&lab.name("server")), "solo", SERVER, &[]);
    let mut command = inside(&lab.name("a"));
    command.args(["probe", "solo", "--json"]).args(listener.peer()).args(more);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(listener.end().0.success());
    serde_json::from_str(&stdout(&output)).unwrap()
}

/// What the scenario's station reaches alone, up and down, by the simulator's solo runs.
fn simulated(directory: &Path, access_point: &str) -> [f64; 2] {
    let path = directory.join("sim.toml");
    let text = format!(
        "name = \"alone\"\nduration = \"13s\"\nwarmup = \"3s\"\naccess_point = {{ {access_point} }}\n\
         stations = [{{ name = \"a\" }}]\n\
         flows = [{{ from = \"a\", to = \"server\" }}, {{ from = \"server\", to = \"a\" }}]\n"
    );
    std::fs::write(&path, text).unwrap();
    let output = wakeai(&["sim", path.to_str().unwrap(), "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let result: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let alone = result["runs"][0]["stations"].as_array().unwrap();
    ["up", "down"].map(|direction| {
        let found = alone.iter().find(|one| one["direction"] == direction).unwrap();
        assert_eq!(found["max_from"], "solo");
        found["max_mbps"].as_f64().unwrap()
    })
}

#[test]
fn a_station_alone_reaches_what_the_medium_gives_it() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut missed = Vec::new();
    for standard in ["802.11g", "802.11n", "802.11ac"] {
        let access_point = format!("standard = \"{standard}\"");
        let expected = simulated(directory.path(), &access_point);
        let lab = Lab::start(directory.path(), &access_point);
        let found = solo(&lab, &[]);
        println!("{standard}: expected {expected:?}: {found}");
        for (direction, expected) in ["up", "down"].iter().zip(expected) {
            let leg = &found[*direction];
            let mbps = leg["goodput_mbps"].as_f64().unwrap();
            let off = (mbps - expected).abs() / expected * 100.0;
            if off > 3.0 {
                missed.push(format!("{standard} {direction}: {mbps} Mbit/s, {off:.1} % off"));
            }
            let [idle, loaded] =
                [&found["idle"], &leg["rtt"]].map(|rtt| rtt["median_ms"].as_f64().unwrap());
            assert!(loaded > idle, "{standard} {direction}: {found}");
        }
        assert_eq!((&found["alone"], &found["company"]["law"]), (&true.into(), &Value::Null));
    }
    assert_eq!(missed, [""; 0]);
    nothing_left();
}

#[test]
fn a_peer_that_sends_meanwhile_is_named() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let agents = "[[flows]]\nfrom = \"b\"\nto = \"server\"\n\
                  [[conditions]]\nname = \"agents\"\nlaw = \"airtime\"\n";
    let lab = Lab::start_with(directory.path(), "standard = \"802.11n\"", agents);
    wait_for("the agent of the station hears the other one", || {
        let status = stdout(&wakeai(&["status", "--json"]));
        let both = status.lines().filter(|line| line.contains("\"sending\":true")).count();
        (both >= 1).then_some(())
    });
    let found = solo(&lab, &["--time", "3s"]);
    println!("{found}");
    assert_eq!((&found["alone"], &found["company"]["law"]), (&false.into(), &"airtime".into()));
    assert_eq!(found["company"]["sending_peers"].as_array().unwrap().len(), 1, "{found}");
    drop(lab);
    nothing_left();
}
