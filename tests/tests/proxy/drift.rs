//! Other programs that undo what a transparent proxy holds on the host, and what stands in its way at the start.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;

use crate::road::{Proxy, Road, SERVER, ip};
use crate::{echoes, line, serve};
use wakeai_tests::{Machine, stderr, stdout, wait_for, wakeai};

const FORWARDED: [&str; 4] = ["--transparent", "forwarded", "--in-interface", "client"];
/// The proxy's mark.
const MARK: &str = "0x77616b65";

/// A proxy on the router whose log is kept.
struct Logged {
    proxy: Proxy,
    log: File,
}

impl Logged {
    fn start(road: &Road, more: &[&str]) -> Self {
        let log = tempfile::tempfile().unwrap();
        let mut command = road.command("router", wakeai_tests::program());
        command.args(["proxy", "--json"]).args(FORWARDED).args(more);
        command.stderr(Stdio::from(log.try_clone().unwrap()));
        Self { proxy: Proxy::start(&mut command), log }
    }

    fn log(&self) -> String {
        read(&self.log)
    }
}

fn read(mut log: &File) -> String {
    let mut text = String::new();
    log.rewind().unwrap();
    log.read_to_string(&mut text).unwrap();
    text
}

fn dial(road: &Road) -> TcpStream {
    road.inside("client", || TcpStream::connect(SocketAddr::new(ip(SERVER[0]), 9000)).unwrap())
}

fn nft(road: &Road, script: &str) {
    assert!(road.command("router", "nft").arg(script).status().unwrap().success(), "{script}");
}

#[test]
fn a_rule_that_another_program_deletes_is_put_back_and_counted() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    serve(road.inside("server", || TcpListener::bind("[::]:9000").unwrap()));
    for user in [&[] as &[&str], &["--user", "nobody"]] {
        let before = road.rules();
        let mut running = Logged::start(&road, user);
        let held = road.rules();
        road.ip("router", &format!("rule del fwmark {MARK}"));
        wait_for("the rule is back", || (road.rules() == held).then_some(()));
        let mut stream = dial(&road);
        line(&mut stream);
        echoes(&mut stream, "through");
        let counted = || {
            let counters = running.proxy.counters();
            (counters["drifts"] == 1 && counters["connected"] == 1).then_some(())
        };
        wait_for("the proxy has counted it", counted);
        let said = running.log();
        assert!(
            said.contains("no rule for the mark (IPv4)") && said.contains("put back"),
            "{said}"
        );
        assert!(running.proxy.end().0.success());
        assert_eq!(road.rules(), before);
    }
}

#[test]
fn a_firewall_that_is_flushed_ends_the_proxy_and_stays_flushed() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    serve(road.inside("server", || TcpListener::bind("[::]:9000").unwrap()));
    for user in [&[] as &[&str], &["--user", "nobody"]] {
        let before = road.rules();
        let mut running = Logged::start(&road, user);
        nft(&road, "flush ruleset");
        let status = running.proxy.wait();
        assert_eq!(status.code(), Some(3));
        let said = running.log();
        assert!(
            said.contains("table inet wakeai_proxy of nftables: found no such table"),
            "{said}"
        );
        assert_eq!(road.rules(), before, "the route is undone, and no table is put back");
        line(&mut dial(&road)); // forwarded past the proxy, which the log has said
    }
}

#[test]
fn a_rule_that_is_deleted_a_fourth_time_ends_the_proxy() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    let before = road.rules();
    let mut running = Logged::start(&road, &[]);
    let held = road.rules();
    for _ in 0..3 {
        road.ip("router", &format!("rule del fwmark {MARK}"));
        wait_for("the rule is back", || (road.rules() == held).then_some(()));
    }
    road.ip("router", &format!("rule del fwmark {MARK}"));
    assert_eq!(running.proxy.wait().code(), Some(3));
    let said = running.log();
    assert!(said.contains("three times within ten minutes"), "{said}");
    assert_eq!(road.rules(), before);
}

#[test]
fn the_packaged_unit_does_not_start_a_proxy_again_that_another_program_has_undone() {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/wakeai-proxy.service");
    let unit = std::fs::read_to_string(unit).unwrap();
    let prevents = unit.lines().find_map(|line| line.strip_prefix("RestartPreventExitStatus="));
    let prevents: Vec<_> = prevents.unwrap().split(' ').collect();
    assert_eq!(prevents, ["2", &wakeai_host::LOST_STATUS.to_string(), "77"]);
    let help = stdout(&wakeai(&["--help"]));
    assert!(help.contains("\n  3   proxy and use: another program has changed"), "{help}");
}

#[test]
fn what_stands_in_the_way_is_named_at_the_start() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    serve(road.inside("server", || TcpListener::bind("[::]:9000").unwrap()));
    let set = |key: &str, value: &str| {
        let path = format!("/proc/sys/net/ipv4/conf/client/{key}");
        road.inside("router", || std::fs::write(&path, value).unwrap());
    };
    let said = |more: &[&str]| {
        let Logged { proxy, log } = Logged::start(&road, more);
        assert!(proxy.end().0.success());
        read(&log)
    };
    assert_eq!(said(&[]).matches("WARN").count(), 0, "nothing stands in the way");

    set("rp_filter", "1");
    assert!(said(&[]).contains("net.ipv4.conf.client.rp_filter"), "strict");
    set("rp_filter", "2");
    assert!(!said(&[]).contains("rp_filter"), "loose");
    set("src_valid_mark", "1");
    assert!(said(&[]).contains("net.ipv4.conf.client.src_valid_mark"));
    set("src_valid_mark", "0");
    set("rp_filter", "0");

    nft(
        &road,
        "table inet wall { chain gate { type filter hook input priority 0; policy drop; }; }",
    );
    let text = said(&[]);
    let remedy = format!("nft insert rule inet wall gate meta mark {MARK} accept");
    assert!(text.contains(&remedy), "{text}");
    nft(&road, remedy.strip_prefix("nft ").unwrap());
    let running = Logged::start(&road, &[]);
    line(&mut dial(&road)); // the remedy helps
    assert!(running.proxy.end().0.success());
    assert!(!said(&[]).contains("wall gate"), "a chain that accepts the mark is not named");
    nft(&road, "delete table inet wall");

    road.ip("router", "rule add priority 0 blackhole");
    let mut refused = road.command("router", wakeai_tests::program());
    let refused = refused.arg("proxy").args(FORWARDED).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let text = stderr(&refused);
    assert!(text.contains("0: from all blackhole") && text.contains("would hang"), "{text}");
    road.ip("router", "rule del priority 0 blackhole");
}
