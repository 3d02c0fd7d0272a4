//! The path without queues, as far as a station and its peers can tell together.

use wakeai_units::Duration;

use crate::{PeerView, RttView};

/// A station and two peers are the fewest whose middle says something.
const ENOUGH: usize = 3;

/// The RTT of a tick, and what of it is queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// Without queues.
    pub(crate) min: Duration,
    /// What queues add.
    pub(crate) growth: Duration,
    /// Both.
    pub(crate) current: Duration,
    /// What all see of it; zero where too few tell.
    pub(crate) common: Duration,
}

impl Path {
    /// A station that began to send in a queue of others takes it for the path: its minimum is too high,
    /// and the growth that it sees too low. Most of what grows is the access point's queue, which
    /// is the same for all, so who sees less than the middle of what all see has the rest in its
    /// minimum.
    pub(crate) fn of(rtt: RttView, peers: &[PeerView]) -> Self {
        let common = common_growth(peers, Some(rtt.growth));
        let queue = common.unwrap_or(rtt.growth);
        let min = rtt.min.min(rtt.current.saturating_sub(queue).max(rtt.min / 4));
        let common = common.unwrap_or(Duration::ZERO);
        Self { min, growth: rtt.current.saturating_sub(min), current: rtt.current, common }
    }
}

/// The middle of the growths that senders see; `None` where too few tell theirs.
pub(crate) fn common_growth(peers: &[PeerView], own: Option<Duration>) -> Option<Duration> {
    let tell = |peer: &&PeerView| {
        peer.announced.sending
            && peer.announced.min_rtt.is_some()
            && peer.announced.delivery_rate > wakeai_units::Rate::ZERO
    };
    let mut all: Vec<Duration> =
        peers.iter().filter(tell).map(|peer| peer.announced.growth).collect();
    all.extend(own);
    if all.len() < ENOUGH {
        return None;
    }
    let middle = all.len() / 2;
    Some(*all.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests {
    use wakeai_units::Rate;

    use super::*;
    use crate::Announcement;
    use crate::observation::{announcement, peer};

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A station with this minimum RTT and growth.
    fn own(min: u64, growth: u64) -> RttView {
        RttView { current: ms(min + growth), min: ms(min), growth: ms(growth) }
    }

    /// Peers that send and see these growths.
    fn peers(growths: &[u64]) -> Vec<PeerView> {
        let see = (1..).zip(growths).map(|(id, growth)| {
            let (min_rtt, growth) = (Some(ms(50)), ms(*growth));
            peer(id, Announcement { min_rtt, growth, ..announcement(10) })
        });
        see.collect()
    }

    fn path(rtt: RttView, peers: &[PeerView]) -> (Duration, Duration) {
        let path = Path::of(rtt, peers);
        assert_eq!(path.current, rtt.current);
        (path.min, path.growth)
    }

    #[test]
    fn who_joined_in_a_queue_of_others_has_the_rest_taken_from_its_minimum() {
        assert_eq!(path(own(120, 30), &peers(&[80, 80])), (ms(70), ms(80)));
        assert_eq!(path(own(120, 30), &peers(&[10, 60, 500])), (ms(90), ms(60)), "the middle");
    }

    #[test]
    fn the_own_minimum_is_never_raised() {
        assert_eq!(path(own(50, 100), &peers(&[20, 20])), (ms(50), ms(100)));
        assert_eq!(path(own(50, 100), &peers(&[0, 0, 0, 0])), (ms(50), ms(100)));
    }

    #[test]
    fn fewer_than_three_that_tell_change_nothing() {
        let joined = own(120, 30);
        assert_eq!(path(joined, &[]), (ms(120), ms(30)));
        assert_eq!(path(joined, &peers(&[80])), (ms(120), ms(30)));
        let silent: [fn(&mut Announcement); 3] = [
            |told| told.sending = false,
            |told| told.min_rtt = None,
            |told| told.delivery_rate = Rate::ZERO,
        ];
        for change in silent {
            let mut peers = peers(&[80, 80]);
            change(&mut peers[0].announced);
            assert_eq!(path(joined, &peers), (ms(120), ms(30)), "{:?}", peers[0]);
        }
    }

    #[test]
    fn the_minimum_never_falls_below_a_quarter() {
        assert_eq!(path(own(120, 30), &peers(&[9_999, 9_999])), (ms(30), ms(120)));
    }

    #[test]
    fn what_all_see_is_the_middle_of_three_at_least() {
        assert_eq!(common_growth(&peers(&[10, 20]), None), None);
        assert_eq!(common_growth(&peers(&[30, 10, 9_999]), None), Some(ms(30)));
        assert_eq!(common_growth(&peers(&[10, 30]), Some(ms(20))), Some(ms(20)));
    }
}
