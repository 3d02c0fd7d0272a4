//! `--write` puts a result into an agent's configuration.

use std::fs;

use wakeai_tests::bss::{Bss, WIFI};
use wakeai_tests::probe::{Listener, inside};
use wakeai_tests::{Machine, stderr, stdout};

const CONFIG: &str = "# of the hall\ninterface = \"wlan0\"\nkey_file = \"/etc/wakeai/group.key\"\n\n\
                      [access_point]\nbuffer = 300 # a guess\n";

#[test]
fn the_buffer_is_written_and_the_comments_stay() {
    let Some(_machine) = Machine::share() else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.toml");
    let bss = Bss::new(&["a", "b"]);
    for queue in
        ["root handle 1: tbf rate 20mbit burst 3000 limit 10000000", "parent 1:1 pfifo limit 80"]
    {
        bss.inside("air", &format!("tc qdisc add dev a-{WIFI} {queue}"));
    }
    let run = |text: &str| {
        fs::write(&path, text).unwrap();
        let station = Listener::start(inside(&bss.name("a")), "buffer", "10.77.0.1", &[]);
        let mut command = inside(&bss.name("b"));
        command.args(["probe", "buffer", "--runs", "3", "--rate", "500Mbit/s", "--json"]);
        command.args(station.peer()).arg("--write").arg(&path).output().unwrap()
    };
    let output = run(CONFIG);
    assert!(output.status.success(), "{}", stderr(&output));
    let result: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let written = &result["written"][0];
    assert_eq!(
        (&written["key"], &written["before"]),
        (&"access_point.buffer".into(), &"300".into())
    );
    let after = written["after"].as_str().unwrap();
    assert!((76..=84).contains(&after.parse::<u32>().unwrap()), "{written}");
    assert_eq!(fs::read_to_string(&path).unwrap(), CONFIG.replace("300", after));
    let said = stderr(&output);
    assert!(said.contains(&format!("access_point.buffer = {after}, was 300")), "{said}");

    let wrong = run("speed = 9\n");
    assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
    assert_eq!(fs::read_to_string(&path).unwrap(), "speed = 9\n");
    let result: serde_json::Value = serde_json::from_str(&stdout(&wrong)).unwrap();
    assert!(result["packets"]["median"].is_number(), "the result is printed all the same");
}
