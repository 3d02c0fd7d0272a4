//! Whole experiments: their results, and what is left.

use serde_json::Value;
use wakeai_tests::{Machine, nothing_left, stderr, stdout};

use crate::TWO;
use crate::rig::Rig;

#[test]
fn an_experiment_on_machines_has_the_result_of_the_other_worlds_and_leaves_nothing() {
    let Some(_machine) = Machine::take() else { return };
    let rig = Rig::new(TWO);
    let out = rig.directory.path().join("out");
    let ended = rig.field(&["--solo", "0s", "--json", "--out", out.to_str().unwrap()]);
    assert_eq!(ended.status.code(), Some(0), "{}\n{}", stderr(&ended), stdout(&ended));
    rig.wait_until_nothing_is_left(); // long before the deadline
    let report: Value = serde_json::from_str(&stdout(&ended)).unwrap();
    assert_eq!(report["world"], "field");
    let runs = report["runs"].as_array().unwrap();
    let conditions: Vec<_> = runs.iter().map(|run| run["condition"].as_str().unwrap()).collect();
    assert_eq!(conditions, ["default", "airtime"]);
    for (run, algorithm) in runs.iter().zip(["cubic", "wakeai_cubic"]) {
        assert_eq!(run["field"]["counts"], true, "{run}");
        assert_eq!(run["flows"].as_array().unwrap().len(), 2);
        for flow in run["flows"].as_array().unwrap() {
            assert_eq!(flow["algorithm"], algorithm, "what the socket ran");
            assert!(flow["bytes"].as_u64().unwrap() > 1_000_000, "{flow}");
        }
        assert!(run["rtt_ms"]["p95"].as_f64().unwrap() >= 10.0, "5 ms each way: {run}");
        let stations = run["field"]["stations"].as_array().unwrap();
        let has_agent = algorithm != "cubic";
        for station in &stations[1..] {
            assert_eq!(
                (&station["agent"], &station["monitored"]),
                (&has_agent.into(), &true.into())
            );
            let peers = if has_agent { Value::from(1) } else { Value::Null };
            assert_eq!(station["peers"], peers, "agents of one key know each other: {station}");
        }
    }
    for file in ["result.json", "samples.parquet", "goodput.parquet", "scenario.toml"] {
        assert!(out.join(file).is_file(), "{file}");
    }
    assert!(!out.with_file_name("out.runs").exists(), "the journal is gone with the result");
    drop(rig);
    nothing_left();
}

#[test]
#[ignore = "make test-field"]
fn a_processor_that_is_full_is_said_in_table_and_result() {
    let Some(_machine) = Machine::take() else { return };
    let rig = Rig::new(TWO);
    let count = std::thread::available_parallelism().unwrap().get();
    // They leave the experiment its part of the processors.
    let spin = ["-n", "19", "sh", "-c", "while :; do :; done"];
    let spin = || std::process::Command::new("nice").args(spin).spawn().unwrap();
    let mut spinning: Vec<_> = (0..count).map(|_| spin()).collect();
    let out = rig.directory.path().join("out");
    let plain = ["--solo", "0s", "--conditions", "default", "--out", out.to_str().unwrap()];
    let ended = rig.field(&plain);
    for one in &mut spinning {
        one.kill().unwrap();
        one.wait().unwrap();
    }
    assert_eq!(ended.status.code(), Some(0), "{}\n{}", stderr(&ended), stdout(&ended));
    let result = std::fs::read_to_string(out.join("result.json")).unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    let said = &result["runs"][0]["field"]["verdict"];
    for machine in ["server", "tablet1", "tablet2"] {
        let expected = format!("a processor of {machine} was busy for");
        assert!(said.to_string().contains(&expected), "{said}");
    }
    let table = stdout(&ended).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(table.contains("default of block 1: a processor of server was busy for"), "{table}");
    rig.wait_until_nothing_is_left();
}
