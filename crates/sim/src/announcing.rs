//! The announcements of a faulty or lying member.

use wakeai_control::presence::{Codec, Presence};
use wakeai_control::{Reservation, Share};
use wakeai_scenario::{Announces, Told};
use wakeai_units::Rate;

/// Rewrites an agent's presence messages before they are sent. The agent itself acts on the true figures.
#[derive(Clone)]
pub(crate) struct Announcing {
    announces: Announces,
    codec: Codec,
}

impl Announcing {
    /// `None` where the agent announces the truth.
    pub(crate) fn new(announces: Announces, group_key: &[u8; 32]) -> Option<Self> {
        (!announces.is_truth()).then(|| Self { announces, codec: Codec::new(group_key) })
    }

    /// The message that is sent instead of `message`, which was encoded with the same group key.
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
            // The reserved rate is that share of the rate that the member claims to reach.
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

#[cfg(test)]
mod tests {
    use wakeai_control::StationId;
    use wakeai_control::presence::{BootId, Challenge};
    use wakeai_units::Duration;

    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn truth() -> Presence {
        Presence {
            bssid: [2; 6],
            station: StationId(1),
            boot: BootId([1; 16]),
            sequence: 5,
            interval: Duration::from_millis(500),
            sending: true,
            delivery_rate: Rate::from_mbps(20),
            max_rate: Some(Rate::from_mbps(40)),
            link_rate: Some(Rate::from_mbps(65)),
            min_rtt: Some(Duration::from_millis(20)),
            growth: Duration::from_millis(30),
            reservation: None,
            unix_time: None,
            challenge: Challenge(9),
            answers: vec![Challenge(4)],
        }
    }

    fn heard(announces: Announces) -> Presence {
        let announcing = Announcing::new(announces, &KEY).unwrap();
        let codec = Codec::new(&KEY);
        codec.decode(&announcing.instead_of(&codec.encode(&truth()))).unwrap()
    }

    #[test]
    fn true_announcements_are_not_rewritten() {
        assert!(Announcing::new(Announces::default(), &KEY).is_none());
    }

    #[test]
    fn unnamed_figures_stay_true_and_the_message_authentic() {
        let lie = Announces {
            sending: Some(false),
            rate: Some(Rate::ZERO),
            max_rate: Some(Told::Unknown),
            link_rate: Some(Told::Rate(Rate::from_bps(1))),
            ..Announces::default()
        };
        let expected = Presence {
            sending: false,
            delivery_rate: Rate::ZERO,
            max_rate: None,
            link_rate: Some(Rate::from_bps(1)),
            ..truth()
        };
        assert_eq!(heard(lie), expected);
        let growth = Some(Duration::from_secs(60));
        let lie = Announces { growth, min_rtt: Some(Duration::ZERO), ..Announces::default() };
        let expected =
            Presence { growth: Duration::from_secs(60), min_rtt: Some(Duration::ZERO), ..truth() };
        assert_eq!(heard(lie), expected);
    }

    #[test]
    fn a_reservation_is_claimed_in_full_and_before_all_others() {
        let heard = heard(Announces { reservation: Some(500_000), ..Announces::default() });
        let reservation = heard.reservation.unwrap();
        assert_eq!(reservation.rate, Rate::from_mbps(20), "half of what it reaches alone");
        assert_eq!(
            (reservation.share, reservation.claim),
            (Share::from_percent(50), Share::from_percent(50))
        );
        assert_eq!(reservation.ticket, 1);
    }
}
