//! The view of a fleet. A client of the local API begins a query, and all stations of the access
//! point answer it.

use std::collections::BTreeMap;
use std::time::Duration as Wait;

use tokio::sync::watch;
use tokio::time::timeout;
use wakeai_api::{Fleet, FleetStation, Holds, OtherVersion};
use wakeai_control::presence::{FleetAnswer, FleetQuery, StationFigures};
use wakeai_control::{CommonLaw, Controller, PeerView, StationId};
use wakeai_units::{Duration, Rate, Segments};

use crate::counters::fault_kind;
use crate::report;

/// The longest time that a client waits for the event loop.
const PATIENCE: Wait = Wait::from_secs(2);

/// The requests of all clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The number of requests so far.
    requests: u64,
    /// The number of requests that begin a query.
    begins: u64,
}

/// The answer of the event loop to all requests up to this number.
pub(crate) type Shown = (u64, Result<Fleet, String>);

/// The clients' end of the channel.
#[derive(Debug)]
pub(crate) struct FleetClients {
    asked: watch::Sender<Asked>,
    shown: watch::Receiver<Shown>,
}

/// The event loop's end of the channel.
#[derive(Debug)]
pub(crate) struct FleetRequests {
    asked: watch::Receiver<Asked>,
    shown: watch::Sender<Shown>,
    begun: u64,
}

/// Creates a channel between the clients and the event loop, and returns its two ends.
pub(crate) fn channel() -> (FleetClients, FleetRequests) {
    let (ask, asked) = watch::channel(Asked::default());
    let (show, shown) = watch::channel((0, Err("nothing was asked yet".to_owned())));
    (FleetClients { asked: ask, shown }, FleetRequests { asked, shown: show, begun: 0 })
}

impl FleetClients {
    /// Returns the answers so far. With `begins`, also begins a query, unless one is under way.
    pub(crate) async fn ask(&self, begins: bool) -> Result<Fleet, String> {
        let mut number = 0;
        self.asked.send_modify(|asked| {
            asked.requests += 1;
            asked.begins += u64::from(begins);
            number = asked.requests;
        });
        let mut shown = self.shown.clone();
        let shown = shown.wait_for(|(of, _)| *of >= number);
        match timeout(PATIENCE, shown).await {
            Ok(Ok(shown)) => shown.1.clone(),
            Ok(Err(_)) | Err(_) => Err("the agent is not deciding: try again later".to_owned()),
        }
    }
}

impl FleetRequests {
    /// Waits for a request.
    pub(crate) async fn changed(&mut self) -> Result<(), watch::error::RecvError> {
        self.asked.changed().await
    }

    /// The number of the newest request without an answer, and whether to begin a query.
    /// Returns `None` if all requests are answered.
    pub(crate) fn open(&mut self) -> Option<(u64, bool)> {
        let asked = *self.asked.borrow_and_update();
        let begins = asked.begins > std::mem::replace(&mut self.begun, asked.begins);
        (asked.requests > self.shown.borrow().0).then_some((asked.requests, begins))
    }

    /// Answers all requests up to this number.
    pub(crate) fn show(&self, number: u64, fleet: Result<Fleet, String>) {
        let _ = self.shown.send_replace((number, fleet)); // returns the previous answer
    }
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
    add_figures(own, &controller.figures());
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
    let announced = &peer.announced;
    FleetStation {
        heard_s: Some(peer.age.as_secs_f64()),
        holds: report::holds(&peer.law, own_law),
        sending: announced.sending,
        delivery_rate_mbps: announced.delivery_rate.as_mbps_f64(),
        max_mbps: announced.max_rate.map(Rate::as_mbps_f64),
        link_rate_mbps: announced.link_rate.map(Rate::as_mbps_f64),
        min_rtt_ms: announced.min_rtt.map(Duration::as_millis_f64),
        growth_ms: announced.growth.as_millis_f64(),
        ..FleetStation::default()
    }
}

/// Adds a station's answer. Values of a presence message that is newer than the answer stay.
fn answered(row: &mut FleetStation, answer: &FleetAnswer, is_to_this_query: bool) {
    let age = answer.age.as_secs_f64();
    let known = row.clone();
    add_figures(row, &answer.figures);
    if known.heard_s.is_some_and(|heard| heard < age) {
        row.sending = known.sending;
        row.delivery_rate_mbps = known.delivery_rate_mbps;
        row.max_mbps = known.max_mbps;
        row.link_rate_mbps = known.link_rate_mbps;
        row.min_rtt_ms = known.min_rtt_ms;
        row.growth_ms = known.growth_ms;
    }
    row.answered = is_to_this_query;
    row.answer_age_s = Some(age);
    row.clock_ahead_ms = answer.clock.map(|clock| clock.ahead_nanos as f64 / 1e6);
    row.clock_error_ms = answer.clock.map(|clock| clock.error.as_millis_f64());
}

fn add_figures(row: &mut FleetStation, figures: &StationFigures) {
    let agent = &figures.agent;
    row.software = Some(agent.software.to_string());
    row.state = Some(agent.state.to_string());
    row.uptime_s = Some(agent.uptime.as_secs_f64());
    row.law = Some(agent.law.to_string());
    row.sending = figures.sending;
    row.delivery_rate_mbps = figures.delivery_rate.as_mbps_f64();
    row.max_mbps = figures.max_rate.map(Rate::as_mbps_f64);
    row.share_mbps = figures.share.map(Rate::as_mbps_f64);
    row.link_rate_mbps = figures.link_rate.map(Rate::as_mbps_f64);
    row.min_rtt_ms = figures.min_rtt.map(Duration::as_millis_f64);
    row.growth_ms = figures.growth.as_millis_f64();
    row.floor = (figures.floor > Segments::ZERO).then(|| figures.floor.get());
    row.ceiling = figures.ceiling.map(Segments::get);
    row.pacing_mbps = figures.pacing.map(Rate::as_mbps_f64);
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
    use wakeai_control::presence::{AgentFigures, ClockOffset, Label};

    #[tokio::test(flavor = "current_thread")]
    async fn a_request_waits_for_its_answer_and_begins_one_query() {
        let (clients, mut requests) = channel();
        assert_eq!(requests.open(), None);
        let answering = async {
            requests.changed().await.unwrap();
            assert_eq!(requests.open(), Some((1, true)));
            requests.show(1, Ok(Fleet { query: 7, ..Fleet::default() }));
        };
        let (shown, ()) = tokio::join!(clients.ask(true), answering);
        assert_eq!(shown.unwrap().query, 7);
        assert_eq!(requests.open(), None);
        let answering = async {
            requests.changed().await.unwrap();
            assert_eq!(requests.open(), Some((2, false)));
            requests.show(2, Err("no access point".to_owned()));
        };
        let (shown, ()) = tokio::join!(clients.ask(false), answering);
        assert_eq!(shown.unwrap_err(), "no access point");
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
            delivery_rate: Rate::from_mbps(5),
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
