//! Debian's Prometheus asks the agents of a lab through a run.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use wakeai_api::{Body, Request, Status};

use crate::page::{free_port, has};
use wakeai_tests::{ANY_LATENESS, Machine, nothing_left, program, wait_for};

const SCENARIO: &str = r#"
name = "watched"
duration = "25s"
warmup = "2s"
[access_point]
standard = "802.11g"
[wired]
delay = "10ms"
[[stations]]
name = "tablet"
count = 3
[[flows]]
from = "tablet"
to = "server"
[[conditions]]
name = "airtime"
law = "airtime"
"#;
const METRICS: &str = "127.0.0.1:9719";

/// The states of the agents that run.
fn agents() -> Vec<Status> {
    let sockets = fs::read_dir("/run/wakeai").into_iter().flatten().flatten();
    let sockets = sockets
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|of| of == "sock"));
    let ask = |path: &Path| match wakeai_api::ask(path, Request::Status, Duration::from_secs(10)) {
        Ok(Body::Status(status)) => Some(*status),
        _ => None,
    };
    sockets.filter_map(|path| ask(&path)).collect()
}

/// Relays connections from the loopback interface of this namespace to that of another process's namespace.
fn relay(pid: u32) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let namespace = File::open(format!("/proc/{pid}/ns/net")).unwrap();
    std::thread::spawn(move || {
        // A socket belongs to the namespace in which its thread is when it is made.
        setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
        for client in listener.incoming() {
            let Ok(agent) = TcpStream::connect(METRICS) else { continue };
            carry(client.unwrap(), agent);
        }
    });
    address
}

/// Carries a request and its answer. Neither end sends more than that.
fn carry(mut client: TcpStream, mut agent: TcpStream) {
    for stream in [&client, &agent] {
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    }
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        match client.read(&mut byte) {
            Ok(1) => request.extend(byte),
            _ => return,
        }
    }
    let mut answer = Vec::new();
    if agent.write_all(&request).is_ok() && agent.read_to_end(&mut answer).is_ok() {
        let _ = client.write_all(&answer);
        let _ = client.shutdown(Shutdown::Both);
    }
}

struct Prometheus {
    child: Child,
    url: String,
    _directory: tempfile::TempDir,
}

impl Prometheus {
    fn start(targets: &[SocketAddr]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let targets: Vec<String> = targets.iter().map(ToString::to_string).collect();
        let config = directory.path().join("prometheus.yml");
        let text = format!(
            "global: {{ scrape_interval: 1s }}\nscrape_configs:\n  - job_name: wakeai-agent\n    \
             static_configs: [{{ targets: {targets:?} }}]\n"
        );
        fs::write(&config, text).unwrap();
        let address = format!("127.0.0.1:{}", free_port());
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .args(["--log.level=warn"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, url: format!("http://{address}"), _directory: directory }
    }

    /// The instances and values that a query gives, one a line.
    fn query(&self, query: &str) -> Vec<String> {
        let mut command = Command::new("promtool");
        let found = command.args(["query", "instant", &self.url, query]).output().unwrap();
        let text = String::from_utf8(found.stdout).unwrap();
        text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The run takes half a minute.
#[test]
#[ignore = "make test-release runs it"]
fn prometheus_holds_the_series_of_three_agents_through_a_run_of_the_lab() {
    if !has("prometheus") {
        return;
    }
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("watched.toml");
    fs::write(&path, SCENARIO).unwrap();
    let mut lab = Command::new(program())
        .arg("lab")
        .arg(&path)
        .args(["--json", "--metrics", METRICS])
        .args(ANY_LATENESS)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let agents = wait_for("three agents run", || {
        let agents = agents();
        (agents.len() == 3).then_some(agents)
    });
    let targets: Vec<_> = agents.iter().map(|agent| relay(agent.pid)).collect();
    let prometheus = Prometheus::start(&targets);
    wait_for("Prometheus has asked all", || (prometheus.query("up == 1").len() == 3).then_some(()));
    assert!(lab.wait().unwrap().success());

    // Each time that an agent answered, each of these series was in the answer.
    for series in [
        "wakeai_agent_info",
        "wakeai_agent_peers",
        "wakeai_agent_senders",
        "wakeai_agent_delivery_rate_bytes_per_second",
        "wakeai_agent_ticks_total",
        "wakeai_agent_presence_messages_sent_total",
        "wakeai_agent_state{state=\"controlling\"}",
        "wakeai_agent_law_phase{phase=\"steady\"}",
        "wakeai_agent_faults_total{fault=\"bound\"}",
        "wakeai_agent_connection_rtt_seconds_count",
    ] {
        let missing =
            format!("sum_over_time(up[5m]) != on (instance) count_over_time({series}[5m])");
        assert_eq!(prometheus.query(&missing), [""; 0], "{series}");
        let present = format!("count_over_time({series}[5m]) >= 10");
        assert_eq!(prometheus.query(&present).len(), 3, "{series}");
    }
    // They tell of the run: two peers, uploads, connections with bounds.
    for (query, what) in [
        ("max_over_time(wakeai_agent_peers[5m]) == 2", "peers"),
        ("max_over_time(wakeai_agent_delivery_rate_bytes_per_second[5m]) > 1e5", "rates"),
        ("max_over_time(wakeai_agent_connections_bounded[5m]) >= 1", "bounded connections"),
        ("max_over_time(wakeai_agent_queueing_delay_target_seconds[5m]) > 0", "targets"),
        ("increase(wakeai_agent_connection_rtt_seconds_count[5m]) > 0", "round trips"),
    ] {
        let found = prometheus.query(query);
        assert_eq!(found.len(), 3, "{what}: {found:?}");
    }
    drop(prometheus);
    nothing_left();
}
