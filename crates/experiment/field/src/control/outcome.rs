//! The figures of a run from what its machines have measured, and whether the run counts.

use wakeai_results::result::{
    FieldRun, FieldStation, MeasuredFlow, Outcome, RadioMeans, RadioReading,
};
use wakeai_scenario::ResolvedCondition;
use wakeai_units::{Duration, Instant};
use wakeai_world::{ReceiverMeter, RunSink, SenderMeter, Span};

use super::plan::PlannedFlow;
use super::raw::{RawMachine, RawRun};
use super::verdict;
use crate::protocol::{Air, AirDuring, Event, FlowData, Sample, StationData};

/// A flow begins late if its machine opens it later than this after its start.
const LATE_START: Duration = Duration::from_secs(1);
/// The time zero of a run for the meters. What came before it has earlier times.
const ORIGIN: Instant = Instant::from_nanos(1_000_000_000_000_000);

/// The time of a run that is this long after its time zero; `None` for a time that no meter has.
fn at(nanos: i64) -> Option<Instant> {
    let nanos = i128::from(ORIGIN.as_nanos()) + i128::from(nanos);
    u64::try_from(nanos).ok().map(Instant::from_nanos)
}

/// What the machine at this index has measured of a flow.
fn of_flow(raw: &RawRun, machine: usize, flow: usize) -> Option<&FlowData> {
    let data = raw.machines.get(machine)?.data.as_ref()?;
    data.flows.iter().find(|one| one.flow as usize == flow)
}

/// The figures of a run of a condition.
pub(super) fn outcome(
    raw: &RawRun,
    condition: &ResolvedCondition,
    seed: u64,
    flows: &[PlannedFlow],
    max_load_percent: u32,
    sink: Option<&RunSink>,
) -> Outcome {
    let experiment = &*condition.experiment;
    let expanded = experiment.expand(seed);
    let span = Span::new(ORIGIN, experiment);
    let mut senders = SenderMeter::new(span, &expanded, sink.cloned());
    count_senders(raw, &mut senders);
    let mut meters = Vec::new();
    for (index, flow) in expanded.flows.iter().enumerate() {
        let meter = ReceiverMeter::new(span, flow, Duration::ZERO);
        let mut meter = meter.recording(sink.cloned(), index as u32);
        let received = of_flow(raw, flows[index].receiver, index);
        for (nanos, bytes) in received.map(|data| data.arrivals.as_slice()).unwrap_or_default() {
            if let Some(at) = at(*nanos) {
                meter.on_received(at, *bytes);
            }
        }
        meters.push(meter);
    }
    let last: Option<Vec<Instant>> = meters.iter().map(ReceiverMeter::completed).collect();
    let last = last.and_then(|all| all.into_iter().max());
    let ended = raw.ended_ns.and_then(|nanos| at(nanos.cast_signed()));
    let end = last.or(ended).unwrap_or(span.end).min(span.end);
    for meter in &mut meters {
        meter.end(end);
    }
    let measured = meters.iter().enumerate().map(|(index, meter)| {
        let flow = &expanded.flows[index];
        measured(raw, &senders, index, meter.measured(flow, end), &flows[index])
    });
    let measured: Vec<MeasuredFlow> = measured.collect();
    let field = field(raw, condition, flows, &measured, max_load_percent);
    let (rtt, errors) = senders.finish();
    Outcome {
        stations: expanded.stations,
        end: span.since(end),
        flows: measured,
        rtt,
        errors: knows_events(raw, flows).then_some(errors),
        lateness: None,
        frames: None,
        drops: None,
        packets_digest: None,
        wall_s: Some(raw.wall_s),
        field: Some(field),
    }
}

/// Counts the samples and events of all machines, in the order of their times.
fn count_senders(raw: &RawRun, senders: &mut SenderMeter) {
    let data = || raw.machines.iter().filter_map(|machine| machine.data.as_ref());
    let mut samples: Vec<_> = data().flat_map(|data| &data.samples).map(Sample::parts).collect();
    samples.sort_by_key(|(at, ..)| *at);
    for (nanos, place, figures) in samples {
        if let Some(at) = at(nanos).filter(|at| *at >= ORIGIN) {
            senders.sample(at, place, figures);
        }
    }
    let events = data().flat_map(|data| &data.events);
    let mut events: Vec<_> = events.filter_map(Event::parts).collect();
    events.sort_by_key(|(at, ..)| *at);
    for (nanos, place, kind, cwnd) in events {
        if let Some(at) = at(nanos).filter(|at| *at >= ORIGIN) {
            senders.event(at, place, kind, cwnd);
        }
    }
}

/// Whether the machine of every sender of TCP was monitored, so that all congestion events are known.
fn knows_events(raw: &RawRun, flows: &[PlannedFlow]) -> bool {
    let is_monitored = |machine: usize| {
        let data = raw.machines.get(machine).and_then(|one| one.data.as_ref());
        data.is_some_and(|data| data.monitored)
    };
    flows.iter().filter(|flow| flow.udp.is_none()).all(|flow| is_monitored(flow.sender))
}

/// Adds what the sender's machine has measured.
fn measured(
    raw: &RawRun,
    senders: &SenderMeter,
    index: usize,
    flow: MeasuredFlow,
    planned: &PlannedFlow,
) -> MeasuredFlow {
    let sent = of_flow(raw, planned.sender, index);
    let machine = raw.machines.get(planned.sender).and_then(|one| one.data.as_ref());
    let mut flow = senders.measured(index, flow);
    if planned.udp.is_none() && !machine.is_some_and(|data| data.monitored) {
        // `tcp_info` counts retransmissions, and no timeouts.
        flow.retransmits = sent.map(|sent| sent.retransmits);
        flow.timeouts = None;
    }
    // What ran is what the socket said; an agent puts its own into the place of the default.
    flow.algorithm =
        sent.and_then(|sent| sent.algorithm.clone()).or_else(|| planned.algorithm.clone());
    flow
}

fn field(
    raw: &RawRun,
    condition: &ResolvedCondition,
    flows: &[PlannedFlow],
    measured: &[MeasuredFlow],
    max_load_percent: u32,
) -> FieldRun {
    let experiment = &*condition.experiment;
    let agents = condition.agents();
    let stations = raw.machines.iter().enumerate().map(|(index, machine)| {
        let has_agent = index.checked_sub(1).is_some_and(|station| agents[station]);
        let reason = reason(raw, index, has_agent, flows, max_load_percent);
        let own = measured.iter().zip(flows);
        let own =
            own.filter(|(_, flow)| index > 0 && (flow.sender == index || flow.receiver == index));
        station(machine, reason, has_agent, own.map(|(flow, _)| flow.bytes.get()).sum())
    });
    let stations: Vec<FieldStation> = stations.collect();
    FieldRun {
        block: raw.block,
        position: raw.position,
        counts: stations.iter().all(|station| station.counts),
        start_skew_ms: start_skew(raw, flows).map(Duration::as_millis_f64),
        clock_error_ms: clock_error(raw).as_millis_f64(),
        verdict: verdict::of_run(raw, experiment, flows, measured),
        stations,
    }
}

fn station(
    machine: &RawMachine,
    reason: Option<String>,
    has_agent: bool,
    delivered: u64,
) -> FieldStation {
    let data = machine.data.as_ref();
    FieldStation {
        station: machine.station.clone(),
        machine: machine.machine.clone(),
        counts: reason.is_none(),
        reason,
        delivered_bytes: delivered,
        agent: has_agent,
        peers: data.and_then(|data| data.peers.map(|peers| peers as u64)),
        monitored: data.is_some_and(|data| data.monitored),
        kernel: machine.facts.as_ref().map(|facts| facts.kernel.clone()),
        before: data.and_then(|data| data.air_before.as_ref()).map(radio),
        after: data.and_then(|data| data.air_after.as_ref()).map(radio),
        during: data.and_then(|data| data.air_during.clone()).map(means),
        others_percent: data.and_then(verdict::others).map(|share| share * 100.0),
        busiest_processor: data.and_then(|data| data.busiest_cpu),
    }
}

fn radio(air: &Air) -> RadioReading {
    RadioReading {
        bssid: air.bssid.clone(),
        frequency_mhz: air.frequency_mhz,
        width_mhz: air.width_mhz,
        signal_dbm: air.signal_dbm.map(i64::from),
        tx_mbps: air.tx_mbps,
        rx_mbps: air.rx_mbps,
        active_ms: air.active_ms,
        busy_ms: air.busy_ms,
    }
}

fn means(during: AirDuring) -> RadioMeans {
    let AirDuring { readings, signal_dbm, tx_mbps, rx_mbps, bssids } = during;
    RadioMeans { readings, signal_dbm, tx_mbps, rx_mbps, bssids }
}

/// Why the machine's part of the run does not count.
fn reason(
    raw: &RawRun,
    index: usize,
    has_agent: bool,
    flows: &[PlannedFlow],
    max_load_percent: u32,
) -> Option<String> {
    let machine = &raw.machines[index];
    let Some(data) = &machine.data else {
        let reason = machine.reason.clone();
        return Some(reason.unwrap_or_else(|| "nothing was measured".to_owned()));
    };
    let mut reasons = data.trouble.clone();
    if data.down_ns > 0 {
        let down = Duration::from_nanos(data.down_ns);
        reasons.push(format!("its interface had no carrier for {:.1} s", down.as_secs_f64()));
    }
    for (number, flow) in flows.iter().enumerate() {
        reasons.extend(trouble_of_flow(raw, data, index, number, flow));
    }
    let load = verdict::others(data).map(|share| share * 100.0);
    if let Some(load) = load.filter(|load| *load > f64::from(max_load_percent)) {
        reasons.push(format!(
            "others used {load:.0} % of its channel, and --max-load allows {max_load_percent} %"
        ));
    }
    if has_agent && data.peers.is_none() && data.trouble.is_empty() {
        reasons.push("its agent did not answer at the end".to_owned());
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// What went wrong with a flow, where this machine opens it.
fn trouble_of_flow(
    raw: &RawRun,
    data: &StationData,
    index: usize,
    number: usize,
    flow: &PlannedFlow,
) -> Option<String> {
    if flow.opener() != index {
        return None;
    }
    let began = data.flows.iter().find(|one| one.flow as usize == number)?.opened_ns;
    let Some(began) = began else {
        let ended = raw.ended_ns.is_some_and(|end| end < flow.start.as_nanos());
        return (!ended).then(|| format!("flow {} was not opened", number + 1));
    };
    let late = began.saturating_sub(flow.start.as_nanos().cast_signed());
    if late > LATE_START.as_nanos().cast_signed() {
        return Some(format!("flow {} began {:.1} s late", number + 1, late as f64 / 1e9));
    }
    let other = if flow.sender == index { flow.receiver } else { flow.sender };
    let accepted = of_flow(raw, other, number).is_some_and(|one| one.connections > 0);
    let received = of_flow(raw, flow.receiver, number).is_some_and(|one| !one.arrivals.is_empty());
    let is_known = raw.machines.get(other).is_some_and(|one| one.data.is_some());
    let silent = if flow.udp.is_some() { !received } else { !accepted };
    (is_known && silent).then(|| format!("flow {} never reached the other end", number + 1))
}

/// The time between the earliest and the latest of the flows, as they began beside their starts.
fn start_skew(raw: &RawRun, flows: &[PlannedFlow]) -> Option<Duration> {
    let late = flows.iter().enumerate().filter_map(|(number, flow)| {
        let opened = of_flow(raw, flow.opener(), number)?.opened_ns?;
        Some(opened - flow.start.as_nanos().cast_signed())
    });
    let late: Vec<i64> = late.collect();
    let (first, last) = (late.iter().min()?, late.iter().max()?);
    Some(Duration::from_nanos((last - first).unsigned_abs()))
}

/// The most by which the clocks of two machines may have differed from what was assumed.
fn clock_error(raw: &RawRun) -> Duration {
    let errors = raw.machines.iter().map(|one| one.clock_error_ns + one.drift_ns.unsigned_abs());
    let mut errors: Vec<u64> = errors.collect();
    errors.sort_unstable();
    Duration::from_nanos(errors.iter().rev().take(2).sum())
}

#[cfg(test)]
mod tests {
    use wakeai_scenario::Scenario;

    use super::*;

    /// Two uploads of 10 s, of which each delivers a byte per microsecond from 0 to 10 s.
    fn run() -> (Scenario, Vec<PlannedFlow>, RawRun) {
        let text = "name = \"x\"\nduration = \"10s\"\naccess_point = { standard = \"802.11g\" }\n\
                    stations = [{ name = \"a\", count = 2 }]\nflows = [{ from = \"a\", to = \"server\" }]\n";
        let scenario = Scenario::parse(text).unwrap();
        let flow = |sender| PlannedFlow {
            sender,
            receiver: 0,
            udp: None,
            size: None,
            chunks: 1,
            start: Duration::ZERO,
            limit: None,
            algorithm: Some("cubic".to_owned()),
            requested: None,
        };
        let arrivals = (1..=1_000).map(|tick: i64| (tick * 10_000_000, 10_000)).collect::<Vec<_>>();
        let received = |flow| FlowData {
            flow,
            connections: 1,
            arrivals: arrivals.clone(),
            ..FlowData::default()
        };
        let machine = |station: &str, flows| RawMachine {
            station: station.to_owned(),
            machine: station.to_owned(),
            data: Some(StationData { flows, monitored: true, ..StationData::default() }),
            clock_error_ns: 300_000,
            ..RawMachine::default()
        };
        let sent = |flow, opened| FlowData {
            flow,
            opened_ns: Some(opened),
            connections: 1,
            algorithm: Some("bbr".to_owned()),
            ..FlowData::default()
        };
        let raw = RawRun {
            block: 2,
            position: 1,
            wall_s: 12.5,
            machines: vec![
                machine("server", vec![received(0), received(1)]),
                machine("a1", vec![sent(0, 1_000_000)]),
                machine("a2", vec![sent(1, 4_000_000)]),
            ],
            ..RawRun::default()
        };
        (scenario, vec![flow(1), flow(2)], raw)
    }

    fn field_of(change: impl FnOnce(&mut RawRun)) -> (FieldRun, Outcome) {
        let (scenario, flows, mut raw) = run();
        change(&mut raw);
        let condition = scenario.conditions().swap_remove(0);
        let outcome = outcome(&raw, &condition, 1, &flows, 20, None);
        (outcome.field.clone().unwrap(), outcome)
    }

    #[test]
    fn figures_skew_and_blocks_follow_from_what_the_machines_have_measured() {
        let (field, outcome) = field_of(|_| {});
        assert_eq!(outcome.flows[0].bytes.get(), 10_000_000);
        assert_eq!(outcome.flows[0].algorithm.as_deref(), Some("bbr"), "what the socket said");
        assert_eq!((outcome.wall_s, outcome.end), (Some(12.5), Duration::from_secs(10)));
        assert!(field.counts && field.stations.iter().all(|one| one.reason.is_none()), "{field:?}");
        assert_eq!((field.block, field.position, field.start_skew_ms), (2, 1, Some(3.0)));
        assert!((field.clock_error_ms - 0.6).abs() < 1e-9, "two clocks, each 0.3 ms");
        assert_eq!(field.stations[1].delivered_bytes, 10_000_000);
        assert_eq!(field.stations[0].delivered_bytes, 0, "the server is no station");
    }

    #[test]
    fn what_a_machine_without_root_cannot_know_is_unknown_and_not_zero() {
        let (_, all) = field_of(|_| {});
        assert!(all.errors.is_some());
        assert_eq!((all.flows[0].retransmits, all.flows[0].timeouts), (Some(0), Some(0)));
        let (field, one) = field_of(|raw| {
            let data = raw.machines[1].data.as_mut().unwrap();
            data.monitored = false;
            data.flows[0].retransmits = 7;
        });
        assert!(field.counts, "goodput, completion and round-trip times are known");
        assert_eq!(one.errors, None, "the events of all senders together are not known");
        assert_eq!((one.flows[0].retransmits, one.flows[0].timeouts), (Some(7), None));
        assert_eq!((one.flows[1].retransmits, one.flows[1].timeouts), (Some(0), Some(0)));
        let (_, gone) = field_of(|raw| raw.machines[2].data = None);
        assert_eq!((gone.flows[1].retransmits, gone.flows[1].timeouts), (None, None));
    }

    #[test]
    fn each_fault_has_its_reason_and_the_run_does_not_count() {
        type Change = fn(&mut RawRun);
        let cases: [(Change, &str); 7] = [
            (
                |raw| {
                    raw.machines[1].data = None;
                    raw.machines[1].reason = Some("its connection was lost".to_owned());
                },
                "its connection was lost",
            ),
            (
                |raw| raw.machines[1].data.as_mut().unwrap().down_ns = 1_500_000_000,
                "its interface had no carrier for 1.5 s",
            ),
            (
                |raw| raw.machines[1].data.as_mut().unwrap().trouble.push("no space".to_owned()),
                "no space",
            ),
            (
                |raw| raw.machines[1].data.as_mut().unwrap().flows[0].opened_ns = None,
                "flow 1 was not opened",
            ),
            (
                |raw| {
                    raw.machines[1].data.as_mut().unwrap().flows[0].opened_ns = Some(2_300_000_000);
                },
                "flow 1 began 2.3 s late",
            ),
            (
                |raw| raw.machines[0].data.as_mut().unwrap().flows[0].connections = 0,
                "flow 1 never reached the other end",
            ),
            (
                |raw| {
                    let air = |active_ms, busy_ms| Air {
                        active_ms: Some(active_ms),
                        busy_ms: Some(busy_ms),
                        ..Air::default()
                    };
                    let data = raw.machines[1].data.as_mut().unwrap();
                    data.air_before = Some(air(0, 0));
                    data.air_at_start = Some(air(2_000, 420));
                },
                "others used 21 % of its channel, and --max-load allows 20 %",
            ),
        ];
        for (change, reason) in cases {
            let (field, _) = field_of(change);
            assert!(!field.counts);
            assert_eq!(field.stations[1].reason.as_deref(), Some(reason));
            assert_eq!(field.stations[2].reason, None, "the other station counts");
        }
    }
}
