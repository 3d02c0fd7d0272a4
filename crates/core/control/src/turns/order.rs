//! The order in which stations send. It follows from the announcements of the peers.

use std::collections::BTreeMap;

use wakeai_units::{Duration, Instant};

use super::{OVERLAP, PATIENCE, TURN, Turn, TurnState};
use crate::{PeerView, StationId};

/// The requests of the peers.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    peers: BTreeMap<StationId, PeerInTurn>,
    /// The largest ticket of all peers' requests so far.
    last_ticket: u32,
}

#[derive(Clone, Copy, Debug)]
struct PeerInTurn {
    announced: Turn,
    /// The ticket that counts for the order. It is larger than the announced ticket where an
    /// earlier turn of this peer was too long.
    ticket: u32,
    /// The time of the peer's last message.
    heard: Instant,
    /// The time at which this peer's turn began; `None` while it is not its turn.
    turn_since: Option<Instant>,
}

/// The place of this station's request in the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TurnPlace {
    /// Whether it is this station's turn.
    pub(super) is_turn: bool,
    /// The number of peers before this station that wait and whose turn has not come.
    pub(super) waiting: usize,
    /// The earliest time at which the place changes without a message.
    pub(super) changes_at: Option<Instant>,
}

impl Order {
    /// Takes the announcements of the live peers.
    pub(super) fn hear(&mut self, now: Instant, peers: &[PeerView]) {
        let mut heard = BTreeMap::new();
        for peer in peers {
            let Some(announced) = peer.announced.turn else { continue };
            let at = Instant::from_nanos(now.as_nanos().saturating_sub(peer.age.as_nanos()));
            let known = self.peers.get(&peer.station);
            let entry = match known {
                Some(known) if known.announced.ticket == announced.ticket => {
                    PeerInTurn { announced, heard: at, ..*known }
                }
                // A new request of a peer gets no earlier place than its old request had.
                _ => {
                    let ticket = announced.ticket.max(known.map_or(0, |known| known.ticket));
                    PeerInTurn { announced, ticket, heard: at, turn_since: None }
                }
            };
            self.last_ticket = self.last_ticket.max(announced.ticket);
            heard.insert(peer.station, entry);
        }
        self.peers = heard;
    }

    /// The ticket for a new request of this station.
    pub(super) fn next_ticket(&self) -> u32 {
        self.last_ticket.saturating_add(1)
    }

    /// The number of peers in `state`.
    pub(super) fn in_state(&self, state: TurnState) -> usize {
        self.peers.values().filter(|peer| peer.announced.state == state).count()
    }

    /// The place of this station's request `own` among the peers' requests. The time that the first
    /// `left_out` peers in turn still need is not counted.
    pub(super) fn place(
        &mut self,
        now: Instant,
        own: (u32, StationId),
        left_out: usize,
    ) -> TurnPlace {
        let mut order: Vec<(u32, StationId)> =
            self.peers.iter().map(|(station, peer)| (peer.ticket, *station)).collect();
        order.push(own);
        order.sort_unstable();
        let last = order.last().map_or(0, |(ticket, _)| ticket.saturating_add(1));
        let mut place = TurnPlace::default();
        let mut before = Duration::ZERO;
        let mut counted = 0;
        for key in order {
            let is_turn = before <= OVERLAP;
            if key == own {
                place.is_turn = is_turn;
                break;
            }
            let Some(peer) = self.peers.get_mut(&key.1) else { continue };
            let waits = peer.announced.state == TurnState::Waiting;
            if !is_turn {
                peer.turn_since = None;
                place.waiting += usize::from(waits);
                continue;
            }
            let since = *peer.turn_since.get_or_insert(now);
            if now >= since + TURN {
                (peer.ticket, peer.turn_since) = (last, None);
                continue;
            }
            let sign = if waits { since } else { peer.heard.max(since) };
            if now >= sign + PATIENCE {
                continue; // the peer is passed over
            }
            let at = (sign + PATIENCE).min(since + TURN);
            place.changes_at = Some(place.changes_at.map_or(at, |earlier| earlier.min(at)));
            counted += 1;
            if counted > left_out {
                before = before.saturating_add(peer.announced.left);
            }
        }
        place
    }
}
