//! The kernel's own queues on a link between namespaces.

use serde_json::Value;

use wakeai_tests::Machine;
use wakeai_tests::bss::{Bss, WIFI};
use wakeai_tests::probe::{Listener, buffer, inside, near};

/// Measures the buffer in front of a station: this queue, which a token bucket drains at 20 Mbit/s.
fn behind(queue: &str) -> Value {
    let bss = Bss::new(&["a", "b"]);
    let tc = |text: String| bss.inside("air", &format!("tc qdisc add dev a-{WIFI} {text}"));
    tc("root handle 1: tbf rate 20mbit burst 3000 limit 10000000".to_owned());
    tc(format!("parent 1:1 handle 10: {queue}"));
    let station = Listener::start(inside(&bss.name("a")), "buffer", "10.77.0.1", &[]);
    let found = buffer(&bss.name("b"), &mut [station], &["--rate", "500Mbit/s"]);
    println!("{queue}: {found}");
    found
}

fn packets_are_found(limit: u32) {
    let found = behind(&format!("pfifo limit {limit}"));
    near(&found["packets"], f64::from(limit), 5.0);
    assert_eq!((&found["counts"], &found["drops"]), (&"packets".into(), &"tail".into()));
    assert_eq!(found["flows"], "shared");
}

fn bytes_are_found(limit: u32) {
    let found = behind(&format!("bfifo limit {limit}"));
    near(&found["bytes"], f64::from(limit), 5.0);
    assert_eq!((&found["counts"], &found["drops"]), (&"bytes".into(), &"tail".into()));
}

#[test]
fn a_limit_of_packets_and_one_of_bytes_are_found_and_told_apart() {
    let Some(_machine) = Machine::share() else { return };
    packets_are_found(50);
    bytes_are_found(75_000);
}

#[test]
#[ignore = "minutes: make test-probe"]
fn long_queues_of_the_kernel_are_found() {
    let Some(_machine) = Machine::share() else { return };
    packets_are_found(300);
    packets_are_found(1_000);
    bytes_are_found(450_000);
}

#[test]
fn losses_on_the_sender_s_own_interface_do_not_pass_for_the_access_point_s() {
    let Some(_machine) = Machine::share() else { return };
    let bss = Bss::new(&["a", "b"]);
    // The sender's own queue takes five packets at a time and then drops.
    bss.inside(
        "b",
        &format!("tc qdisc add dev {WIFI} root handle 1: tbf rate 20mbit burst 3000 limit 7500"),
    );
    let station = Listener::start(inside(&bss.name("a")), "buffer", "10.77.0.1", &[]);
    let mut command = inside(&bss.name("b"));
    command.args(["probe", "buffer", "--json"]).args(station.peer());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = wakeai_tests::stderr(&output);
    assert!(said.contains("this machine dropped") && said.contains("lower --rate"), "{said}");
}
