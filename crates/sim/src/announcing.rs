//! What a faulty or lying member tells its peers.

use wakeai_control::presence::{Codec, Presence};
use wakeai_control::{Reservation, Share};
use wakeai_scenario::{Announces, Told};
use wakeai_units::Rate;

/// Rewrites an agent's messages on their way to the air. The agent itself knows the truth, and acts by it.
#[derive(Clone)]
pub(crate) struct Announcing {
    announces: Announces,
    codec: Codec,
}

impl Announcing {
    /// `None` where the agent tells the truth.
    pub(crate) fn new(announces: Announces, group_key: &[u8; 32]) -> Option<Self> {
        (!announces.is_truth()).then(|| Self { announces, codec: Codec::new(group_key) })
    }

    /// What goes out in the place of `message`, an authentic one of this group.
    pub(crate) fn instead_of(&self, message: &[u8]) -> Vec<u8> {
        let mut presence = self.codec.decode(message).expect("an agent writes what it can read");
        self.apply(&mut presence);
        self.codec.encode(&presence)
    }

    fn apply(&self, presence: &mut Presence) {
        let told = |truth: &mut Option<Rate>, told: Option<Told>| match told {
            None => {}
            Some(Told::Unknown) => *truth = None,
            Some(Told::Rate(rate)) => *truth = Some(rate),
        };
        let announces = &self.announces;
        presence.sending = announces.sending.unwrap_or(presence.sending);
        presence.delivery_rate = announces.rate.unwrap_or(presence.delivery_rate);
        told(&mut presence.max_rate, announces.max_rate);
        told(&mut presence.link_rate, announces.link_rate);
        presence.min_rtt = announces.min_rtt.or(presence.min_rtt);
        presence.growth = announces.growth.unwrap_or(presence.growth);
        if let Some(ppm) = announces.reservation {
            let share = Share::from_ppm(ppm);
            // A reservation's rate goes with what its owner says to reach.
            let whole = presence.max_rate.or(presence.link_rate).unwrap_or(Rate::from_mbps(1));
            let rate = whole.mul_div(u64::from(ppm), 1_000_000).unwrap_or(whole);
            presence.reservation = (ppm > 0).then_some(Reservation {
                rate: rate.max(Rate::from_bps(1)),
                share,
                ticket: 1,
                claim: share,
                short: true,
            });
        }
    }
}
