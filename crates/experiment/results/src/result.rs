//! The result of an experiment, which `wakeai sim` and `wakeai lab` print as JSON.
//!
//! The simulator or the lab (a "world") fills an [`Outcome`] for each run. [`Run::new`] computes
//! the figures from it, so that they mean the same in both worlds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wakeai_connection::ErrorCode;
use wakeai_units::{Bytes, Duration, Rate};

pub use crate::field::{FieldRun, FieldStation, RadioMeans, RadioReading};
use crate::figures::{self, DurationHistogram};
use wakeai_scenario::{
    Direction, Experiment, FlowKind, ResolvedCondition, Station, StationDirection, first_flows,
};

/// All runs of one scenario in one world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The scenario's name.
    pub scenario: String,
    /// `sim`, `lab` or `field`.
    pub world: String,
    /// The version of Wakeai that wrote the report.
    pub version: String,
    /// The seed of the first repeat.
    pub seed: u64,
    /// The guests in which the lab made the runs; absent for runs on the machine itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestMachine>,
    /// The runs, ordered by condition as in the scenario, then by repeat.
    pub runs: Vec<Run>,
    /// The run that failed. `runs` has only runs before it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedRun>,
}

/// The guests of a lab that ran on another kernel, each an emulated machine. Runs with the same seed are the same
/// only where all of this is equal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestMachine {
    /// The kernel's release (`uname -r`).
    pub kernel: String,
    /// The digest of the kernel's image, BLAKE3 in hexadecimal.
    pub kernel_digest: String,
    /// The digest of the guest's file system with all programs and modules, without the task; BLAKE3 in hexadecimal.
    pub image_digest: String,
    /// The emulator and its version.
    pub emulator: String,
    /// The guest's clock.
    pub clock: String,
    /// The guest's memory in MB (2^20 bytes).
    pub memory_mb: u32,
}

/// The run of a command that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRun {
    /// The condition and the number of the repeat from 1, or that it is a run of one station alone.
    pub run: String,
    /// The reason.
    pub reason: String,
    /// The number of runs of conditions that the command should have made.
    pub asked: u64,
}

/// One run of one condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The condition's name.
    pub condition: String,
    /// The number of the repeat, from 0.
    pub repeat: u32,
    /// The length of the run in seconds of simulated time; in the lab, of real time.
    pub simulated_s: f64,
    /// The real time that the run took, seconds.
    pub wall_s: f64,
    /// The aggregate goodput, Mbit/s: the bytes that applications received after the warmup,
    /// divided by the time from the warmup to the end.
    pub total_goodput_mbps: f64,
    /// Jain's index over the stations' goodputs; null if nothing was received.
    pub jain: Option<f64>,
    /// The capacity-normalised index: Jain's index over each station's goodput divided by its solo
    /// goodput; null if a solo goodput is unknown or nothing was received.
    pub capacity_normalised: Option<f64>,
    /// The mean of goodput divided by solo goodput; null if a solo goodput is unknown.
    pub mean_utilisation: Option<f64>,
    /// Round-trip times under load, pooled over senders.
    pub rtt_ms: RttMillis,
    /// Congestion events between warmup and end, by code. `None` where the kernel of a sender was not monitored: each code is
    /// null in the JSON then.
    #[serde(with = "crate::unknown_errors")]
    pub errors: Option<ErrorCounts>,
    /// The figures of each station and direction.
    pub stations: Vec<StationResult>,
    /// The figures of each group of stations, if there are several groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupResult>,
    /// The figures of each flow, in the order of [`Expanded::flows`](crate::Expanded::flows).
    pub flows: Vec<FlowResult>,
    /// The time by which packets were delivered too late. Only the lab measures it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Lateness>,
    /// A digest of the release time and the bytes of each packet that the emulated radio and wire delivered, in
    /// hexadecimal. It is equal for two runs whose packets were the same at the same nanosecond. Only the lab in a guest
    /// has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_digest: Option<String>,
    /// What was sent by radio. The field does not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<FrameCounts>,
    /// The number of dropped packets at each place. Only the simulator counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drops: Option<Drops>,
    /// What the machines of the run did. Only the field has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<FieldRun>,
}

/// The unicast data that stations and access points sent by radio in the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameCounts {
    /// Transmissions (PPDUs). An aggregate (A-MPDU) is one.
    pub ppdus: u64,
    /// The frames (MPDUs) in them, retries included.
    pub mpdus: u64,
}

/// The numbers of packets that were dropped in the whole run, by place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// Dropped at a full host queue of a station.
    pub hosts: u64,
    /// Dropped at the access point's full queue for the air.
    pub access_point: u64,
    /// Dropped at the full queue of the wired leg, or lost there, towards the server.
    pub wired_up: u64,
    /// Dropped at the full queue of the wired leg, or lost there, from the server.
    pub wired_down: u64,
    /// Dropped by a sender on the air after the last retry.
    pub air: u64,
}

/// Percentiles of the round-trip time, milliseconds; null without a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RttMillis {
    /// The median.
    pub p50: Option<f64>,
    /// The 95th percentile.
    pub p95: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
}

/// Congestion events, by the codes of Matsuno et al., table 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCounts {
    /// Code 1: the sender entered the state Disorder.
    pub reordering: u64,
    /// Code 2, a drop in the host's queue: the sender entered the state CWR without ECN.
    pub local_overflow: u64,
    /// Code 3, fast recovery: the sender entered the state Recovery.
    pub duplicate_ack: u64,
    /// Code 4: the sender entered the state Loss.
    pub timeout: u64,
}

impl ErrorCounts {
    /// Counts one event.
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
    /// The station's name.
    pub station: String,
    /// `up`, `down` or `peer`.
    pub direction: String,
    /// The sum of the goodputs of the station's flows in that direction, Mbit/s.
    pub goodput_mbps: f64,
    /// The goodput that the station reaches alone in that direction, Mbit/s; null if unknown.
    pub max_mbps: Option<f64>,
    /// The source of `max_mbps`; null if that is null.
    pub max_from: Option<MaxFrom>,
}

/// The figures of one group of stations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupResult {
    /// The group's name.
    pub group: String,
    /// The sum of the goodputs of the group's flows, Mbit/s.
    pub goodput_mbps: f64,
    /// Jain's index over the goodputs of the group's stations; null where nothing was received.
    pub jain: Option<f64>,
    /// Round-trip times under load, pooled over the senders of the group's flows.
    pub rtt_ms: RttMillis,
}

/// The source of a station's solo goodput.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum MaxFrom {
    /// A run of that station alone, which measured it.
    Solo,
    /// The scenario, which states it.
    Given,
}

/// The figures of one flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// The name of the station to which the flow belongs.
    pub station: String,
    /// `up`, `down` or `peer`.
    pub direction: String,
    /// `tcp` or `udp`.
    pub kind: String,
    /// The congestion control that the flow ran; null for UDP.
    pub algorithm: Option<String>,
    /// The number of bytes that the receiving application got in the whole run.
    pub bytes: u64,
    /// The goodput, Mbit/s, from the end of the warmup (or from the flow's start, if it is later)
    /// to the flow's end.
    pub goodput_mbps: f64,
    /// The time from the flow's start until the receiving application had the last byte, seconds;
    /// null if the flow did not complete.
    pub completion_s: Option<f64>,
    /// The number of segments that were sent again; null if unknown.
    pub retransmits: Option<u64>,
    /// The number of retransmission timeouts; null if unknown.
    pub timeouts: Option<u64>,
    /// The achievement ratio (AVR): the share of 5 s windows in which the flow reached its
    /// target; null without a target.
    pub avr: Option<f64>,
    /// Figures of a TCP flow that only the simulator has.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<SimulatedFlow>,
    /// The outcome of the flow's `reserve`; absent without that key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<FlowReservation>,
}

/// Figures of a TCP flow that only the simulator has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SimulatedFlow {
    /// The number of timeouts of a SYN, which opens a connection. They are not among the
    /// retransmission timeouts.
    pub syn_timeouts: u64,
    /// The time spent waiting for the timeouts of SYNs, seconds; also where no SYN was answered.
    pub syn_wait_s: f64,
    /// The longest time between two arrivals of new data, from the flow's start to its end, seconds.
    pub longest_stall_s: f64,
}

/// The outcome of a flow's request to leave a rate free.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowReservation {
    /// `admitted` if the request was admitted at any time; otherwise the last state.
    #[serde(rename = "standing")]
    pub outcome: ReservationOutcome,
    /// The share of airtime of all reservations of the station; null if unknown, or larger than
    /// [`FlowReservation::LARGEST_SHARE`].
    pub share: Option<f64>,
    /// The share of airtime of the earlier requests, if this request was refused; null if larger than
    /// [`FlowReservation::LARGEST_SHARE`].
    pub taken: Option<f64>,
    /// The largest share of airtime of all reservations together, if this request was refused.
    pub limit: Option<f64>,
    /// The time for which the reservation was admitted, seconds.
    pub admitted_s: f64,
}

/// The outcome of a reservation in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum ReservationOutcome {
    /// The peers left the rate free.
    Admitted,
    /// The reservation did not fit beside the earlier ones.
    Refused,
    /// Neither the solo goodput nor the PHY rate of the station is known.
    Unmeasured,
    /// The station sent nothing.
    Waiting,
    /// The sender runs no agent in this condition.
    NoAgent,
}

impl FlowReservation {
    /// The largest share that a station can announce. It is more than 4294 times the air.
    pub const LARGEST_SHARE: f64 = 4_294.967_294;

    /// The outcome of a flow without an admitted reservation.
    pub fn without(outcome: ReservationOutcome) -> Self {
        Self { outcome, share: None, taken: None, limit: None, admitted_s: 0.0 }
    }

    /// A description for the table.
    pub fn words(&self) -> String {
        let percent = |share: Option<f64>| {
            let too_large = || format!("over {:.0} %", Self::LARGEST_SHARE * 100.0);
            share.map_or_else(too_large, |share| format!("{:.1} %", share * 100.0))
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

/// The lateness of the lab: the time by which packets were delivered too late.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// The number of packets that were counted.
    pub releases: u64,
    /// The median, milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile, milliseconds.
    pub p99_ms: f64,
    /// The largest lateness, milliseconds.
    pub max_ms: f64,
    /// Whether the run kept the lab's bounds on the lateness.
    pub faithful: bool,
    /// The 99th percentile of the time for which the lab's ordinary processes waited for a
    /// processor, milliseconds. Agents and proxies that wait decide too late. It is 0 in older
    /// reports, which do not have this figure.
    #[serde(default)]
    pub waits_p99_ms: f64,
}

/// The goodput that a station reaches alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Max {
    /// The goodput in Mbit/s.
    pub mbps: f64,
    /// The source of the figure.
    pub from: MaxFrom,
}

/// The solo goodputs that the scenario states.
pub fn given_maxima(condition: &ResolvedCondition) -> BTreeMap<StationDirection, Max> {
    let experiment = &condition.experiment;
    let stations = experiment.expand_stations();
    let given = first_flows(experiment).into_keys().filter_map(|key| {
        let rate = experiment.stations[stations[key.station].group].max?;
        Some((key, Max { mbps: rate.as_mbps_f64(), from: MaxFrom::Given }))
    });
    given.collect()
}

/// The measurements of one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredFlow {
    /// The index of the station to which the flow belongs.
    pub station: usize,
    /// The direction of the flow.
    pub direction: Direction,
    /// TCP or UDP.
    pub kind: FlowKind,
    /// The congestion control that the flow ran.
    pub algorithm: Option<String>,
    /// The number of bytes that the receiving application got in the whole run.
    pub bytes: Bytes,
    /// The number of bytes that the receiving application got between the warmup and the run's end.
    pub bytes_after_warmup: Bytes,
    /// The part of `bytes_after_warmup` that came in the second half of the time from the warmup to the
    /// scenario's duration.
    pub bytes_in_second_half: Bytes,
    /// The time from the start of the run to the start of the flow.
    pub start: Duration,
    /// The time from the flow's start until the receiving application had the last byte, if the
    /// flow completed.
    pub completion: Option<Duration>,
    /// The number of segments that were sent again, if it is known.
    pub retransmits: Option<u64>,
    /// The number of retransmission timeouts, if it is known.
    pub timeouts: Option<u64>,
    /// The result of [`figures::AvrMeter::finish`], if the flow has a target.
    pub avr: Option<f64>,
    /// Figures that only the simulator has.
    pub simulated: Option<SimulatedFlow>,
    /// The outcome of the flow's `reserve`, if it has that key.
    pub reservation: Option<FlowReservation>,
}

/// The measurements of one run.
#[derive(Debug)]
pub struct Outcome {
    /// The stations.
    pub stations: Vec<Station>,
    /// The end of the run: the scenario's duration, or the last completion if all flows have a size
    /// and have completed.
    pub end: Duration,
    /// The flows, in the order of [`Expanded::flows`](crate::Expanded::flows).
    pub flows: Vec<MeasuredFlow>,
    /// The samples of the round-trip time after the warmup, at most one per millisecond and socket, by group of
    /// stations.
    pub rtt: Vec<DurationHistogram>,
    /// The congestion events after the warmup; `None` where the kernel of a sender was not monitored.
    pub errors: Option<ErrorCounts>,
    /// The time by which packets were delivered too late. Only the lab measures it.
    pub lateness: Option<Lateness>,
    /// The digest of the packets ([`Run::packets_digest`]). Only the lab in a guest makes one.
    pub packets_digest: Option<u64>,
    /// What was sent by radio. The field does not know it.
    pub frames: Option<FrameCounts>,
    /// The number of dropped packets at each place. Only the simulator counts them.
    pub drops: Option<Drops>,
    /// The real time that the run took, seconds, where it was made before.
    pub wall_s: Option<f64>,
    /// What the machines of the run did. Only the field has it.
    pub field: Option<FieldRun>,
}

impl Run {
    /// Whether the run counts for the figures of its condition. In the field one does not in which a machine failed.
    pub fn counts(&self) -> bool {
        self.field.as_ref().is_none_or(|field| field.counts)
    }

    /// The figures of one run of `condition`, which took `wall_s` seconds of real time. `maxima` has the solo goodput
    /// of each station, in each direction.
    pub fn new(
        condition: &ResolvedCondition,
        repeat: u32,
        wall_s: f64,
        maxima: &BTreeMap<StationDirection, Max>,
        outcome: &Outcome,
    ) -> Self {
        let experiment = &*condition.experiment;
        let warmup = experiment.warmup;
        let result = |flow: &MeasuredFlow| flow.result(warmup, outcome);
        let flows: Vec<FlowResult> = outcome.flows.iter().map(result).collect();
        let mut goodputs = BTreeMap::<StationDirection, f64>::new();
        for (flow, result) in outcome.flows.iter().zip(&flows) {
            let key = StationDirection { station: flow.station, direction: flow.direction };
            *goodputs.entry(key).or_default() += result.goodput_mbps;
        }
        let (per_station, ratios) = per_station(&goodputs, maxima);
        let ratios = ratios.as_deref();
        let received = outcome.flows.iter().map(|flow| flow.bytes_after_warmup.get());
        let received = Bytes::new(received.fold(0, u64::saturating_add));
        let stations = goodputs.into_iter().map(|(key, goodput_mbps)| StationResult {
            station: outcome.stations[key.station].name.clone(),
            direction: key.direction.to_string(),
            goodput_mbps,
            max_mbps: maxima.get(&key).map(|max| max.mbps),
            max_from: maxima.get(&key).map(|max| max.from),
        });
        let stations: Vec<StationResult> = stations.collect();
        Self {
            condition: condition.name().to_owned(),
            repeat,
            simulated_s: outcome.end.as_secs_f64(),
            wall_s: outcome.wall_s.unwrap_or(wall_s),
            total_goodput_mbps: Rate::of(received, outcome.end.saturating_sub(warmup))
                .as_mbps_f64(),
            jain: figures::jain(&per_station),
            capacity_normalised: ratios.and_then(figures::jain),
            mean_utilisation: ratios.and_then(figures::mean),
            rtt_ms: RttMillis::of(&pooled(&outcome.rtt)),
            errors: outcome.errors,
            groups: groups(experiment, &stations, &outcome.rtt),
            stations,
            flows,
            lateness: outcome.lateness,
            packets_digest: outcome.packets_digest.map(|digest| format!("{digest:016x}")),
            frames: outcome.frames,
            drops: outcome.drops,
            field: outcome.field.clone(),
        }
    }
}

/// The round-trip times of all groups.
fn pooled(groups: &[DurationHistogram]) -> DurationHistogram {
    let mut all = DurationHistogram::default();
    for group in groups {
        all.merge(group);
    }
    all
}

/// The figures of each group of stations; empty where there is only one. `rtt` has the round-trip times of each
/// group's flows.
fn groups(
    experiment: &Experiment,
    stations: &[StationResult],
    rtt: &[DurationHistogram],
) -> Vec<GroupResult> {
    if experiment.stations.len() < 2 {
        return Vec::new();
    }
    let mut goodputs = BTreeMap::<&str, f64>::new();
    for result in stations {
        *goodputs.entry(&result.station).or_default() += result.goodput_mbps;
    }
    let groups = experiment.stations.iter().zip(rtt).map(|(group, rtt)| {
        let names = (1..=group.count).map(|number| group.station_name(number));
        let own: Vec<f64> = names.filter_map(|name| goodputs.get(name.as_str()).copied()).collect();
        GroupResult {
            group: group.name.clone(),
            // Not `sum`, which is -0.0 of nothing.
            goodput_mbps: own.iter().fold(0.0, |sum, own| sum + own),
            jain: figures::jain(&own),
            rtt_ms: RttMillis::of(rtt),
        }
    });
    groups.collect()
}

impl RttMillis {
    /// The percentiles of `histogram`.
    pub fn of(histogram: &DurationHistogram) -> Self {
        let percentile = |percent| histogram.percentile(percent).map(Duration::as_millis_f64);
        Self { p50: percentile(50.0), p95: percentile(95.0), p99: percentile(99.0) }
    }
}

/// For each station, the sum of its goodputs, and the sum over its directions of goodput divided by
/// solo goodput. The second list is `None` if a solo goodput is unknown or zero.
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

impl MeasuredFlow {
    /// Whether the flow of a solo run has reached its speed: in the second half of the time after the warmup it got
    /// at most a tenth more than in the first.
    pub fn is_settled(&self) -> bool {
        let second = u128::from(self.bytes_in_second_half.get());
        let first = u128::from(self.bytes_after_warmup.get()).saturating_sub(second);
        second * 10 <= first * 11
    }

    /// The figures of the flow in a run whose warmup has this length.
    fn result(&self, warmup: Duration, outcome: &Outcome) -> FlowResult {
        let end = self.completion.map_or(outcome.end, |took| self.start + took).min(outcome.end);
        let span = end.saturating_sub(self.start.max(warmup));
        FlowResult {
            station: outcome.stations[self.station].name.clone(),
            direction: self.direction.to_string(),
            kind: self.kind.to_string(),
            algorithm: self.algorithm.clone(),
            bytes: self.bytes.get(),
            goodput_mbps: Rate::of(self.bytes_after_warmup, span).as_mbps_f64(),
            completion_s: self.completion.map(Duration::as_secs_f64),
            retransmits: self.retransmits,
            timeouts: self.timeouts,
            avr: self.avr,
            simulated: self.simulated,
            reservation: self.reservation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_settled_where_its_second_half_is_at_most_a_tenth_above_the_first() {
        let settled = |first: u64, second: u64| {
            let flow = MeasuredFlow {
                station: 0,
                direction: Direction::Up,
                kind: FlowKind::Tcp,
                algorithm: None,
                bytes: Bytes::ZERO,
                bytes_after_warmup: Bytes::new(first + second),
                bytes_in_second_half: Bytes::new(second),
                start: Duration::ZERO,
                completion: None,
                retransmits: None,
                timeouts: None,
                avr: None,
                simulated: None,
                reservation: None,
            };
            flow.is_settled()
        };
        assert!(settled(0, 0) && settled(100, 90) && settled(100, 110) && settled(9, 0));
        assert!(!settled(100, 111) && !settled(0, 1));
        assert!(settled(1 << 62, 1 << 62));
    }
}
