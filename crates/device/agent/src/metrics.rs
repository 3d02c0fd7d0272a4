//! The agent's metrics for Prometheus, from the report of the last tick. `docs/guides/metrics.md` lists them.

use wakeai_api::{State, Status};
use wakeai_control::Phase;
use wakeai_daemon::gauges;
use wakeai_daemon::metrics::{Page, Unit};
use wakeai_kernel::{Bounded, TcpSnapshot};

use crate::distributions::bytes;
use crate::report::Report;

/// All metrics, as of the last tick.
pub(crate) fn page(report: &Report) -> Page {
    let mut page = Page::new();
    let status = report.status.as_ref();
    identity(&mut page, status);
    stations(&mut page, report);
    rates(&mut page, report);
    delays(&mut page, report);
    bounds(&mut page, report);
    connections(&mut page, report);
    report.counts.add_to(&mut page);
    let help =
        "The time that a tick took: the connections are read, bounds follow and are written.";
    page.histogram("wakeai_agent_tick", Unit::Seconds, help, &report.distributions.tick);
    page
}

/// Converts a count to the value of a gauge.
fn count(number: usize) -> f64 {
    number as f64
}

fn identity(page: &mut Page, status: Option<&Status>) {
    let texts = status.map(|status| {
        vec![
            ("version", status.program.clone()),
            ("interface", status.interface.clone()),
            ("station", status.station.clone()),
            ("law", status.law.clone()),
        ]
    });
    page.info("wakeai_agent", "The agent's version, interface, station number and law.", texts);
    let bssid = status.and_then(|status| status.bssid.clone()).map(|bssid| vec![("bssid", bssid)]);
    let help = "The access point that the station is associated with.";
    page.info("wakeai_agent_access_point", help, bssid);
    let help = "Whether the agent is in this state; it is in one state at a time.";
    let states = page.gauge("wakeai_agent_state", Unit::None, help);
    states.each(
        "state",
        status.iter().flat_map(|status| {
            State::ALL.iter().map(|state| (state.name(), u64::from(status.state == *state)))
        }),
    );
    gauges! {
        page, "wakeai_agent";
        is_real "uptime" Seconds "The time since the agent started.":
            status.map(|status| status.uptime_s);
    }
}

fn stations(page: &mut Page, report: &Report) {
    let status = report.status.as_ref();
    let sending = report.peers.iter().filter(|peer| peer.sending).count();
    gauges! {
        page, "wakeai_agent";
        is_real "peers" None "Stations from which the agent receives presence messages.":
            status.map(|status| count(status.peers));
        is_real "peers_sending" None "Peers that are sending.": status.map(|_| count(sending));
        is_real "senders" None
            "Stations that are sending, this one included, as the law counts them.":
            status.map(|status| f64::from(status.senders));
    }
    let help = "Peers that hold something else than this station, by the configuration's key; law.version for \
                agents of another version.";
    let differing = status.iter().flat_map(|_| &report.differing);
    page.gauge("wakeai_agent_peers_of_another_law", Unit::None, help)
        .each("differs", differing.map(|(what, peers)| (what.key(), *peers as u64)));
    let of = &report.distributions;
    let help = "The rates that sending peers announce, each once per tick.";
    let base = "wakeai_agent_peer_delivery_rate";
    page.histogram(base, Unit::BytesPerSecond, help, &of.peer_rate);
    let help = "The queueing delays that sending peers announce, each once per tick.";
    page.histogram("wakeai_agent_peer_queueing_delay", Unit::Seconds, help, &of.peer_delay);
}

fn rates(page: &mut Page, report: &Report) {
    let status = report.status.as_ref();
    let targets = status.map(|_| &report.targets);
    let reservation = status.and_then(|status| status.reservation.as_ref());
    gauges! {
        page, "wakeai_agent";
        is_real "link_rate" BytesPerSecond "The PHY rate, where it is known.":
            status.and_then(|status| status.link_rate_mbps).map(bytes);
        is_real "delivery_rate" BytesPerSecond
            "What this station's connections delivered over the last tick.":
            status.map(|status| bytes(status.delivery_rate_mbps));
        is_real "total_delivery_rate" BytesPerSecond
            "What all stations together deliver, by their announcements.":
            targets.map(|targets| bytes(targets.total_mbps));
        is_real "alone_rate" BytesPerSecond
            "The goodput that this station reaches alone, where it is known.":
            targets.and_then(|targets| targets.max_mbps).map(bytes);
        is_real "share" BytesPerSecond
            "What this station delivers with its share of the airtime, by the law; compare its delivery rate.":
            targets.and_then(|targets| targets.share_mbps).map(bytes);
        is_real "reservation" BytesPerSecond
            "The rate that this station asks its peers to leave free.":
            reservation.map(|of| bytes(of.rate_mbps));
        is_real "reservation_admitted" None "Whether the peers leave that rate free: 1 or 0.":
            reservation.map(|of| f64::from(u8::from(of.admitted)));
    }
}

fn delays(page: &mut Page, report: &Report) {
    let status = report.status.as_ref();
    let received = status.and_then(|status| status.received.as_ref());
    let seconds =
        |ms: fn(&Status) -> Option<f64>| status.and_then(|status| Some(ms(status)? / 1000.0));
    gauges! {
        page, "wakeai_agent";
        is_real "rtt" Seconds "Smoothed round-trip time over the sending connections.":
            seconds(|status| status.rtt_ms);
        is_real "min_rtt" Seconds "The minimum of the smoothed round-trip time.":
            seconds(|status| status.min_rtt_ms);
        is_real "queueing_delay" Seconds "The smoothed round-trip time minus its minimum.":
            seconds(|status| status.growth_ms);
        is_real "queueing_delay_target" Seconds
            "The queueing delay that the law airtime aims at, while this station sends.":
            report.airtime.map(|airtime| airtime.target.as_secs_f64());
        is_real "receiving_queueing_delay" Seconds
            "The receiver's round-trip time minus its minimum, while this station receives.":
            received.map(|of| of.growth_ms / 1000.0);
        is_real "receive_rate" BytesPerSecond "What this station receives by TCP.":
            received.map(|of| bytes(of.rate_mbps));
    }
}

fn bounds(page: &mut Page, report: &Report) {
    let bounds = &report.bounds;
    gauges! {
        page, "wakeai_agent";
        is_real "floor" Segments
            "The smallest sum of the congestion windows; no sample while there is none.":
            bounds.floor.map(f64::from);
        is_real "ceiling" Segments
            "The largest sum of the congestion windows; no sample while there is none.":
            bounds.ceiling.map(f64::from);
        is_real "pacing_rate" BytesPerSecond
            "The largest rate of all connections together; no sample while there is none.":
            bounds.pacing_mbps.map(bytes);
        is_real "small_queue" Bytes
            "What may wait in the host's queue, where that is more than Linux would allow.":
            bounds.small_queue_bytes.map(|bytes| bytes as f64);
        is_real "receive_window" Segments
            "The largest sum of the receive windows; no sample while there is none.":
            bounds.receive.map(f64::from);
        is_real "unwindowed_rate" BytesPerSecond
            "The largest rate of all datagrams together; no sample while there is none.":
            bounds.unwindowed_mbps.map(bytes);
    }
    let help =
        "Whether the law airtime is in this phase; it is in none while the station sends nothing.";
    let current = report.airtime.map(|airtime| airtime.phase);
    let phases = report.status.iter().flat_map(|_| Phase::ALL);
    page.gauge("wakeai_agent_law_phase", Unit::None, help)
        .each("phase", phases.map(|phase| (phase.to_string(), u64::from(current == Some(*phase)))));
}

fn connections(page: &mut Page, report: &Report) {
    let status = report.status.as_ref();
    let of = |picks: fn(&TcpSnapshot, bool) -> bool| {
        let picked = || report.connections.iter().filter(|(of, sends)| picks(of, *sends)).count();
        status.map(|_| count(picked()))
    };
    let unread = status.map(|status| f64::from(status.connections_left_out));
    gauges! {
        page, "wakeai_agent";
        is_real "connections" None "TCP connections over the interface.":
            of(|_, _| true).zip(unread).map(|(read, unread)| read + unread);
        is_real "connections_sending" None "Connections that have data to send.":
            of(|_, sends| sends);
        is_real "connections_bounded" None
            "Connections whose algorithm applies bounds, of those that the last tick read.":
            of(|connection, _| Bounded::named(&connection.algorithm).is_some());
        is_real "connections_unread" None
            "Idle connections that the last tick did not read, because there are too many.": unread;
    }
    let of = &report.distributions;
    let help = "The smoothed round-trip times of sending connections, each once per tick.";
    page.histogram("wakeai_agent_connection_rtt", Unit::Seconds, help, &of.rtt);
    let help = "The congestion windows of sending connections, each once per tick.";
    page.histogram("wakeai_agent_connection_window", Unit::Segments, help, &of.window);
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakeai_daemon::metrics::Format;

    #[test]
    fn before_the_first_tick_every_family_is_there_and_no_value_is_made_up() {
        let text = page(&Report::default()).text(Format::Text);
        assert!(text.contains("# TYPE wakeai_agent_queueing_delay_seconds gauge\n"), "{text}");
        assert!(!text.contains("\nwakeai_agent_queueing_delay_seconds "), "{text}");
        assert!(!text.contains("\nwakeai_agent_state{"), "{text}");
    }
}
