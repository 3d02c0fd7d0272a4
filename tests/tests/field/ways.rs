//! The ways to a machine: without root, over adb, and with a program that is brought along.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;
use wakeai_tests::{Machine, must, program_in, stderr, stdout};

use crate::TWO;
use crate::rig::{Rig, brought};

/// The arguments of a run of the condition without agents.
const PLAIN: [&str; 5] = ["--solo", "0s", "--json", "--conditions", "default"];

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
#[ignore = "make test-field"]
fn without_root_a_machine_is_a_station_without_an_agent() {
    let Some(_machine) = Machine::take() else { return };
    let rig = Rig::new(TWO);
    fs::set_permissions(rig.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = program_in(rig.directory.path());
    // `sudo` is not in the path, so the helper stays what it is.
    let text = format!(
        "export PATH=/nowhere; exec /usr/bin/setpriv --reuid 65534 --regid 65534 --clear-groups {} \"$@\"",
        program.display()
    );
    rig.script("wakeai-as-nobody", &text);
    let as_nobody = rig.directory.path().join("bin/wakeai-as-nobody");
    rig.write_files(&format!("program = \"{}\"", as_nobody.display()));
    // Without root a socket chooses only what `tcp_allowed_congestion_control` lists, and reno is always there.
    let reno = ["--set", "flows.1.algorithm=reno"];
    let sized = ["--set", "flows.1.size=6MB", "--set", "duration=30s"];
    let ended = rig.field(&[&PLAIN[..], &reno, &sized].concat());
    assert_eq!(ended.status.code(), Some(0), "{}\n{}", stderr(&ended), stdout(&ended));
    let report = json(&stdout(&ended));
    let run = &report["runs"][0];
    assert_eq!(run["field"]["stations"][1]["monitored"], false, "{}", run["field"]);
    assert!(run["rtt_ms"]["p50"].as_f64().unwrap() >= 10.0, "by tcp_info: {}", run["rtt_ms"]);
    for flow in run["flows"].as_array().unwrap() {
        assert_eq!(flow["bytes"], 6_000_000);
        assert!(flow["goodput_mbps"].as_f64().unwrap() > 0.1, "{flow}");
        assert!(flow["completion_s"].as_f64().unwrap() > 0.01, "{flow}");
        assert!(flow["retransmits"].is_u64(), "tcp_info counts them: {flow}");
        assert!(flow["timeouts"].is_null(), "nobody has counted them: {flow}");
    }
    assert!(run["errors"].as_object().unwrap().values().all(Value::is_null), "{}", run["errors"]);
    assert!(report["aggregates"][0]["figures"]["errors.timeout"].is_null());
    let station = &run["field"]["stations"][1];
    assert!(station["peers"].is_null() && station["before"].is_null(), "{station}");
    let wide = ["--solo", "0s", "--wide", "--conditions", "default"];
    let table = rig.field(&[&wide[..], &reno, &sized].concat());
    let table = stdout(&table);
    let row = table.lines().find(|line| line.trim_start().starts_with("default")).unwrap();
    let dashes = row.split_whitespace().rev().take_while(|cell| *cell == "-").count();
    assert_eq!(dashes, 6, "four codes, and two shares of what nobody measured alone: {table}");
    let ended = rig.field(&["--solo", "0s", "--json", "--conditions", "airtime"]);
    assert_eq!(ended.status.code(), Some(1), "{}", stderr(&ended));
    let reason = json(&stdout(&ended))["runs"][0]["field"]["stations"][1]["reason"].to_string();
    assert!(reason.contains("an agent needs root"), "{reason}");
    let checked = rig.field(&["--check", "--conditions", "airtime"]);
    assert_eq!(checked.status.code(), Some(77));
    assert!(stdout(&checked).contains("the helper is not root"), "{}", stdout(&checked));
    rig.wait_until_nothing_is_left();
}

#[test]
#[ignore = "make test-field"]
fn a_device_over_adb_is_a_machine_like_others() {
    let Some(_machine) = Machine::take() else { return };
    let rig = Rig::new(TWO);
    // A stand-in for adb, whose serial number is the name of a namespace.
    rig.script(
        "adb",
        "[ \"$1 $3 $4\" = '-s shell -T' ] || exit 9\nexec nsenter --net=/run/netns/\"$2\" sh -c \"$5\"",
    );
    let serial = rig.namespace("tablet1");
    rig.edit_machines(|text| {
        text.replace("machine = \"tablet1\"", &format!("machine = \"adb:{serial}\""))
    });
    let ended = rig.field(&["--solo", "0s", "--json"]);
    assert_eq!(ended.status.code(), Some(0), "{}\n{}", stderr(&ended), stdout(&ended));
    let report = json(&stdout(&ended));
    for run in report["runs"].as_array().unwrap() {
        assert_eq!(run["field"]["stations"][1]["machine"], format!("adb:{serial}"));
        assert_eq!(run["field"]["stations"][1]["counts"], true);
    }
    rig.wait_until_nothing_is_left();
}

/// A directory as a release has it, with this program as its static one.
fn release(directory: &Path, sum: Option<&str>) -> String {
    let dist = directory.join(if sum.is_some() { "wrong" } else { "dist" });
    fs::create_dir(&dist).unwrap();
    let name = format!("wakeai-{}-linux-{}", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    let program = dist.join(&name);
    fs::copy(wakeai_tests::program(), &program).unwrap();
    let found = must("sha256sum", program.to_str().unwrap());
    let sum = sum.unwrap_or_else(|| found.split(' ').next().unwrap());
    fs::write(dist.join("SHA256SUMS"), format!("{sum}  {name}\n")).unwrap();
    dist.display().to_string()
}

#[test]
#[ignore = "make test-field"]
fn a_program_is_brought_along_verified_and_removed() {
    let Some(_machine) = Machine::take() else { return };
    let rig = Rig::new(TWO);
    rig.edit_machines(|text| text.replace(wakeai_tests::program(), "/nowhere/wakeai"));
    let missing = rig.field(&PLAIN);
    assert_eq!(missing.status.code(), Some(77), "{}", stderr(&missing));
    assert!(stderr(&missing).contains("/nowhere/wakeai"), "{}", stderr(&missing));
    let wrong = release(rig.directory.path(), Some(&"0".repeat(64)));
    let refused = rig.field(&[&PLAIN[..], &["--programs", &wrong]].concat());
    assert_eq!(refused.status.code(), Some(77), "{}", stderr(&refused));
    assert!(
        stderr(&refused).contains("the checksum is not that of SHA256SUMS"),
        "{}",
        stderr(&refused)
    );
    let right = release(rig.directory.path(), None);
    // Without its controlling command, too: each helper removes its own.
    let short = ["--grace", "10s", "--programs", &right];
    let mut killed = rig.start(&[&PLAIN[..], &short].concat());
    rig.wait_for_traffic("tablet1");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(brought().len(), 3, "the server's and those of two stations");
    rig.wait_until_nothing_is_left();
    let ended = rig.field(&[&PLAIN[..], &["--programs", &right]].concat());
    assert_eq!(ended.status.code(), Some(0), "{}\n{}", stderr(&ended), stdout(&ended));
    assert_eq!(brought(), [""; 0], "the programs are removed");
    rig.wait_until_nothing_is_left();
}
