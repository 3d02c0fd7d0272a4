//! Another program undoes what a lease holds: real `ip` and `nft`, in a namespace of the test's own.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use wakeai_host::{
    Change, Drift, Lease, Namespace, NetnsId, Outcome, Role, Route, Watch, add_local_route,
    add_packet_rules, read_sysctl, rules_before, set_sysctl,
};

const MARK: u32 = 0x7761_6b61;
const TABLE: u32 = 0x776c;

/// A namespace with the loopback up, and a lease. `None` without root, which fails under
/// `WAKEAI_REQUIRE_KERNEL=1`.
struct Rig {
    name: String,
    lease: Option<Lease>,
}

impl Rig {
    fn new(test: &str) -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            let required = std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_some_and(|it| it == "1");
            assert!(!required, "WAKEAI_REQUIRE_KERNEL=1, but this is not root");
            let _ = writeln!(std::io::stdout(), "SKIPPED: needs root");
            return None;
        }
        let name = format!("wkt-watch-{test}-{}", std::process::id());
        Namespace::create(&name).unwrap();
        let lease = Some(Lease::take(Role::Command).unwrap());
        let rig = Self { name, lease };
        rig.inside(|_| must("ip", "link set lo up"));
        Some(rig)
    }

    fn inside<T: Send>(&self, work: impl FnOnce(&Lease) -> T + Send) -> T {
        let lease = self.lease.as_ref().unwrap();
        Namespace::open(&self.name).unwrap().run(|| work(lease)).unwrap()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let left = self.lease.take().unwrap().release(&[]);
        let _ = Namespace::remove(&self.name);
        if !std::thread::panicking() {
            assert!(left.is_empty(), "{left:?}");
        }
    }
}

fn must(program: &str, arguments: &str) -> String {
    let arguments: Vec<_> = arguments.split(' ').collect();
    let output = Command::new(program).args(&arguments).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// What a look finds after the kernel has reported a change.
fn look(watch: &mut Watch, lease: &Lease) -> Vec<Drift> {
    watch.look(lease, &|| Ok(()))
}

/// The rules and routes for the mark.
fn policy() -> String {
    ["-4", "-6"]
        .map(|family| {
            let rules = must("ip", &format!("{family} rule"));
            let rules: Vec<_> = rules.lines().filter(|line| line.contains("fwmark")).collect();
            rules.join("\n") + &must("ip", &format!("{family} route show table {TABLE}"))
        })
        .concat()
}

#[test]
fn a_rule_or_route_that_is_deleted_is_put_back() {
    let Some(rig) = Rig::new("rule") else { return };
    rig.inside(|lease| {
        add_local_route(lease, MARK, TABLE).unwrap();
        let before = policy();
        let mut watch = Watch::new(lease);
        assert_eq!(look(&mut watch, lease), []);
        for (undo, found) in [
            (format!("rule del fwmark {MARK:#x}"), "no rule for the mark (IPv4)"),
            (format!("-6 rule del fwmark {MARK:#x}"), "no rule for the mark (IPv6)"),
            (format!("route flush table {TABLE}"), "no local route in table 30572 (IPv4)"),
        ] {
            must("ip", &undo);
            let drifts = look(&mut watch, lease);
            assert_eq!(drifts.len(), 1, "{undo}: {drifts:?}");
            assert_eq!(drifts[0].found, found);
            assert_eq!(drifts[0].outcome, Outcome::PutBack, "{undo}");
            assert_eq!(policy(), before, "{undo}");
            assert_eq!(look(&mut watch, lease), [], "what was put back is no finding");
        }
        must("ip", &format!("rule del fwmark {MARK:#x}"));
        let fourth = look(&mut watch, lease);
        assert!(matches!(&fourth[..], [Drift { outcome: Outcome::Lost(_), .. }]), "{fourth:?}");
        assert_ne!(policy(), before);
        assert!(fourth[0].to_string().contains("three times within ten minutes"), "{}", fourth[0]);
        must("ip", "rule add fwmark 1 lookup 77");
        assert_eq!(look(&mut watch, lease), [], "it is told once");
        must("ip", "rule del fwmark 1 lookup 77");
    });
}

#[test]
fn a_rule_of_higher_priority_that_takes_the_packets_is_overtaken() {
    let Some(rig) = Rig::new("ahead") else { return };
    rig.inside(|lease| {
        add_local_route(lease, MARK, TABLE).unwrap();
        let mut watch = Watch::new(lease);
        assert_eq!(look(&mut watch, lease), []);
        must("ip", "rule add priority 5 not fwmark 0xca6c blackhole");
        let drifts = look(&mut watch, lease);
        assert_eq!(drifts.len(), 1, "{drifts:?}");
        assert!(drifts[0].found.contains("5: not from all fwmark 0xca6c"), "{}", drifts[0]);
        assert_eq!(drifts[0].outcome, Outcome::PutBack);
        let rules = must("ip", "rule");
        let place = |text: &str| rules.find(text).unwrap();
        assert!(place(&format!("fwmark {MARK:#x}")) < place("0xca6c"), "{rules}");
    });
}

#[test]
fn what_takes_marked_packets_at_the_start_is_named() {
    let Some(rig) = Rig::new("start") else { return };
    rig.inside(|lease| {
        must("ip", "rule add priority 0 iif eth7 lookup 99");
        must("ip", "rule add priority 0 fwmark 0x1/0x1 lookup main");
        must("ip", "rule add priority 0 fwmark 0x2/0x2 lookup main"); // not a bit of the mark
        add_local_route(lease, MARK, TABLE).unwrap();
        let named: Vec<_> = rules_before(MARK, TABLE).unwrap();
        let expected = ["0: from all iif eth7 lookup 99", "0: from all fwmark 0x1/0x1 lookup 254"];
        let rules: Vec<_> = named.iter().map(|(rule, _)| rule.as_str()).collect();
        assert_eq!(rules, expected);
        must("ip", "rule del priority 0 iif eth7");
        must("ip", "rule del priority 0 fwmark 0x1/0x1");
        must("ip", "rule del priority 0 fwmark 0x2/0x2");
    });
}

const RULES: &str = "create table inet wkt_watch
table inet wkt_watch {
chain prerouting {
type filter hook prerouting priority mangle
ip daddr { 10.0.0.0/8, 192.0.2.0/24 } meta mark set 7 accept
tcp flags & (fin | syn | rst | ack) == syn accept
}
}
";

#[test]
fn a_firewall_table_that_a_person_changes_is_told_and_never_put_back() {
    let Some(rig) = Rig::new("table") else { return };
    rig.inside(|lease| {
        let listed = || must("nft", "list ruleset");
        for (undo, found) in [
            ("flush ruleset", "no such table"),
            ("delete table inet wkt_watch", "no such table"),
            ("flush table inet wkt_watch", "other chains or rules in it than were made"),
            ("insert rule inet wkt_watch prerouting accept", "other chains or rules in it"),
            ("add table inet wkt_watch { flags dormant; }", "other chains or rules in it"),
        ] {
            add_packet_rules(lease, "wkt_watch", RULES).unwrap();
            let mut watch = Watch::new(lease);
            assert_eq!(look(&mut watch, lease), []);
            must("nft", undo);
            let after = listed();
            let drifts = look(&mut watch, lease);
            assert_eq!(drifts.len(), 1, "{undo}: {drifts:?}");
            assert!(drifts[0].found.starts_with(found), "{undo}: {}", drifts[0]);
            assert!(matches!(drifts[0].outcome, Outcome::Lost(_)), "{undo}");
            assert_eq!(listed(), after, "{undo}");
            must("nft", "flush ruleset");
            lease.forget(&drifts[0].change).unwrap();
        }
    });
}

#[test]
fn other_tables_and_the_same_table_loaded_again_are_no_drift() {
    let Some(rig) = Rig::new("again") else { return };
    rig.inside(|lease| {
        add_packet_rules(lease, "wkt_watch", RULES).unwrap();
        let mut watch = Watch::new(lease);
        assert_eq!(look(&mut watch, lease), []);
        must("nft", "add table inet other");
        must("nft", "add chain inet other input { type filter hook input priority 0; }");
        assert_eq!(look(&mut watch, lease), []);
        let saved = must("nft", "list ruleset");
        let mut nft = Command::new("nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
        nft.stdin.take().unwrap().write_all(format!("flush ruleset\n{saved}").as_bytes()).unwrap();
        assert!(nft.wait().unwrap().success());
        assert_eq!(look(&mut watch, lease), []);
    });
}

#[test]
fn a_sysctl_that_another_program_sets_is_put_back() {
    const NAME: &str = "net.ipv4.tcp_fin_timeout";
    let Some(rig) = Rig::new("sysctl") else { return };
    rig.inside(|lease| {
        let guard = set_sysctl(lease, NAME, "30").unwrap();
        let mut watch = Watch::new(lease);
        std::fs::write("/proc/sys/net/ipv4/tcp_fin_timeout", "45").unwrap();
        let drifts = look(&mut watch, lease);
        assert_eq!(drifts.len(), 1, "{drifts:?}");
        assert_eq!(drifts[0].found, "45, expected 30");
        assert_eq!(
            (read_sysctl(NAME).unwrap().as_str(), &drifts[0].outcome),
            ("30", &Outcome::PutBack)
        );
        guard.restore(lease).unwrap();
        assert_eq!(read_sysctl(NAME).unwrap(), "60");
    });
}

#[test]
fn the_algorithm_of_a_route_is_put_back_and_a_route_that_is_gone_is_waited_for() {
    let Some(rig) = Rig::new("route") else { return };
    rig.inside(|lease| {
        must("ip", "route add 192.0.2.0/24 dev lo");
        let route = Route::find("192.0.2.0".parse().unwrap(), 24, None).unwrap();
        let guard = route.set_algorithm(lease, "reno").unwrap();
        let mut watch = Watch::new(lease);
        assert_eq!(look(&mut watch, lease), []);
        must("ip", "route replace 192.0.2.0/24 dev lo");
        let drifts = look(&mut watch, lease);
        assert_eq!(drifts.len(), 1, "{drifts:?}");
        assert_eq!(
            (&drifts[0].found[..], &drifts[0].outcome),
            ("none, expected reno", &Outcome::PutBack)
        );
        assert!(must("ip", "route").contains("congctl reno"));
        must("ip", "route del 192.0.2.0/24");
        let drifts = look(&mut watch, lease);
        assert!(matches!(&drifts[..], [Drift { outcome: Outcome::Waits(_), .. }]), "{drifts:?}");
        must("ip", "route add 192.0.2.0/24 dev lo");
        let drifts = look(&mut watch, lease);
        assert!(matches!(&drifts[..], [Drift { outcome: Outcome::PutBack, .. }]), "{drifts:?}");
        guard.restore(lease).unwrap();
    });
}

#[test]
fn a_queueing_discipline_is_not_put_back_in_place_of_another_and_an_absent_interface_is_no_finding()
{
    let Some(rig) = Rig::new("queue") else { return };
    rig.inside(|lease| {
        must("ip", "tuntap add dev many mode tun multi_queue");
        must("ip", "link set many up");
        let index = nix::net::if_::if_nametoindex("many").unwrap();
        let (netns, interface) = (NetnsId::current().unwrap(), "many".to_owned());
        let change = Change::QueueingDiscipline { netns, interface, index, handle: 0x7761 };
        lease.record(change.clone()).unwrap();
        // mq stands for fq, which not every kernel has.
        must("tc", "qdisc add dev many root handle 7761: mq");
        let mut watch = Watch::new(lease);
        assert_eq!(look(&mut watch, lease), []);
        must("tc", "qdisc replace dev many root handle 9: pfifo limit 7");
        watch.make_due();
        let drifts = look(&mut watch, lease);
        assert_eq!(drifts.len(), 1, "{drifts:?}");
        assert_eq!(drifts[0].found, "pfifo 9:");
        let Outcome::Lost(why) = &drifts[0].outcome else { panic!("{}", drifts[0]) };
        assert_eq!(why, "another program has chosen it");
        assert!(must("tc", "qdisc show dev many").contains("pfifo 9: root"));
        watch.make_due();
        assert_eq!(look(&mut watch, lease), [], "it is told once");
        must("ip", "link del many");
        assert_eq!(look(&mut watch, lease), [], "its interface may come again");
        lease.forget(&change).unwrap();
    });
}

#[test]
fn a_network_that_another_program_changes_is_told_by_what_is_new_or_gone() {
    let Some(rig) = Rig::new("network") else { return };
    let lease = rig.lease.as_ref().unwrap();
    let name = format!("wkt-watched-{}", std::process::id());
    let made = lease.create_namespace(&name).unwrap();
    made.run(|| {
        must("ip", "link set lo up");
        must("ip", "link add wkt0 type veth peer name wkt1");
        must("ip", "link set wkt0 up");
        must("ip", "addr add 192.0.2.1/24 dev wkt0");
    })
    .unwrap();
    for (program, undo, found) in [
        ("tc", "qdisc add dev wkt0 root pfifo limit 7", "queueing discipline pfifo of wkt0"),
        ("ip", "route add 198.51.100.0/24 dev wkt0", "new route 198.51.100.0/24 dev wkt0"),
        ("ip", "rule add fwmark 7 lookup 9", "fwmark 0x7 lookup 9"),
        ("ip", "link set wkt0 mtu 1200", "link wkt0 up mtu 1200"),
        ("ip", "addr del 192.0.2.1/24 dev wkt0", "no address 192.0.2.1/24 of wkt0"),
    ] {
        let mut watch = Watch::new(lease);
        assert_eq!(look(&mut watch, lease), []);
        made.run(|| must(program, undo)).unwrap();
        let drifts = look(&mut watch, lease);
        assert_eq!(drifts.len(), 1, "{undo}: {drifts:?}");
        assert!(drifts[0].found.contains(found), "{undo}: {}", drifts[0]);
        assert!(matches!(drifts[0].outcome, Outcome::Lost(_)), "{undo}");
    }
    let mut watch = Watch::new(lease);
    must("ip", &format!("netns del {name}"));
    let drifts = look(&mut watch, lease);
    assert_eq!(drifts[0].found, "no namespace of that name");
}

#[test]
fn a_socket_that_is_removed_gets_its_name_back_and_a_foreign_one_in_its_place_is_told() {
    let Some(rig) = Rig::new("socket") else { return };
    let lease = rig.lease.as_ref().unwrap();
    let path = PathBuf::from(format!("/run/wakeai/wkt-watch-{}.socket", std::process::id()));
    let listener = lease.bind_socket(&path, 0o600).unwrap();
    let mut watch = Watch::new(lease);
    std::fs::remove_file(&path).unwrap();
    let drifts = look(&mut watch, lease);
    assert!(matches!(&drifts[..], [Drift { outcome: Outcome::PutBack, .. }]), "{drifts:?}");
    let _client = UnixStream::connect(&path).unwrap();
    listener.accept().unwrap();

    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "a person's").unwrap();
    let mut watch = Watch::new(lease);
    let drifts = look(&mut watch, lease);
    assert!(matches!(&drifts[..], [Drift { outcome: Outcome::Waits(_), .. }]), "{drifts:?}");
    assert_eq!(std::fs::read(&path).unwrap(), b"a person's");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn the_record_itself_is_written_again() {
    let Some(rig) = Rig::new("record") else { return };
    let lease = rig.lease.as_ref().unwrap();
    let file = || {
        let mut all = std::fs::read_dir("/run/wakeai/leases").unwrap().flatten();
        let own = format!("{}-", std::process::id());
        all.find(|entry| {
            let name = entry.file_name().into_string().unwrap();
            name.starts_with(&own)
                && Path::new(&name).extension().is_some_and(|end| end == "json")
                && std::fs::read_to_string(entry.path()).unwrap().contains("wkt-record")
        })
        .map(|entry| entry.path())
    };
    let path = PathBuf::from("/nonexistent/wkt-record");
    let change = Change::Directory { path, made: None };
    lease.record(change.clone()).unwrap();
    let mut watch = Watch::new(lease);
    std::fs::remove_file(file().unwrap()).unwrap();
    let drifts = look(&mut watch, lease);
    assert!(matches!(&drifts[..], [Drift { outcome: Outcome::PutBack, .. }]), "{drifts:?}");
    assert!(file().is_some());
    lease.forget(&change).unwrap();
}
