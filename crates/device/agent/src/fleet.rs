//! The view of a fleet. A client of the local API begins a query, and all stations of the access
//! point answer it.

use std::collections::BTreeMap;

use wakeai_api::{Fleet, FleetStation, Holds, OtherVersion};
use wakeai_control::presence::{FleetAnswer, FleetQuery, StationFigures};
use wakeai_control::{Announcement, CommonLaw, Controller, PeerView, StationId};
use wakeai_units::{Duration, Rate, Segments};

use crate::counters::fault_kind;
use crate::exchange::{Answering, Asking};
use crate::report;

/// The clients' requests: the number of the newest one that begins a query.
pub(crate) type FleetClients = Asking<u64, Result<Fleet, String>>;
/// The event loop's end of these requests.
pub(crate) type FleetRequests = Answering<u64, Result<Fleet, String>>;

/// Returns the answers so far. With `begins`, also begins a query, unless one is under way.
pub(crate) async fn ask(clients: &FleetClients, begins: bool) -> Result<Fleet, String> {
    let number = clients.change(|number, begun| *begun = if begins { number } else { *begun });
    clients.answer(number).await?
}

/// The number of the newest request without an answer, and whether to begin a query. Returns `None` if all requests
/// are answered.
pub(crate) fn open(requests: &mut FleetRequests) -> Option<(u64, bool)> {
    let ((newest, begun), answered) = (requests.asked(), requests.answered());
    (newest > answered).then_some((newest, begun > answered))
}

/// The view of the fleet after this query: all stations that the controller knows.
pub(crate) fn fleet(
    controller: &Controller,
    query: FleetQuery,
    (station, own_law): (StationId, &CommonLaw),
    bssid: String,
    other_versions: Vec<OtherVersion>,
) -> Fleet {
    let mut stations: BTreeMap<StationId, FleetStation> = BTreeMap::new();
    for peer in controller.peers() {
        stations.insert(peer.station, announced(&peer, own_law));
    }
    for answer in controller.fleet_answers() {
        let row = stations.entry(answer.station).or_default();
        answered(row, &answer, answer.query == query.number);
    }
    let own = stations.entry(station).or_default();
    *own =
        FleetStation { own: true, answered: true, answer_age_s: Some(0.0), ..Default::default() };
    own.holds = Some(Holds::Same);
    let figures = controller.figures();
    add_announcement(own, &figures.announced);
    own.received = report::received(&figures.announced.down);
    add_figures(own, &figures);
    for (station, row) in &mut stations {
        row.station = station.to_string();
    }
    Fleet {
        query: query.number,
        left_s: query.left.map(Duration::as_secs_f64),
        done: query.done,
        bssid,
        stations: stations.into_values().collect(),
        other_versions,
        other_laws: report::other_laws(controller.peers(), own_law),
    }
}

/// A station as its presence messages describe it.
fn announced(peer: &PeerView, own_law: &CommonLaw) -> FleetStation {
    let mut row = FleetStation {
        heard_s: Some(peer.age.as_secs_f64()),
        holds: report::holds(&peer.law, own_law),
        ..FleetStation::default()
    };
    add_announcement(&mut row, &peer.announced);
    row.received = report::received(&peer.announced.down);
    row
}

/// Adds what presence messages and answers have in common.
fn add_announcement(row: &mut FleetStation, announced: &Announcement) {
    row.sending = announced.up.active;
    row.delivery_rate_mbps = announced.up.rate.as_mbps_f64();
    row.max_mbps = announced.up.max_rate.map(Rate::as_mbps_f64);
    row.link_rate_mbps = announced.link_rate.map(Rate::as_mbps_f64);
    row.min_rtt_ms = announced.up.min_rtt.map(Duration::as_millis_f64);
    row.growth_ms = announced.up.growth.as_millis_f64();
}

/// Adds a station's answer. Values of a presence message that is newer than the answer stay.
fn answered(row: &mut FleetStation, answer: &FleetAnswer, is_to_this_query: bool) {
    let age = answer.age.as_secs_f64();
    if row.heard_s.is_none_or(|heard| heard >= age) {
        add_announcement(row, &answer.figures.announced);
    }
    add_figures(row, &answer.figures);
    row.answered = is_to_this_query;
    row.answer_age_s = Some(age);
    row.clock_ahead_ms = answer.clock.map(|clock| clock.ahead_nanos as f64 / 1e6);
    row.clock_error_ms = answer.clock.map(|clock| clock.error.as_millis_f64());
}

/// Adds the figures that a station does not announce.
fn add_figures(row: &mut FleetStation, figures: &StationFigures) {
    let StationFigures { agent, bounds, .. } = figures;
    row.software = Some(agent.software.to_string());
    row.state = Some(agent.state.to_string());
    row.uptime_s = Some(agent.uptime.as_secs_f64());
    row.law = Some(agent.law.to_string());
    row.share_mbps = figures.share.map(Rate::as_mbps_f64);
    row.floor = (bounds.floor > Segments::ZERO).then(|| bounds.floor.get());
    row.ceiling = (bounds.ceiling < Segments::MAX).then(|| bounds.ceiling.get());
    row.pacing_mbps = bounds.pacing.map(Rate::as_mbps_f64);
    row.senders = Some(figures.senders);
    row.peers = Some(figures.peers);
    let counts = agent.faults.iter().enumerate().filter(|(_, count)| **count > 0);
    row.faults = Some(counts.map(|(kind, count)| (fault_kind(kind), *count)).collect());
    let lasts = |kind: &usize| agent.lasting >> kind & 1 == 1;
    row.lasting_faults = (0..agent.faults.len()).filter(lasts).map(fault_kind).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::exchange;
    use wakeai_control::presence::{AgentFigures, ClockOffset, Label};
    use wakeai_control::{PeerLaw, Traffic};

    #[tokio::test(flavor = "current_thread")]
    async fn a_request_waits_for_its_answer_and_begins_one_query() {
        let (clients, mut requests) = exchange(Err("nothing was asked yet".to_owned()));
        assert_eq!(open(&mut requests), None);
        let answering = async {
            requests.changed().await.unwrap();
            assert_eq!(open(&mut requests), Some((1, true)));
            requests.answer(1, Ok(Fleet { query: 7, ..Fleet::default() }));
        };
        let (shown, ()) = tokio::join!(ask(&clients, true), answering);
        assert_eq!(shown.unwrap().query, 7);
        assert_eq!(open(&mut requests), None);
        let answering = async {
            requests.changed().await.unwrap();
            assert_eq!(open(&mut requests), Some((2, false)));
            requests.answer(2, Err("no access point".to_owned()));
        };
        let (shown, ()) = tokio::join!(ask(&clients, false), answering);
        assert_eq!(shown.unwrap_err(), "no access point");
    }

    #[test]
    fn what_a_station_receives_is_in_its_row_and_an_answer_leaves_it() {
        let down = Traffic { active: true, rate: Rate::from_mbps(7), ..Traffic::default() };
        let peer = PeerView {
            station: StationId(3),
            interval: Duration::from_secs(1),
            age: Duration::from_secs(9),
            announced: Announcement { down, ..Announcement::default() },
            law: PeerLaw::Unknown,
        };
        let mut row = announced(&peer, &CommonLaw::default());
        let answer = FleetAnswer {
            station: peer.station,
            query: 2,
            age: Duration::ZERO,
            clock: None,
            figures: StationFigures::default(),
        };
        answered(&mut row, &answer, true);
        assert_eq!(row.received.map(|of| of.rate_mbps), Some(7.0));
    }

    #[test]
    fn an_answer_adds_to_what_a_later_message_announces() {
        let mut faults = [0; 16];
        (faults[4], faults[15]) = (3, 1);
        let figures = StationFigures {
            agent: AgentFigures {
                software: Label::new("0.9.0"),
                faults,
                lasting: 1 << 15,
                ..AgentFigures::default()
            },
            announced: Announcement {
                up: Traffic { rate: Rate::from_mbps(5), ..Traffic::default() },
                ..Announcement::default()
            },
            ..StationFigures::default()
        };
        let answer = FleetAnswer {
            station: StationId(3),
            query: 2,
            age: Duration::from_secs(9),
            clock: Some(ClockOffset { ahead_nanos: -1_500_000, error: Duration::from_micros(500) }),
            figures,
        };
        let mut row =
            FleetStation { heard_s: Some(1.0), delivery_rate_mbps: 8.0, ..FleetStation::default() };
        answered(&mut row, &answer, false);
        assert_eq!(
            (row.delivery_rate_mbps, row.answer_age_s, row.answered),
            (8.0, Some(9.0), false)
        );
        assert_eq!((row.clock_ahead_ms, row.clock_error_ms), (Some(-1.5), Some(0.5)));
        assert_eq!(row.software.as_deref(), Some("0.9.0"));
        let faults = row.faults.clone().unwrap();
        // A newer agent may have kinds of faults that this one does not know.
        assert_eq!((faults["send"], faults["kind_15"], faults.len()), (3, 1, 2));
        assert_eq!(row.lasting_faults, ["kind_15"]);
        row.heard_s = Some(30.0);
        answered(&mut row, &answer, true);
        assert_eq!((row.delivery_rate_mbps, row.answered), (5.0, true));
    }
}
