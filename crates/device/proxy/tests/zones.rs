//! A listener at a link-local address, in a network namespace of its own.

#![allow(clippy::unwrap_used, reason = "a test that fails, fails")]

mod support;

use std::io::{Read as _, Write as _};
use std::process::Command;

use support::{Proxy, config, pattern};
use wakeai_host::Namespace;
use wakeai_proxy::Config;

#[test]
fn a_listener_at_a_link_local_address_is_reached_over_its_interface() {
    if !nix::unistd::geteuid().is_root() {
        let required = std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_some_and(|value| value == "1");
        assert!(!required, "WAKEAI_REQUIRE_KERNEL=1, but not root, who may make namespaces");
        println!("SKIPPED: a network namespace needs root");
        return;
    }
    let name = format!("wkt-zone-{}", std::process::id());
    let namespace = Namespace::create(&name).unwrap();
    let work = std::thread::spawn(move || {
        namespace.enter().unwrap();
        serve_over_a_link();
    });
    let outcome = work.join();
    Namespace::remove(&name).unwrap();
    outcome.unwrap();
}

fn serve_over_a_link() {
    for arguments in [
        "link set lo up",
        "link add wk0 type veth peer name wk1",
        "link set wk0 up",
        "link set wk1 up",
        "addr add fe80::71/64 dev wk0 nodad",
    ] {
        assert!(Command::new("ip").args(arguments.split(' ')).status().unwrap().success());
    }
    let alone = wakeai_net::socket_address("[fe80::71]:0").unwrap_err().to_string();
    assert!(alone.contains("wk0") && alone.contains("fe80::71%wk"), "{alone}");
    let listen = wakeai_net::socket_address("[fe80::71%wk0]:0").unwrap();
    let mut config = Config { listen: vec![listen], ..config() };
    config.access.to = vec!["127.0.0.1".parse().unwrap()];
    let proxy = Proxy::start(config);
    let (mut client, mut server) = proxy.pair();
    client.write_all(&pattern(6)).unwrap();
    let mut bytes = [0; 6];
    server.read_exact(&mut bytes).unwrap();
    assert_eq!(bytes[..], pattern(6));
    drop((client, server));
    assert_eq!(proxy.stop_when(|report| report.active == 0).finished, 1);
}
