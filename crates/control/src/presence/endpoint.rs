//! The endpoint of a station's presence messages. It keeps the live peers from the datagrams that
//! arrive, and announces the station.

use std::collections::VecDeque;

use wakeai_units::{Duration, Instant, Rate};

use super::challenge::{Answers, Challenges};
use super::codec::answer_slots;
use super::schedule::{Schedule, airtime, longest_interval};
use super::table::{PeerTable, Verdict};
use super::{BootId, Codec, DecodeError, Presence, PresenceCounters};
use crate::{Announcement, Clocks, ControllerConfig, PeerChange, PeerView, StationId};

/// Sends and receives presence messages.
///
/// Order of calls: [`Endpoint::handle_datagram`] for each datagram, [`Endpoint::expire`] at each
/// tick, [`Endpoint::poll_transmit`] when [`Endpoint::next_timeout`] has come, then
/// [`Endpoint::poll_change`] until `None`. `now` never goes back.
pub(crate) struct Endpoint {
    station: StationId,
    bssid: [u8; 6],
    boot: BootId,
    basic_rate: Rate,
    clocks: Clocks,
    codec: Codec,
    sequence: u64,
    interval: Duration,
    table: PeerTable,
    challenges: Challenges,
    answers: Answers,
    schedule: Schedule,
    counters: PresenceCounters,
    changes: VecDeque<PeerChange>,
}

/// The number of incarnations (boot ids of stations) that have not proved to be live and whose
/// challenges are answered, in addition to those of the peers.
const NEWCOMERS: usize = 64;

impl Endpoint {
    /// An endpoint without peers. `boot` is random and new for every endpoint.
    pub(crate) fn new(now: Instant, config: &ControllerConfig, boot: BootId) -> Self {
        Self {
            station: config.station_id,
            bssid: config.bssid,
            boot,
            basic_rate: config.basic_rate,
            clocks: config.clocks,
            codec: Codec::accepting(&config.group_key, &config.accepted_keys),
            sequence: 0,
            interval: Duration::ZERO,
            table: PeerTable::new(config.peer_limit),
            challenges: Challenges::new(now, &config.group_key, boot),
            answers: Answers::new(config.peer_limit.saturating_add(NEWCOMERS)),
            schedule: Schedule::new(now, boot),
            counters: PresenceCounters::default(),
            changes: VecDeque::new(),
        }
    }

    /// From now on, authenticates messages with `group_key`, and accepts messages under `group_key`
    /// and under `others`. The known peers stay.
    pub(crate) fn set_keys(&mut self, group_key: &[u8; 32], others: &[[u8; 32]]) {
        self.codec = Codec::accepting(group_key, others);
    }

    /// Sets the Unix time at the epoch of `now`, which changes when the system clock is set. The
    /// value is used only where clocks are synchronised.
    pub(crate) fn set_unix_at_epoch(&mut self, unix: Duration) {
        if let Clocks::Synchronised { unix_at_epoch, .. } = &mut self.clocks {
            *unix_at_epoch = unix;
        }
    }

    /// Takes a datagram and counts it in exactly one counter.
    pub(crate) fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) {
        let counters = &mut self.counters;
        let message = match self.codec.decode(datagram) {
            Ok(message) => message,
            Err(error) => {
                *match error {
                    DecodeError::Malformed => &mut counters.malformed,
                    DecodeError::WrongVersion(_) => &mut counters.wrong_version,
                    DecodeError::Forged => &mut counters.forged,
                    DecodeError::Invalid => &mut counters.invalid,
                } += 1;
                return;
            }
        };
        let refused = if message.bssid != self.bssid {
            Some(&mut counters.wrong_bssid)
        } else if message.boot == self.boot {
            Some(&mut counters.own)
        } else if message.station == self.station {
            Some(&mut counters.duplicate_id)
        } else if in_time(self.clocks, now, &message) == Some(false) {
            Some(&mut counters.stale)
        } else {
            None
        };
        match refused {
            Some(counter) => *counter += 1,
            None => self.hear(now, message),
        }
    }

    fn hear(&mut self, now: Instant, mut message: Presence) {
        let (station, boot, challenge) = (message.station, message.boot, message.challenge);
        let sequence = message.sequence;
        self.expire_one(now, station);
        let slowest = airtime(self.basic_rate, None);
        message.interval = message.interval.min(longest_interval(self.table.len() + 1, slowest));
        // Where clocks agree, the time in a message proves that its incarnation is live. An
        // incarnation that was dropped has to answer a challenge instead, because a recorded
        // message of it may be younger than the tolerance.
        let timely = in_time(self.clocks, now, &message) == Some(true);
        let proven = (timely && !self.challenges.retired(boot))
            || self.challenges.prove(boot, &message.answers);
        let verdict = self.table.hear(now, message, proven);
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
    }

    /// Removes the peers that have been silent for too long.
    pub(crate) fn expire(&mut self, now: Instant) {
        let (changes, challenges) = (&mut self.changes, &mut self.challenges);
        self.table.expire(
            now,
            |station| changes.push_back(PeerChange::Left(station)),
            |boot| challenges.retire(now, boot),
        );
    }

    /// Removes `station` where it is due to be removed. After the machine was suspended, messages
    /// are read before the first tick. Without this call they would renew a peer whose incarnation
    /// has to prove again that it is live.
    fn expire_one(&mut self, now: Instant, station: StationId) {
        let (changes, challenges) = (&mut self.changes, &mut self.challenges);
        self.table.expire_one(
            now,
            station,
            |station| changes.push_back(PeerChange::Left(station)),
            |boot| challenges.retire(now, boot),
        );
    }

    /// The time between this station's messages, as it announced it last; zero before the first.
    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    /// Announces this station early, because it has begun or ceased to send, or because its
    /// reservation has changed.
    pub(crate) fn announce_soon(&mut self, now: Instant) {
        self.schedule.news(now, self.table.len() + 1);
    }

    /// Announces a change of this station's request for a turn. `sends` says whether its transfers send.
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
            answers: self.answers.take(answer_slots(own.turn.is_some())),
        };
        Some(self.codec.encode(&message))
    }

    /// The earliest time at which the next message may be due.
    pub(crate) fn next_timeout(&self) -> Instant {
        self.schedule.next()
    }

    /// Returns the oldest change that was not taken yet.
    pub(crate) fn poll_change(&mut self) -> Option<PeerChange> {
        self.changes.pop_front()
    }

    /// The live peers, in the order of their ids.
    pub(crate) fn peers(&self, now: Instant) -> impl Iterator<Item = PeerView> {
        self.table.live(now)
    }

    /// The counters of presence datagrams.
    pub(crate) fn counters(&self) -> &PresenceCounters {
        &self.counters
    }
}

fn unix_time(unix_at_epoch: Duration, now: Instant) -> Duration {
    unix_at_epoch.saturating_add(now.saturating_since(Instant::ZERO))
}

/// Whether the message's time is within the tolerance; `None` where clocks are not synchronised.
/// Where they are, a message without a time is out of tolerance, because its sender is configured
/// differently.
fn in_time(clocks: Clocks, now: Instant, message: &Presence) -> Option<bool> {
    let Clocks::Synchronised { unix_at_epoch, tolerance } = clocks else {
        return None;
    };
    let ours = unix_time(unix_at_epoch, now);
    Some(message.unix_time.is_some_and(|theirs| {
        ours.saturating_sub(theirs) <= tolerance && theirs.saturating_sub(ours) <= tolerance
    }))
}
