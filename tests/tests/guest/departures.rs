//! `fq` in place of the kernel's default queueing discipline: over three kinds of device, for an agent that ends, is
//! killed, hangs or loses its interface, and for TCP, which it must not pace.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;
use wakeai_api::Request;
use wakeai_host::{
    Departures, Drift, Lease, Namespace, Outcome, PutDepartures, Role, Watch, departures,
    put_departures,
};

use crate::passed;
use crate::steps::{DISCIPLINE, End, Fatal, Until, run};
use wakeai_tests::agent::{Agent, BSSID, Fleet, in_namespace, send};
use wakeai_tests::bss::{Bss, WIFI};
use wakeai_tests::{must, nothing_left, program, stderr, stdout, wait_for, wakeai};

/// The station alone reaches 1 Mbit/s, by its configuration.
const LAW: &str = "max = \"1Mbit/s\"\n[law]\nname = \"airtime\"\n";
const OURS: &str = "fq 7761: root";

/// The disciplines of a device in the calling thread's namespace. What `tc` counts is left out.
fn shown(device: &str) -> String {
    must("tc", &format!("qdisc show dev {device}")).replace(" refcnt 2", "")
}

/// The disciplines of a station's interface.
fn of_station(bss: &Bss) -> String {
    bss.namespace("a").run(|| shown(WIFI)).unwrap()
}

fn is_default(bss: &Bss) -> bool {
    of_station(bss).starts_with("qdisc noqueue 0: root")
}

fn is_put(bss: &Bss) -> bool {
    of_station(bss).contains(OURS)
}

pub(crate) fn take_the_place_of_a_default_alone() {
    let began = Instant::now();
    let bss = Bss::without_interfaces(&["a"]);
    let namespace = bss.namespace("a");
    bss.ip("a", "link add name wire type veth peer name other");
    bss.ip("a", "link add name many numtxqueues 4 type ifb");
    for device in ["wire", "other", "many"] {
        bss.ip("a", &format!("link set {device} up"));
    }
    namespace.run(|| the_default_is_replaced_and_comes_back("wire", "noqueue", 1)).unwrap();
    namespace.run(|| the_default_is_replaced_and_comes_back("many", "mq", 4)).unwrap();
    let own = wakeai_host::read_sysctl(DEFAULT).unwrap();
    for kind in ["pfifo_fast", "fq_codel"] {
        set_default(kind);
        bss.ip("a", "tuntap add dev tun mode tun");
        bss.ip("a", "link set tun up");
        namespace.run(|| the_default_is_replaced_and_comes_back("tun", kind, 1)).unwrap();
        bss.ip("a", "link del tun");
    }
    set_default(&own);
    bss.ip("a", "tuntap add dev tun mode tun");
    bss.ip("a", "link set tun up");
    namespace.run(what_somebody_has_chosen_stays).unwrap();
    namespace.run(a_watch_puts_it_back_in_place_of_a_default).unwrap();
    an_fq_of_the_system_is_left(&bss);
    passed("fq took the place of noqueue, pfifo_fast and mq, and of nothing else", began);
}

fn put(device: &str) -> (Lease, PutDepartures) {
    let lease = Lease::take(Role::Command).unwrap();
    let put = put_departures(&lease, device);
    let put = put.unwrap_or_else(|error| panic!("{error}: {}", shown(device)));
    (lease, put)
}

/// The kind of discipline that a device gets by default. Only the initial namespace has this sysctl.
const DEFAULT: &str = "net.core.default_qdisc";

fn set_default(kind: &str) {
    std::fs::write("/proc/sys/net/core/default_qdisc", kind).unwrap();
}

fn the_default_is_replaced_and_comes_back(device: &str, default: &str, queues: usize) {
    let before = shown(device);
    assert!(before.contains(&format!("{default} 0: root")), "{before}");
    let (lease, done) = put(device);
    let PutDepartures::Done(guard, found) = done else { panic!("{device}: {done:?}") };
    assert_eq!(found.as_deref(), Some(default));
    let now = shown(device);
    println!("guest: {device}, {default} before: {}", now.replace('\n', "; "));
    let fqs = now.lines().filter(|line| line.contains("qdisc fq "));
    let is_as_asked =
        |line: &str| line.contains(" nopacing ") && line.contains(" flow_limit 1000p");
    assert_eq!(fqs.clone().count(), queues, "{now}");
    assert!(fqs.clone().all(is_as_asked), "{now}");
    assert!(now.contains(" 7761: root"), "{now}");
    assert_eq!(now.lines().count(), if queues == 1 { 1 } else { queues + 1 }, "{now}");
    assert_eq!(departures(device).unwrap(), Departures::Obeyed);
    drop(guard);
    assert!(lease.release(&[]).is_empty());
    assert_eq!(shown(device), before);
}

fn what_somebody_has_chosen_stays() {
    for device in ["wire", "tun", "many"] {
        must("tc", &format!("qdisc add dev {device} root handle 9: pfifo limit 7"));
        let theirs = shown(device);
        let (lease, done) = put(device);
        assert!(matches!(&done, PutDepartures::Chosen(found) if found == "pfifo 9:"), "{done:?}");
        assert!(lease.changes().is_empty() && lease.release(&[]).is_empty());
        assert_eq!(shown(device), theirs);
        must("tc", &format!("qdisc del dev {device} root"));

        let (lease, done) = put(device);
        assert!(matches!(done, PutDepartures::Done(..)), "{done:?}");
        must("tc", &format!("qdisc replace dev {device} root handle 9: pfifo limit 7"));
        assert!(lease.release(&[]).is_empty());
        assert_eq!(shown(device), theirs, "it was put since");
        must("tc", &format!("qdisc del dev {device} root"));
    }
}

fn a_watch_puts_it_back_in_place_of_a_default() {
    let look = |watch: &mut Watch, lease: &Lease| {
        watch.make_due();
        watch.look(lease, &|| Ok(()))
    };
    let (lease, _) = put("wire");
    let mut watch = Watch::new(&lease);
    assert_eq!(look(&mut watch, &lease), []);
    must("ip", "link del wire");
    assert_eq!(look(&mut watch, &lease), [], "an absent interface is no finding");
    must("ip", "link add name wire type veth peer name other");
    must("ip", "link set wire up");
    let drifts = look(&mut watch, &lease);
    assert!(matches!(&drifts[..], [Drift { outcome: Outcome::PutBack, .. }]), "{drifts:?}");
    assert!(shown("wire").contains(OURS));
    must("tc", "qdisc replace dev wire root handle 9: pfifo limit 7");
    let theirs = shown("wire");
    let drifts = look(&mut watch, &lease);
    assert!(matches!(&drifts[..], [Drift { outcome: Outcome::Lost(_), .. }]), "{drifts:?}");
    assert!(lease.release(&[]).is_empty());
    assert_eq!(shown("wire"), theirs);
    must("tc", "qdisc del dev wire root");
}

fn an_fq_of_the_system_is_left(bss: &Bss) {
    let before = wakeai_host::read_sysctl(DEFAULT).unwrap();
    set_default("fq");
    bss.ip("a", "tuntap add dev own mode tun");
    bss.ip("a", "link set own up");
    set_default(&before);
    let own = || {
        let theirs = shown("own");
        assert!(theirs.contains("fq 0: root"), "{theirs}");
        let (lease, done) = put("own");
        assert!(matches!(done, PutDepartures::Obeyed), "{done:?}");
        assert!(lease.changes().is_empty() && lease.release(&[]).is_empty());
        assert_eq!(shown("own"), theirs);
    };
    bss.namespace("a").run(own).unwrap();
}

/// A flow of datagrams to the server, 4 Mbit/s.
struct Bulk {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Bulk {
    fn start(from: &Namespace) -> Self {
        let sender = from.run(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
        sender.connect("10.77.0.2:9").unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut datagram = [0; 1000];
            datagram[0] = 0x40; // as QUIC
            while !stopped.load(Ordering::Relaxed) {
                let _ = sender.send(&datagram); // the server's host answers that nobody listens
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Bulk {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn agent(bss: &Bss, more: &str) -> (Fleet, Agent) {
    let fleet = Fleet::new();
    let agent = fleet.start(bss, "a", 1, &format!("{LAW}{more}"));
    (fleet, agent)
}

pub(crate) fn stand_while_an_agent_governs_datagrams() {
    let began = Instant::now();
    let bss = Bss::new(&["a", "server"]);
    let before = of_station(&bss);
    assert!(is_default(&bss), "{before}");
    let fleet = Fleet::new();
    let mut check = in_namespace(&bss, "a");
    let config = fleet.configure(1, BSSID, LAW);
    let check = check.args(["agent", "--check", "--config"]).arg(&config);
    let checked = check.stdout(std::process::Stdio::piped()).output().unwrap();
    let said = format!("{}{}", stdout(&checked), stderr(&checked));
    assert!(said.contains("wait for their departure: "), "{said}");
    assert_eq!(of_station(&bss), before, "a check changes nothing");

    let (fleet, mut agent) = agent(&bss, "");
    assert!(is_put(&bss), "{}\n{}", of_station(&bss), agent.log());
    let bulk = Bulk::start(&bss.namespace("a"));
    let flow = wait_for("datagrams wait for their departure", || {
        let status = agent.ask(Request::Status);
        assert_ne!(status["departure_times"], false, "{status}");
        let flows = status["datagrams"].as_array()?.clone();
        flows.into_iter().find(|flow| flow["delayed"].as_u64() > Some(100))
    });
    println!("guest: a flow behind fq: {flow}");
    drop(bulk);
    assert!(agent.end(Signal::SIGTERM).success(), "{}", agent.log());
    assert_eq!(of_station(&bss), before);
    drop(fleet);

    let (_fleet, mut agent) = self::agent(&bss, "[datagrams]\nqueue = \"leave\"\n");
    assert_eq!(of_station(&bss), before);
    wait_for("status says so", || {
        (agent.ask(Request::Status)["departure_times"] == false).then_some(())
    });
    assert!(agent.end(Signal::SIGTERM).success());
    nothing_left();
    passed("an agent put fq and took it back, and left it alone where it was told to", began);
}

pub(crate) fn go_with_an_agent_that_dies_or_hangs() {
    let began = Instant::now();
    let bss = Bss::new(&["a", "server"]);
    let before = of_station(&bss);
    let default_again = |what: &str| wait_for(what, || is_default(&bss).then_some(()));

    let (_fleet, mut first) = agent(&bss, "");
    assert!(is_put(&bss));
    let serving = first.serving();
    send(serving, Signal::SIGSTOP);
    default_again("the default is back while the agent hangs");
    send(serving, Signal::SIGCONT);
    wait_for("fq is there again", || is_put(&bss).then_some(()));
    send(serving, Signal::SIGKILL);
    assert_eq!(first.wait().code(), Some(1));
    assert_eq!(of_station(&bss), before, "the other process has undone it");
    nothing_left();
    passed("fq went with an agent that hung, and with its serving process", began);

    let began = Instant::now();
    let (_fleet, mut second) = agent(&bss, "");
    let serving = second.serving();
    second.end(Signal::SIGKILL);
    let process = format!("/proc/{serving}");
    wait_for("the other process ends", || (!std::fs::exists(&process).unwrap()).then_some(()));
    assert!(is_put(&bss), "nobody has undone it yet");
    let swept = wakeai(&["completion", "bash"]);
    assert!(
        stderr(&swept).contains("removed queueing discipline fq of wlan0"),
        "{}",
        stderr(&swept)
    );
    assert_eq!(of_station(&bss), before);
    nothing_left();

    let (_fleet, mut third) = agent(&bss, "");
    let both = [third.pid(), third.serving()];
    for process in both {
        send(process, Signal::SIGSTOP);
    }
    send(both[1], Signal::SIGKILL);
    third.end(Signal::SIGKILL);
    assert!(is_put(&bss), "nobody has undone it yet");
    let swept = wakeai(&["sweep"]);
    assert!(swept.status.success(), "{}", stderr(&swept));
    assert_eq!(of_station(&bss), before);
    nothing_left();
    passed("the next command removed the fq of killed processes", began);
}

/// Kills an agent before and after each request for a discipline: its first process alone, or both.
pub(crate) fn are_undone_after_kill_9_at_each_of_their_steps() {
    let began = Instant::now();
    let (bss, fleet) = (Bss::new(&["a", "server"]), Fleet::new());
    let before = of_station(&bss);
    let config = fleet.configure(1, BSSID, LAW).display().to_string();
    let net = format!("--net=/run/netns/{}", bss.name("a"));
    let command = ["nsenter", &net, program(), "agent", "--config", &config];
    let until = Some(Until { text: "started", iterations: 4 });
    let whole = run(&command, until, None);
    assert_eq!(whole.end, End::Exited(0), "{:#?}", whole.steps);
    assert_eq!(of_station(&bss), before);
    let asks = |(_, step): &(usize, &String)| step.contains(DISCIPLINE);
    let requests: Vec<_> = whole.steps.iter().enumerate().filter(asks).collect();
    println!("guest: of {} steps these ask: {requests:?}", whole.steps.len());
    assert!(requests.iter().any(|(_, step)| step.starts_with("put")), "{:#?}", whole.steps);
    assert!(requests.iter().any(|(_, step)| step.starts_with("delete")), "{:#?}", whole.steps);
    let mut put = 0;
    for number in requests.into_iter().flat_map(|(number, _)| [number - 1, number]) {
        for kills_all in [false, true] {
            let died = run(&command, until, Some(Fatal { step: number, kills_all }));
            assert_eq!(died.end, End::Killed);
            put += u32::from(is_put(&bss));
            let swept = wakeai(&["sweep"]);
            let said = stderr(&swept);
            assert!(swept.status.success() && !said.contains("warning"), "{said}");
            assert_eq!(of_station(&bss), before, "after step {number}: {said}");
            nothing_left();
        }
    }
    assert!(put > 0, "a killed agent has left it");
    passed("fq was undone after kill -9 at each of its steps", began);
}

pub(crate) fn follow_the_interface_and_other_programs() {
    let began = Instant::now();
    let bss = Bss::new(&["a", "server"]);
    let (_fleet, mut agent) = agent(&bss, "");
    assert!(is_put(&bss));
    bss.ip("a", &format!("link del {WIFI}"));
    wait_for("the agent waits", || (agent.state() == "waiting-for-interface").then_some(()));
    bss.plug("a", WIFI);
    bss.ip("a", &format!("addr add 10.77.0.1/24 brd + dev {WIFI}"));
    wait_for("the new interface has fq", || is_put(&bss).then_some(()));
    wait_for("the agent sees it", || {
        (agent.ask(Request::Status)["departure_times"] == true).then_some(())
    });
    bss.inside("a", &format!("tc qdisc replace dev {WIFI} root handle 9: pfifo limit 7"));
    let theirs = of_station(&bss);
    wait_for("the agent tells it", || {
        let drifts = agent.ask(Request::Status)["drifts"].clone();
        let is = |drift: &Value| drift["found"] == "pfifo 9:";
        drifts.as_array().unwrap().iter().any(is).then_some(())
    });
    wait_for("datagrams are dropped again", || {
        (agent.ask(Request::Status)["departure_times"] == false).then_some(())
    });
    assert!(agent.end(Signal::SIGTERM).success());
    assert_eq!(of_station(&bss), theirs);
    wakeai(&["sweep"]);
    assert_eq!(of_station(&bss), theirs);
    nothing_left();
    passed("fq followed its interface, and gave way to another program's discipline", began);
}

/// The rate of the link behind a router. The software emulation is too slow for a faster link.
const LINK: &str = "8mbit";

/// TCP over a router with a bucket of `LINK`: with the default discipline, with ours, and with an `fq` that paces, which
/// shows that the check of pacing can fail.
pub(crate) fn leave_tcp_as_it_is() {
    let began = Instant::now();
    let bss = Bss::without_interfaces(&["a", "router", "b"]);
    for (host, network) in [("a", 1), ("b", 2)] {
        let there = bss.name(host);
        bss.ip("router", &format!("link add to-{host} type veth peer name eth0 netns {there}"));
        bss.ip("router", &format!("addr add 10.79.{network}.1/24 dev to-{host}"));
        bss.ip("router", &format!("link set to-{host} up"));
        bss.ip(host, &format!("addr add 10.79.{network}.2/24 dev eth0"));
        bss.ip(host, "link set eth0 up");
        bss.ip(host, &format!("route add default via 10.79.{network}.1"));
    }
    let forward = || std::fs::write("/proc/sys/net/ipv4/ip_forward", "1");
    bss.namespace("router").run(forward).unwrap().unwrap();
    let bucket = format!("tc qdisc add dev to-b root tbf rate {LINK} burst 5000 limit 75000");
    bss.inside("router", &bucket);
    assert!(bss.set_default("a", "cubic"));
    bss.inside("b", "iperf3 --server --daemon --pidfile /tmp/iperf3.pid");

    let mut goodput = Vec::new();
    for (name, paces) in [("default", None), ("ours", Some(false)), ("fq", Some(true))] {
        let lease = Lease::take(Role::Command).unwrap();
        bss.namespace("a")
            .run(|| match paces {
                Some(false) => {
                    let put = put_departures(&lease, "eth0").unwrap();
                    assert!(matches!(put, PutDepartures::Done(..)), "{put:?}");
                }
                Some(true) => drop(must("tc", "qdisc add dev eth0 root handle 9: fq")),
                None => {}
            })
            .unwrap();
        let said = bss.inside("a", "iperf3 --client 10.79.2.2 --time 10 --json");
        let said: Value = serde_json::from_str(&said).unwrap();
        let mbps = said["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() / 1e6;
        let retransmits = &said["end"]["sum_sent"]["retransmits"];
        let text = bss.inside("a", "tc -s qdisc show dev eth0");
        let throttled = throttled(&text);
        println!(
            "guest: TCP behind {name}: {mbps:.3} Mbit/s, {retransmits} retransmitted, throttled {throttled:?}"
        );
        // fq counts the packets for which it made a flow wait.
        match paces {
            Some(true) => assert!(throttled > Some(0), "{text}"),
            Some(false) => assert_eq!(throttled, Some(0), "{text}"),
            None => assert_eq!(throttled, None, "{text}"),
        }
        goodput.push(mbps);
        assert!(lease.release(&[]).is_empty());
    }
    let ratio = goodput[1] / goodput[0];
    println!("guest: TCP: {ratio:.4} of the goodput with the default discipline");
    let server = std::fs::read_to_string("/tmp/iperf3.pid").unwrap();
    send(server.trim_matches(['\0', '\n']).parse().unwrap(), Signal::SIGTERM);
    passed("TCP was not paced", began);
}

/// How often `fq` has made a flow wait: the last number after "throttled" in what tc(8) prints.
fn throttled(text: &str) -> Option<u64> {
    let (_, rest) = text.rsplit_once(" throttled ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}
