//! The kernel's own queues on a link between namespaces.

use serde_json::Value;

use crate::support::Machine;
use crate::support::bss::{Bss, WIFI};
use crate::{Listener, buffer, inside, near};

/// Measures the way to a station behind a token bucket of 20 Mbit/s with this queue.
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

#[test]
fn a_limit_of_packets_and_one_of_bytes_are_found_and_told_apart() {
    let Some(_machine) = Machine::take() else { return };
    for packets in [50, 300, 1_000] {
        let found = behind(&format!("pfifo limit {packets}"));
        near(&found["packets"], f64::from(packets), 5.0);
        assert_eq!((&found["counts"], &found["drops"]), (&"packets".into(), &"tail".into()));
        assert_eq!(found["flows"], "shared");
    }
    for bytes in [75_000, 450_000] {
        let found = behind(&format!("bfifo limit {bytes}"));
        near(&found["bytes"], f64::from(bytes), 5.0);
        assert_eq!((&found["counts"], &found["drops"]), (&"bytes".into(), &"tail".into()));
    }
}

#[test]
fn losses_on_the_sender_s_own_interface_do_not_pass_for_the_access_point_s() {
    let Some(_machine) = Machine::take() else { return };
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
    let said = crate::support::stderr(&output);
    assert!(said.contains("this machine dropped") && said.contains("lower --rate"), "{said}");
}
