//! The controller of one station. It makes the decisions of the station's agent.

use std::collections::VecDeque;

use wakeai_connection::Direction;
use wakeai_units::{Bytes, Duration, Instant, Rate};

use crate::connections::ConnectionWatch;
use crate::driver::TICK;
use crate::presence::{
    AgentFigures, BootId, Endpoint, FleetAnswer, FleetQuery, Opened, OtherVersion,
    PresenceCounters, StationFigures,
};
use crate::rates::{RateTick, RateWatch};
use crate::reservation::Reservations;
use crate::rtt::announced_queue;
use crate::turns::Turns;
use crate::{
    Actuation, Announcement, Connection, ControllerConfig, Decision, Event, Law, LawConfig,
    LawName, Observation, OwnTraffic, PeerView, Permission, Reservation, ReservationState,
    RttWatch, StationId, Traffic, Turn, TurnState,
};

/// The largest number of events that wait for [`Controller::poll_event`]. When there are more, the
/// oldest are dropped.
const EVENT_LIMIT: usize = 4096;

/// Decides on the bounds of a station. The decisions follow from presence messages, the station's
/// connections, reservations and the law.
///
/// Order of calls: [`Controller::handle_datagram`] for each datagram, and
/// [`Controller::tick`] at each tick ([`TICK`]). After either, [`Controller::poll_transmit`]
/// and [`Controller::poll_event`] until each gives `None`. Then the caller waits until
/// [`Controller::next_timeout`]. `now` never goes back.
pub struct Controller {
    law_name: LawName,
    law: Box<dyn Law + Send>,
    governs_downloads: bool,
    presence: Endpoint,
    connections: ConnectionWatch,
    up: DirectionWatch,
    down: DirectionWatch,
    reservations: Reservations,
    turns: Turns,
    /// The request for a turn in the last [`Event::Turn`].
    announced_turn: Option<Turn>,
    /// The reservation of this station in the last [`Event::Reservation`].
    reported: (Option<Rate>, ReservationState),
    observation: Observation,
    decision: Decision,
    now: Instant,
    next_tick: Instant,
    events: VecDeque<Event>,
    agent: AgentFigures,
}

impl Controller {
    /// A controller whose first tick is due at `start`. Datagrams may come before. `boot_id` is random and new
    /// for every controller.
    pub fn new(
        start: Instant,
        config: &ControllerConfig,
        boot_id: [u8; 16],
        law: &LawConfig,
    ) -> Self {
        let observation = Observation {
            access_point_buffer: config.access_point_buffer,
            segments_per_ack: config.segments_per_ack,
            up: OwnTraffic { max_rate: config.max_rate, ..OwnTraffic::default() },
            down: OwnTraffic { max_rate: config.max_down_rate, ..OwnTraffic::default() },
            ..Observation::default()
        };
        let mut reservations = Reservations::new(start, config.station_id, config.reservable);
        reservations.want(config.reserve);
        Self {
            presence: Endpoint::new(start, config, BootId(boot_id)),
            connections: ConnectionWatch::default(),
            up: DirectionWatch::new(config.max_rate),
            down: DirectionWatch::new(config.max_down_rate),
            reservations,
            turns: Turns::new(start, config.station_id),
            announced_turn: None,
            reported: (None, ReservationState::None),
            decision: Decision::none(start, law.name()),
            law_name: law.name(),
            law: law.build(),
            governs_downloads: law.governs_downloads(),
            observation,
            now: Instant::ZERO,
            next_tick: start,
            events: VecDeque::new(),
            agent: AgentFigures::default(),
        }
    }

    /// Changes the keys. The controller then sends its messages under `group_key`, and accepts
    /// messages of others under `group_key` and under each key of `others`. The known peers stay.
    pub fn set_keys(&mut self, group_key: &[u8; 32], others: &[[u8; 32]]) {
        self.presence.set_keys(group_key, others);
    }

    /// Sets the Unix time of [`Instant::ZERO`], the epoch of `now`. Queries and answers carry the
    /// Unix time, presence messages do where the stations' clocks are synchronised, and a law may try something with all
    /// stations at the same time. Call this before each tick, because the system clock may be set.
    pub fn set_unix_at_epoch(&mut self, unix: Duration) {
        self.presence.set_unix_at_epoch(unix);
    }

    /// Takes a datagram from the presence port. An invalid datagram is only counted.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) {
        let opened = self.presence.open(datagram);
        self.handle_opened([(now, &opened)]);
    }

    /// Authenticates and reads a datagram. Every controller with the same keys finds the same, so a
    /// simulation opens a broadcast once and gives it to each of them ([`Controller::handle_opened`]).
    pub fn open(&self, datagram: &[u8]) -> Opened {
        self.presence.open(datagram)
    }

    /// Takes datagrams that were opened, one after another as [`Controller::handle_datagram`] does.
    pub fn handle_opened<'a>(
        &mut self,
        datagrams: impl IntoIterator<Item = (Instant, &'a Opened)>,
    ) {
        for (now, opened) in datagrams {
            self.advance(now);
            self.presence.handle_opened(now, opened);
            self.take_changes();
            self.update_turns(now);
        }
    }

    fn advance(&mut self, now: Instant) {
        debug_assert!(self.now <= now, "the time went back from {} to {now}", self.now);
        self.now = now;
    }

    /// Reads what is known of all senders of presence messages, so that it is in the processor's cache. A
    /// simulation with many controllers calls this before a controller handles many messages.
    pub fn read_ahead(&self) {
        self.presence.answers.read_ahead();
    }

    /// Decides on the bounds until the next tick. `connections` are the station's connections over
    /// the Wi-Fi interface. `link_rate` is the PHY rate of the data frames that the station sends,
    /// where the rate is known.
    ///
    /// The next tick is due one tick length after the time at which this tick was due, so a late
    /// call does not delay later ticks. Missed ticks are skipped.
    pub fn handle_tick(
        &mut self,
        now: Instant,
        link_rate: Option<Rate>,
        connections: &[Connection],
    ) -> Actuation {
        self.advance(now);
        self.next_tick = (self.next_tick + TICK).max(now + TICK / 2);
        self.presence.expire(now);
        self.take_changes();
        self.observe(now, link_rate, connections);
        self.reserve_on_tick(now);
        self.turns.on_tick(now, &self.observation);
        self.update_turns(now);
        self.decision = self.decide(now);
        self.push(Event::Decision(self.decision.clone()));
        Actuation::new(self.decision.bounds, &self.observation)
    }

    fn observe(&mut self, now: Instant, link_rate: Option<Rate>, connections: &[Connection]) {
        let observation = &mut self.observation;
        let was_active = Direction::BOTH.map(|direction| observation.of(direction).is_active());
        observation.link_rate = link_rate;
        observation.unix_time = self.presence.unix_time(now);
        let (up, down) = (&mut observation.up.connections, &mut observation.down.connections);
        self.connections.on_tick(connections, up, down);
        if !self.governs_downloads {
            down.clear();
        }
        let is_active = Direction::BOTH.map(|direction| observation.of(direction).is_active());
        if is_active != was_active {
            self.presence.announce_soon(now);
        }
        self.presence.table.update_active(now, &mut observation.peers);
        observation.live_peers = u32::try_from(self.presence.table.live).unwrap_or(u32::MAX);
        let active_peers =
            observation.peers.iter().filter(|peer| peer.announced.is_active()).count();
        let senders = active_peers + usize::from(observation.is_active());
        observation.senders = u32::try_from(senders).unwrap_or(u32::MAX).max(1);
        self.up.on_tick(now, Direction::Up, observation);
        self.down.on_tick(now, Direction::Down, observation);
        let (up, down) = (self.up.rates.total(), self.down.rates.total());
        observation.total_rate = up.saturating_add(down);
    }

    fn decide(&mut self, now: Instant) -> Decision {
        let (law, seen) = (self.law_name, &self.observation);
        if !law.yields() {
            return Decision::new(now, law, seen, self.law.on_tick(now, seen), None);
        }
        let (bounds, basis) = self.law.on_tick(now, &self.reservations.for_law(seen));
        let (bounds, limit) = self.reservations.bound(bounds, seen);
        Decision::new(now, law, seen, (bounds, basis), limit)
    }

    fn reserve_on_tick(&mut self, at: Instant) {
        if self.reservations.on_tick(at, &self.observation, self.presence.interval) {
            self.presence.announce_soon(at);
        }
        let (rate, state) = self.reservation();
        if self.reported != (rate, state) {
            self.reported = (rate, state);
            self.push(Event::Reservation { at, rate, state });
        }
    }

    /// Takes the number of bytes that this station's transfers have left; `None` where there are no
    /// transfers. Only transfers in turns count: they and the transfers of the peers send one after
    /// another. Call this where transfers begin and end, and before each tick.
    pub fn transfer(&mut self, now: Instant, left: Option<Bytes>) {
        self.advance(now);
        let peers: Vec<PeerView> = self.presence.table.live(now).collect();
        self.turns.want(now, left, &self.observation, &peers);
        self.update_turns(now);
    }

    /// What the station's transfers may do now. The permission can change with each call of another
    /// method.
    pub fn permission(&self) -> Permission {
        self.turns.permission()
    }

    /// The request for a turn as this station announces it.
    pub fn turn(&self) -> Option<Turn> {
        self.turns.announced()
    }

    fn update_turns(&mut self, at: Instant) {
        if self.turn().is_some() {
            let peers: Vec<PeerView> = self.presence.table.live(at).collect();
            self.turns.update(at, &peers);
        }
        let turn = self.turn();
        if turn.is_none() && self.announced_turn.is_none() {
            return;
        }
        let known = |turn: Option<Turn>| turn.map(|turn| (turn.ticket, turn.state));
        if known(turn) != known(self.announced_turn) {
            self.announced_turn = turn;
            let sends = turn.is_some_and(|turn| turn.state != TurnState::Waiting);
            self.presence.announce_turn(at, sends);
            self.push(Event::Turn { at, turn });
        }
    }

    /// Asks the peers to leave `rate` free while this station sends. The request holds from the
    /// next tick on. `None` ends the reservation.
    pub fn reserve(&mut self, rate: Option<Rate>) {
        self.reservations.want(rate);
    }

    /// The rate that this station asks its peers to leave free, and the state of this request.
    pub fn reservation(&self) -> (Option<Rate>, ReservationState) {
        (self.reservations.wanted(), self.reservations.state)
    }

    /// The reservation as this station announces it.
    pub fn announced_reservation(&self) -> Option<Reservation> {
        self.reservations.announced()
    }

    /// Whether the reservation of `peer` is admitted.
    pub fn admits(&self, peer: StationId) -> bool {
        self.reservations.admits(peer)
    }

    /// Takes the datagram that is due. The caller broadcasts it on the Wi-Fi interface.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.advance(now);
        if self.turns.next_timeout.is_some_and(|due| due <= now) {
            self.update_turns(now);
        }
        if self.presence.next_timeout() > now {
            return None;
        }
        let own = self.announcement();
        if let Some(datagram) = self.presence.poll_transmit(now, &own) {
            return Some(datagram);
        }
        let (agent, seen, decision) = (self.agent, &self.observation, &self.decision);
        let figures = || figures(agent, seen, decision, &own);
        self.presence.poll_fleet(now, own.link_rate, figures)
    }

    fn announcement(&self) -> Announcement {
        let seen = &self.observation;
        Announcement {
            up: traffic(&seen.up),
            // While a station receives nothing, nobody has to know what it would reach.
            down: Some(traffic(&seen.down))
                .filter(|down| down.active || down.rate > Rate::ZERO)
                .unwrap_or_default(),
            link_rate: seen.link_rate,
            reservation: self.reservations.announced(),
            turn: self.turns.announced(),
        }
    }

    /// The figures with which this station answers a query.
    pub fn figures(&self) -> StationFigures {
        let own = self.announcement();
        figures(self.agent, &self.observation, &self.decision, &own)
    }

    /// Sets the figures of the program that drives this controller. Answers to queries contain
    /// them.
    pub fn set_agent_figures(&mut self, figures: AgentFigures) {
        self.agent = figures;
    }

    /// Asks the other stations for their figures, unless a query is under way. Returns the number
    /// of the query. The query and the answers are sent when the limit of the airtime (0.5 %)
    /// allows it.
    pub fn ask_fleet(&mut self, now: Instant) -> u64 {
        self.advance(now);
        self.presence.ask_fleet(now)
    }

    /// The state of the last query.
    pub fn fleet_query(&self) -> Option<FleetQuery> {
        self.presence.fleet_query(self.now)
    }

    /// The last answer of each station, in the order of their ids.
    pub fn fleet_answers(&self) -> impl Iterator<Item = FleetAnswer> {
        self.presence.fleet_answers(self.now)
    }

    /// Takes the last message of a version that this program does not read. Call this after
    /// [`Controller::handle_datagram`].
    pub fn take_other_version(&mut self) -> Option<OtherVersion> {
        self.presence.other_version.take()
    }

    /// The earliest of three times: the next tick, the next message, and the next decision on
    /// turns.
    pub fn next_timeout(&self) -> Option<Instant> {
        Some(self.next_transmit().min(self.next_tick))
    }

    /// The earlier of two times: the next message, and the next decision on turns. At this time
    /// [`Controller::poll_transmit`] is due.
    pub fn next_transmit(&self) -> Instant {
        let next = self.presence.next_timeout();
        self.turns.next_timeout.map_or(next, |turn| turn.min(next))
    }

    /// The time at which the next [`Controller::handle_tick`] is due.
    pub fn next_tick(&self) -> Instant {
        self.next_tick
    }

    /// The time at which the next message may be due.
    pub fn next_message(&self) -> Instant {
        self.presence.next_timeout()
    }

    /// Whether ticks without connections may be made late, each with the time at which it was due:
    /// nothing that the station sends, and no time at which it sends, depends on them until it is
    /// asked something else. This is so while it neither sends nor receives, and asks neither for a rate
    /// nor for a turn.
    pub fn ticks_can_wait(&self) -> bool {
        let asks = self.reservation() != (None, ReservationState::None) || self.turn().is_some();
        !asks && !self.observation.is_active()
    }

    /// Takes the oldest event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The counters of presence datagrams.
    pub fn counters(&self) -> &PresenceCounters {
        &self.presence.counters
    }

    /// The live peers, in the order of their ids.
    pub fn peers(&self) -> impl Iterator<Item = PeerView> {
        self.presence.table.live(self.now)
    }

    /// The observation of the last tick.
    pub fn observation(&self) -> &Observation {
        &self.observation
    }

    /// The decision of the last tick. Before the first tick it has no bounds.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    fn take_changes(&mut self) {
        let at = self.now;
        while let Some(change) = self.presence.changes.pop_front() {
            self.push(Event::Peer { at, change });
        }
    }

    fn push(&mut self, event: Event) {
        if self.events.len() == EVENT_LIMIT {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

/// Watches what the station moves in one direction.
#[derive(Debug, Default)]
struct DirectionWatch {
    rtt: RttWatch,
    rates: RateWatch,
}

impl DirectionWatch {
    /// Watches a station that reaches `max_rate` alone, where that is configured.
    fn new(max_rate: Option<Rate>) -> Self {
        Self { rates: RateWatch::new(max_rate), ..Self::default() }
    }

    /// Completes what is seen of this direction, from the connections and the peers.
    fn on_tick(&mut self, now: Instant, direction: Direction, seen: &mut Observation) {
        let queue = announced_queue(&seen.peers, direction);
        let connections = &seen.of(direction).connections;
        let rtt = self.rtt.on_tick(now, connections, queue);
        let growth = rtt.map_or(Duration::ZERO, |rtt| rtt.growth);
        let (link_rate, other) = (seen.link_rate, seen.of(direction.other()));
        let other_is_idle = !other.is_active();
        let tick = RateTick { direction, connections, link_rate, other_is_idle };
        self.rates.on_tick(now, tick, &seen.peers, growth);
        let own = seen.of_mut(direction);
        own.rtt = rtt;
        own.delivery_rate = self.rates.rate;
        own.mean_rate = self.rates.mean();
        own.max_rate = self.rates.alone();
    }
}

/// What a station announces about one direction.
fn traffic(own: &OwnTraffic) -> Traffic {
    Traffic {
        active: own.is_active(),
        rate: own.mean_rate,
        max_rate: own.max_rate,
        min_rtt: own.rtt.map(|rtt| rtt.min),
        growth: own.rtt.map_or(Duration::ZERO, |rtt| rtt.growth),
    }
}

/// The figures with which a station answers a query.
fn figures(
    agent: AgentFigures,
    seen: &Observation,
    decision: &Decision,
    own: &Announcement,
) -> StationFigures {
    let count = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    StationFigures {
        agent,
        announced: *own,
        share: decision.share,
        bounds: decision.bounds,
        senders: count(seen.senders as usize),
        peers: count(seen.live_peers as usize),
    }
}

#[cfg(test)]
mod tests {
    use wakeai_units::Segments;

    use super::*;
    use crate::{AirtimeKnobs, LawConfig, Limit, StationId};

    fn controller_with(change: impl FnOnce(&mut ControllerConfig)) -> Controller {
        let mut config = ControllerConfig::new(StationId(1), [2; 6], [7; 32]);
        change(&mut config);
        let law = LawConfig::by_hand(Segments::new(1), Segments::new(50));
        Controller::new(Instant::ZERO, &config, [1; 16], &law)
    }

    fn controller() -> Controller {
        controller_with(|_| ())
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn sending() -> Vec<Connection> {
        let figures = crate::observation::example().figures;
        vec![Connection { id: 1, figures, limit: Limit::Window, ..Connection::default() }]
    }

    #[test]
    fn a_late_tick_delays_no_later_one_and_missed_ones_are_skipped() {
        let mut controller = controller();
        assert_eq!(controller.next_tick(), at(0));
        let mut next_after = |millis| {
            controller.handle_tick(at(millis), None, &[]);
            controller.next_tick()
        };
        assert_eq!(next_after(0), at(500));
        assert_eq!(next_after(600), at(1_000));
        assert_eq!(next_after(1_000), at(1_500));
        assert_eq!(next_after(9_000), at(9_250));
    }

    #[test]
    fn the_next_timeout_is_that_of_the_tick_or_of_the_message() {
        let mut controller = controller();
        for _ in 0..100 {
            let now = controller.next_timeout().expect("a controller always has a next tick");
            let is_tick = controller.next_tick() <= now;
            if is_tick {
                controller.handle_tick(now, None, &[]);
            }
            let sent = controller.poll_transmit(now).is_some();
            assert!(is_tick || sent, "a timeout without work");
            assert!(controller.next_timeout() > Some(now));
        }
    }

    #[test]
    fn a_tick_decides_by_what_its_caller_hands_over() {
        let mut controller = controller();
        let (left, reserve) = (Some(Bytes::new(1_000_000)), Some(Rate::from_mbps(5)));
        let connections = sending();
        let station =
            crate::StationTick { connections: &connections, left, reserve, link_rate: None };
        controller.tick(at(0), &station);
        assert!(controller.turn().is_some(), "something is left to transfer");
        assert_eq!(controller.reservation().0, reserve);
        controller.tick(at(500), &crate::StationTick { left: None, reserve: None, ..station });
        assert_eq!(controller.reservation().0, None);
        assert!(controller.turn().is_some(), "only the end of the transfers ends the request");
    }

    #[test]
    fn the_start_and_the_end_of_sending_are_announced_soon() {
        // At this basic rate (the rate of broadcasts) a regular message is due at most once per
        // second.
        let mut controller = controller_with(|config| config.basic_rate = Rate::from_mbps(1));
        let views = [sending(), Vec::new()];
        let mut view = Vec::new();
        let mut news = Vec::new();
        let mut sent = Vec::new();
        for now in (0..40_000).map(at) {
            if sent.len() >= 10 * (news.len() + 1) && news.len() < 2 && sent.last() < Some(&now) {
                view = views[news.len()].clone();
                news.push((sent[sent.len() - 1], now));
                controller.handle_tick(now, None, &view);
            } else if controller.next_tick() <= now {
                controller.handle_tick(now, None, &view);
            }
            if controller.poll_transmit(now).is_some() {
                sent.push(now);
            }
        }
        assert_eq!(news.len(), 2);
        for (last, at) in news {
            let next = *sent.iter().find(|sent| **sent >= at).expect("it is sent");
            let soon = (last + Duration::from_millis(500)).max(at) + Duration::from_millis(125);
            assert!(next <= soon + Duration::from_millis(1), "{at}: {next}");
        }
    }

    #[test]
    fn a_sending_station_counts_as_a_sender_and_is_bound() {
        let mut controller = controller();
        let found = controller.handle_tick(at(0), None, &sending());
        let (seen, decision) = (controller.observation(), controller.decision());
        assert_eq!((seen.senders, decision.bounds.ceiling.get()), (1, 50));
        let ceilings = (found.sockets[0].1.ceiling, found.default.ceiling);
        assert_eq!(ceilings, (Segments::new(50), Segments::new(12)));
    }

    #[test]
    fn what_a_law_of_uploads_alone_receives_is_neither_bounded_nor_announced() {
        let receives = |downloads| {
            let mut config = ControllerConfig::new(StationId(1), [2; 6], [7; 32]);
            config.max_down_rate = Some(Rate::from_mbps(50));
            let law = LawConfig::Airtime(AirtimeKnobs { downloads, ..AirtimeKnobs::default() });
            let mut controller = Controller::new(Instant::ZERO, &config, [1; 16], &law);
            let mut connection = Connection { id: 1, ..Connection::default() };
            let receiving = &mut connection.receiving;
            receiving.mss = Bytes::new(1448);
            receiving.window = Bytes::new(300_000);
            receiving.rtt = Some(Duration::from_millis(40));
            for tick in 0..8 {
                connection.receiving.received += 500 * 1448;
                controller.handle_tick(at(tick * 500), None, &[connection]);
            }
            let active =
                [controller.observation.is_active(), controller.announcement().down.active];
            (controller.decision.bounds.receive, active)
        };
        let (window, active) = receives(true);
        assert!(window < Segments::MAX && active == [true; 2], "{window}, {active:?}");
        assert_eq!(receives(false), (Segments::MAX, [false; 2]));
    }

    #[test]
    fn the_oldest_events_are_dropped_beyond_the_limit() {
        let mut controller = controller();
        for tick in 0..10_000 {
            controller.handle_tick(at(tick * 500), None, &[]);
        }
        assert_eq!(controller.events.len(), EVENT_LIMIT);
        let last = controller.events.pop_back();
        assert!(matches!(last, Some(Event::Decision(of)) if of.at == at(9_999 * 500)));
    }
}
