//! `fq` in place of the kernel's default queueing discipline, with real devices in a namespace of the test's own. What a
//! kernel with `fq` does is tested in guests, too (`tests/tests/guest/departures.rs`).

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use wakeai_host::{
    Change, Departures, Lease, Namespace, NetnsId, PutDepartures, Role, departures, put_departures,
};

/// A namespace with three devices: `wire` with the default `noqueue`, `tun` with `pfifo_fast`, and `many` with `mq`. `None`
/// without root, which fails under `WAKEAI_REQUIRE_KERNEL=1`.
struct Rig(String);

impl Rig {
    fn new(test: &str) -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            let required = std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_some_and(|it| it == "1");
            assert!(!required, "WAKEAI_REQUIRE_KERNEL=1, but this is not root");
            let _ = writeln!(std::io::stdout(), "SKIPPED: needs root");
            return None;
        }
        let rig = Self(format!("wkt-departures-{test}-{}", std::process::id()));
        Namespace::create(&rig.0).unwrap();
        rig.inside(|| {
            ip("link add name wire type veth peer name other");
            ip("tuntap add dev tun mode tun");
            ip("tuntap add dev many mode tun multi_queue");
            for name in ["wire", "other", "tun", "many"] {
                ip(&format!("link set {name} up"));
            }
        });
        Some(rig)
    }

    fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        Namespace::open(&self.0).unwrap().run(work).unwrap()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = Namespace::remove(&self.0);
    }
}

const DEVICES: [(&str, &str); 3] = [("wire", "noqueue"), ("tun", "pfifo_fast"), ("many", "mq")];

fn succeeds(program: &str, arguments: &str) -> Result<String, String> {
    let arguments: Vec<_> = arguments.split(' ').collect();
    let output = Command::new(program).args(&arguments).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    if output.status.success() { Ok(String::from_utf8(output.stdout).unwrap()) } else { Err(said) }
}

fn ip(arguments: &str) {
    succeeds("ip", arguments).unwrap();
}

fn tc(arguments: &str) {
    succeeds("tc", arguments).unwrap();
}

/// The disciplines of a device as tc(8) shows them, in a form that does not depend on their order.
fn shown(device: &str) -> Vec<String> {
    let text = succeeds("tc", &format!("qdisc show dev {device}")).unwrap();
    let mut lines: Vec<_> = text.lines().map(|line| line.trim().to_owned()).collect();
    lines.sort();
    lines
}

/// Whether tc(8) can put `fq` on a device of its own.
fn has_fq() -> bool {
    ip("link add name probe type veth peer name probed");
    let put = succeeds("tc", "qdisc add dev probe root fq");
    ip("link del probe");
    put.inspect_err(|said| assert!(said.contains("kind is unknown"), "{said}")).is_ok()
}

#[test]
fn fq_takes_the_place_of_a_default_or_without_fq_nothing_is_changed_or_recorded() {
    let Some(rig) = Rig::new("default") else { return };
    rig.inside(|| {
        let has_fq = has_fq();
        for (device, default) in DEVICES {
            let before = shown(device);
            let lease = Lease::take(Role::Command).unwrap();
            let default = Some(default.to_owned());
            assert_eq!(departures(device).unwrap(), Departures::Default(default.clone()));
            match put_departures(&lease, device).unwrap() {
                PutDepartures::Done(guard, found) if has_fq => {
                    assert_eq!(found, default);
                    assert_eq!(departures(device).unwrap(), Departures::Obeyed);
                    assert!(shown(device).iter().any(|line| line.contains("7761: root")));
                    assert_eq!(lease.changes().len(), 1);
                    guard.restore(&lease).unwrap();
                }
                PutDepartures::NoFq if !has_fq => {}
                other => panic!("{device}, fq {has_fq}: {other:?}"),
            }
            assert_eq!((shown(device), lease.changes()), (before, Vec::new()));
            assert!(lease.release(&[]).is_empty());
        }
        let said = if has_fq { "this kernel has fq" } else { "this kernel has no fq" };
        let _ = writeln!(std::io::stdout(), "{said}");
    });
}

#[test]
fn the_default_of_an_interface_that_is_down_counts_as_one() {
    let Some(rig) = Rig::new("down") else { return };
    rig.inside(|| {
        ip("link add name later type veth peer name later-other");
        assert_eq!(departures("later").unwrap(), Departures::Default(None));
        let lease = Lease::take(Role::Command).unwrap();
        let put = put_departures(&lease, "later").unwrap();
        let is_put = matches!(put, PutDepartures::Done(..));
        assert_eq!(is_put, has_fq());
        ip("link set later up");
        ip("link set later-other up");
        assert_eq!(shown("later").iter().any(|line| line.contains(" 7761: root")), is_put);
        assert!(lease.release(&[]).is_empty());
        assert_eq!(departures("later").unwrap(), Departures::Default(Some("noqueue".to_owned())));
    });
}

#[test]
fn a_discipline_that_somebody_has_chosen_is_left_alone() {
    let Some(rig) = Rig::new("chosen") else { return };
    rig.inside(|| {
        tc("qdisc replace dev wire root noqueue"); // as the lab does
        tc("qdisc add dev tun root handle 9: pfifo limit 7");
        tc("qdisc add dev many root handle 9: mq");
        for (device, chosen) in [("wire", "noqueue 8"), ("tun", "pfifo 9:"), ("many", "mq 9:")] {
            let before = shown(device);
            let lease = Lease::take(Role::Command).unwrap();
            let put = put_departures(&lease, device).unwrap();
            let PutDepartures::Chosen(found) = put else { panic!("{device}: {put:?}") };
            assert!(found.starts_with(chosen), "{found}");
            assert_eq!(departures(device).unwrap(), Departures::Chosen(found));
            assert_eq!((shown(device), lease.changes()), (before.clone(), Vec::new()));
            assert!(lease.release(&[]).is_empty());
            assert_eq!(shown(device), before);
        }
    });
}

/// Puts what a process puts that is killed half-way: its record and a root with the same handle. `mq` stands for it,
/// because every kernel has it.
fn half_made(lease: &Lease, device: &str) {
    let netns = NetnsId::current().unwrap();
    let index = nix::net::if_::if_nametoindex(device).unwrap();
    let (interface, handle) = (device.to_owned(), 0x7761);
    lease.record(Change::QueueingDiscipline { netns, interface, index, handle }).unwrap();
    tc(&format!("qdisc replace dev {device} root handle 7761: mq"));
}

#[test]
fn what_is_ours_by_kind_and_handle_is_undone_and_nothing_else() {
    let Some(rig) = Rig::new("record") else { return };
    rig.inside(|| {
        let before = shown("many");
        let lease = Lease::take(Role::Command).unwrap();
        half_made(&lease, "many");
        assert_ne!(shown("many"), before);
        assert!(lease.release(&[]).is_empty());
        assert_eq!(shown("many"), before);

        for kept in ["handle 9: mq", "handle 7761: pfifo limit 7"] {
            let lease = Lease::take(Role::Command).unwrap();
            half_made(&lease, "many");
            tc("qdisc del dev many root");
            tc(&format!("qdisc replace dev many root {kept}"));
            let theirs = shown("many");
            assert!(lease.release(&[]).is_empty());
            assert_eq!(shown("many"), theirs, "{kept}");
            tc("qdisc del dev many root");
        }

        let lease = Lease::take(Role::Command).unwrap();
        half_made(&lease, "many");
        ip("link set many down");
        ip("link set many name renamed");
        ip("link set renamed up");
        assert!(lease.release(&[]).is_empty());
        assert_eq!(shown("renamed"), before, "it is found by its index");

        let lease = Lease::take(Role::Command).unwrap();
        half_made(&lease, "renamed");
        ip("link del renamed");
        assert!(lease.release(&[]).is_empty(), "an interface that is gone is nothing to undo");
    });
}

#[test]
fn what_a_former_agent_has_left_half_made_without_a_lease_is_replaced() {
    let Some(rig) = Rig::new("left") else { return };
    rig.inside(|| {
        let before = shown("many");
        tc("qdisc replace dev many root handle 7761: mq");
        let lease = Lease::take(Role::Command).unwrap();
        let put = put_departures(&lease, "many").unwrap();
        let obeyed = departures("many").unwrap() == Departures::Obeyed;
        assert_eq!((matches!(put, PutDepartures::Done(..)), obeyed), (has_fq(), has_fq()));
        assert!(lease.release(&[]).is_empty());
        assert_eq!(shown("many"), before);
    });
}

#[test]
fn an_interface_that_is_absent_is_an_error() {
    let Some(rig) = Rig::new("absent") else { return };
    rig.inside(|| {
        let lease = Lease::take(Role::Command).unwrap();
        let said = put_departures(&lease, "none").unwrap_err().to_string();
        assert!(said.starts_with("cannot put fq on none: "), "{said}");
        assert!(lease.changes().is_empty() && lease.release(&[]).is_empty());
    });
}
