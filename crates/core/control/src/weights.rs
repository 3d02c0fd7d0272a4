//! The weights of stations, by which their rates are compared. A station's weight is the rate that
//! the station reaches alone, or its PHY rate ([`Basis`]). A station's delivery rate divided by its
//! weight is its part of the air: a measure of the airtime that the station uses.

use wakeai_connection::Direction;
use wakeai_units::Rate;

use crate::{Announcement, Observation, PeerView};

/// The basis of the weights of all stations. The weight is the rate that a station reaches alone in a
/// direction, if all announce this rate for the directions in which they are active. If not, the
/// weight is the PHY rate, if three quarters of the stations announce it. Otherwise all weights are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Basis {
    Max,
    Phy {
        /// The weight of a station that announces no PHY rate: the median of the others, so that one such station does not
        /// make the weights of all equal.
        unknown: Rate,
    },
    #[default]
    Equal,
}

impl Basis {
    /// The basis for a station that is active in `direction`, or is about to be.
    pub(crate) fn of(seen: &Observation, direction: Direction) -> Self {
        let fits = |basis: &Self| {
            let own = |of| basis.own_weight(seen, of).is_some();
            let other = direction.other();
            own(direction)
                && (!seen.of(other).is_active() || own(other))
                && delivering(seen).all(|peer| {
                    Direction::BOTH.into_iter().all(|of| {
                        !delivers(peer, of) || basis.weight(&peer.announced, of).is_some()
                    })
                })
        };
        Some(Self::Max).filter(fits).or_else(|| Self::by_phy_rates(seen)).unwrap_or(Self::Equal)
    }

    /// The basis by PHY rates; `None` where fewer than three quarters of the stations announce theirs.
    fn by_phy_rates(seen: &Observation) -> Option<Self> {
        let announced = delivering(seen).map(|peer| peer.announced.link_rate);
        let all = announced.chain([seen.link_rate]).map(positive);
        let all: Vec<Option<Rate>> = all.collect();
        let mut known: Vec<Rate> = all.iter().copied().flatten().collect();
        if known.is_empty() || known.len() * 4 < all.len() * 3 {
            return None;
        }
        let at = known.len() / 2;
        Some(Self::Phy { unknown: *known.select_nth_unstable(at).1 })
    }

    /// The weight of this station; `None` where the weight is unknown, and where all weights are
    /// equal.
    pub(crate) fn own_weight(self, seen: &Observation, direction: Direction) -> Option<Rate> {
        self.pick(seen.of(direction).max_rate, seen.link_rate)
    }

    /// The weight of a peer; `None` where the weight is not announced, and where all weights are
    /// equal.
    pub(crate) fn weight(self, announced: &Announcement, direction: Direction) -> Option<Rate> {
        self.pick(announced.of(direction).max_rate, announced.link_rate)
    }

    fn pick(self, max: Option<Rate>, link: Option<Rate>) -> Option<Rate> {
        match self {
            Self::Max => positive(max),
            Self::Phy { unknown } => Some(positive(link).unwrap_or(unknown)),
            Self::Equal => None,
        }
    }
}

/// A rate of zero is not known.
fn positive(rate: Option<Rate>) -> Option<Rate> {
    rate.filter(|rate| *rate > Rate::ZERO)
}

/// Whether a peer is active in this direction and has announced a rate.
pub(crate) fn delivers(peer: &PeerView, direction: Direction) -> bool {
    let traffic = peer.announced.of(direction);
    traffic.active && traffic.rate > Rate::ZERO
}

/// The peers that are active in a direction and have announced a rate.
pub(crate) fn delivering(seen: &Observation) -> impl Iterator<Item = &PeerView> {
    let delivers = |peer: &&PeerView| Direction::BOTH.into_iter().any(|of| delivers(peer, of));
    seen.peers.iter().filter(delivers)
}

/// The active peers that deliver nothing, although the path of a connection is known: what they send is lost.
pub(crate) fn starving(seen: &Observation) -> impl Iterator<Item = &PeerView> {
    let starves = |peer: &&PeerView| {
        let mut ways = Direction::BOTH.into_iter().filter(|of| peer.announced.of(*of).active);
        let known = |of| peer.announced.of(of).min_rtt.is_some();
        !Direction::BOTH.into_iter().any(|of| delivers(peer, of)) && ways.any(known)
    };
    seen.peers.iter().filter(starves)
}
