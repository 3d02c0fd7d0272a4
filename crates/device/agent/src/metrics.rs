//! The agent's metrics for Prometheus, from the report of the last tick. `docs/guides/metrics.md` lists them.

use wakeai_api::{State, Status};
use wakeai_control::Phase;
use wakeai_daemon::metrics::{Page, Unit};
use wakeai_kernel::Bounded;

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
    page.info(
        "wakeai_agent_access_point",
        "The access point that the station is associated with.",
        bssid,
    );
    let states = page.gauge(
        "wakeai_agent_state",
        Unit::None,
        "Whether the agent is in this state; it is in one state at a time.",
    );
    for state in status.iter().flat_map(|_| State::ALL) {
        let is_it = status.is_some_and(|status| status.state == *state);
        states.with("state", state.name(), u64::from(is_it));
    }
    page.gauge("wakeai_agent_uptime", Unit::Seconds, "The time since the agent started.")
        .is_real(status.map(|status| status.uptime_s));
}

fn stations(page: &mut Page, report: &Report) {
    let status = report.status.as_ref();
    page.gauge(
        "wakeai_agent_peers",
        Unit::None,
        "Stations from which the agent receives presence messages.",
    )
    .is_real(status.map(|status| count(status.peers)));
    let sending = report.peers.iter().filter(|peer| peer.sending).count();
    page.gauge("wakeai_agent_peers_sending", Unit::None, "Peers that are sending.")
        .is_real(status.map(|_| count(sending)));
    page.gauge(
        "wakeai_agent_senders",
        Unit::None,
        "Stations that are sending, this one included, as the law counts them.",
    )
    .is_real(status.map(|status| f64::from(status.senders)));
    let others = page.gauge(
        "wakeai_agent_peers_of_another_law",
        Unit::None,
        "Peers that hold something else than this station, by the configuration's key; law.version for \
         agents of another version.",
    );
    for (what, peers) in report.status.iter().flat_map(|_| &report.differing) {
        others.with("differs", what.key(), *peers as u64);
    }
    let of = &report.distributions;
    page.histogram(
        "wakeai_agent_peer_delivery_rate",
        Unit::BytesPerSecond,
        "The rates that sending peers announce, each once per tick.",
        &of.peer_rate,
    );
    page.histogram(
        "wakeai_agent_peer_queueing_delay",
        Unit::Seconds,
        "The queueing delays that sending peers announce, each once per tick.",
        &of.peer_delay,
    );
}

fn rates(page: &mut Page, report: &Report) {
    let status = report.status.as_ref();
    let targets = status.map(|_| &report.targets);
    let mut rate = |name, help, mbps: Option<f64>| {
        page.gauge(name, Unit::BytesPerSecond, help).is_real(mbps.map(bytes));
    };
    rate(
        "wakeai_agent_link_rate",
        "The PHY rate, where it is known.",
        status.and_then(|status| status.link_rate_mbps),
    );
    rate(
        "wakeai_agent_delivery_rate",
        "What this station's connections delivered over the last tick.",
        status.map(|status| status.delivery_rate_mbps),
    );
    rate(
        "wakeai_agent_total_delivery_rate",
        "What all stations together deliver, by their announcements.",
        targets.map(|targets| targets.total_mbps),
    );
    rate(
        "wakeai_agent_alone_rate",
        "The goodput that this station reaches alone, where it is known.",
        targets.and_then(|targets| targets.max_mbps),
    );
    rate(
        "wakeai_agent_share",
        "What this station delivers with its share of the airtime, by the law; compare its delivery rate.",
        targets.and_then(|targets| targets.share_mbps),
    );
    let reservation = status.and_then(|status| status.reservation.as_ref());
    rate(
        "wakeai_agent_reservation",
        "The rate that this station asks its peers to leave free.",
        reservation.map(|of| of.rate_mbps),
    );
    page.gauge(
        "wakeai_agent_reservation_admitted",
        Unit::None,
        "Whether the peers leave that rate free: 1 or 0.",
    )
    .is_real(reservation.map(|of| f64::from(u8::from(of.admitted))));
}

fn delays(page: &mut Page, report: &Report) {
    let status = report.status.as_ref();
    let mut delay = |name, help, seconds: Option<f64>| {
        page.gauge(name, Unit::Seconds, help).is_real(seconds);
    };
    let of = |ms: Option<f64>| ms.map(|ms| ms / 1000.0);
    delay(
        "wakeai_agent_rtt",
        "Smoothed round-trip time over the sending connections.",
        of(status.and_then(|status| status.rtt_ms)),
    );
    delay(
        "wakeai_agent_min_rtt",
        "The minimum of the smoothed round-trip time.",
        of(status.and_then(|status| status.min_rtt_ms)),
    );
    delay(
        "wakeai_agent_queueing_delay",
        "The smoothed round-trip time minus its minimum.",
        of(status.and_then(|status| status.growth_ms)),
    );
    delay(
        "wakeai_agent_queueing_delay_target",
        "The queueing delay that the law airtime aims at, while this station sends.",
        report.airtime.map(|airtime| airtime.target.as_secs_f64()),
    );
}

fn bounds(page: &mut Page, report: &Report) {
    let bounds = &report.bounds;
    page.gauge(
        "wakeai_agent_floor",
        Unit::Segments,
        "The smallest sum of the congestion windows; no sample while there is none.",
    )
    .is_real(bounds.floor.map(f64::from));
    page.gauge(
        "wakeai_agent_ceiling",
        Unit::Segments,
        "The largest sum of the congestion windows; no sample while there is none.",
    )
    .is_real(bounds.ceiling.map(f64::from));
    page.gauge(
        "wakeai_agent_pacing_rate",
        Unit::BytesPerSecond,
        "The largest rate of all connections together; no sample while there is none.",
    )
    .is_real(bounds.pacing_mbps.map(bytes));
    page.gauge(
        "wakeai_agent_small_queue",
        Unit::Bytes,
        "What may wait in the host's queue, where that is more than Linux would allow.",
    )
    .is_real(bounds.small_queue_bytes.map(|bytes| bytes as f64));
    let phases = page.gauge(
        "wakeai_agent_law_phase",
        Unit::None,
        "Whether the law airtime is in this phase; it is in none while the station sends nothing.",
    );
    for phase in report.status.iter().flat_map(|_| Phase::ALL) {
        let is_it = report.airtime.is_some_and(|airtime| airtime.phase == phase);
        phases.with("phase", &phase.to_string(), u64::from(is_it));
    }
}

fn connections(page: &mut Page, report: &Report) {
    let status = report.status.as_ref();
    let of = |picks: fn(&wakeai_api::Connection) -> bool| {
        status.map(|status| count(status.connections.iter().filter(|of| picks(of)).count()))
    };
    page.gauge("wakeai_agent_connections", Unit::None, "TCP connections over the interface.")
        .is_real(status.map(|status| {
            count(status.connections.len()) + f64::from(status.connections_left_out)
        }));
    page.gauge(
        "wakeai_agent_connections_sending",
        Unit::None,
        "Connections that have data to send.",
    )
    .is_real(of(|connection| connection.sending));
    page.gauge(
        "wakeai_agent_connections_bounded",
        Unit::None,
        "Connections whose algorithm applies bounds, of those that the last tick read.",
    )
    .is_real(of(|connection| Bounded::named(&connection.algorithm).is_some()));
    page.gauge(
        "wakeai_agent_connections_unread",
        Unit::None,
        "Idle connections that the last tick did not read, because there are too many.",
    )
    .is_real(status.map(|status| f64::from(status.connections_left_out)));
    let distributions = &report.distributions;
    page.histogram(
        "wakeai_agent_connection_rtt",
        Unit::Seconds,
        "The smoothed round-trip times of sending connections, each once per tick.",
        &distributions.rtt,
    );
    page.histogram(
        "wakeai_agent_connection_window",
        Unit::Segments,
        "The congestion windows of sending connections, each once per tick.",
        &distributions.window,
    );
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
