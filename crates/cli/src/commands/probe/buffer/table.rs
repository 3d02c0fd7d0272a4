//! The result as text.

use wakeai_probe::buffer::{BufferReport, Drops, Isolation, LimitUnit, Spread};

pub(super) fn render(report: &BufferReport) -> String {
    let mut lines = Vec::new();
    let aqm = report.drops == Drops::Aqm;
    if let (Some(packets), Some(bytes)) = (report.packets, report.bytes) {
        let most = if aqm { "at least " } else { "" };
        lines.push(("buffer", format!("{most}{}, {:.0} kB", spread(packets), bytes.median / 1e3)));
    }
    if let Some(by_delay) = report.packets_by_delay {
        let text = format!("{:.0} packets by the delay of a full queue", by_delay.median);
        lines.push(("", text));
    }
    lines.push(("limit", limit(report)));
    lines.push(("drops", drops(report)));
    let shared = |what: &str, found: Isolation| match found {
        Isolation::Shared => format!("one for all {what}"),
        Isolation::Separate => format!("one for each of the {what}"),
        Isolation::Unclear => format!("unclear for {what}: it was too short to tell"),
    };
    if let Some(flows) = report.flows {
        lines.push(("queue", shared("flows of a station", flows)));
    }
    if let Some(stations) = report.stations {
        lines.push(("queue", shared("stations", stations)));
    }
    let air = format!(
        "{:.1} Mbit/s of IP packets while {:.1} Mbit/s were offered; {:.1} % lost without a queue",
        report.drain_mbps,
        report.offered_mbps,
        report.air_loss * 100.0
    );
    lines.push(("air", air));
    lines.iter().fold(String::new(), |text, (name, value)| text + &format!("{name:<8}{value}\n"))
}

fn spread(found: Spread) -> String {
    let Spread { median, min, max, runs } = found;
    format!("{median:.0} packets ({min:.0} to {max:.0} in {runs} runs)")
}

fn limit(report: &BufferReport) -> String {
    let sizes = || {
        let packets = |one: Option<Spread>| one.map_or(0.0, |one| one.median);
        format!(
            "{:.0} packets of {} bytes, {:.0} of {} bytes",
            packets(report.packets),
            report.packet_bytes,
            packets(report.small_packets),
            report.small_packet_bytes
        )
    };
    match report.counts {
        LimitUnit::Packets => format!("counts packets: {}", sizes()),
        LimitUnit::Bytes => format!("counts bytes: {}", sizes()),
        LimitUnit::Unclear if report.drops == Drops::Tail => format!("unclear: {}", sizes()),
        LimitUnit::Unclear => "unclear: the queue does not fill to its limit".to_owned(),
    }
}

fn drops(report: &BufferReport) -> String {
    match (report.drops, report.first_drop) {
        (Drops::Tail, _) => "tail drop: a full queue drops what arrives".to_owned(),
        (Drops::Aqm, Some(first)) => format!(
            "active queue management: the first drop at {:.0} packets and {:.0} ms, before the queue is full",
            first.packets, first.delay_ms
        ),
        (Drops::Aqm, None) => "active queue management".to_owned(),
        (Drops::Unclear, _) => "unclear: the air itself loses too many packets".to_owned(),
    }
}
