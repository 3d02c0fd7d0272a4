//! What a guest sends: messages one after another, each a kind (one byte), a length (four bytes, the lowest first) and
//! so many bytes.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use wakeai_lab::Lapse;
use wakeai_results::figures::DurationHistogram;
use wakeai_results::result::{
    ErrorCounts, FlowReservation, FrameCounts, Lateness, MeasuredFlow, Outcome,
};
use wakeai_scenario::Expanded;
use wakeai_units::{Bytes, Duration};

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    /// The run has reached this time.
    Reached(Duration),
    /// A note for the user.
    Note(String),
    /// Rows of the records ([`crate::rows`]).
    Rows(Vec<u8>),
    /// A file of the agents: its name and contents.
    File(String, Vec<u8>),
    /// The end of the task. It is the last message.
    End(Box<End>),
}

/// The end of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct End {
    /// The guest's clock since its start, nanoseconds.
    pub(crate) uptime_ns: u64,
    /// What was measured, or the failure.
    pub(crate) run: Result<Measured, Failed>,
}

/// Why the lab in the guest failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failed {
    pub(crate) message: String,
    pub(crate) status: u8,
}

/// An [`Outcome`] without what follows from the scenario and the seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    end_ns: u64,
    flows: Vec<MeasuredNumbers>,
    rtt: Vec<DurationHistogram>,
    errors: Option<ErrorCounts>,
    lateness: Option<Lateness>,
    packets_digest: Option<u64>,
    frames: Option<FrameCounts>,
    /// The bound that the run exceeded: [`lapse`].
    lapse: Option<[u64; 4]>,
}

impl PartialEq for Measured {
    fn eq(&self, other: &Self) -> bool {
        serde_json::to_value(self).ok() == serde_json::to_value(other).ok()
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct MeasuredNumbers {
    algorithm: Option<String>,
    bytes: u64,
    bytes_after_warmup: u64,
    bytes_in_second_half: u64,
    start_ns: u64,
    completion_ns: Option<u64>,
    retransmits: Option<u64>,
    timeouts: Option<u64>,
    avr: Option<f64>,
    reservation: Option<FlowReservation>,
}

/// The kinds of messages.
const REACHED: u8 = b'R';
const NOTE: u8 = b'N';
const ROWS: u8 = b'S';
const FILE: u8 = b'F';
const END: u8 = b'E';

/// The length of what comes before a message's bytes.
const HEAD: usize = 5;

impl Message {
    /// Writes the message.
    pub(crate) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        let (kind, body) = match self {
            Self::Reached(time) => (REACHED, time.as_nanos().to_le_bytes().to_vec()),
            Self::Note(text) => (NOTE, text.clone().into_bytes()),
            Self::Rows(rows) => return write(to, ROWS, rows),
            Self::File(name, contents) => (FILE, [name.as_bytes(), b"\0", contents].concat()),
            Self::End(end) => (END, serde_json::to_vec(end)?),
        };
        write(to, kind, &body)
    }

    /// The first message of `bytes` and its length, or `None` as long as it is not complete.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, String> {
        let Some((kind, rest)) = bytes.split_first() else { return Ok(None) };
        let Some((length, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let text = || String::from_utf8_lossy(body).into_owned();
        let message = match *kind {
            REACHED => {
                let nanos = body.try_into().map_err(|_| "a time has other than 8 bytes")?;
                Self::Reached(Duration::from_nanos(u64::from_le_bytes(nanos)))
            }
            NOTE => Self::Note(text()),
            ROWS => Self::Rows(body.to_vec()),
            FILE => {
                let at = body.iter().position(|byte| *byte == 0).ok_or("a file has no name")?;
                let name = String::from_utf8_lossy(&body[..at]).into_owned();
                Self::File(name, body[at + 1..].to_vec())
            }
            END => Self::End(serde_json::from_slice(body).map_err(|error| error.to_string())?),
            other => return Err(format!("there is no message of kind {other}")),
        };
        Ok(Some((message, HEAD + length)))
    }
}

fn write(to: &mut dyn Write, kind: u8, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    let mut message = Vec::with_capacity(HEAD + body.len());
    message.push(kind);
    message.extend(length.to_le_bytes());
    message.extend(body);
    to.write_all(&message)
}

impl Measured {
    /// What a run has measured, and the bound that it exceeded.
    pub(crate) fn of(outcome: Outcome, exceeded: Option<Lapse>) -> Self {
        let flows = outcome.flows.into_iter().map(|flow| MeasuredNumbers {
            algorithm: flow.algorithm,
            bytes: flow.bytes.get(),
            bytes_after_warmup: flow.bytes_after_warmup.get(),
            bytes_in_second_half: flow.bytes_in_second_half.get(),
            start_ns: flow.start.as_nanos(),
            completion_ns: flow.completion.map(Duration::as_nanos),
            retransmits: flow.retransmits,
            timeouts: flow.timeouts,
            avr: flow.avr,
            reservation: flow.reservation,
        });
        Self {
            end_ns: outcome.end.as_nanos(),
            flows: flows.collect(),
            rtt: outcome.rtt,
            errors: outcome.errors,
            lateness: outcome.lateness,
            packets_digest: outcome.packets_digest,
            frames: outcome.frames,
            lapse: exceeded.map(|lapse| match lapse {
                Lapse::Late { releases, p99, max, .. } => {
                    [0, releases, p99.as_nanos(), max.as_nanos()]
                }
                Lapse::Starved { p99, .. } => [1, 0, p99.as_nanos(), 0],
            }),
        }
    }

    /// The bound that the run exceeded, of these bounds on the 99th percentile and the largest value of the lateness,
    /// and on the waits.
    pub(crate) fn lapse(&self, bounds: [Duration; 3]) -> Option<Lapse> {
        let [allowed_p99, allowed_max, allowed] = bounds;
        self.lapse.map(|[kind, releases, p99, max]| {
            let (p99, max) = (Duration::from_nanos(p99), Duration::from_nanos(max));
            match kind {
                0 => Lapse::Late { releases, p99, max, allowed_p99, allowed_max },
                _ => Lapse::Starved { p99, allowed },
            }
        })
    }

    /// The outcome of a run with these stations and flows.
    pub(crate) fn outcome(self, expanded: Expanded) -> Result<Outcome, String> {
        let (sent, asked) = (self.flows.len(), expanded.flows.len());
        if sent != asked {
            return Err(format!("it has {sent} flows, and the scenario has {asked}"));
        }
        let flows = expanded.flows.iter().zip(self.flows).map(|(flow, sent)| MeasuredFlow {
            station: flow.station(),
            direction: flow.direction(),
            kind: flow.kind,
            algorithm: sent.algorithm,
            bytes: Bytes::new(sent.bytes),
            bytes_after_warmup: Bytes::new(sent.bytes_after_warmup),
            bytes_in_second_half: Bytes::new(sent.bytes_in_second_half),
            start: Duration::from_nanos(sent.start_ns),
            completion: sent.completion_ns.map(Duration::from_nanos),
            retransmits: sent.retransmits,
            timeouts: sent.timeouts,
            avr: sent.avr,
            simulated: None,
            reservation: sent.reservation,
        });
        Ok(Outcome {
            flows: flows.collect(),
            stations: expanded.stations,
            end: Duration::from_nanos(self.end_ns),
            rtt: self.rtt,
            errors: self.errors,
            lateness: self.lateness,
            packets_digest: self.packets_digest,
            frames: self.frames,
            drops: None,
            wall_s: None,
            field: None,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

    use wakeai_scenario::Scenario;

    use super::*;

    fn measured() -> (Expanded, Measured) {
        let text = "name = \"x\"\nduration = \"9s\"\naccess_point = { standard = \"802.11g\" }\n\
                    stations = [{ name = \"a\", count = 2 }]\nflows = [{ from = \"a\", to = \"server\" }]\n";
        let expanded = Scenario::parse(text).unwrap().expand(1);
        let flow = |index: usize| MeasuredFlow {
            station: index,
            direction: expanded.flows[index].direction(),
            kind: expanded.flows[index].kind,
            algorithm: Some("cubic".to_owned()),
            bytes: Bytes::new(1 << 40),
            bytes_after_warmup: Bytes::new(2),
            bytes_in_second_half: Bytes::new(1),
            start: Duration::from_nanos(7),
            completion: None,
            retransmits: Some(8),
            timeouts: Some(9),
            avr: Some(0.1),
            simulated: None,
            reservation: None,
        };
        let mut rtt = DurationHistogram::default();
        rtt.record(Duration::from_millis(30));
        rtt.record(Duration::from_millis(30));
        rtt.record(Duration::from_secs(2));
        let outcome = Outcome {
            stations: expanded.stations.clone(),
            end: Duration::from_secs(9),
            flows: vec![flow(0), flow(1)],
            rtt: vec![rtt],
            errors: Some(ErrorCounts { timeout: 3, ..ErrorCounts::default() }),
            lateness: None,
            packets_digest: Some(u64::MAX),
            frames: Some(FrameCounts { ppdus: 7, mpdus: 80 }),
            drops: None,
            wall_s: None,
            field: None,
        };
        let allowed_p99 = Duration::from_millis(1);
        let lapse = Lapse::Late {
            releases: 5,
            p99: Duration::from_millis(2),
            max: Duration::from_millis(3),
            allowed_p99,
            allowed_max: Duration::from_millis(20),
        };
        (expanded, Measured::of(outcome, Some(lapse)))
    }

    fn messages() -> Vec<Message> {
        let (_, measured) = measured();
        let failed = Failed { message: "iperf3 is missing".to_owned(), status: 77 };
        vec![
            Message::Reached(Duration::from_millis(500)),
            Message::Note("the machine is slow".to_owned()),
            Message::Rows(vec![1, 2, 3]),
            Message::File("tablet1.log".to_owned(), b"one\0two".to_vec()),
            Message::End(Box::new(End { uptime_ns: 3, run: Err(failed) })),
            Message::End(Box::new(End { uptime_ns: u64::MAX, run: Ok(measured) })),
        ]
    }

    #[test]
    fn messages_are_read_as_they_were_written_once_they_are_complete() {
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for message in messages() {
            message.write(&mut bytes).unwrap();
            ends.push(bytes.len());
        }
        let (mut read, mut at) = (Vec::new(), 0);
        for length in 0..=bytes.len() {
            while let Some((message, taken)) = Message::read(&bytes[at..length]).unwrap() {
                at += taken;
                assert_eq!(at, ends[read.len()]);
                read.push(message);
            }
        }
        assert_eq!(read, messages());
        assert!(Message::read(&[b'?', 0, 0, 0, 0]).is_err());
        assert!(Message::read(&[REACHED, 1, 0, 0, 0, 0]).is_err());
    }

    #[test]
    fn an_outcome_and_the_bound_that_it_exceeded_arrive() {
        let (expanded, measured) = measured();
        let bounds = [1, 20, 50].map(Duration::from_millis);
        let Some(Lapse::Late { releases: 5, allowed_max, .. }) = measured.lapse(bounds) else {
            panic!("{measured:?}")
        };
        assert_eq!(allowed_max, bounds[1]);
        let outcome = measured.clone().outcome(expanded.clone()).unwrap();
        assert_eq!((outcome.flows[1].station, outcome.flows[0].bytes.get()), (1, 1 << 40));
        assert_eq!(outcome.frames, Some(FrameCounts { ppdus: 7, mpdus: 80 }));
        let mut recorded = DurationHistogram::default();
        recorded.record(Duration::from_millis(30));
        assert_eq!(outcome.rtt[0].percentile(50.0), recorded.percentile(50.0));
        assert_eq!(outcome.rtt[0].count(), 3);
        let fewer = Expanded { flows: expanded.flows[1..].to_vec(), ..expanded };
        assert!(measured.outcome(fewer).unwrap_err().contains("2 flows"));
    }
}
