//! Properties that the bounds of every law have at every observation.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use wakeai_connection::{CongestionState, Figures};
use wakeai_control::{
    Actuation, Announcement, Bounds, ConnectionView, LawConfig, LawName, Limit, Observation,
    OwnTraffic, PeerLaw, PeerView, RttView, RttWatch, StationId, Traffic,
};
use wakeai_units::{Bytes, Duration, Instant, Rate, Segments};

/// Small, usual and extreme values.
fn extreme() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1_u64..100, 100_u64..1_000_000, any::<u64>(), Just(u64::MAX)]
}

fn span() -> impl Strategy<Value = Duration> {
    // The kernel counts microseconds in 32 bits.
    prop_oneof![Just(0_u64), 1_u64..1_000, 1_000_u64..2_000_000, Just(u64::from(u32::MAX))]
        .prop_map(Duration::from_micros)
}

fn rtt() -> impl Strategy<Value = Option<Duration>> {
    proptest::option::of(span())
}

prop_compose! {
    fn connection()(
        id in 0_u64..4, cwnd: u32, packets_out: u32, mss in prop_oneof![Just(0_u64), 1_u64..65_536],
        rtts in (rtt(), rtt(), rtt()), delivered: u32, state in 0_u8..5, sending: bool, new: bool,
        limit in prop_oneof![Just(Limit::Window), Just(Limit::Rate), Just(Limit::Nothing)],
    ) -> ConnectionView {
        let figures = Figures {
            cwnd: Segments::new(cwnd),
            mss: Bytes::new(mss),
            smoothed_rtt: rtts.0,
            latest_rtt: rtts.1,
            min_rtt: rtts.2,
            packets_out: Segments::new(packets_out),
            congestion_state: CongestionState::from_number(state),
            ..Figures::default()
        };
        ConnectionView { id, figures, limit, delivered, active: sending, begins: sending && new }
    }
}

prop_compose! {
    fn traffic()(
        active: bool, rate in extreme(), max_rate in option(), growth in span(),
        min_rtt in proptest::option::of(span()),
    ) -> Traffic {
        Traffic { active, rate: Rate::from_bps(rate), max_rate, min_rtt, growth }
    }
}

prop_compose! {
    fn peer()(
        station in 0_u64..10, up in traffic(), down in traffic(), link_rate in option(),
    ) -> PeerView {
        PeerView {
            station: StationId(station),
            interval: Duration::from_secs(1),
            age: Duration::ZERO,
            announced: Announcement { up, down, link_rate, reservation: None, turn: None },
            law: PeerLaw::Unknown,
        }
    }
}

fn option() -> impl Strategy<Value = Option<Rate>> {
    proptest::option::of(extreme().prop_map(Rate::from_bps))
}

prop_compose! {
    fn own_traffic()(
        connections in proptest::collection::vec(connection(), 0..4),
        rates in (extreme(), extreme()), max_rate in option(),
    ) -> OwnTraffic {
        let [delivery_rate, mean_rate] = [rates.0, rates.1].map(Rate::from_bps);
        OwnTraffic { connections, rtt: None, delivery_rate, mean_rate, max_rate }
    }
}

prop_compose! {
    fn observation()(
        up in own_traffic(), down in own_traffic(),
        peers in proptest::collection::vec(peer(), 0..6), total in extreme(), link_rate in option(),
        buffer: u32, per_ack: u32, uncounted in prop_oneof![3 => Just(0), 1 => 0..u32::MAX],
    ) -> Observation {
        let senders = peers.iter().filter(|peer| peer.announced.is_active()).count() as u32 + 1;
        let senders = senders.saturating_add(uncounted);
        Observation {
            link_rate,
            up,
            down,
            live_peers: peers.len() as u32,
            peers,
            senders,
            unix_time: None,
            total_rate: Rate::from_bps(total),
            access_point_buffer: buffer,
            segments_per_ack: per_ack,
        }
    }
}

/// Each observation for some ticks: much of what a law does takes several ticks of one kind.
fn for_some_ticks(
    seen: impl Strategy<Value = (Observation, Duration)>,
) -> impl Strategy<Value = Vec<(Observation, Duration)>> {
    let each = (seen, prop_oneof![1_usize..3, 1_usize..40]);
    proptest::collection::vec(each, 1..20)
        .prop_map(|all| all.into_iter().flat_map(|(seen, ticks)| vec![seen; ticks]).collect())
}

prop_compose! {
    /// Equal stations with 50 Mbit/s alone and a path of 40 ms, and a member that announces anything.
    fn beside_a_liar()(
        mbps in 0_u64..20, growth_ms in 0_u64..200, equal in 1_u64..10, liar in traffic(), receives: bool,
        link_rate in option(),
    ) -> (Observation, Duration) {
        let ms = Duration::from_millis;
        let (rate, max_rate) = (Rate::from_mbps(mbps), Some(Rate::from_mbps(50)));
        let growth = ms(growth_ms);
        let honest = Traffic { active: true, rate, max_rate, min_rtt: Some(ms(40)), growth };
        let announced = |up| Announcement { up, link_rate: Some(Rate::from_mbps(65)), ..Announcement::default() };
        let lie = Announcement { link_rate, ..Announcement::default() };
        let lie = if receives { Announcement { down: liar, ..lie } } else { Announcement { up: liar, ..lie } };
        let peers: Vec<PeerView> = (0..)
            .zip((1..equal).map(|_| announced(honest)).chain([lie]))
            .map(|(station, announced)| PeerView {
                station: StationId(station),
                interval: Duration::from_secs(1),
                age: Duration::ZERO,
                announced,
                law: PeerLaw::Unknown,
            })
            .collect();
        let rtts = [ms(40 + growth_ms), ms(40)].map(Some);
        let figures = Figures {
            cwnd: Segments::new(40),
            mss: Bytes::new(1448),
            smoothed_rtt: rtts[0],
            latest_rtt: rtts[0],
            min_rtt: rtts[1],
            packets_out: Segments::new(40),
            ..Figures::default()
        };
        let own = ConnectionView { id: 1, figures, delivered: 100, limit: Limit::Window, active: true, begins: false };
        let up = OwnTraffic {
            connections: vec![own],
            delivery_rate: rate,
            mean_rate: rate,
            max_rate,
            ..OwnTraffic::default()
        };
        let count = peers.len() as u32;
        let observation = Observation {
            link_rate: Some(Rate::from_mbps(65)),
            up,
            live_peers: count,
            peers,
            senders: count + 1,
            total_rate: rate * equal,
            ..Observation::default()
        };
        (observation, ms(40))
    }
}

/// Whether all laws keep their promises at these ticks.
fn keeps_its_promises(seen: &[(Observation, Duration)]) -> Result<(), TestCaseError> {
    for &name in LawName::ALL {
        let mut law = LawConfig::new(name).build();
        let (mut up, mut down) = (RttWatch::default(), RttWatch::default());
        for (tick, (observation, common)) in (0_u64..).zip(seen) {
            let now = Instant::ZERO + Duration::from_millis(500) * tick;
            let mut observation = observation.clone();
            observation.unix_time = Some(now.saturating_since(Instant::ZERO));
            observation.up.rtt = up.on_tick(now, &observation.up.connections, *common);
            observation.down.rtt = down.on_tick(now, &observation.down.connections, *common);
            let (bounds, _) = law.on_tick(now, &observation);
            prop_assert!(bounds.floor <= bounds.ceiling);
            prop_assert!(bounds.ceiling >= Segments::new(1), "a window of zero would stall");
            prop_assert!(bounds.receive >= Segments::new(1), "a window of zero would stall");
            let least = Rate::of(observation.up.mss(), Duration::from_millis(500));
            prop_assert!(
                bounds.pacing.is_none_or(|pacing| pacing >= least),
                "a segment that waits for long stalls: {:?}",
                bounds.pacing
            );
            let found = Actuation::new(bounds, &observation);
            let parts = found.sockets.iter().map(|(_, part)| part).chain([&found.default]);
            for part in parts {
                prop_assert_eq!(part.ceiling == Segments::MAX, bounds.ceiling == Segments::MAX);
                prop_assert_eq!(part.receive == Segments::MAX, bounds.receive == Segments::MAX);
                prop_assert!(part.floor <= part.ceiling);
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn no_observation_makes_a_law_panic_or_contradict_itself(
        seen in for_some_ticks((observation(), span())),
    ) {
        keeps_its_promises(&seen)?;
    }

    #[test]
    fn no_member_that_announces_anything_makes_a_law_panic_or_contradict_itself(
        seen in for_some_ticks(beside_a_liar()),
    ) {
        keeps_its_promises(&seen)?;
    }
}

#[test]
fn laws_are_found_by_the_names_that_scenarios_use() {
    for &name in LawName::ALL {
        assert_eq!(LawConfig::new(name).name(), name);
    }
    let names = [0, 1, 2, 3].map(|law: usize| LawName::ALL[law].as_str());
    assert_eq!(names, ["fixed", "shimada-before", "shimada-after", "airtime"]);
}

#[test]
fn fixed_bounds_are_those_that_were_given() {
    let (floor, ceiling) = (Segments::new(5), Segments::new(50));
    let small_queue = Bytes::new(65_535);
    let receive = Segments::new(40);
    let mut law = LawConfig::Fixed { floor, ceiling, small_queue, receive }.build();
    let (bounds, _) = law.on_tick(Instant::ZERO, &Observation::default());
    assert_eq!(bounds, Bounds { floor, ceiling, small_queue, receive, ..Bounds::NONE });
}

#[test]
fn airtime_binds_nothing_while_nothing_is_sent() {
    let mut law = LawConfig::new(LawName::Airtime).build();
    let (bounds, _) = law.on_tick(Instant::ZERO, &Observation::default());
    assert_eq!(bounds, Bounds::NONE);
}

#[test]
fn on_a_path_of_minutes_airtime_paces_at_a_segment_per_tick_at_least() {
    let minutes = Duration::from_secs(134);
    let figures = Figures {
        cwnd: Segments::new(1),
        mss: Bytes::new(65_535),
        packets_out: Segments::new(1),
        ..Figures::default()
    };
    let connection = ConnectionView { figures, active: true, ..ConnectionView::default() };
    let rtt = RttView { current: minutes, min: minutes, growth: Duration::ZERO };
    let connections = vec![connection];
    let up = OwnTraffic { connections, rtt: Some(rtt), ..OwnTraffic::default() };
    let seen = Observation { up, ..Observation::default() };
    let mut law = LawConfig::new(LawName::Airtime).build();
    let pacing = law.on_tick(Instant::ZERO, &seen).0.pacing;
    assert_eq!(pacing, Some(Rate::of(Bytes::new(65_535), Duration::from_millis(500))));
}
