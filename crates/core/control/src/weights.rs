//! The weights of stations, by which their rates are compared. A station's weight is the rate that
//! the station reaches alone, or its PHY rate ([`Basis`]). A station's delivery rate divided by its
//! weight is its part of the air: a measure of the airtime that the station uses.

use wakeai_units::Rate;

use crate::{Announcement, Observation, PeerView};

/// The basis of the weights of all stations. The weight is the rate that a station reaches alone,
/// if all senders announce this rate. If not, the weight is the PHY rate, if all announce it.
/// Otherwise all weights are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Basis {
    Max,
    Phy,
    #[default]
    Equal,
}

impl Basis {
    pub(crate) fn of(seen: &Observation) -> Self {
        let fits = |basis: &Self| {
            basis.own_weight(seen).is_some()
                && delivering(seen).all(|peer| basis.weight(&peer.announced).is_some())
        };
        [Self::Max, Self::Phy].into_iter().find(fits).unwrap_or(Self::Equal)
    }

    /// The weight of this station; `None` where the weight is unknown, and where all weights are
    /// equal.
    pub(crate) fn own_weight(self, seen: &Observation) -> Option<Rate> {
        self.pick(seen.max_rate, seen.own.link_rate)
    }

    /// The weight of a peer; `None` where the weight is not announced, and where all weights are
    /// equal.
    pub(crate) fn weight(self, announced: &Announcement) -> Option<Rate> {
        self.pick(announced.max_rate, announced.link_rate)
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

/// The peers that send and have announced a delivery rate.
pub(crate) fn delivering(seen: &Observation) -> impl Iterator<Item = &PeerView> {
    let delivers =
        |peer: &&PeerView| peer.announced.sending && peer.announced.delivery_rate > Rate::ZERO;
    seen.peers.iter().filter(delivers)
}
