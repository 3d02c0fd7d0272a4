//! What the air and the machines did in a run, in words with the figure: what else may explain a difference between conditions.

use wakeai_results::result::MeasuredFlow;
use wakeai_scenario::Experiment;
use wakeai_units::Rate;

use super::plan::PlannedFlow;
use super::raw::{RawMachine, RawRun};
use crate::protocol::Air;

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
        if let Some((before, after)) = data.air_before.as_ref().zip(data.air_after.as_ref()) {
            said.extend(air(&machine.station, before, after));
        }
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
fn air(station: &str, before: &Air, after: &Air) -> Vec<String> {
    let mut said = Vec::new();
    if let (Some(a), Some(b)) = (&before.bssid, &after.bssid)
        && a != b
    {
        said.push(format!("{station} roamed from {a} to {b}"));
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
    if let Some(share) = others(before, after).filter(|share| *share >= OTHERS) {
        let percent = share * 100.0;
        said.push(format!(
            "{station} sensed the channel busy for {percent:.0} % of the time without receiving or sending itself: \
             others use it"
        ));
    }
    said
}

/// The share of the time in which the radio sensed the channel as busy, and neither received nor sent.
pub(crate) fn others(before: &Air, after: &Air) -> Option<f64> {
    let over = |of: fn(&Air) -> Option<u64>| Some(of(after)?.saturating_sub(of(before)?));
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
    use super::*;

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

    #[test]
    fn what_the_air_did_is_said_with_its_figure() {
        let before = reading("a", -50, [0, 0, 0, 0]);
        let quiet = reading("a", -53, [10_000, 6_000, 1_000, 4_500]);
        assert_eq!(air("tablet", &before, &quiet), [""; 0]);
        let used = reading("a", -50, [10_000, 6_000, 1_000, 2_000]);
        assert_eq!(others(&before, &used), Some(0.3));
        assert!(air("tablet", &before, &used)[0].contains("busy for 30 % of the time"));
        let roamed = reading("b", -70, [10_000, 0, 0, 0]);
        let said = air("tablet", &before, &roamed);
        assert_eq!(
            said,
            ["tablet roamed from a to b", "the signal of tablet changed from -50 to -70 dBm"]
        );
        let anew = Air { connected_s: Some(7), ..quiet };
        assert_eq!(air("t", &before, &anew), ["t associated anew in the run, 7 s before its end"]);
        assert_eq!(others(&Air::default(), &before), None, "a driver that does not tell");
    }

    #[test]
    fn agents_that_do_not_know_all_peers_are_named() {
        let machine = |station: &str, peers| RawMachine {
            station: station.to_owned(),
            data: Some(crate::protocol::StationData { peers, ..Default::default() }),
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
