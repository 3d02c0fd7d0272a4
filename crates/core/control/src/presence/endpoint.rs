//! The endpoint of a station's presence messages. It receives datagrams and keeps the table of live
//! peers, and it announces the station.

use std::collections::VecDeque;

use wakeai_units::{Duration, Instant, Rate};

use super::challenge::{Answers, Challenges};
use super::codec::{LAW_SLOTS, answer_slots, is_like_a_tag};
use super::fleet::{
    ANSWER_LEN, Fleet, FleetAnswer, FleetCodec, FleetContent, FleetMessage, FleetQuery, QUERY_LEN,
    StationFigures, Taken, window,
};
use super::received::{Head, Received};
use super::schedule::{Schedule, airtime, airtime_of, longest_interval};
use super::table::{Gone, PeerTable, Verdict};
use super::{BootId, Codec, DecodeError, LAW_EVERY, OtherVersion, Presence, PresenceCounters};
use crate::common::{CommonLaw, PeerLaw};
use crate::{Announcement, Clocks, ControllerConfig, PeerChange, StationId};

/// Sends and receives presence messages, queries and answers.
///
/// Order of calls: [`Endpoint::open`] and [`Endpoint::handle_opened`] for each datagram, and
/// [`Endpoint::expire`] at each tick. When [`Endpoint::next_timeout`] has come, [`Endpoint::poll_transmit`] and
/// [`Endpoint::poll_fleet`]. After each of them, the `changes` are taken.
/// `now` never goes back.
pub(crate) struct Endpoint {
    station: StationId,
    bssid: [u8; 6],
    boot: BootId,
    basic_rate: Rate,
    /// The airtime of a message of a peer whose PHY rate is not known.
    slowest: Duration,
    clocks: Clocks,
    law: Option<CommonLaw>,
    codec: Codec,
    sequence: u64,
    /// The interval that this station announced in its last message; zero before the first message.
    pub(crate) interval: Duration,
    pub(crate) table: PeerTable,
    challenges: Challenges,
    pub(crate) answers: Answers,
    schedule: Schedule,
    pub(crate) counters: PresenceCounters,
    /// The changes that were not taken yet, the oldest first.
    pub(crate) changes: VecDeque<PeerChange>,
    fleet: Fleet,
    fleet_codec: FleetCodec,
    /// The Unix time of `Instant::ZERO`; `None` until `set_unix_at_epoch` is called.
    unix_at_epoch: Option<Duration>,
    /// The last message of a version that this program does not read.
    pub(crate) other_version: Option<OtherVersion>,
}

/// A datagram that was authenticated and read, or the reason why it is refused.
///
/// The result depends on the keys alone, so it holds for every station with the same keys.
#[derive(Clone, Debug)]
pub struct Opened(Result<DecodedMessage, DecodeError>);

impl Opened {
    /// Whether a station without a request for a turn may handle the datagram later, before it is asked
    /// anything else: nothing that the station does, and no time at which it does something, depends on
    /// the datagram until then. A query or an answer of a fleet is handled at once.
    pub fn can_wait(&self) -> bool {
        !matches!(self.0, Ok(DecodedMessage::Fleet(_)))
    }
}

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all messages are presence messages")]
enum DecodedMessage {
    Presence(Received),
    Fleet(FleetMessage),
}

/// The endpoint answers the challenges of all peers in the table. In addition, it answers the
/// challenges of at most this many incarnations (boot ids) that have not yet proved to be live.
const NEWCOMERS: usize = 64;

impl Endpoint {
    /// An endpoint without peers. `boot` is random and new for every endpoint.
    pub(crate) fn new(now: Instant, config: &ControllerConfig, boot: BootId) -> Self {
        Self {
            station: config.station_id,
            bssid: config.bssid,
            boot,
            basic_rate: config.basic_rate,
            slowest: airtime(config.basic_rate, None),
            clocks: config.clocks,
            law: config.common_law,
            codec: Codec::accepting(&config.group_key, &config.accepted_keys),
            sequence: 0,
            interval: Duration::ZERO,
            table: PeerTable::new(config.peer_limit),
            challenges: Challenges::new(now, &config.group_key, boot),
            answers: Answers::new(config.peer_limit.saturating_add(NEWCOMERS)),
            schedule: Schedule::new(now, boot),
            counters: PresenceCounters::default(),
            changes: VecDeque::new(),
            fleet: Fleet::new(&config.group_key, boot, config.peer_limit),
            fleet_codec: FleetCodec::accepting(&config.group_key, &config.accepted_keys),
            unix_at_epoch: None,
            other_version: None,
        }
    }

    /// Changes the keys. The endpoint then sends its messages under `group_key`, and accepts
    /// messages of others under `group_key` and under each key of `others`. The known peers stay.
    pub(crate) fn set_keys(&mut self, group_key: &[u8; 32], others: &[[u8; 32]]) {
        self.codec = Codec::accepting(group_key, others);
        self.fleet_codec = FleetCodec::accepting(group_key, others);
    }

    /// Sets the Unix time of `Instant::ZERO`, which changes when the system clock is set. Queries
    /// and answers carry this time. Presence messages carry it only where clocks are synchronised.
    pub(crate) fn set_unix_at_epoch(&mut self, unix: Duration) {
        self.unix_at_epoch = Some(unix);
        if let Clocks::Synchronised { unix_at_epoch, .. } = &mut self.clocks {
            *unix_at_epoch = unix;
        }
    }

    /// Authenticates and reads a datagram.
    pub(crate) fn open(&self, datagram: &[u8]) -> Opened {
        Opened(if FleetCodec::has_format(datagram) {
            self.fleet_codec.decode(datagram).map(DecodedMessage::Fleet)
        } else {
            self.codec
                .decode(datagram)
                .map(|message| DecodedMessage::Presence(Received::new(message)))
        })
    }

    /// Takes a datagram and counts it in exactly one counter.
    pub(crate) fn handle_opened(&mut self, now: Instant, opened: &Opened) {
        match &opened.0 {
            Ok(DecodedMessage::Presence(received)) => self.handle_presence(now, received),
            Ok(DecodedMessage::Fleet(message)) => self.handle_fleet(now, message.clone()),
            Err(error) => self.refuse(*error),
        }
    }

    fn handle_presence(&mut self, now: Instant, received: &Received) {
        let Head { bssid, boot, station, .. } = received.head;
        if let Some(refused) = self.refuse_sender(bssid, boot, station) {
            *refused += 1;
        } else if in_time(self.clocks, now, &received.message) == Some(false) {
            self.counters.stale += 1;
        } else {
            self.hear(now, received);
        }
    }

    /// The counter of a message whose sender is not another station of this access point.
    fn refuse_sender(
        &mut self,
        bssid: [u8; 6],
        boot: BootId,
        station: StationId,
    ) -> Option<&mut u64> {
        let counters = &mut self.counters;
        match () {
            () if bssid != self.bssid => Some(&mut counters.wrong_bssid),
            () if boot == self.boot => Some(&mut counters.own),
            () if station == self.station => Some(&mut counters.duplicate_id),
            () => None,
        }
    }

    fn refuse(&mut self, error: DecodeError) {
        let counters = &mut self.counters;
        *match error {
            DecodeError::Malformed => &mut counters.malformed,
            DecodeError::WrongVersion(other) => {
                self.other_version = Some(other);
                &mut counters.wrong_version
            }
            DecodeError::Forged => &mut counters.forged,
            DecodeError::Invalid => &mut counters.invalid,
        } += 1;
    }

    fn handle_fleet(&mut self, now: Instant, message: FleetMessage) {
        let (station, boot) = (message.station, message.boot);
        if let Some(refused) = self.refuse_sender(message.bssid, boot, station) {
            *refused += 1;
            return;
        }
        *match self.take_fleet(now, message) {
            Taken::Query => &mut self.counters.queries,
            Taken::Answer => &mut self.counters.answers,
            Taken::Unproven => &mut self.counters.unproven,
            Taken::Unasked => &mut self.counters.unasked,
            Taken::Replayed => &mut self.counters.replayed,
            Taken::Full => &mut self.counters.table_full,
        } += 1;
    }

    /// Takes a query or an answer of another station. The second value is true for a query.
    fn take_fleet(&mut self, now: Instant, message: FleetMessage) -> Taken {
        let (station, boot) = (message.station, message.boot);
        match message.content {
            FleetContent::Query(challenge) => {
                self.expire_peers(now, Some(station));
                match self.table.query(station, boot, message.sequence) {
                    Verdict::Updated => {
                        let window = self.window();
                        self.fleet.handle_query(now, station, challenge, window)
                    }
                    Verdict::Replayed => Taken::Replayed,
                    _ => Taken::Unproven,
                }
            }
            FleetContent::Answer { queries, figures } => {
                let times = (self.unix_time(now), message.unix_time);
                self.fleet.handle_answer(now, station, &queries, figures, times)
            }
        }
    }

    /// The time in which the answers of all known stations take 0.5 % of the air, each at the basic
    /// rate.
    fn window(&self) -> Duration {
        window(self.table.len() + 1, airtime_of(ANSWER_LEN, self.basic_rate, None))
    }

    /// The Unix time at `now`; `None` until the clock is set.
    pub(crate) fn unix_time(&self, now: Instant) -> Option<Duration> {
        self.unix_at_epoch.map(|unix_at_epoch| unix_time(unix_at_epoch, now))
    }

    /// Asks the other stations for their figures, unless a query is under way. Returns the number
    /// of the query.
    pub(crate) fn ask_fleet(&mut self, now: Instant) -> u64 {
        self.fleet.ask(now, self.table.live(now).map(|peer| peer.station))
    }

    /// The state of the last query.
    pub(crate) fn fleet_query(&self, now: Instant) -> Option<FleetQuery> {
        self.fleet.query(now, self.table.live(now).map(|peer| peer.station))
    }

    /// The last answer of each station.
    pub(crate) fn fleet_answers(&self, now: Instant) -> impl Iterator<Item = FleetAnswer> {
        self.fleet.answers(now)
    }

    /// Returns the query or the answer that is due. `link_rate` is this station's PHY rate, where
    /// it is known, and `figures` gives the figures for an answer.
    pub(crate) fn poll_fleet(
        &mut self,
        now: Instant,
        link_rate: Option<Rate>,
        figures: impl FnOnce() -> StationFigures,
    ) -> Option<Vec<u8>> {
        if self.fleet.next_timeout().is_none_or(|due| due > now) {
            return None;
        }
        let stations = self.table.len() + 1;
        let cost = |length| airtime_of(length, self.basic_rate, link_rate);
        if !self.schedule.affords(now, stations, cost(ANSWER_LEN)) {
            self.fleet.not_before = self.schedule.next;
            return None;
        }
        let query = self.fleet.take_query(now, self.window());
        let (cost, content) = if let Some(challenge) = query {
            (cost(QUERY_LEN), FleetContent::Query(challenge))
        } else {
            let queries = self.fleet.take_answer(now)?;
            (cost(ANSWER_LEN), FleetContent::Answer { queries, figures: Box::new(figures()) })
        };
        self.schedule.sent_besides(cost);
        self.sequence += 1;
        self.counters.fleet_sent += 1;
        Some(self.fleet_codec.encode(&FleetMessage {
            bssid: self.bssid,
            station: self.station,
            boot: self.boot,
            sequence: self.sequence,
            unix_time: self.unix_time(now),
            content,
        }))
    }

    fn hear(&mut self, now: Instant, received: &Received) {
        let Head { station, boot, sequence, challenge, .. } = received.head;
        self.expire_peers(now, Some(station));
        // Where clocks agree, the time in a message proves that its incarnation is live. This does
        // not hold for an incarnation that was dropped, because a recorded message of it may be
        // younger than the tolerance. A dropped incarnation has to answer a challenge.
        let (clocks, challenges) = (self.clocks, &self.challenges);
        let proven = || {
            let timely = in_time(clocks, now, &received.message) == Some(true);
            (timely && !challenges.retired(boot)) || challenges.prove(received)
        };
        let (stations, slowest) = (self.table.len() + 1, self.slowest);
        let longest = || longest_interval(stations, slowest);
        let verdict = self.table.hear(now, received, longest, proven);
        let answered = !matches!(verdict, Verdict::Replayed | Verdict::Full);
        let new = answered && self.answers.hear(now, boot, sequence, challenge);
        let counter = match verdict {
            Verdict::Updated => &mut self.counters.accepted,
            Verdict::Joined => {
                self.changes.push_back(PeerChange::Joined(station));
                &mut self.counters.accepted
            }
            Verdict::Restarted(old) => {
                self.challenges.retire(now, old);
                self.changes.push_back(PeerChange::Restarted(station));
                &mut self.counters.accepted
            }
            Verdict::Replayed => &mut self.counters.replayed,
            Verdict::Unproven if !new || self.challenges.retired(boot) => {
                &mut self.counters.replayed
            }
            Verdict::Unproven => &mut self.counters.unproven,
            Verdict::Full => &mut self.counters.table_full,
        };
        *counter += 1;
        self.compare_law();
    }

    /// Names a peer whose message has shown that it holds another law than this station, or the same
    /// again.
    fn compare_law(&mut self) {
        let Some((station, before, theirs)) = self.table.law_changed.take() else { return };
        let Some(own) = self.law else { return };
        if theirs.differs(&own) {
            self.changes.push_back(PeerChange::HoldsOther { station, own, theirs });
        } else if theirs != PeerLaw::Unknown && before.differs(&own) {
            self.changes.push_back(PeerChange::HoldsSame(station));
        }
    }

    /// Removes the peers that have been silent for too long.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.fleet.expire(now);
        self.expire_peers(now, None);
    }

    /// Removes all silent peers, or `only` one station where it is due to be removed. After the machine
    /// was suspended, messages are read before the first tick. Unless their senders are looked at
    /// first, they would renew a peer that has to prove again that it is live.
    fn expire_peers(&mut self, now: Instant, only: Option<StationId>) {
        let (changes, challenges) = (&mut self.changes, &mut self.challenges);
        let gone = |gone| match gone {
            Gone::Left(station) => changes.push_back(PeerChange::Left(station)),
            Gone::Dropped(boot) => challenges.retire(now, boot),
        };
        match only {
            Some(station) => self.table.expire_one(now, station, gone),
            None => self.table.expire(now, gone),
        }
    }

    /// Announces this station early. This is for news: the station has begun or ceased to send, or
    /// its reservation has changed.
    pub(crate) fn announce_soon(&mut self, now: Instant) {
        self.schedule.news(now, self.table.len() + 1);
    }

    /// Announces a change of this station's request for a turn. `sends` says whether the transfers
    /// of this station now send.
    pub(crate) fn announce_turn(&mut self, now: Instant, sends: bool) {
        self.schedule.news(now, self.table.len() + 1);
        self.schedule.turn(now, sends);
    }

    /// Returns the message that is due.
    pub(crate) fn poll_transmit(&mut self, now: Instant, own: &Announcement) -> Option<Vec<u8>> {
        let stations = self.table.len() + 1;
        if !self.schedule.due(now, stations) {
            return None;
        }
        let cost = airtime(self.basic_rate, own.link_rate);
        self.interval = self.schedule.sent(now, stations, cost);
        self.sequence += 1;
        self.counters.sent += 1;
        let slots = answer_slots(own);
        let fits = || self.answers.waiting() + LAW_SLOTS <= slots;
        let law = self.law.filter(|_| self.sequence.is_multiple_of(LAW_EVERY) || fits());
        let room = if law.is_some() { slots - LAW_SLOTS } else { slots };
        let mut answers = self.answers.take(room);
        answers.retain(|answer| !is_like_a_tag(*answer));
        let message = Presence {
            bssid: self.bssid,
            station: self.station,
            boot: self.boot,
            sequence: self.sequence,
            interval: self.interval,
            announced: *own,
            unix_time: match self.clocks {
                Clocks::Free => None,
                Clocks::Synchronised { unix_at_epoch, .. } => Some(unix_time(unix_at_epoch, now)),
            },
            challenge: self.challenges.current(now, self.interval),
            law,
            answers,
        };
        Some(self.codec.encode(&message))
    }

    /// The earliest time at which a message may be due.
    pub(crate) fn next_timeout(&self) -> Instant {
        let next = self.schedule.next;
        self.fleet.next_timeout().map_or(next, |fleet| fleet.min(next))
    }
}

fn unix_time(unix_at_epoch: Duration, now: Instant) -> Duration {
    unix_at_epoch.saturating_add(now.saturating_since(Instant::ZERO))
}

/// Whether the time in the message is within the tolerance; `None` where clocks are not
/// synchronised. Where clocks are synchronised, a message without a time is refused, because its
/// sender is configured differently.
fn in_time(clocks: Clocks, now: Instant, message: &Presence) -> Option<bool> {
    let Clocks::Synchronised { unix_at_epoch, tolerance } = clocks else {
        return None;
    };
    let ours = unix_time(unix_at_epoch, now);
    Some(message.unix_time.is_some_and(|theirs| {
        ours.saturating_sub(theirs) <= tolerance && theirs.saturating_sub(ours) <= tolerance
    }))
}
