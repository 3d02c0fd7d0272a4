//! `wakeai top`, the live screen: with traffic between namespaces, on a terminal, with a full disk,
//! and as a replay of the records of a simulation.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;
use std::num::NonZero;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::pty::{Winsize, openpty};
use serde_json::Value;
use wakeai_tests::agent::Fleet;
use wakeai_tests::bss::Bss;
use wakeai_tests::traffic::Upload;
use wakeai_tests::{Machine, program, stderr, stdout, wait_for, wakeai};

fn upload(bss: &Bss, algorithm: &str) -> Upload {
    let (sender, server) = (bss.namespace("a"), bss.namespace("server"));
    let to = Ipv4Addr::new(10, 77, 0, 2);
    Upload::with_pauses(sender, &server, to, algorithm, Duration::from_millis(2))
}

/// The readings that a command has printed.
fn readings(output: &Output) -> Vec<Value> {
    stdout(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The row of the sender of this upload.
fn row<'a>(reading: &'a Value, upload: &Upload) -> Option<&'a Value> {
    let local = upload.look().socket.local.to_string();
    reading["connections"].as_array().unwrap().iter().find(|row| row["local"] == *local)
}

#[test]
fn a_connection_has_its_process_its_rate_its_bounds_and_its_agent() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let _agent = Fleet::new().start(&bss, "a", 1, "[law]\nname = \"fixed\"\nceiling = 7\n");
    let upload = upload(&bss, "wakeai_cubic");
    // A new connection gets its bounds when the agent has seen that it sends.
    let reading = wait_for("the ceiling is shown", || {
        let output = wakeai(&["top", "--once", "--json", "--network", "10.77.0.0/24"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let reading = readings(&output).remove(0);
        (row(&reading, &upload)?["ceiling"] == 7).then_some(reading)
    });
    let row = row(&reading, &upload).unwrap();
    assert_eq!(row["namespace"], *bss.name("a"));
    assert_eq!(row["pid"], std::process::id());
    assert_eq!(row["algorithm"], "wakeai_cubic");
    assert!(row["sent_mbps"].as_f64().unwrap() > 0.0, "{row}");
    assert!(row["cwnd"].as_u64().unwrap() <= 7, "{row}");
    assert!(row["events"]["timeout"].is_u64(), "{row}");
    assert!(row["limited_by"].is_string(), "{row}");
    assert_eq!(reading["agents"][0]["status"]["law"], "fixed");
    assert_eq!(reading["missing"].as_array().unwrap().len(), 0, "{}", reading["missing"]);

    let other = wakeai(&["top", "--once", "--json", "--port", "1"]);
    assert_eq!(readings(&other)[0]["connections"].as_array().unwrap().len(), 0);
    let server = wakeai(&["top", "--once", "--json", "--netns", &bss.name("server")]);
    for row in readings(&server)[0]["connections"].as_array().unwrap() {
        assert_eq!(row["namespace"], *bss.name("server"));
    }
}

#[test]
fn without_privileges_the_kernel_s_figures_are_shown_and_the_rest_is_named() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let fleet = Fleet::new();
    let program = fleet.program();
    let upload = upload(&bss, "cubic");
    let net = format!("--net=/run/netns/{}", bss.name("a"));
    let mut command = Command::new("nsenter");
    command.args([&net, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
    let output = command.arg(&program).args(["top", "--once", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let reading = readings(&output).remove(0);
    let row = row(&reading, &upload).unwrap();
    assert!(row["cwnd"].as_u64().unwrap() > 0 && row["rtt_ms"].is_number(), "{row}");
    assert!(row["sent_mbps"].as_f64().unwrap() > 0.0, "{row}");
    assert!(row["pid"].is_null() && row["events"].is_null(), "{row}");
    let missing = reading["missing"].to_string();
    assert!(missing.contains("congestion events: "), "{missing}");
    assert!(missing.contains("processes of "), "{missing}");
}

/// Starts the recording of readings five times a second.
fn record(directory: &str) -> Child {
    let mut command = Command::new(program());
    command.args(["top", "--json", "--interval", "200ms", "--record", directory]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn after_kill_9_all_but_the_last_five_seconds_can_be_replayed() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let _upload = upload(&bss, "cubic");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("recording").display().to_string();
    let mut child = record(&path);
    let mut seen = Vec::new();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    while seen.last().is_none_or(|at| *at < 6.0) {
        let reading: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        seen.push(reading["at_s"].as_f64().unwrap());
    }
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    let replayed = wakeai(&["top", "--replay", &path, "--json"]);
    assert!(replayed.status.success(), "{}", stderr(&replayed));
    let times: Vec<_> =
        readings(&replayed).iter().map(|reading| reading["at_s"].as_f64().unwrap()).collect();
    assert_eq!(times[..], seen[..times.len()]);
    let lost = seen.last().unwrap() - times.last().unwrap();
    assert!(lost < 5.0, "{lost} s of {seen:?}");
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_readings() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().display();
    let script = format!(
        "mount -t tmpfs -o size=16k none {place} && \
         exec {} top --json --interval 100ms --duration 12s --record {place}/recording",
        program()
    );
    let output =
        Command::new("timeout").args(["60", "unshare", "--mount", "sh", "-c", &script]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = stderr(&output);
    assert!(error.contains("cannot record to") && error.contains("No space left"), "{error}");
    let readings = readings(&output);
    assert!(readings.last().unwrap()["at_s"].as_f64().unwrap() > 10.0, "{error}");
}

#[test]
fn on_a_terminal_keys_work_and_the_terminal_is_left_as_it_was() {
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = openpty(Some(&size), None).unwrap();
    let stdio = || Stdio::from(pty.slave.try_clone().unwrap());
    let before = nix::sys::termios::tcgetattr(&pty.slave).unwrap();
    let mut child = Command::new(program())
        .args(["top", "--interval", "100ms"])
        .stdin(stdio())
        .stdout(stdio())
        .stderr(stdio())
        .spawn()
        .unwrap();
    let mut keys = File::from(pty.master);
    let mut bytes = keys.try_clone().unwrap();
    let (to_test, shown) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut read = [0; 4096];
        // The read fails once the program has closed the terminal.
        while let Ok(length @ 1..) = bytes.read(&mut read) {
            let _ = to_test.send(read[..length].to_vec());
        }
    });
    let (rows, columns) = (NonZero::new(24).unwrap(), NonZero::new(80).unwrap());
    let mut terminal = vt100::Parser::new(rows, columns, 0);
    let mut wait_until = |what: &str, holds: &dyn Fn(&vt100::Screen) -> bool| {
        while !holds(terminal.screen()) {
            let bytes = shown.recv_timeout(Duration::from_secs(30));
            terminal.process(&bytes.unwrap_or_else(|_| panic!("waited in vain until {what}")));
        }
    };
    wait_until("the screen is drawn", &|screen| {
        screen.alternate_screen() && screen.contents().contains("q quit")
    });
    keys.write_all(b"?").unwrap();
    wait_until("the keys are listed", &|screen| screen.contents().contains("In a replay:"));
    keys.write_all(b"q").unwrap();
    wait_until("the screen is gone", &|screen| !screen.alternate_screen());
    assert!(child.wait().unwrap().success());
    let after = nix::sys::termios::tcgetattr(&pty.slave).unwrap();
    assert_eq!(after.local_flags, before.local_flags);
}

#[test]
fn a_simulation_replays_with_the_rates_of_its_result() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios/quickstart.toml");
    let out = directory.path().join("out").display().to_string();
    // At the end up to one round trip of data has reached the receiver while the ACKs are on their
    // way. In a long run this part is small.
    let set = ["--set", "duration=90s", "--set", "warmup=0s"];
    let run = wakeai(&[&["sim", scenario, "--json", "--out", &out], &set[..]].concat());
    assert!(run.status.success(), "{}", stderr(&run));
    let result: Value = serde_json::from_str(&stdout(&run)).unwrap();
    let conditions = ["default", "airtime"];
    for condition in conditions {
        let replayed = wakeai(&["top", "--replay", &out, "--condition", condition, "--json"]);
        assert!(replayed.status.success(), "{}", stderr(&replayed));
        let readings = readings(&replayed);
        let runs = result["runs"].as_array().unwrap();
        let run = runs.iter().find(|run| run["condition"] == condition).unwrap();
        for (index, flow) in run["flows"].as_array().unwrap().iter().enumerate() {
            let rates: Vec<f64> = readings
                .iter()
                .filter_map(|reading| {
                    let rows = reading["connections"].as_array().unwrap();
                    rows.iter().find(|row| row["netns"] == index)?["sent_mbps"].as_f64()
                })
                .collect();
            let mean = rates.iter().sum::<f64>() / rates.len() as f64;
            let goodput = flow["goodput_mbps"].as_f64().unwrap();
            assert!((mean / goodput - 1.0).abs() < 0.03, "{condition} {index}: {mean}, {goodput}");
        }
    }
    let wrong = wakeai(&["top", "--replay", &out, "--condition", "nothing", "--once"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("default-0"), "{}", stderr(&wrong));
}

#[test]
fn a_use_that_cannot_work_is_refused_with_2() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("mine"), "").unwrap();
    let path = directory.path().display().to_string();
    let cases: [(&[&str], &str); 6] = [
        (&[], "standard output is no terminal"),
        (&["--replay", &path, "--once"], "neither a recording"),
        (&["--replay", "/nowhere", "--once"], "cannot read /nowhere"),
        (&["--record", &path, "--once"], "is not an empty directory"),
        (&["--interval", "1ms", "--once"], "expected a time from 100ms to 60s"),
        (&["--sort", "colour", "--once"], "invalid value 'colour'"),
    ];
    for (arguments, expected) in cases {
        let output = wakeai(&[&["top"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
    assert!(directory.path().join("mine").exists());
}
