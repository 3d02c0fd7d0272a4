//! `wakeai monitor`, with traffic between namespaces of the test.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::io::{BufRead as _, BufReader};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use wakeai_tests::bss::Bss;
use wakeai_tests::traffic::Upload;
use wakeai_tests::{Machine, stderr, stdout, wakeai};

fn traffic(bss: &Bss) -> Upload {
    let server = bss.namespace("server");
    let to = Ipv4Addr::new(10, 77, 0, 2);
    Upload::with_pauses(bss.namespace("a"), &server, to, "cubic", Duration::from_millis(2))
}

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(wakeai_tests::program());
    command.arg("monitor").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn samples_of_one_namespace_are_json_lines_with_both_ends() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let upload = traffic(&bss);
    let netns = bss.name("a");
    let found = wakeai(&["monitor", "--json", "--netns", &netns, "--duration", "1s"]);
    assert!(found.status.success(), "{}", stderr(&found));
    let socket = upload.look().socket;
    let lines: Vec<Value> =
        stdout(&found).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["type"] == "sample"));
    for line in &lines {
        assert_eq!(line["netns"], bss.namespace("a").id().0);
        assert_eq!(line["local"], socket.local.to_string());
        assert_eq!(line["remote"], socket.remote.to_string());
        assert!(line["cwnd"].as_u64().unwrap() > 0);
    }
}

#[test]
fn filters_by_port_and_address_leave_the_others_out() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let (first, second) = (traffic(&bss), traffic(&bss));
    let (first, second) = (first.look().socket, second.look().socket);
    let port = first.local.port().to_string();
    let found = wakeai(&["monitor", "--port", &port, "--duration", "1s"]);
    let text = stdout(&found);
    assert!(text.contains(&first.local.to_string()), "{}", stderr(&found));
    assert!(!text.contains(&second.local.to_string()));
    let nobody = wakeai(&["monitor", "--address", "10.77.0.99", "--duration", "1s"]);
    assert!(nobody.status.success());
    assert_eq!(stdout(&nobody), "");
}

#[test]
fn the_monitor_ends_without_an_error_when_its_reader_exits() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let _upload = traffic(&bss);
    let mut child = start(&["--every-ack", "--netns", &bss.name("a")]);
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.contains(" cwnd "), "{line}");
    drop(reader);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}: {}", output.status, stderr(&output));
    assert!(!stderr(&output).contains("pipe"), "{}", stderr(&output));
}

#[test]
fn ctrl_c_ends_the_monitor_in_good_order() {
    ends_in_good_order(Signal::SIGINT);
}

#[test]
fn a_closed_terminal_ends_the_monitor_in_good_order() {
    ends_in_good_order(Signal::SIGHUP);
}

fn ends_in_good_order(signal: Signal) {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let _upload = traffic(&bss);
    // The tests may run below nohup(1), whose children ignore SIGHUP.
    let mut child = Command::new("env")
        .args(["--default-signal=HUP", wakeai_tests::program(), "monitor"])
        .args(["--netns", &bss.name("a")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut String::new()).unwrap();
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
    std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
    assert!(child.wait().unwrap().success());
}
