//! The weights of stations, by which their rates are compared. A station's weight is the rate that
//! the station reaches alone, or its PHY rate ([`Basis`]). A station's delivery rate divided by its
//! weight is its part of the air: a measure of the airtime that the station uses.

use wakeai_connection::Direction;
use wakeai_units::Rate;

use crate::{Announcement, Observation, PeerView};

/// The basis of the weights of all stations. The weight is the rate that a station reaches alone in a
/// direction, if all announce this rate for the directions in which they are active. If not, the
/// weight is the PHY rate, if all announce it. Otherwise all weights are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Basis {
    Max,
    Phy,
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
        [Self::Max, Self::Phy].into_iter().find(fits).unwrap_or(Self::Equal)
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
        let weight = match self {
            Self::Max => max,
            Self::Phy => link,
            Self::Equal => None,
        };
        weight.filter(|rate| *rate > Rate::ZERO)
    }
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
