//! What the air and the machines did in a run, in words with the figure: what else may explain a difference between conditions.

use wakeai_results::result::MeasuredFlow;
use wakeai_scenario::Experiment;
use wakeai_units::Rate;

use super::plan::PlannedFlow;
use super::raw::{RawMachine, RawRun};
use crate::protocol::{Air, StationData};

/// The share of a channel's time from which on others are said to use it.
const OTHERS: f64 = 0.1;
/// The busy share of a processor from which on it may have been the bottleneck.
const BUSY: f64 = 0.95;
/// The share of a wire's speed from which on it may have been the bottleneck.
const FULL: f64 = 0.9;
/// The change of signal from which on it is said.
const SIGNAL_DB: i8 = 6;

/// What there is to say of a run.
pub(super) fn of_run(
    raw: &RawRun,
    experiment: &Experiment,
    flows: &[PlannedFlow],
    measured: &[MeasuredFlow],
) -> Vec<String> {
    let mut said = Vec::new();
    for machine in &raw.machines {
        let Some(data) = &machine.data else { continue };
        said.extend(air(&machine.station, data));
        if let Some(busy) = data.busiest_cpu.filter(|busy| *busy >= BUSY) {
            let percent = busy * 100.0;
            said.push(format!(
                "a processor of {} was busy for {percent:.0} % of the run: it may be the bottleneck",
                machine.station
            ));
        }
        if data.lost > 0 {
            let lost = data.lost;
            said.push(format!("the monitor of {} lost {lost} records", machine.station));
        }
    }
    said.extend(wire(&raw.machines, experiment, flows, measured));
    said.extend(peers(raw));
    said
}

/// What changed at a station's radio, and who else used the channel.
fn air(station: &str, data: &StationData) -> Vec<String> {
    let Some((before, after)) = data.air_before.as_ref().zip(data.air_after.as_ref()) else {
        return Vec::new();
    };
    let mut said = Vec::new();
    let during = data.air_during.iter().flat_map(|during| &during.bssids);
    let mut bssids: Vec<&String> =
        before.bssid.iter().chain(during).chain(after.bssid.iter()).collect();
    bssids.dedup();
    if let [first, others @ ..] = bssids.as_slice()
        && !others.is_empty()
    {
        let others: Vec<&str> = others.iter().map(|one| one.as_str()).collect();
        said.push(format!("{station} roamed from {first} to {}", others.join(" to ")));
    } else if let Some((a, b)) = before.connected_s.zip(after.connected_s)
        && b < a
    {
        said.push(format!("{station} associated anew in the run, {b} s before its end"));
    }
    if let Some((a, b)) = before.frequency_mhz.zip(after.frequency_mhz)
        && a != b
    {
        said.push(format!("the channel of {station} changed from {a} to {b} MHz"));
    }
    if let Some((a, b)) = before.signal_dbm.zip(after.signal_dbm)
        && a.abs_diff(b) >= SIGNAL_DB.unsigned_abs()
    {
        said.push(format!("the signal of {station} changed from {a} to {b} dBm"));
    }
    if let Some(share) = others(data).filter(|share| *share >= OTHERS) {
        let percent = share * 100.0;
        said.push(format!("others used {percent:.0} % of the channel of {station}"));
    }
    said
}

/// The share of its channel's time that others used: the larger one of the time right before the run and of the run.
pub(super) fn others(data: &StationData) -> Option<f64> {
    let before = data.air_before.as_ref()?;
    let started = data.air_at_start.as_ref();
    let idle = started.and_then(|started| others_while_idle(before, started));
    let from = started.unwrap_or(before);
    let during = data.air_after.as_ref().and_then(|after| others_while_sending(from, after));
    [idle, during].into_iter().flatten().reduce(f64::max)
}

/// What grew between two readings.
fn grown(before: &Air, after: &Air, of: fn(&Air) -> Option<u64>) -> Option<u64> {
    Some(of(after)?.saturating_sub(of(before)?))
}

/// The share of the time in which the radio sensed the channel as busy, between two readings between which the stations of the
/// experiment sent nothing.
pub(crate) fn others_while_idle(before: &Air, after: &Air) -> Option<f64> {
    let active = grown(before, after, |air| air.active_ms).filter(|ms| *ms > 0)?;
    let busy = grown(before, after, |air| air.busy_ms)?;
    let own = grown(before, after, |air| air.tx_ms).unwrap_or(0);
    Some(busy.saturating_sub(own) as f64 / active as f64)
}

/// The share of the time in which the radio sensed the channel as busy, and neither received nor sent.
/// What it receives may be of the experiment, too, so only what it could not read counts.
fn others_while_sending(before: &Air, after: &Air) -> Option<f64> {
    let over = |of| grown(before, after, of);
    let active = over(|air| air.active_ms).filter(|ms| *ms > 0)?;
    let busy = over(|air| air.busy_ms)?;
    let own = over(|air| air.rx_ms)? + over(|air| air.tx_ms)?;
    Some(busy.saturating_sub(own) as f64 / active as f64)
}

/// Whether the server's wire was full.
fn wire(
    machines: &[RawMachine],
    experiment: &Experiment,
    flows: &[PlannedFlow],
    measured: &[MeasuredFlow],
) -> Option<String> {
    let speed = machines.first()?.facts.as_ref()?.wire_mbps?;
    let sum = |is_up: bool| -> u64 {
        let own = flows.iter().zip(measured).filter(|(flow, _)| (flow.receiver == 0) == is_up);
        own.map(|(_, flow)| flow.bytes_after_warmup.get()).sum()
    };
    let length = experiment.duration.saturating_sub(experiment.warmup);
    let most = sum(true).max(sum(false));
    let mbps = Rate::of(wakeai_units::Bytes::new(most), length).as_mbps_f64();
    (mbps >= FULL * f64::from(speed)).then(|| {
        format!("{mbps:.0} Mbit/s went over the server's wire of {speed} Mbit/s: it may be the bottleneck")
    })
}

/// The stations whose agents do not know all others.
fn peers(raw: &RawRun) -> Vec<String> {
    let known = |machine: &RawMachine| machine.data.as_ref().and_then(|data| data.peers);
    let agents: Vec<(&str, usize)> = raw
        .machines
        .iter()
        .filter_map(|machine| Some((machine.station.as_str(), known(machine)?)))
        .collect();
    let others = agents.len().saturating_sub(1);
    let few = agents.iter().filter(|(_, peers)| *peers < others);
    let words = few.map(|(station, peers)| {
        format!("the agent of {station} knew {peers} of {others} peers: the access point may isolate its clients")
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use wakeai_units::{Bytes, Duration};

    use super::*;
    use crate::protocol::{AirDuring, Facts};

    fn reading(bssid: &str, signal: i8, times: [u64; 4]) -> Air {
        Air {
            bssid: Some(bssid.to_owned()),
            frequency_mhz: Some(5_180),
            signal_dbm: Some(signal),
            connected_s: Some(100),
            active_ms: Some(times[0]),
            busy_ms: Some(times[1]),
            rx_ms: Some(times[2]),
            tx_ms: Some(times[3]),
            ..Air::default()
        }
    }

    fn data(before: &Air, started: Option<&Air>, after: &Air) -> StationData {
        StationData {
            air_before: Some(before.clone()),
            air_at_start: started.cloned(),
            air_after: Some(after.clone()),
            ..StationData::default()
        }
    }

    #[test]
    fn what_the_air_did_is_said_with_its_figure() {
        let before = reading("a", -50, [0, 0, 0, 0]);
        let said = |after: &Air| air("tablet", &data(&before, None, after));
        let quiet = reading("a", -53, [10_000, 6_000, 1_000, 4_500]);
        assert_eq!(said(&quiet), [""; 0]);
        let used = reading("a", -50, [10_000, 6_000, 1_000, 2_000]);
        assert_eq!(said(&used), ["others used 30 % of the channel of tablet"]);
        let roamed = reading("b", -70, [10_000, 0, 0, 0]);
        assert_eq!(
            said(&roamed),
            ["tablet roamed from a to b", "the signal of tablet changed from -50 to -70 dBm"]
        );
        let anew = Air { connected_s: Some(7), ..quiet.clone() };
        assert_eq!(said(&anew), ["tablet associated anew in the run, 7 s before its end"]);
        let moved = Air { frequency_mhz: Some(5_200), ..quiet.clone() };
        assert_eq!(said(&moved), ["the channel of tablet changed from 5180 to 5200 MHz"]);
        let mut back = data(&before, None, &quiet);
        let bssids = ["a", "b"].map(str::to_owned).to_vec();
        back.air_during = Some(AirDuring { readings: 9, bssids, ..AirDuring::default() });
        assert_eq!(air("tablet", &back), ["tablet roamed from a to b to a"]);
    }

    #[test]
    fn others_are_those_before_the_run_or_those_that_were_not_read_in_it() {
        let before = reading("a", -50, [0, 0, 0, 0]);
        let started = reading("a", -50, [2_000, 900, 400, 100]);
        let after = reading("a", -50, [12_000, 8_900, 3_400, 4_100]);
        // Before: 800 of 2000 ms. In the run: 8000 ms busy, of which 3000 received and 4000 sent, of 10000.
        assert_eq!(others(&data(&before, Some(&started), &after)), Some(0.4));
        let calm = reading("a", -50, [2_000, 100, 0, 100]);
        assert_eq!(others(&data(&before, Some(&calm), &after)), Some(0.14));
        assert_eq!(others(&StationData::default()), None, "no reading");
        let silent = data(&Air::default(), Some(&Air::default()), &Air::default());
        assert_eq!(others(&silent), None, "a driver that does not tell");
    }

    #[test]
    fn a_full_processor_and_a_full_wire_are_said_and_others_are_not() {
        let text = "name = \"x\"\nduration = \"10s\"\nwarmup = \"2s\"\naccess_point = { standard = \"802.11g\" }\n\
                    stations = [{ name = \"a\" }]\nflows = [{ from = \"a\", to = \"server\" }]\n";
        let scenario = wakeai_scenario::Scenario::parse(text).unwrap();
        let condition = scenario.conditions().swap_remove(0);
        let said = |busiest_cpu, wire_mbps, mbps: u64| {
            let facts = Facts { wire_mbps: Some(wire_mbps), ..Facts::default() };
            let machine = |station: &str, busiest_cpu| RawMachine {
                station: station.to_owned(),
                facts: Some(facts.clone()),
                data: Some(StationData { busiest_cpu, ..StationData::default() }),
                ..RawMachine::default()
            };
            let machines = vec![machine("server", busiest_cpu), machine("a", Some(0.5))];
            let raw = RawRun { machines, ..RawRun::default() };
            let flow = planned();
            let measured = measured(mbps * 1_000_000 / 8 * 8); // in the 8 s after the warmup
            of_run(&raw, &condition.experiment, &[flow], &[measured])
        };
        assert_eq!(said(Some(0.94), 100, 89), [""; 0]);
        assert_eq!(
            said(Some(0.97), 1_000, 89),
            ["a processor of server was busy for 97 % of the run: it may be the bottleneck"]
        );
        assert_eq!(
            said(None, 100, 91),
            ["91 Mbit/s went over the server's wire of 100 Mbit/s: it may be the bottleneck"]
        );
    }

    fn planned() -> PlannedFlow {
        PlannedFlow {
            sender: 1,
            receiver: 0,
            udp: None,
            size: None,
            chunks: 1,
            start: Duration::ZERO,
            limit: None,
            algorithm: None,
            requested: None,
        }
    }

    fn measured(bytes: u64) -> MeasuredFlow {
        MeasuredFlow {
            station: 0,
            direction: wakeai_scenario::Direction::Up,
            kind: wakeai_scenario::FlowKind::Tcp,
            algorithm: None,
            bytes: Bytes::new(bytes),
            bytes_after_warmup: Bytes::new(bytes),
            bytes_in_second_half: Bytes::ZERO,
            start: Duration::ZERO,
            completion: None,
            retransmits: None,
            timeouts: None,
            avr: None,
            simulated: None,
            reservation: None,
        }
    }

    #[test]
    fn agents_that_do_not_know_all_peers_are_named() {
        let machine = |station: &str, peers| RawMachine {
            station: station.to_owned(),
            data: Some(StationData { peers, ..Default::default() }),
            ..RawMachine::default()
        };
        let raw = RawRun {
            machines: vec![machine("server", None), machine("a", Some(1)), machine("b", Some(0))],
            ..RawRun::default()
        };
        assert_eq!(
            peers(&raw),
            ["the agent of b knew 0 of 1 peers: the access point may isolate its clients"]
        );
    }
}
