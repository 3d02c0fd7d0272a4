//! The report of a tick, from which the local API answers.

use std::collections::BTreeMap;

use wakeai_api::{
    Body, BoundsReport, Connection, DatagramFlow, Drift, Holds, LawDifference, OtherLaw, Peer,
    Received, Reservation, State, Status, Targets, part_of_one,
};
use wakeai_control::common::Differing;
use wakeai_control::{
    AirtimeState, Bounds, CommonLaw, Controller, Observation, PeerLaw, PeerView, ReservationState,
    Traffic,
};
use wakeai_kernel::TcpSnapshot;
use wakeai_units::{Bytes, Rate, Segments};

use crate::counters::Counts;
use crate::datagrams::KnownFlow;
use crate::distributions::Distributions;

/// Everything that the API shows, as of the last tick.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// The status without its connections: to make these for a client is most of the work.
    pub(crate) status: Option<Status>,
    pub(crate) connections: Connections,
    pub(crate) peers: Vec<Peer>,
    pub(crate) bounds: BoundsReport,
    pub(crate) targets: Targets,
    pub(crate) counts: Counts,
    /// The state of the law `airtime`; `None` with another law, and while the station sends nothing.
    pub(crate) airtime: Option<AirtimeState>,
    pub(crate) distributions: Distributions,
    /// For each thing that the stations have to hold in common: the number of peers that hold something
    /// else.
    pub(crate) differing: BTreeMap<Differing, usize>,
}

impl Report {
    pub(crate) fn status(&self) -> Result<Body, String> {
        let status = self.status.as_ref().ok_or("the agent has not had its first tick yet")?;
        let connections = self.connections.iter().map(|(of, sends)| connection(of, sends));
        let connections = connections.collect();
        Ok(Body::Status(Box::new(Status { connections, ..status.clone() })))
    }
}

/// The connections that the last tick read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connections {
    read: Vec<TcpSnapshot>,
    sends: Vec<bool>,
}

impl Connections {
    /// `sends` says of each connection whether it has data to send.
    pub(crate) fn new(read: Vec<TcpSnapshot>, sends: Vec<bool>) -> Self {
        assert_eq!(read.len(), sends.len(), "each connection has its own");
        Self { read, sends }
    }

    /// The connections, and whether they have data to send.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&TcpSnapshot, bool)> {
        self.read.iter().zip(self.sends.iter().copied())
    }
}

pub(crate) fn peer(peer: &PeerView, admitted: bool, own: &CommonLaw) -> Peer {
    let announced = &peer.announced;
    let law = match &peer.law {
        PeerLaw::Holds(law) => Some(law),
        PeerLaw::Unknown | PeerLaw::Unannounced => None,
    };
    Peer {
        station: peer.station.to_string(),
        sending: announced.up.active,
        delivery_rate_mbps: announced.up.rate.as_mbps_f64(),
        max_mbps: announced.up.max_rate.map(Rate::as_mbps_f64),
        min_rtt_ms: announced.up.min_rtt.map(wakeai_units::Duration::as_millis_f64),
        growth_ms: announced.up.growth.as_millis_f64(),
        received: received(&announced.down),
        reserved_mbps: announced.reservation.map(|of| of.rate.as_mbps_f64()),
        reserved_share: announced.reservation.map(|of| part_of_one(of.share)),
        admitted,
        law: law.map(|law| law.law.to_string()),
        law_version: law.map(|law| law.version),
        holds: holds(&peer.law, own),
        interval_ms: peer.interval.as_millis_f64(),
        age_ms: peer.age.as_millis_f64(),
    }
}

/// What a station receives. It is `None` while the station receives nothing.
pub(crate) fn received(down: &Traffic) -> Option<Received> {
    (down.active || down.rate > Rate::ZERO).then(|| Received {
        rate_mbps: down.rate.as_mbps_f64(),
        max_mbps: down.max_rate.map(Rate::as_mbps_f64),
        min_rtt_ms: down.min_rtt.map(wakeai_units::Duration::as_millis_f64),
        growth_ms: down.growth.as_millis_f64(),
    })
}

/// Whether a peer holds what this station holds.
pub(crate) fn holds(peer: &PeerLaw, own: &CommonLaw) -> Option<Holds> {
    match peer {
        PeerLaw::Unknown => None,
        PeerLaw::Unannounced => Some(Holds::Unannounced),
        PeerLaw::Holds(_) if peer.differs(own) => Some(Holds::Other),
        PeerLaw::Holds(_) => Some(Holds::Same),
    }
}

/// The peers that hold something else than this station. Those that hold the same are together.
pub(crate) fn other_laws(peers: impl Iterator<Item = PeerView>, own: &CommonLaw) -> Vec<OtherLaw> {
    let mut by_law: BTreeMap<PeerLaw, Vec<String>> = BTreeMap::new();
    for peer in peers.filter(|peer| peer.law.differs(own)) {
        by_law.entry(peer.law).or_default().push(peer.station.to_string());
    }
    let groups = by_law.into_iter().map(|(law, stations)| {
        let PeerLaw::Holds(theirs) = law else {
            return OtherLaw { stations, law: None, law_version: None, differs: Vec::new() };
        };
        let differs = own.differences(&theirs).into_iter().map(|of| LawDifference {
            what: of.what.key().to_owned(),
            own: of.own,
            theirs: of.theirs,
        });
        let (law, law_version) = (Some(theirs.law.to_string()), Some(theirs.version));
        OtherLaw { stations, law, law_version, differs: differs.collect() }
    });
    groups.collect()
}

/// For each thing that differs, the number of peers with which it differs. A peer that announces no law
/// has an earlier version.
pub(crate) fn differing(
    peers: impl Iterator<Item = PeerView>,
    own: &CommonLaw,
) -> BTreeMap<Differing, usize> {
    let mut counts: BTreeMap<_, _> = Differing::ALL.iter().map(|what| (*what, 0)).collect();
    for peer in peers {
        let differs = match &peer.law {
            PeerLaw::Unknown => Vec::new(),
            PeerLaw::Unannounced => vec![Differing::Version],
            PeerLaw::Holds(theirs) => {
                own.differences(theirs).into_iter().map(|of| of.what).collect()
            }
        };
        for what in differs {
            *counts.entry(what).or_default() += 1;
        }
    }
    counts
}

pub(crate) fn drift((age, drift): (std::time::Duration, &wakeai_host::Drift)) -> Drift {
    Drift {
        change: drift.change.what(),
        found: drift.found.clone(),
        outcome: drift.outcome.to_string(),
        age_s: age.as_secs_f64(),
    }
}

/// The station's own reservation. It is `None` if the station asks for none.
pub(crate) fn reservation(controller: &Controller) -> Option<Reservation> {
    let (rate, state) = controller.reservation();
    let announced = controller.announced_reservation();
    rate.map(|rate| Reservation {
        share: announced.map(|of| part_of_one(of.share)),
        claim: announced.map(|of| part_of_one(of.claim)),
        short: announced.is_some_and(|of| of.short),
        ..Reservation::new(rate, state)
    })
}

/// A reservation of a station that has no access point yet.
pub(crate) fn postponed(rate: Rate) -> Reservation {
    let why = State::WaitingForAccessPoint.words().to_owned();
    Reservation { why, ..Reservation::new(rate, ReservationState::Waiting) }
}

fn connection(snapshot: &TcpSnapshot, sending: bool) -> Connection {
    Connection {
        local: snapshot.socket.local,
        remote: snapshot.socket.remote,
        algorithm: snapshot.algorithm.to_string(),
        sending,
        cwnd: snapshot.figures.cwnd.get(),
        rtt_ms: snapshot.figures.smoothed_rtt.map_or(0.0, wakeai_units::Duration::as_millis_f64),
    }
}

/// The largest number of flows of UDP that the API shows.
const FLOWS_SHOWN: usize = 64;

/// Those flows of UDP that have a rate, and then those that send most.
pub(crate) fn datagrams<'a>(flows: impl Iterator<Item = &'a KnownFlow>) -> Vec<DatagramFlow> {
    let mut flows: Vec<_> = flows.collect();
    flows.sort_by_key(|of| std::cmp::Reverse((of.bound.is_some(), of.rate)));
    flows.truncate(FLOWS_SHOWN);
    flows.into_iter().map(datagram_flow).collect()
}

fn datagram_flow(of: &KnownFlow) -> DatagramFlow {
    let flow = &of.flow;
    DatagramFlow {
        local: flow.flow.local.to_string(),
        remote: flow.flow.remote.to_string(),
        rate_mbps: of.rate.as_mbps_f64(),
        datagram_bytes: of.mean.get(),
        bound_mbps: of.bound.map(Rate::as_mbps_f64),
        queue_ms: flow.backlog.as_millis_f64(),
        delayed: flow.delayed,
        marked: flow.marked,
        dropped: flow.dropped,
        tunnel: flow.is_tunnel,
    }
}

/// Bounds without the reasons for them.
pub(crate) fn bounds(law: &str, bounds: Bounds) -> BoundsReport {
    BoundsReport {
        law: law.to_owned(),
        floor: (bounds.floor > Segments::ZERO).then(|| bounds.floor.get()),
        ceiling: (bounds.ceiling < Segments::MAX).then(|| bounds.ceiling.get()),
        pacing_mbps: bounds.pacing.map(Rate::as_mbps_f64),
        small_queue_bytes: (bounds.small_queue > Bytes::ZERO).then(|| bounds.small_queue.get()),
        receive: (bounds.receive < Segments::MAX).then(|| bounds.receive.get()),
        unwindowed_mbps: bounds.rate.map(Rate::as_mbps_f64),
        ..BoundsReport::default()
    }
}

/// The rates of an observation, with the station's share.
pub(crate) fn targets(seen: &Observation, share: Option<Rate>) -> Targets {
    Targets {
        senders: seen.senders.max(1),
        total_mbps: seen.total_rate.as_mbps_f64(),
        max_mbps: seen.up.max_rate.map(Rate::as_mbps_f64),
        share_mbps: share.map(Rate::as_mbps_f64),
        delivery_rate_mbps: seen.up.delivery_rate.as_mbps_f64(),
        access_point_buffer: seen.access_point_buffer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_bound_is_null() {
        let none = bounds("airtime", Bounds::NONE);
        assert_eq!((none.floor, none.ceiling, none.pacing_mbps), (None, None, None));
        let window = Bounds::window(Segments::new(10), Segments::new(50));
        let some = bounds("fixed", window);
        assert_eq!((some.floor, some.ceiling), (Some(10), Some(50)));
        assert_eq!((none.small_queue_bytes, some.small_queue_bytes), (None, None));
        let share = Bounds { small_queue: Bytes::new(9), ..window };
        assert_eq!(bounds("fixed", share).small_queue_bytes, Some(9));
        let rate = Bounds { rate: Some(Rate::from_mbps(3)), ..window };
        assert_eq!(bounds("fixed", rate).unwindowed_mbps, Some(3.0));
        let receive = Bounds { receive: Segments::new(40), ..window };
        assert_eq!((some.receive, bounds("fixed", receive).receive), (None, Some(40)));
    }

    #[test]
    fn peers_that_hold_the_same_other_law_are_one_entry() {
        use wakeai_control::common::QueueParameters;
        use wakeai_control::{Announcement, ControllerConfig, LawConfig, LawName, StationId};
        use wakeai_units::Duration;

        let config = ControllerConfig::new(StationId(1), [2; 6], [7; 32]);
        let own = CommonLaw::new(Some(&LawConfig::new(LawName::Airtime)), &config);
        let max = Duration::from_millis(50);
        let queue = own.queue.map(|queue| QueueParameters { max, ..queue });
        let other = PeerLaw::Holds(CommonLaw { queue, ..own });
        let laws = [other, PeerLaw::Holds(own), PeerLaw::Unannounced, PeerLaw::Unknown, other];
        let peer = |(number, law)| PeerView {
            station: StationId(number),
            interval: Duration::ZERO,
            age: Duration::ZERO,
            announced: Announcement::default(),
            law,
        };
        let peers = || (2..).zip(laws).map(peer);
        let found = other_laws(peers(), &own);
        let stations: Vec<usize> = found.iter().map(|of| of.stations.len()).collect();
        assert_eq!(stations, [1, 2]);
        assert_eq!((found[0].law.as_deref(), found[1].law.as_deref()), (None, Some("airtime")));
        let differs = &found[1].differs[0];
        assert_eq!(
            (differs.what.as_str(), differs.own.as_str(), differs.theirs.as_str()),
            ("law.queue_max", "75ms", "50ms")
        );
        let counts = differing(peers(), &own);
        assert_eq!((counts[&Differing::QueueMax], counts[&Differing::Version]), (2, 1));
        assert_eq!(counts.values().sum::<usize>(), 3);
        let held = laws.map(|law| holds(&law, &own));
        assert_eq!(held[..2], [Some(Holds::Other), Some(Holds::Same)]);
        assert_eq!(held[2..4], [Some(Holds::Unannounced), None]);
    }

    #[test]
    fn before_the_first_tick_a_status_is_refused() {
        assert!(Report::default().status().is_err());
    }
}
