//! Endless TCP flows and UDP flows, which iperf3 carries.
//!
//! The client runs at the data's *receiver* (`-R`), because a receiving client counts the bytes
//! that its application received, in short intervals. At the end of the run the clients get
//! SIGTERM. iperf3 then prints its counts without a handshake over the loaded air. Its last
//! interval ends at the time of the signal, which tells when each interval was on the lab's clock.

mod report;

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

use wakeai_host::Lease;
use wakeai_units::{Duration, Instant};
use wakeai_world::ReceiverMeter;

use self::report::{IperfReport, Life};
use super::{FlowPlan, TrafficKind};
use crate::clock;
use crate::error::LabError;
use crate::host::{Child, Host, held_back};

/// The UDP payload of an IP packet of 1500 bytes.
const DATAGRAM_BYTES: &str = "1472";
/// The largest number of intervals of a client. Each takes some 300 bytes of the client's memory
/// and of its JSON.
const MAX_INTERVALS: u64 = 1_000;
/// Round trips from the start of a client to the first packet of its data connection, at which the
/// flow starts. They are the control connection's handshake, the request for parameters, and the
/// parameters with the request for streams.
const SETUP_ROUND_TRIPS: u64 = 3;
/// The time that the iperf3 processes take in addition to the round trips.
const SETUP_TIME: Duration = Duration::from_millis(30);

/// The time from the start of a client to the start of its data connection, with a round trip of `rtt`.
pub(crate) fn lead(rtt: Duration) -> Duration {
    rtt.saturating_mul(SETUP_ROUND_TRIPS).saturating_add(SETUP_TIME)
}

/// Starts the sending side: an iperf3 server that serves one test.
pub(crate) fn spawn_sender(plan: &FlowPlan, host: &Host, lease: &Lease) -> Result<Child, LabError> {
    let mut command = held_back("iperf3");
    command
        .args(["--server", "--one-off", "--bind", &plan.from.to_string()])
        .args(["--port", &plan.port.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Child::spawn(&mut command, host, lease)
}

/// Whether the sender is listening.
pub(crate) fn listens(child: &Child, port: u16) -> bool {
    has_socket(child, ["tcp", "tcp6"], |socket| socket.port == port && socket.state == LISTEN)
}

/// The state LISTEN of a TCP socket (`proc_net_tcp(5)`).
const LISTEN: u8 = 0x0A;

/// A socket as the kernel lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listed {
    /// The local port.
    port: u16,
    state: u8,
}

impl Listed {
    /// Reads a line of the kernel's table. It has a number, the local address and port in hexadecimal, the
    /// remote address and port, and the state (`proc_net_tcp(5)`).
    fn of(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (_, port) = fields.next()?.rsplit_once(':')?;
        let state = fields.nth(1)?;
        let port = u16::from_str_radix(port, 16).ok()?;
        Some(Self { port, state: u8::from_str_radix(state, 16).ok()? })
    }
}

/// Whether the namespace of `child` has such a socket in one of these tables.
fn has_socket(child: &Child, tables: [&str; 2], is_it: impl Fn(Listed) -> bool) -> bool {
    // The files below the process's directory are those of its namespace.
    let paths = tables.map(|table| format!("/proc/{}/net/{table}", child.process.id()));
    let mut texts = paths.iter().filter_map(|path| fs::read_to_string(path).ok());
    texts.any(|text| text.lines().filter_map(Listed::of).any(&is_it))
}

/// The receiving side of one flow.
#[derive(Debug)]
pub(crate) struct Receiver {
    child: Child,
    output: JoinHandle<String>,
    spawned: Instant,
    data_port: u16,
    is_udp: bool,
    /// When the data connection was opened, if that was seen.
    pub(crate) opened: Option<Instant>,
}

impl Receiver {
    /// Starts the client. Its data connection starts [`lead`] later.
    pub(crate) fn spawn(
        plan: &FlowPlan,
        run_length: Duration,
        host: &Host,
        lease: &Lease,
    ) -> Result<Self, LabError> {
        let mut command = held_back("iperf3");
        command
            .args(["--client", &plan.from.to_string(), "--port", &plan.port.to_string()])
            .args(["--bind", &plan.to.to_string(), "--cport", &plan.data_port.to_string()])
            .args(["--reverse", "--json", "--time", "0", "--connect-timeout", "120000"])
            .args(["--interval", &format!("{:.1}", interval(run_length).as_secs_f64())]);
        if let Some(algorithm) = &plan.requested {
            command.args(["--congestion", algorithm]);
        }
        if let TrafficKind::Udp(rate) = plan.kind {
            let rate = rate.bits_per_second().to_string();
            command.args(["--udp", "--length", DATAGRAM_BYTES, "--bitrate", &rate]);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let spawned = clock::now();
        let mut child = Child::spawn(&mut command, host, lease)?;
        let stdout = child.process.stdout.take();
        // The output is read at once, because the JSON is longer than a pipe's buffer.
        let output = std::thread::spawn(move || {
            let mut text = String::new();
            if let Some(mut stdout) = stdout {
                let _ = stdout.read_to_string(&mut text);
            }
            text
        });
        let is_udp = matches!(plan.kind, TrafficKind::Udp(_));
        Ok(Self { child, output, spawned, data_port: plan.data_port, is_udp, opened: None })
    }

    /// Looks whether the client has opened its data connection: whether it has sent the SYN. The answer may
    /// wait in the queues of the scenario for as long as these are full.
    pub(crate) fn look(&mut self) {
        if self.opened.is_none() {
            let tables = if self.is_udp { ["udp", "udp6"] } else { ["tcp", "tcp6"] };
            let is_open = has_socket(&self.child, tables, |socket| socket.port == self.data_port);
            self.opened = is_open.then(clock::now);
        }
    }

    /// Whether the client still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.process.try_wait(), Ok(None))
    }

    /// The error of a client that ended during the run.
    pub(crate) fn ended_early(self, lease: &Lease) -> LabError {
        let station = self.child.station.clone();
        if let Err(error) = self.child.end(lease) {
            return error;
        }
        let text = self.output.join().unwrap_or_default();
        let stated = IperfReport::parse(&text).ok().and_then(IperfReport::error);
        let reason = stated.unwrap_or_else(|| "it ended during the run".to_owned());
        LabError::child("iperf3", &station, reason)
    }

    /// Tells the client to stop, and returns the time at which it did so.
    pub(crate) fn stop(&self) -> Instant {
        // iperf3's handler of SIGTERM leaves the interrupted code by longjmp(3) and makes the report.
        // Where the signal interrupted the report of an interval, that interval has no sum, or the
        // heap is damaged and there is no report at all.
        self.child.terminate_while_it_waits();
        clock::now()
    }

    /// Counts the received bytes in `meter`; `stopped` is the result of [`Receiver::stop`].
    pub(crate) fn collect(
        mut self,
        stopped: Instant,
        meter: &mut ReceiverMeter,
        lease: &Lease,
    ) -> Result<(), LabError> {
        self.child.wait_for(Duration::from_secs(10));
        let station = self.child.station.clone();
        self.child.end(lease)?;
        let text = self.output.join().unwrap_or_default();
        let life = Life { spawned: self.spawned, stopped, ended: clock::now() };
        count(&text, &life, meter).map_err(|error| LabError::child("iperf3", &station, error))
    }
}

/// Counts what a client has received. The report has no intervals if the station got so little air that its
/// connections were not set up.
fn count(text: &str, life: &Life, meter: &mut ReceiverMeter) -> Result<(), String> {
    for arrival in IperfReport::parse(text)?.arrivals(life)? {
        meter.on_received_between(arrival.from, arrival.to, arrival.bytes);
    }
    Ok(())
}

/// The length of an interval: the shortest that iperf3 has (100 ms), or more in long runs.
fn interval(run_length: Duration) -> Duration {
    let tenths = (run_length.as_millis() / MAX_INTERVALS).div_ceil(100).max(1);
    Duration::from_millis(tenths * 100)
}

/// The version of the installed iperf3.
pub(crate) fn version() -> Result<String, LabError> {
    let output = Command::new("iperf3").arg("--version").output();
    let output = output.map_err(|_| LabError::missing("iperf3", "apt-get install iperf3"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut words = text.split_whitespace().skip(1);
    Ok(words.next().unwrap_or("unknown").to_owned())
}

#[cfg(test)]
mod tests {
    use wakeai_scenario::Scenario;
    use wakeai_world::Span;

    use super::*;

    /// 1300 bytes in the last 1.5 s before the signal.
    const REPORT: &str = r#"{"start":{"version":"iperf 3.12"},"intervals":[
        {"streams":[],"sum":{"start":0,"end":0.5,"seconds":0.5,"bytes":0,"sender":false}},
        {"streams":[],"sum":{"start":0.5,"end":1.5,"seconds":1,"bytes":1000,"sender":false}},
        {"streams":[],"sum":{"start":1.5,"end":2.0,"seconds":0.5,"bytes":300,"sender":false}}],
        "end":{},"error":"interrupt - the client has terminated"}"#;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Counts a report whose last interval ends at `stopped`, in a run that begins at second 100 and takes
    /// `millis`. Returns the bytes of the run, those that count after the warmup, and the end of the first
    /// interval with bytes.
    fn counted(stopped: Instant, millis: u64, warmup: u64) -> (u64, u64, Option<Instant>) {
        let text = format!(
            "name = \"x\"\nduration = \"{millis}ms\"\nwarmup = \"{warmup}ms\"\n\
             access_point = {{ standard = \"802.11g\" }}\nstations = [{{ name = \"a\" }}]\n\
             flows = [{{ from = \"a\", to = \"server\" }}]\n"
        );
        let scenario = Scenario::parse(&text).unwrap();
        let flow = &scenario.expand(1).flows[0];
        let span = Span::new(at(100_000), &scenario);
        let mut meter = ReceiverMeter::new(span, flow, Duration::from_millis(1));
        let life = Life { spawned: at(99_000), stopped, ended: stopped };
        count(REPORT, &life, &mut meter).unwrap();
        let measured = meter.measured(flow, span.end);
        let ended = meter.progress().first().map(|(end, _)| *end);
        (measured.bytes.get(), measured.bytes_after_warmup.get(), ended)
    }

    #[test]
    fn the_last_interval_ends_at_the_signal() {
        assert_eq!(counted(at(102_000), 60_000, 0), (1300, 1300, Some(at(101_500))));
    }

    #[test]
    fn only_the_part_of_an_interval_inside_the_run_counts() {
        assert_eq!(counted(at(102_000), 60_000, 1_000).1, 500 + 300, "half of it is warmup");
        assert_eq!(counted(at(101_000), 60_000, 0).0, 500 + 300, "half of it was before the run");
        // The run ends at 100.001 s, and the interval of 1000 bytes covers a second around it.
        assert_eq!(counted(at(101_000), 1, 0), (1, 1, Some(at(100_001))));
    }

    #[test]
    fn a_socket_is_found_by_its_port_and_its_state() {
        let line =
            "   0: 0100490A:4E21 0100000A:1451 02 00000000:00000000 01:00000064 00000000 0 0";
        assert_eq!(Listed::of(line), Some(Listed { port: 20_001, state: 2 }));
        let v6 = "  12: 00000000000000000000000000000000:1451 00000000:0000 0A 00000000:00000000";
        assert_eq!(Listed::of(v6), Some(Listed { port: 5_201, state: LISTEN }));
        for other in ["", "  sl  local_address rem_address   st tx_queue", "0: x:zz y 0A", "0: x:1"]
        {
            assert_eq!(Listed::of(other), None, "{other}");
        }
    }

    #[test]
    fn long_runs_have_coarser_intervals() {
        assert_eq!(interval(Duration::from_secs(60)), Duration::from_millis(100));
        assert_eq!(interval(Duration::from_secs(600)), Duration::from_millis(600));
    }
}
