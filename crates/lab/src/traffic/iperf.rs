//! Endless TCP flows and UDP flows, which iperf3 carries.
//!
//! The client runs at the data's *receiver* (`-R`), because a receiving client counts the bytes
//! that its application received, in short intervals. At the end of the run the clients get
//! SIGTERM. iperf3 then prints its counts without a handshake over the loaded air. Its last
//! interval ends at the time of the signal, which tells when each interval was on the lab's clock.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

use serde::Deserialize;
use wakeai_host::Lease;
use wakeai_units::{Duration, Instant};
use wakeai_world::ReceiverMeter;

use super::{FlowPlan, Kind};
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
    // A line of these files has the local address and port in hexadecimal, the remote address and
    // port, and the state, of which 0A is LISTEN (proc_net_tcp(5)). The files below the process's
    // directory are those of its namespace.
    let suffix = format!(":{port:04X}");
    let tables = ["tcp", "tcp6"].map(|table| format!("/proc/{}/net/{table}", child.id()));
    tables.iter().filter_map(|path| fs::read_to_string(path).ok()).any(|table| {
        table.lines().any(|line| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            fields.next().is_some_and(|local| local.ends_with(&suffix))
                && fields.nth(1) == Some("0A")
        })
    })
}

/// The receiving side of one flow.
#[derive(Debug)]
pub(crate) struct Receiver {
    child: Child,
    output: JoinHandle<String>,
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
        if let Kind::Udp(rate) = plan.kind {
            let rate = rate.bits_per_second().to_string();
            command.args(["--udp", "--length", DATAGRAM_BYTES, "--bitrate", &rate]);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = Child::spawn(&mut command, host, lease)?;
        let stdout = child.take_stdout();
        // The output is read at once, because the JSON is longer than a pipe's buffer.
        let output = std::thread::spawn(move || {
            let mut text = String::new();
            if let Some(mut stdout) = stdout {
                let _ = stdout.read_to_string(&mut text);
            }
            text
        });
        Ok(Self { child, output })
    }

    /// Whether the client still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The error of a client that ended during the run.
    pub(crate) fn ended_early(self, lease: &Lease) -> LabError {
        let station = self.child.station.clone();
        if let Err(error) = self.child.end(lease) {
            return error;
        }
        let text = self.output.join().unwrap_or_default();
        let reason = match serde_json::from_str::<Report>(&text) {
            Ok(Report { error: Some(error), .. }) => error,
            _ => "it ended during the run".to_owned(),
        };
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
        let report: Report = serde_json::from_str(&text).map_err(|error| {
            let reason = format!("its JSON cannot be read ({error}): {text:.300}");
            LabError::child("iperf3", &station, reason)
        })?;
        // The report has no intervals if the station got so little air that its connections were
        // not set up.
        report.count(stopped, meter);
        Ok(())
    }
}

/// The length of an interval: the shortest that iperf3 has (100 ms), or more in long runs.
fn interval(run_length: Duration) -> Duration {
    let tenths = (run_length.as_millis() / MAX_INTERVALS).div_ceil(100).max(1);
    Duration::from_millis(tenths * 100)
}

/// The parts of iperf3's JSON that the lab uses.
#[derive(Debug, Deserialize)]
struct Report {
    #[serde(default)]
    intervals: Vec<Interval>,
    error: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Interval {
    sum: Sum,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Sum {
    /// Seconds from the start of the test.
    start: f64,
    end: f64,
    bytes: u64,
}

impl Report {
    /// Counts all intervals; the last one ends at `stopped`.
    fn count(&self, stopped: Instant, meter: &mut ReceiverMeter) {
        let length = self.intervals.last().map_or(0.0, |last| last.sum.end);
        let before_stop = |at_s: f64| Duration::from_nanos(((length - at_s).max(0.0) * 1e9) as u64);
        for sum in self.intervals.iter().map(|interval| interval.sum) {
            let (from, to) = (before_stop(sum.start), before_stop(sum.end));
            meter.on_received_between(stopped - from, stopped - to, sum.bytes);
        }
    }
}

/// The version of the installed iperf3.
pub(crate) fn version() -> Result<String, LabError> {
    let output = Command::new("iperf3").arg("--version").output().map_err(|_| {
        LabError::Missing { what: "iperf3".to_owned(), remedy: "apt-get install iperf3".to_owned() }
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut words = text.split_whitespace().skip(1);
    Ok(words.next().unwrap_or("unknown").to_owned())
}

#[cfg(test)]
mod tests {
    use wakeai_scenario::Scenario;
    use wakeai_world::Span;

    use super::*;

    fn report() -> Report {
        let text = r#"{"start":{"version":"iperf 3.12"},"intervals":[
            {"streams":[],"sum":{"start":0,"end":0.5,"seconds":0.5,"bytes":0,"sender":false}},
            {"streams":[],"sum":{"start":0.5,"end":1.5,"seconds":1,"bytes":1000,"sender":false}},
            {"streams":[],"sum":{"start":1.5,"end":2.0,"seconds":0.5,"bytes":300,"sender":false}}],
            "end":{},"error":"interrupt - the client has terminated"}"#;
        serde_json::from_str(text).unwrap()
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Counts a report of 1300 bytes whose last interval ends at second `stopped`, in a run that
    /// begins at second 100. Returns the bytes that count after `warmup` seconds, and the arrival
    /// of the first bytes.
    fn counted(stopped: u64, warmup: u64) -> (u64, Option<Instant>) {
        let text = format!(
            "name = \"x\"\nduration = \"60s\"\nwarmup = \"{warmup}s\"\n\
             access_point = {{ standard = \"802.11g\" }}\nstations = [{{ name = \"a\" }}]\n\
             flows = [{{ from = \"a\", to = \"server\" }}]\n"
        );
        let scenario = Scenario::parse(&text).unwrap();
        let flow = &scenario.expand(1).flows[0];
        let span = Span::new(at(100), &scenario);
        let mut meter = ReceiverMeter::new(span, flow, Duration::ZERO);
        report().count(at(stopped), &mut meter);
        let measured = meter.measured(flow, span.end);
        assert_eq!(measured.bytes.get(), 1300);
        (measured.bytes_after_warmup.get(), meter.first())
    }

    #[test]
    fn the_last_interval_ends_at_the_signal() {
        let first = at(100) + Duration::from_millis(500);
        assert_eq!(counted(102, 0), (1300, Some(first)));
    }

    #[test]
    fn only_the_part_of_an_interval_inside_the_run_counts() {
        assert_eq!(counted(102, 1).0, 500 + 300, "half of the second interval is warmup");
        assert_eq!(counted(101, 0).0, 500 + 300, "half of the first interval was before the run");
    }

    #[test]
    fn long_runs_have_coarser_intervals() {
        assert_eq!(interval(Duration::from_secs(60)), Duration::from_millis(100));
        assert_eq!(interval(Duration::from_secs(600)), Duration::from_millis(600));
    }
}
