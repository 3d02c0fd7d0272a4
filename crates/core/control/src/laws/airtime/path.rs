//! The RTT of the path without queues, estimated from the figures of a station and its peers.

use wakeai_connection::Direction;
use wakeai_units::Duration;

use crate::RttView;
use crate::observation::Side;
use crate::rtt::{common_delays, quantile};

/// Queueing delays that differ from the median by up to the target divided by this number are not
/// corrected.
const TOLERANCE_DIVISOR: u64 = 7;
/// The same where the median is uncertain: where fewer than this number of delays are known, and for downloads, whose RTT varies more, because it is that of
/// the receiver.
const TOLERANCE_DIVISOR_UNCERTAIN: u64 = 4;
const CERTAIN: usize = 5;
/// At most this is tolerated beside a certain median of uploads. Where the target is long, a station that joined the queue would keep a longer window otherwise.
const MOST_TOLERATED: Duration = Duration::from_micros(2500);
/// Downloads wait in one queue, so their delays differ less: half of the target is tolerated beside the upper
/// quartile, and not the whole.
const UPPER_DIVISOR_DOWN: u64 = 2;

/// The queue is longer than it should be where it is above the target by this part of the path. With the windows for 93 %
/// of the air, of which the stations get 80 %, the queueing delay is `q + (R + q)/6`.
const LONGER_PATH_DIVISOR: u64 = 8;

/// The RTT at a tick (a decision, one every 0.5 s), divided into the RTT of the path and the
/// queueing delay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// The RTT without queues.
    pub(crate) min: Duration,
    /// The queueing delay: `current` minus `min`.
    pub(crate) growth: Duration,
    /// The RTT with queues, smoothed.
    pub(crate) current: Duration,
    /// The median queueing delay of all senders; zero where fewer than three delays are known.
    pub(crate) common: Duration,
}

impl Path {
    /// Divides the RTT into its minimum and the queueing delay, and corrects the minimum.
    ///
    /// A station that began to send while others filled a queue has measured a minimum RTT that
    /// contains this queue. Its minimum is too high, and its queueing delay is too low. Most of the
    /// queueing delay arises at the access point and is the same for all stations. So where a
    /// station sees a shorter queueing delay than the median of all senders, the difference is
    /// subtracted from its minimum. At least a quarter of the minimum remains.
    ///
    /// Where most of the stations joined a queue, the median is too short as well, and the few that
    /// know their paths are the upper quartile. So its difference is subtracted, too.
    ///
    /// Short queues differ by chance. With the target queueing delay `target`, a difference of up to a
    /// seventh of it from the median, and of at most 2.5 ms, is not corrected (of downloads, and where fewer than five delays are known, a
    /// quarter), and one of up to the whole target from the upper
    /// quartile (of uploads; half of it of downloads). The quartile counts only while the median is at most twice the target: beside strangers
    /// the delays are long, and differ by more.
    pub(crate) fn of(rtt: RttView, seen: Side<'_>, target: Duration) -> Self {
        let mut delays = common_delays(&seen.seen.peers, seen.direction, Some(rtt.growth));
        let common = quantile(&mut delays, 2);
        let upper = quantile(&mut delays, 3).filter(|_| common.is_some_and(|it| it <= target * 2));
        let known = |delay: Option<Duration>, tolerance: Duration| {
            delay.map_or(Duration::ZERO, |delay| delay.saturating_sub(tolerance))
        };
        let uncertain = target / TOLERANCE_DIVISOR_UNCERTAIN;
        let (beside_common, beside_upper) = match seen.direction {
            Direction::Up if delays.len() < CERTAIN => (uncertain, target),
            Direction::Up => ((target / TOLERANCE_DIVISOR).min(MOST_TOLERATED), target),
            Direction::Down => (uncertain, target / UPPER_DIVISOR_DOWN),
        };
        let queue = rtt.growth.max(known(common, beside_common)).max(known(upper, beside_upper));
        let min = rtt.min.min(rtt.current.saturating_sub(queue).max(rtt.min / 4));
        let common = common.unwrap_or(Duration::ZERO);
        Self { min, growth: rtt.current.saturating_sub(min), current: rtt.current, common }
    }

    /// Whether the queueing delay is somewhat longer than this target allows.
    pub(crate) fn is_too_long(&self, target: Duration) -> bool {
        self.growth > target + self.min / LONGER_PATH_DIVISOR
    }
}

#[cfg(test)]
mod tests {
    use wakeai_units::Rate;

    use super::*;
    use crate::observation::{peer, traffic, uploads};
    use crate::{Announcement, Observation, PeerView, Traffic};

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A station with this minimum RTT and queueing delay, ms.
    fn own(min: u64, growth: u64) -> RttView {
        RttView { current: ms(min + growth), min: ms(min), growth: ms(growth) }
    }

    /// Peers that send, with these queueing delays, ms.
    fn peers(growths: &[u64]) -> Vec<PeerView> {
        let see = (1..).zip(growths).map(|(id, growth)| {
            let (min_rtt, growth) = (Some(ms(50)), ms(*growth));
            peer(id, uploads(Traffic { min_rtt, growth, ..traffic(10) }))
        });
        see.collect()
    }

    fn of(rtt: RttView, peers: &[PeerView], target: Duration) -> Path {
        let seen = Observation { peers: peers.to_vec(), ..Observation::default() };
        Path::of(rtt, seen.side(Direction::Up), target)
    }

    fn path(rtt: RttView, peers: &[PeerView]) -> (Duration, Duration) {
        let path = of(rtt, peers, Duration::ZERO);
        assert_eq!(path.current, rtt.current);
        (path.min, path.growth)
    }

    #[test]
    fn the_minimum_of_a_station_that_joined_a_queue_is_lowered() {
        assert_eq!(path(own(120, 30), &peers(&[80, 80])), (ms(70), ms(80)));
        assert_eq!(path(own(120, 30), &peers(&[10, 60, 500])), (ms(90), ms(60)), "the median");
    }

    #[test]
    fn a_small_difference_is_tolerated() {
        let min = |target| of(own(120, 30), &peers(&[80; 4]), ms(target)).min;
        assert_eq!((min(0), min(7), min(14)), (ms(70), ms(71), ms(72)), "a seventh of the target");
        assert_eq!([min(21), min(630)], [ms(70) + MOST_TOLERATED; 2]);
        // The delay is 50 ms shorter than the median.
        let min = |count, direction| {
            let announce = |peer: PeerView| {
                let announced = Announcement { down: peer.announced.up, ..peer.announced };
                PeerView { announced, ..peer }
            };
            let peers = peers(&vec![80; count]).into_iter().map(announce).collect();
            let seen = Observation { peers, ..Observation::default() };
            Path::of(own(120, 30), seen.side(direction), ms(84)).min
        };
        assert_eq!(min(4, Direction::Up), ms(120 - 50) + MOST_TOLERATED);
        assert_eq!(min(3, Direction::Up), ms(120 - 50 + 21), "a quarter among few delays");
        assert_eq!(min(4, Direction::Down), ms(120 - 50 + 21), "a quarter of downloads");
    }

    #[test]
    fn where_most_joined_a_queue_the_upper_quartile_lowers_the_minimum() {
        // Six of eight measured the queue as a part of their path.
        let min = |others: [u64; 7], target| of(own(40, 10), &peers(&others), ms(target)).min;
        assert_eq!(min([10, 10, 10, 10, 10, 30, 30], 8), ms(40 - (30 - 8 - 10)));
        assert_eq!(min([10, 10, 10, 10, 10, 10, 30], 8), ms(40), "one of eight may be wrong");
        assert_eq!(min([10, 10, 10, 10, 10, 30, 30], 20), ms(40), "within the target");
        // Beside strangers: the median is 50 ms, and counts less a seventh of the target.
        assert_eq!(min([10, 10, 50, 50, 50, 90, 90], 21), ms(40 - (50 - 3 - 10)).max(ms(10)));
    }

    #[test]
    fn beside_the_upper_quartile_of_downloads_half_of_the_target_is_tolerated() {
        let peers = peers(&[10, 10, 10, 10, 10, 30, 30]);
        let down = |peer: &PeerView| {
            let announced = Announcement { down: peer.announced.up, ..Announcement::default() };
            PeerView { announced, ..peer.clone() }
        };
        let peers = peers.iter().map(down).collect();
        let seen = Observation { peers, ..Observation::default() };
        let path = Path::of(own(40, 10), seen.side(Direction::Down), ms(20));
        assert_eq!(path.min, ms(40 - (30 - 10 - 10)));
    }

    #[test]
    fn the_own_minimum_is_never_raised() {
        assert_eq!(path(own(50, 100), &peers(&[20, 20])), (ms(50), ms(100)));
        assert_eq!(path(own(50, 100), &peers(&[0, 0, 0, 0])), (ms(50), ms(100)));
    }

    #[test]
    fn fewer_than_three_queueing_delays_change_nothing() {
        let joined = own(120, 30);
        assert_eq!(path(joined, &[]), (ms(120), ms(30)));
        assert_eq!(path(joined, &peers(&[80])), (ms(120), ms(30)));
        let silent: [fn(&mut Traffic); 3] = [
            |traffic| traffic.active = false,
            |traffic| traffic.min_rtt = None,
            |traffic| traffic.rate = Rate::ZERO,
        ];
        for change in silent {
            let mut peers = peers(&[80, 80]);
            change(&mut peers[0].announced.up);
            assert_eq!(path(joined, &peers), (ms(120), ms(30)), "{:?}", peers[0]);
        }
    }

    #[test]
    fn the_minimum_is_lowered_to_a_quarter_at_most() {
        assert_eq!(path(own(120, 30), &peers(&[9_999, 9_999])), (ms(30), ms(120)));
    }

    #[test]
    fn the_common_delay_is_the_median_of_at_least_three() {
        let common = |growths: &[u64]| of(own(50, 20), &peers(growths), ms(0)).common;
        assert_eq!(common(&[10]), ms(0));
        assert_eq!(common(&[10, 30]), ms(20));
        assert_eq!(common(&[9_999, 30, 10, 15]), ms(20));
    }
}
