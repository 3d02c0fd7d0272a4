//! False announcements of a station: what a scenario's `announces` makes of its messages.

use wakeai_control::presence::Codec;
use wakeai_control::{Announcement, Reservation, Share};
use wakeai_scenario::{AnnouncedRate, Announces};
use wakeai_units::Rate;

/// Rewrites an agent's presence messages before they are sent. The agent itself acts on the true figures.
#[derive(Clone)]
pub(crate) struct Announcing {
    announces: Announces,
    codec: Codec,
}

impl Announcing {
    /// The rewriter of an agent that `announces` these figures; `None` where the agent announces
    /// the truth.
    pub(crate) fn new(announces: Announces, group_key: &[u8; 32]) -> Option<Self> {
        (!announces.is_truth()).then(|| Self { announces, codec: Codec::new(group_key) })
    }

    /// The message that is sent instead of `message`, which was encoded with the same group key.
    pub(crate) fn instead_of(&self, message: &[u8]) -> Vec<u8> {
        let mut presence = self.codec.decode(message).expect("an agent writes what it can read");
        self.apply(&mut presence.announced);
        self.codec.encode(&presence)
    }

    fn apply(&self, message: &mut Announcement) {
        let replace = |truth: &mut Option<Rate>, by: Option<AnnouncedRate>| match by {
            None => {}
            Some(AnnouncedRate::Unknown) => *truth = None,
            Some(AnnouncedRate::Rate(rate)) => *truth = Some(rate),
        };
        let announces = &self.announces;
        let up = &mut message.up;
        up.active = announces.sending.unwrap_or(up.active);
        up.rate = announces.rate.unwrap_or(up.rate);
        replace(&mut up.max_rate, announces.max_rate);
        up.min_rtt = announces.min_rtt.or(up.min_rtt);
        up.growth = announces.growth.unwrap_or(up.growth);
        replace(&mut message.link_rate, announces.link_rate);
        if let Some(ppm) = announces.reservation {
            let share = Share::from_ppm(ppm);
            // The reserved rate is this share of the rate that the member claims to reach.
            let whole = message.up.max_rate.or(message.link_rate).unwrap_or(Rate::from_mbps(1));
            let rate = whole.mul_div(u64::from(ppm), 1_000_000).unwrap_or(whole);
            message.reservation = (ppm > 0).then_some(Reservation {
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
    use wakeai_control::presence::{BootId, Challenge, Presence};
    use wakeai_control::{StationId, Traffic};
    use wakeai_units::Duration;

    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn truth() -> Announcement {
        Announcement {
            up: Traffic {
                active: true,
                rate: Rate::from_mbps(20),
                max_rate: Some(Rate::from_mbps(40)),
                min_rtt: Some(Duration::from_millis(20)),
                growth: Duration::from_millis(30),
            },
            down: Traffic::default(),
            link_rate: Some(Rate::from_mbps(65)),
            reservation: None,
            turn: None,
        }
    }

    fn message() -> Presence {
        Presence {
            bssid: [2; 6],
            station: StationId(1),
            boot: BootId([1; 16]),
            sequence: 5,
            interval: Duration::from_millis(500),
            announced: truth(),
            unix_time: None,
            challenge: Challenge(9),
            law: None,
            answers: vec![Challenge(4)],
        }
    }

    /// The announcement that the others receive from this member.
    fn received(announces: Announces) -> Announcement {
        let announcing = Announcing::new(announces, &KEY).unwrap();
        let codec = Codec::new(&KEY);
        let sent = announcing.instead_of(&codec.encode(&message()));
        let received = codec.decode(&sent).unwrap();
        assert_eq!(Presence { announced: truth(), ..received.clone() }, message());
        received.announced
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
            max_rate: Some(AnnouncedRate::Unknown),
            link_rate: Some(AnnouncedRate::Rate(Rate::from_bps(1))),
            ..Announces::default()
        };
        let up = Traffic { active: false, rate: Rate::ZERO, max_rate: None, ..truth().up };
        let expected = Announcement { up, link_rate: Some(Rate::from_bps(1)), ..truth() };
        assert_eq!(received(lie), expected);
        let growth = Some(Duration::from_secs(60));
        let lie = Announces { growth, min_rtt: Some(Duration::ZERO), ..Announces::default() };
        let (growth, min_rtt) = (Duration::from_secs(60), Some(Duration::ZERO));
        let expected = Announcement { up: Traffic { growth, min_rtt, ..truth().up }, ..truth() };
        assert_eq!(received(lie), expected);
    }

    #[test]
    fn a_reservation_is_claimed_in_full_and_before_all_others() {
        let received = received(Announces { reservation: Some(500_000), ..Announces::default() });
        let reservation = received.reservation.unwrap();
        assert_eq!(reservation.rate, Rate::from_mbps(20), "half of what it reaches alone");
        assert_eq!(
            (reservation.share, reservation.claim),
            (Share::from_percent(50), Share::from_percent(50))
        );
        assert_eq!(reservation.ticket, 1);
    }
}
