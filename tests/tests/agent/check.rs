//! `wakeai agent --check` finds everything that would prevent the agent's start, and reports it at
//! once.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use wakeai_tests::agent::{BSSID, Fleet, in_namespace};
use wakeai_tests::bss::{Bss, WIFI};
use wakeai_tests::{Machine, stderr, stdout};

/// Checks this configuration in the namespace of a station.
fn check(bss: &Bss, fleet: &Fleet, text: &str) -> Output {
    let path = fleet.path("checked.toml");
    fs::write(&path, text).unwrap();
    let mut command = in_namespace(bss, "a");
    command.args(["agent", "--check", "--config"]).arg(path).stdout(std::process::Stdio::piped());
    command.output().unwrap()
}

/// The keys that a configuration must have.
fn base(fleet: &Fleet) -> String {
    let key = fleet.path("group.key").display().to_string();
    format!("interface = {WIFI:?}\nkey_file = {key:?}\n")
}

#[test]
fn a_good_configuration_is_accepted_with_remarks() {
    let Some(_machine) = Machine::take() else { return };
    let (bss, fleet) = (Bss::without_addresses(&["a"]), Fleet::new());
    bss.ip("a", &format!("addr add 10.77.0.1/32 dev {WIFI}"));
    let found = check(&bss, &fleet, &format!("{}bssid = {BSSID:?}\nstation = 1\n", base(&fleet)));
    assert_eq!(found.status.code(), Some(0), "{}", stderr(&found));
    let said = stdout(&found) + &stderr(&found);
    assert!(said.contains("configuration and key are good"), "{said}");
    assert!(said.contains("presence messages are sent to 255.255.255.255:19719"), "{said}");
}

#[test]
fn an_interface_without_wifi_needs_the_access_point_stated() {
    let Some(_machine) = Machine::take() else { return };
    let (bss, fleet) = (Bss::new(&["a"]), Fleet::new());
    let found = check(&bss, &fleet, &format!("{}station = 1\n", base(&fleet)));
    assert_eq!(found.status.code(), Some(2), "{}", stdout(&found));
    let said = stderr(&found);
    assert!(said.contains("is not a Wi-Fi station") && said.contains("state `bssid`"), "{said}");
}

#[test]
fn the_port_may_be_held_by_an_agent_and_by_no_other_program() {
    let Some(_machine) = Machine::take() else { return };
    let (bss, fleet) = (Bss::new(&["a"]), Fleet::new());
    let good = format!("{}bssid = {BSSID:?}\nstation = 1\n", base(&fleet));
    let address = (Ipv4Addr::UNSPECIFIED, 19719);
    let taken = bss.namespace("a").run(|| UdpSocket::bind(address).unwrap()).unwrap();
    let found = check(&bss, &fleet, &good);
    assert_eq!(found.status.code(), Some(2), "{}", stdout(&found));
    let said = stderr(&found);
    assert!(said.contains("cannot bind UDP port 19719 on wlan0"), "{said}");
    drop(taken);
    let _agent = fleet.start(&bss, "a", 1, "");
    let found = check(&bss, &fleet, &good);
    assert_eq!(found.status.code(), Some(0), "{}", stderr(&found));
}

#[test]
fn all_problems_are_reported_at_once() {
    let Some(_machine) = Machine::take() else { return };
    let (bss, fleet) = (Bss::new(&["a"]), Fleet::new());
    let key = fleet.path("group.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    // The station's number is stated: without it, a machine without /etc/machine-id has one more problem.
    let text = format!(
        "{}reserve = \"0bit/s\"\nspeed = 9\nstation = 7\n[presence]\nport = 0\n[law]\nname = \"fixed\"\nceiling = 0\n\
         [api]\ngroup = \"wkt-nobody\"\n[log]\nlevel = \"a=b=c\"\n",
        base(&fleet)
    );
    let found = check(&bss, &fleet, &text);
    assert_eq!(found.status.code(), Some(2), "{}", stdout(&found));
    let said = stderr(&found);
    for expected in [
        ": line 3, column 11: `reserve`: found \"0bit/s\"; allowed: a rate above zero",
        ": line 4, column 1: `speed`: found an unknown key",
        ": line 7, column 8: `presence.port`: found 0; allowed: an integer from 1 to 65535",
        ": line 10, column 11: `law.ceiling`: found 0; allowed: an integer from 1 to 1000000",
        "log.level: found \"a=b=c\"",
        "found mode 644, allowed is at most 640",
        "is not a Wi-Fi station",
        "no group \"wkt-nobody\"",
    ] {
        assert!(said.contains(expected), "{expected} is not in:\n{said}");
    }
    assert!(said.contains("8 problems"), "{said}");
    let no_interface = check(&bss, &fleet, &base(&fleet).replace(WIFI, "wlan9"));
    assert_eq!(no_interface.status.code(), Some(2));
    let said = stderr(&no_interface);
    assert!(said.contains("no interface wlan9; it has: ") && said.contains("mode 644"), "{said}");
}
