//! The result of an experiment: exactly the JSON that `wakeai sim` and `wakeai lab` print.
//!
//! A world fills a [`Measured`] per run; [`Run::new`] turns it into figures, so that both worlds
//! mean the same by them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};
use wakeai_connection::ErrorCode;
use wakeai_units::{Bytes, Duration, Rate};

use crate::expand::{Direction, Station};
use crate::experiment::{Experiment, FlowKind};
use crate::figures::{self, RttHistogram};
use crate::solo::StationDirection;

/// All runs of one scenario in one world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The scenario's name.
    pub scenario: String,
    /// `sim` or `lab`.
    pub world: String,
    /// The version of wakeai that made it.
    pub version: String,
    /// The seed of the first repeat.
    pub seed: u64,
    /// Ordered by condition as in the scenario, then by repeat.
    pub runs: Vec<Run>,
}

/// One run of one condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The condition's name.
    pub condition: String,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// The length of the run by its own clock, seconds.
    #[serde(serialize_with = "rounded")]
    pub simulated_s: f64,
    /// The real time that it took, seconds.
    #[serde(serialize_with = "rounded")]
    pub wall_s: f64,
    /// What applications received between warmup and end, over that time, Mbit/s.
    #[serde(serialize_with = "rounded")]
    pub total_goodput_mbps: f64,
    /// Jain's index over the stations' goodputs; null where nothing was received.
    #[serde(serialize_with = "rounded_or_null")]
    pub jain: Option<f64>,
    /// Jain's index over the shares goodput / max of solo goodput; null where a max is unknown or
    /// nothing was received.
    #[serde(serialize_with = "rounded_or_null")]
    pub capacity_normalised: Option<f64>,
    /// The mean share of solo goodput, goodput / max; null where a max is unknown.
    #[serde(serialize_with = "rounded_or_null")]
    pub mean_utilisation: Option<f64>,
    /// Round-trip times under load, pooled over senders.
    pub rtt_ms: RttMillis,
    /// Congestion events between warmup and end, by code.
    pub errors: ErrorCounts,
    /// Per station and direction.
    pub stations: Vec<StationResult>,
    /// Per group of stations, where there are several: see [`Run::with_groups`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupResult>,
    /// Per flow, in the order of [`Expanded::flows`](crate::Expanded::flows).
    pub flows: Vec<FlowResult>,
    /// The lateness of the lab's packet releases; the simulator has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Lateness>,
    /// Where packets were dropped; simulator only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drops: Option<Drops>,
}

/// Packets that were dropped in the whole run, by where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// The stations' host queues were full.
    pub hosts: u64,
    /// The access point's queue for the air was full.
    pub access_point: u64,
    /// The queue of the wired leg was full, towards the server.
    pub wired_up: u64,
    /// The queue of the wired leg was full, from the server.
    pub wired_down: u64,
    /// Given up on the air after the last retry.
    pub air: u64,
}

/// Percentiles of the round-trip time, milliseconds; null where none was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RttMillis {
    /// The median.
    #[serde(serialize_with = "rounded_or_null")]
    pub p50: Option<f64>,
    /// The 95th percentile.
    #[serde(serialize_with = "rounded_or_null")]
    pub p95: Option<f64>,
    /// The 99th percentile.
    #[serde(serialize_with = "rounded_or_null")]
    pub p99: Option<f64>,
}

/// Congestion events, by the codes of Matsuno et al., table 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCounts {
    /// Code 1: entered Disorder.
    pub reordering: u64,
    /// Code 2, a drop in the host's queue: entered CWR without ECN.
    pub local_overflow: u64,
    /// Code 3, fast recovery: entered Recovery.
    pub duplicate_ack: u64,
    /// Code 4: entered Loss.
    pub timeout: u64,
}

impl ErrorCounts {
    /// Counts one more.
    pub fn add(&mut self, code: ErrorCode) {
        *match code {
            ErrorCode::Reordering => &mut self.reordering,
            ErrorCode::LocalOverflow => &mut self.local_overflow,
            ErrorCode::DuplicateAck => &mut self.duplicate_ack,
            ErrorCode::Timeout => &mut self.timeout,
        } += 1;
    }
}

/// The goodput of one station in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StationResult {
    /// Its name.
    pub station: String,
    /// `up`, `down` or `peer`.
    pub direction: String,
    /// The sum of its flows' goodputs in that direction, Mbit/s.
    #[serde(serialize_with = "rounded")]
    pub goodput_mbps: f64,
    /// The goodput that it reaches alone in that direction, Mbit/s; null where unknown.
    #[serde(serialize_with = "rounded_or_null")]
    pub max_mbps: Option<f64>,
    /// Where `max_mbps` is from; null where it is.
    pub max_from: Option<MaxFrom>,
}

/// What one group of stations reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupResult {
    /// Its name.
    pub group: String,
    /// The sum of its flows' goodputs, Mbit/s.
    #[serde(serialize_with = "rounded")]
    pub goodput_mbps: f64,
    /// Jain's index over its stations' goodputs; null where nothing was received.
    #[serde(serialize_with = "rounded_or_null")]
    pub jain: Option<f64>,
    /// Round-trip times under load, pooled over the senders of its flows.
    pub rtt_ms: RttMillis,
}

/// Where a maximum is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MaxFrom {
    /// A run of that station alone.
    Solo,
    /// The scenario.
    Given,
}

/// The figures of one flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// The station that it belongs to.
    pub station: String,
    /// `up`, `down` or `peer`.
    pub direction: String,
    /// `tcp` or `udp`.
    pub kind: String,
    /// The congestion control that it ran; null for UDP.
    pub algorithm: Option<String>,
    /// Bytes that the receiving application got in all.
    pub bytes: u64,
    /// What it got between warmup (or its start) and its end, over that time, Mbit/s.
    #[serde(serialize_with = "rounded")]
    pub goodput_mbps: f64,
    /// From its own start until the receiving application had the last byte, seconds; null where it
    /// did not finish.
    #[serde(serialize_with = "rounded_or_null")]
    pub completion_s: Option<f64>,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Share of 5 s windows at or above its target; null without a target.
    #[serde(serialize_with = "rounded_or_null")]
    pub avr: Option<f64>,
    /// Figures that only the simulator has; TCP only.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<SimulatedFlow>,
    /// The outcome of its `reserve`; left out where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<FlowReservation>,
}

/// Figures of a TCP flow that only the simulator has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SimulatedFlow {
    /// SYNs that went unanswered for too long; they are not among the timeouts.
    pub syn_timeouts: u64,
    /// The time that they cost, seconds.
    #[serde(serialize_with = "rounded")]
    pub syn_wait_s: f64,
    /// The longest time between two arrivals of new data, from the flow's start to its end, seconds.
    #[serde(serialize_with = "rounded")]
    pub longest_stall_s: f64,
}

/// The outcome of a flow's request to leave a rate free.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowReservation {
    /// `admitted` if it ever was; else the last state.
    #[serde(rename = "standing")]
    pub outcome: ReservationOutcome,
    /// The share of airtime of all reservations of its station; null where unknown.
    #[serde(serialize_with = "rounded_or_null")]
    pub share: Option<f64>,
    /// Where it was refused: the share of the earlier requests.
    #[serde(serialize_with = "rounded_or_null")]
    pub taken: Option<f64>,
    /// Where it was refused: the most that may be reserved in all.
    #[serde(serialize_with = "rounded_or_null")]
    pub limit: Option<f64>,
    /// How long it was admitted, seconds.
    #[serde(serialize_with = "rounded")]
    pub admitted_s: f64,
}

/// The outcome of a reservation in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReservationOutcome {
    /// The peers left it free.
    Admitted,
    /// It did not fit.
    Refused,
    /// The solo goodput of its station is not known.
    Unmeasured,
    /// Its station sent nothing.
    Waiting,
    /// Its sender runs no agent in this condition.
    NoAgent,
}

impl FlowReservation {
    /// The outcome of a flow without an admitted reservation.
    pub fn without(outcome: ReservationOutcome) -> Self {
        Self { outcome, share: None, taken: None, limit: None, admitted_s: 0.0 }
    }

    /// In words.
    pub fn words(&self) -> String {
        let percent = |share: Option<f64>| {
            share.map_or("an unknown part".to_owned(), |share| format!("{:.1} %", share * 100.0))
        };
        match self.outcome {
            ReservationOutcome::Admitted => {
                format!("{} of the air for {:.0} s", percent(self.share), self.admitted_s)
            }
            ReservationOutcome::Refused => format!(
                "refused: {} asked, {} taken, {} in all",
                percent(self.share),
                percent(self.taken),
                percent(self.limit)
            ),
            ReservationOutcome::Unmeasured => "refused: neither max nor PHY rate known".to_owned(),
            ReservationOutcome::Waiting => "nothing was sent".to_owned(),
            ReservationOutcome::NoAgent => "not asked for: no agent".to_owned(),
        }
    }
}

/// The lateness of the lab's packet releases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Releases counted.
    pub releases: u64,
    /// Median, milliseconds.
    #[serde(serialize_with = "rounded")]
    pub p50_ms: f64,
    /// 99th percentile, milliseconds.
    #[serde(serialize_with = "rounded")]
    pub p99_ms: f64,
    /// The worst, milliseconds.
    #[serde(serialize_with = "rounded")]
    pub max_ms: f64,
    /// Whether the run kept the lab's bound.
    pub faithful: bool,
    /// How long the lab's ordinary processes waited for a processor, 99th percentile, milliseconds:
    /// agents and proxies that wait decide late. 0 in reports that do not have it.
    #[serde(default, serialize_with = "rounded")]
    pub waits_p99_ms: f64,
}

/// The goodput that a station reaches alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Max {
    /// Mbit/s.
    pub mbps: f64,
    /// Where it is from.
    pub from: MaxFrom,
}

/// The measurements of one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredFlow {
    /// Index of the station that it counts for.
    pub station: usize,
    /// Which way it went.
    pub direction: Direction,
    /// TCP or UDP.
    pub kind: FlowKind,
    /// The congestion control that it ran.
    pub algorithm: Option<String>,
    /// Bytes that the receiving application got in all.
    pub bytes: Bytes,
    /// Bytes that it got between warmup and the run's end.
    pub bytes_after_warmup: Bytes,
    /// When it started, from the start of the run.
    pub start: Duration,
    /// From its start to its last byte in the receiving application's hands, if it finished.
    pub completion: Option<Duration>,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// [`figures::AvrMeter::finish`], where it had a target.
    pub avr: Option<f64>,
    /// Figures that only the simulator has.
    pub simulated: Option<SimulatedFlow>,
    /// The outcome of its `reserve`, where it has one.
    pub reservation: Option<FlowReservation>,
}

/// The measurements of one run.
#[derive(Clone, Debug)]
pub struct Measured<'a> {
    /// The condition's name.
    pub condition: &'a str,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// What is left out of the figures, from the start.
    pub warmup: Duration,
    /// The end of the run: the scenario's duration, or the last completion if all flows are
    /// sized and done.
    pub end: Duration,
    /// The real time that it took, seconds.
    pub wall_s: f64,
    /// The stations of the run.
    pub stations: &'a [Station],
    /// Its flows, in the order of [`Expanded::flows`](crate::Expanded::flows).
    pub flows: &'a [MeasuredFlow],
    /// The latest RTT, one sample per millisecond and socket, after warmup.
    pub rtt: &'a RttHistogram,
    /// Error events after warmup.
    pub errors: ErrorCounts,
    /// The solo goodput of each station, in each direction.
    pub maxima: &'a BTreeMap<StationDirection, Max>,
    /// The lab's lateness.
    pub lateness: Option<Lateness>,
    /// The simulator's drops.
    pub drops: Option<Drops>,
}

impl Run {
    /// The figures of one run.
    pub fn new(measured: &Measured<'_>) -> Self {
        let window = measured.end.saturating_sub(measured.warmup);
        let received = measured.flows.iter().map(|flow| flow.bytes_after_warmup).sum();
        let mut goodputs = BTreeMap::<StationDirection, f64>::new();
        for flow in measured.flows {
            let key = StationDirection { station: flow.station, direction: flow.direction };
            *goodputs.entry(key).or_default() += flow_goodput_mbps(flow, measured);
        }
        let (per_station, ratios) = per_station(&goodputs, measured.maxima);
        let ratios = ratios.as_deref();
        Self {
            condition: measured.condition.to_owned(),
            repeat: measured.repeat,
            simulated_s: measured.end.as_secs_f64(),
            wall_s: measured.wall_s,
            total_goodput_mbps: Rate::of(received, window).as_mbps_f64(),
            jain: figures::jain(&per_station),
            capacity_normalised: ratios.and_then(figures::jain),
            mean_utilisation: ratios.and_then(figures::mean),
            rtt_ms: RttMillis::of(measured.rtt),
            errors: measured.errors,
            stations: goodputs
                .iter()
                .map(|(key, goodput)| station_result(*key, *goodput, measured))
                .collect(),
            groups: Vec::new(),
            flows: measured.flows.iter().map(|flow| flow_result(flow, measured)).collect(),
            lateness: measured.lateness,
            drops: measured.drops,
        }
    }

    /// The same with figures for each group of `experiment`, where it has several. `rtt` has the
    /// round-trip times of each group's flows, in the order of [`Experiment::stations`].
    pub fn with_groups(mut self, experiment: &Experiment, rtt: &[RttHistogram]) -> Self {
        if experiment.stations.len() < 2 {
            return self;
        }
        let mut goodputs = BTreeMap::<&str, f64>::new();
        for result in &self.stations {
            *goodputs.entry(&result.station).or_default() += result.goodput_mbps;
        }
        let groups = experiment.stations.iter().zip(rtt).map(|(group, rtt)| {
            let names = (1..=group.count).map(|number| group.station_name(number));
            let own: Vec<f64> =
                names.filter_map(|name| goodputs.get(name.as_str()).copied()).collect();
            GroupResult {
                group: group.name.clone(),
                goodput_mbps: own.iter().sum(),
                jain: figures::jain(&own),
                rtt_ms: RttMillis::of(rtt),
            }
        });
        self.groups = groups.collect();
        self
    }
}

impl RttMillis {
    /// The percentiles of `histogram`.
    pub fn of(histogram: &RttHistogram) -> Self {
        let percentile = |percent| histogram.percentile(percent).map(Duration::as_millis_f64);
        Self { p50: percentile(50.0), p95: percentile(95.0), p99: percentile(99.0) }
    }
}

/// Per station the sum of its goodputs, and the sum of goodput / max over the directions;
/// `None` for the latter where a max is unknown or zero.
fn per_station(
    goodputs: &BTreeMap<StationDirection, f64>,
    maxima: &BTreeMap<StationDirection, Max>,
) -> (Vec<f64>, Option<Vec<f64>>) {
    let mut sums = BTreeMap::<usize, (f64, Option<f64>)>::new();
    for (key, goodput) in goodputs {
        let max = maxima.get(key).map(|max| max.mbps).filter(|mbps| *mbps > 0.0);
        let (sum, ratio) = sums.entry(key.station).or_insert((0.0, Some(0.0)));
        *sum += goodput;
        *ratio = ratio.zip(max).map(|(ratio, max)| ratio + goodput / max);
    }
    (sums.values().map(|(sum, _)| *sum).collect(), sums.values().map(|(_, r)| *r).collect())
}

fn flow_goodput_mbps(flow: &MeasuredFlow, measured: &Measured<'_>) -> f64 {
    let from = flow.start.max(measured.warmup);
    let end = flow.completion.map_or(measured.end, |took| flow.start + took).min(measured.end);
    Rate::of(flow.bytes_after_warmup, end.saturating_sub(from)).as_mbps_f64()
}

fn station_result(key: StationDirection, goodput: f64, measured: &Measured<'_>) -> StationResult {
    let max = measured.maxima.get(&key);
    StationResult {
        station: measured.stations[key.station].name.clone(),
        direction: key.direction.name().to_owned(),
        goodput_mbps: goodput,
        max_mbps: max.map(|max| max.mbps),
        max_from: max.map(|max| max.from),
    }
}

fn flow_result(flow: &MeasuredFlow, measured: &Measured<'_>) -> FlowResult {
    FlowResult {
        station: measured.stations[flow.station].name.clone(),
        direction: flow.direction.name().to_owned(),
        kind: flow.kind.name().to_owned(),
        algorithm: flow.algorithm.clone(),
        bytes: flow.bytes.get(),
        goodput_mbps: flow_goodput_mbps(flow, measured),
        completion_s: flow.completion.map(Duration::as_secs_f64),
        retransmits: flow.retransmits,
        timeouts: flow.timeouts,
        avr: flow.avr,
        simulated: flow.simulated,
        reservation: flow.reservation,
    }
}

/// Six decimals: bits per second, microseconds, millionths.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn rounded<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 1e6).round() / 1e6)
}

#[expect(clippy::ref_option, reason = "the signature that serde calls")]
fn rounded_or_null<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => rounded(value, serializer),
        None => serializer.serialize_none(),
    }
}

impl Report {
    /// The report as one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings, numbers and lists of them")
    }
}
