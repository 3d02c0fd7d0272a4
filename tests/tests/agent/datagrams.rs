//! The datagrams of a station: an agent counts and announces them and holds them to a rate, and after its death or while
//! it hangs neither a rate nor its program is in force.

use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use wakeai_api::Request;

use wakeai_tests::agent::{Agent, Fleet, send};
use wakeai_tests::bss::{Bss, WIFI};
use wakeai_tests::{Machine, leftovers, must, nothing_left, wait_for, wakeai};

/// The station alone reaches 1 Mbit/s, by its configuration. It sends 8.
const LAW: &str = "max = \"1Mbit/s\"\n[law]\nname = \"airtime\"\n";
/// The number of datagrams in a row that have to arrive for the flow to count as free: more than an eighth of
/// the flow would leave out.
const IN_A_ROW: u64 = 200;

/// A bulk flow of datagrams from a station to the server, each with its number.
struct Bulk {
    stop: Arc<AtomicBool>,
    /// The datagrams in a row that have arrived last.
    in_a_row: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Bulk {
    fn start(bss: &Bss, station: &str, server: Ipv4Addr) -> Self {
        let receiver = bss.namespace("server").run(|| UdpSocket::bind((server, 0)).unwrap());
        let receiver = receiver.unwrap();
        let to = receiver.local_addr().unwrap();
        let sender = bss.namespace(station).run(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
        sender.connect(to).unwrap();
        receiver.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let in_a_row = Arc::new(AtomicU64::new(0));
        let (stopped, counted) = ([Arc::clone(&stop), Arc::clone(&stop)], Arc::clone(&in_a_row));
        let [sending, receiving] = stopped;
        let send = move || {
            let mut datagram = [0; 1000];
            datagram[0] = 0x40; // as QUIC
            for number in 0_u64.. {
                if sending.load(Ordering::Relaxed) {
                    return;
                }
                datagram[8..16].copy_from_slice(&number.to_be_bytes());
                let _ = sender.send(&datagram); // the interface may be gone
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        let receive = move || {
            let (mut datagram, mut next) = ([0; 2000], 0);
            while !receiving.load(Ordering::Relaxed) {
                if receiver.recv(&mut datagram).is_err() {
                    continue;
                }
                let number = u64::from_be_bytes(*datagram[8..].first_chunk().unwrap());
                if number == next {
                    counted.fetch_add(1, Ordering::Relaxed);
                } else {
                    counted.store(0, Ordering::Relaxed);
                }
                next = number + 1;
            }
        };
        let threads = vec![std::thread::spawn(send), std::thread::spawn(receive)];
        Self { stop, in_a_row, threads }
    }

    /// Waits until datagrams are dropped again and again.
    fn bounded(&self) {
        wait_for("the flow is bounded", || {
            std::thread::sleep(Duration::from_millis(500));
            (self.in_a_row.load(Ordering::Relaxed) < IN_A_ROW / 4).then_some(())
        });
    }

    fn free(&self) {
        wait_for("the flow is free", || {
            (self.in_a_row.load(Ordering::Relaxed) >= IN_A_ROW).then_some(())
        });
    }
}

impl Drop for Bulk {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Whether a program of ours is attached to a control group.
fn is_attached() -> bool {
    must("bpftool", "cgroup tree").contains("govern_egress")
}

fn detached() {
    wait_for("the program is detached", || (!is_attached()).then_some(()));
}

fn bounded_station(bss: &Bss) -> (Agent, Bulk) {
    let agent = Fleet::new().start(bss, "a", 1, LAW);
    let bulk = Bulk::start(bss, "a", Ipv4Addr::new(10, 77, 0, 2));
    bulk.bounded();
    assert!(is_attached());
    (agent, bulk)
}

/// The flow of the API that has a rate.
fn bounded_flow(agent: &Agent) -> Value {
    wait_for("a flow has a rate", || {
        let status = agent.ask(Request::Status);
        let flows = status["datagrams"].as_array().unwrap();
        flows.iter().find(|flow| flow["bound_mbps"].is_f64()).cloned()
    })
}

#[test]
fn datagrams_are_counted_held_to_the_share_and_announced() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b", "server"]);
    let fleet = Fleet::new();
    let agents = [fleet.start(&bss, "a", 1, LAW), fleet.start(&bss, "b", 2, LAW)];
    let _bulk = Bulk::start(&bss, "a", Ipv4Addr::new(10, 77, 0, 3));
    let flow = bounded_flow(&agents[0]);
    assert_eq!(flow["datagram_bytes"], 1000);
    assert!(flow["bound_mbps"].as_f64().unwrap() < 4.0, "{flow}");
    assert_eq!(flow["tunnel"], false);
    wait_for("datagrams are dropped", || {
        bounded_flow(&agents[0])["dropped"].as_u64().filter(|dropped| *dropped > 100)
    });
    wait_for("the peer hears of them", || {
        let peers = agents[1].ask(Request::Peers);
        let peer = peers.as_array().unwrap().first()?.clone();
        let rate = peer["delivery_rate_mbps"].as_f64().unwrap();
        (peer["sending"] == true && rate > 0.1).then_some(())
    });
    // The other agent sees its own station's datagrams alone.
    let status = agents[1].ask(Request::Status);
    let flows = status["datagrams"].as_array().unwrap();
    assert!(flows.iter().all(|flow| flow["local"].as_str().unwrap().starts_with("10.77.0.2:")));
}

#[test]
fn an_agent_that_ends_leaves_no_program_and_no_rate() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let (mut agent, bulk) = bounded_station(&bss);
    assert!(agent.end(Signal::SIGTERM).success());
    assert!(!is_attached());
    bulk.free();
    nothing_left();
}

#[test]
fn while_an_agent_hangs_its_datagrams_are_free_and_its_program_is_detached() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let (agent, bulk) = bounded_station(&bss);
    let serving = agent.serving();
    send(serving, Signal::SIGSTOP);
    bulk.free();
    detached();
    send(serving, Signal::SIGCONT);
    bulk.bounded();
    assert!(is_attached());
}

#[test]
fn after_kill_9_of_one_of_the_two_processes_no_program_is_left() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let (mut agent, bulk) = bounded_station(&bss);
    send(agent.serving(), Signal::SIGKILL);
    detached();
    bulk.free();
    assert_eq!(agent.wait().code(), Some(1));
    nothing_left();

    let (mut agent, bulk) = bounded_station(&bss);
    let serving = agent.serving();
    agent.end(Signal::SIGKILL);
    detached();
    bulk.free();
    let process = format!("/proc/{serving}");
    wait_for("the other process ends", || (!Path::new(&process).exists()).then_some(()));
    assert!(wakeai(&["sweep"]).status.success());
    nothing_left();
}

#[test]
fn after_kill_9_of_both_processes_no_program_is_left_before_any_command() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let (mut agent, bulk) = bounded_station(&bss);
    let both = [agent.pid(), agent.serving()];
    for process in both {
        send(process, Signal::SIGSTOP);
    }
    send(both[1], Signal::SIGKILL);
    agent.end(Signal::SIGKILL);
    detached();
    bulk.free();
    let left = leftovers();
    assert!(!left.iter().any(|left| left.contains("datagrams")), "{left:?}");
    assert!(wakeai(&["sweep"]).status.success());
    nothing_left();
}

#[test]
fn when_the_interface_goes_the_program_goes() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let (agent, _bulk) = bounded_station(&bss);
    bss.ip("a", &format!("link del {WIFI}"));
    detached();
    assert_eq!(agent.state(), "waiting-for-interface");
}
