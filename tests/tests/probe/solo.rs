//! Compares what `wakeai probe solo` measures at a station of a lab with the solo runs of the same scenario.

use std::path::Path;

use serde_json::Value;

use crate::lab::{Lab, SERVER};
use wakeai_tests::probe::{Listener, inside};
use wakeai_tests::{Machine, nothing_left, stderr, stdout, wait_for, wakeai};

fn solo(lab: &Lab, more: &[&str]) -> Value {
    let mut listener = Listener::start(inside(&lab.name("server")), "solo", SERVER, &[]);
    let mut command = inside(&lab.name("a"));
    command.args(["probe", "solo", "--json"]).args(listener.peer()).args(more);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(listener.end().0.success());
    serde_json::from_str(&stdout(&output)).unwrap()
}

/// The goodput that the scenario's station reaches alone in the simulator's solo runs, up and down.
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

/// By how many percent the goodputs up and down differ from the expected ones.
fn deviations(found: &Value, expected: [f64; 2]) -> [f64; 2] {
    let idle = found["idle"]["median_ms"].as_f64().unwrap();
    let of = |direction: &str, expected: f64| {
        let leg = &found[direction];
        assert!(
            leg["rtt"]["median_ms"].as_f64().unwrap() > idle,
            "the queues add something: {found}"
        );
        (leg["goodput_mbps"].as_f64().unwrap() - expected).abs() / expected * 100.0
    };
    [of("up", expected[0]), of("down", expected[1])]
}

#[test]
#[ignore = "minutes: make test-probe"]
fn a_station_alone_reaches_what_the_medium_gives_it() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    for standard in ["802.11g", "802.11n", "802.11ac"] {
        let access_point = format!("standard = \"{standard}\"");
        let expected = simulated(directory.path(), &access_point);
        let lab = Lab::start(directory.path(), &access_point);
        // A machine that is busy with something else delays the emulated radio, so there are three attempts.
        let mut least = [f64::INFINITY; 2];
        for _ in 0..3 {
            let found = solo(&lab, &["--time", "15s"]);
            println!("{standard}: expected {expected:?}: {found}");
            assert_eq!(found["company"]["law"], Value::Null);
            let off = deviations(&found, expected);
            least = [least[0].min(off[0]), least[1].min(off[1])];
            if least.iter().all(|percent| *percent <= 3.0) {
                break;
            }
        }
        assert!(least.iter().all(|percent| *percent <= 3.0), "{standard}: {least:?} % off");
    }
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
