//! What a tick of the agent costs with 100 peers and an interface that has 1,000 connections that send and 1,000 that
//! receive; and with 100,000 connections, of which one in a hundred sends, beside the same with a hundredth of them.
//!
//! The processor time is that of the agent's two processes, divided by its ticks. The time of a tick is by the agent's own clock, from
//! reading the connections to writing the bounds (`wakeai_agent_tick_seconds`).
//!
//! Both ends are on this machine, in two namespaces. A process may have some 20,000 open files, so twelve processes
//! hold the connections; each is this program again.
//!
//! Needs root: `cargo bench -p wakeai-cli --bench many_connections [seconds]`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench panics or prints")]

use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use wakeai_host::Namespace;
use wakeai_tests::agent::{Agent, Fleet};
use wakeai_tests::bss::Bss;
use wakeai_tests::members::Members;
use wakeai_tests::metrics::{ask, value};
use wakeai_tests::{Machine, wait_for};

/// The argument with which this program holds connections.
const HOLD: &str = "--hold";
const HOLDERS: usize = 12;
/// The address of the agent's figures, in its namespace.
const FIGURES: &str = "127.0.0.1:9719";
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == HOLD) {
        let [station, server, load @ ..] = &arguments[at + 1..] else { panic!("{arguments:?}") };
        return hold(station, server, &Load::read(load));
    }
    let seconds = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(20);
    let Some(_machine) = Machine::take() else { return };
    println!(
        "peers  connections  sending  receiving  CPU per tick, ms  tick, ms  ticks  late  Rss, MB"
    );
    for peers in [0, 100] {
        measure(&Load { peers, connections: 2_000, one_in: 2, receive: true }, seconds);
    }
    let rows = [1_000, 100_000].map(|connections| {
        measure(&Load { peers: 0, connections, one_in: 100, receive: false }, seconds)
    });
    println!("ratio of the last two {:.1}", rows[1] / rows[0]);
}

/// The connections of a station, and its peers.
struct Load {
    peers: u64,
    connections: usize,
    /// One in so many connections sends.
    one_in: usize,
    /// Whether the others receive; otherwise they are idle.
    receive: bool,
}

impl Load {
    /// The load as arguments of a process that holds this part of it.
    fn arguments(&self, connections: usize) -> [String; 3] {
        [connections.to_string(), self.one_in.to_string(), self.receive.to_string()]
    }

    fn read(arguments: &[String]) -> Self {
        let [connections, one_in, receive] = arguments else { panic!("{arguments:?}") };
        let number = |text: &String| text.parse().unwrap();
        Self {
            peers: 0, // they are not the holders' concern
            connections: number(connections),
            one_in: number(one_in),
            receive: receive.parse().unwrap(),
        }
    }
}

/// The CPU time of a tick in milliseconds.
fn measure(load: &Load, seconds: u64) -> f64 {
    let bss = Bss::new(&["a", "b"]);
    let each = load.connections.div_ceil(HOLDERS);
    let start = |_| Holder::start(&bss, &load.arguments(each));
    let holders: Vec<Holder> = (0..HOLDERS).map(start).collect();
    let fleet = Fleet::new();
    let agent = fleet.start(&bss, "a", 1, &format!("metrics = {FIGURES:?}\n"));
    let members = Members::start(&bss, "b", &fleet, load.peers);
    // At first it moves the connections to its algorithm.
    let mut moved = 0;
    wait_for("all connections are moved", || {
        std::thread::sleep(Duration::from_secs(2));
        let before = std::mem::replace(&mut moved, agent.metric("connections_moved"));
        (moved == before).then_some(())
    });
    // Messages are rare where there are many stations, and each proves few others live.
    let known = || agent.peers().len() as u64;
    let deadline = Instant::now() + Duration::from_mins(5);
    while known() < load.peers {
        assert!(Instant::now() < deadline, "{} of {} peers are known", known(), load.peers);
        std::thread::sleep(Duration::from_secs(1));
    }
    // A connection is idle ten seconds after its last segment.
    std::thread::sleep(Duration::from_secs(12));

    let page = || bss.namespace("a").run(|| ask(FIGURES.parse().unwrap(), "").unwrap().1).unwrap();
    let sample = || {
        let (ticks, late) = (agent.metric("ticks"), agent.metric("faults_late_tick"));
        let page = page();
        let of = |figure: &str| value(&page, &format!("wakeai_agent_tick_seconds_{figure}"));
        (cpu_ms(&agent), ticks, late, of("sum").unwrap(), of("count").unwrap())
    };
    let before = sample();
    std::thread::sleep(Duration::from_secs(seconds));
    let after = sample();
    let (ticks, late) = (after.1 - before.1, after.2 - before.2);
    let per_tick = (after.0 - before.0) / ticks as f64;
    let tick_ms = (after.3 - before.3) / (after.4 - before.4) * 1e3;
    let sending = each.div_ceil(load.one_in) * HOLDERS;
    let connections = each * HOLDERS;
    let receiving = if load.receive { connections - sending } else { 0 };
    let memory = memory_mb(&agent);
    println!(
        "{:5}  {connections:11}  {sending:7}  {receiving:9}  {per_tick:16.1}  {tick_ms:8.2}  {ticks:5}  {late:4}  {memory:7.0}",
        load.peers
    );
    drop((holders, members));
    per_tick
}

/// The processor time of the agent's processes.
fn cpu_ms(agent: &Agent) -> f64 {
    let of_thread = |path: PathBuf| {
        // The first number is the time on a processor, nanoseconds (`Documentation/scheduler/sched-stats.rst`).
        let times = fs::read_to_string(path.join("schedstat")).unwrap();
        times.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e6
    };
    let of_process = |pid: u32| -> f64 {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        threads.map(|thread| of_thread(thread.unwrap().path())).sum()
    };
    processes(agent).into_iter().map(of_process).sum()
}

/// The resident memory of the agent's processes.
fn memory_mb(agent: &Agent) -> f64 {
    let of_process = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1e3
    };
    processes(agent).into_iter().map(of_process).sum()
}

/// The process that supervises, and the one that serves.
fn processes(agent: &Agent) -> [u32; 2] {
    [agent.pid(), agent.serving()]
}

/// A process that holds connections until its standard input is closed.
struct Holder {
    process: Child,
    input: Option<ChildStdin>,
}

impl Holder {
    fn start(bss: &Bss, load: &[String]) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([HOLD, &bss.name("a"), &bss.name("b")])
            .args(load)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n", "a process could not open its connections");
        Self { input: process.stdin.take(), process }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.wait();
    }
}

/// Opens the connections. Each that sends or receives moves 3,000 B each 100 ms.
fn hold(station: &str, server: &str, load: &Load) {
    Namespace::open(server).unwrap().enter().unwrap();
    let listener = TcpListener::bind((SERVER, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    Namespace::open(station).unwrap().enter().unwrap();
    let open = || {
        let client = TcpStream::connect(address).unwrap();
        let server = listener.accept().unwrap().0;
        for end in [&client, &server] {
            end.set_nonblocking(true).unwrap();
        }
        (client, server)
    };
    let mut connections: Vec<_> = (0..load.connections).map(|_| open()).collect();
    println!("ready");

    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let mut bytes = vec![0; 1 << 16];
    loop {
        for (number, (client, server)) in connections.iter_mut().enumerate() {
            let (from, to) = match number % load.one_in {
                0 => (client, server),
                _ if load.receive => (server, client),
                _ => continue,
            };
            for result in [from.write(&bytes[..3_000]), to.read(&mut bytes)] {
                // A full or an empty buffer is met again next time.
                if let Err(error) = result {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                }
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
