//! The claim of a reservation: the share of the airtime that the other stations have to leave free
//! for the owner.

use wakeai_units::{Duration, Rate};

use super::need::Needed;
use crate::Share;

/// The target rate of an owner, percent of the reserved rate. The percentage is above 100 because
/// the owner's rate varies. Only a higher mean keeps the rate above the reserved rate in every
/// period of a few seconds.
const TARGET_PERCENT: u64 = 125;
/// An owner is short of its reserved rate while it delivers less than this percentage of it.
const SHORT_PERCENT: u64 = 99;
/// The part of the missing rate that is added to the claim at each tick (0.5 s), permille. It
/// applies where this station sends a message every [`MESSAGE_INTERVAL`] or more often. At longer
/// intervals the part is smaller in proportion, so that a claim changes little before the other
/// stations learn of it.
const GAIN_PERMILLE: u64 = 150;
const MESSAGE_INTERVAL: Duration = Duration::from_secs(1);
/// A claim has no effect below the share that the others leave unused anyway. So while the owner is
/// short, each tick first raises the claim towards a goal, by this percentage of the distance. The
/// goal is the unused share, or the share of the target rate where that share is smaller. A claim
/// above the goal is not raised by this rule.
const UNUSED_PERCENT: u32 = 25;
/// The largest claim, percent of the target rate's share: the target rate divided by the rate that
/// the air carries for this station.
const MOST_PERCENT: u32 = 130;
/// For this many ticks after the admission the claim is the target rate's share. That is enough
/// even where the others use all the rest of the airtime. By the end of these ticks the others
/// follow the claim, and the mean of the delivery rate shows the effect.
const SETTLES_WITHIN: u32 = 8;

/// An integral controller of the claim. The claim rises while the owner is below its target rate,
/// and falls while the owner is above it.
///
/// Let `A` be the rate that the air carries for this station. Where the others leave the share `c`
/// free and use all the rest, the owner gets `A·c`. So the claim has to grow by the missing rate
/// divided by `A`. Each tick adds a part of this growth.
///
/// Where the applications send less than is reserved, no data waits, and more free airtime would not
/// raise the owner's rate. The claim then is at most the share of the target for what they send.
/// When data waits again, the claim begins as after the admission.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClaimControl {
    pub(super) claim: Share,
    /// Whether the owner delivers less than the reserved rate, although data waits.
    pub(super) short: bool,
    /// The number of ticks since the admission, or since data began to wait.
    ticks: u32,
    data_waited: bool,
}

/// The measurements of an owner at a tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClaimFigures {
    pub(super) needed: Needed,
    /// The owner's delivery rate, the mean of four ticks.
    pub(super) delivered: Rate,
    /// The rate that the air carries for this station; `None` where the rate is not known.
    pub(super) whole: Option<Rate>,
    /// The share of the airtime that the others already leave unused.
    pub(super) left: Share,
    /// The time between this station's presence messages.
    pub(super) interval: Duration,
}

impl ClaimControl {
    pub(super) fn on_tick(&mut self, measured: &ClaimFigures) {
        let Needed { rate, data_waits } = measured.needed;
        let part = |percent| rate.times(percent, 100);
        let share =
            |rate| measured.whole.and_then(|whole| Share::of(rate, whole)).unwrap_or(Share::ZERO);
        let (target, delivered) = (part(TARGET_PERCENT), measured.delivered);
        self.short = data_waits && delivered < part(SHORT_PERCENT);
        if data_waits && !self.data_waited {
            self.ticks = 0;
        }
        self.data_waited = data_waits;
        self.ticks = self.ticks.saturating_add(1);
        if self.ticks <= SETTLES_WITHIN {
            self.claim = share(target).min(Share::WHOLE);
            return;
        }
        if self.short {
            let unused = measured.left.min(share(target)).minus(self.claim);
            self.claim = self.claim.plus(unused.percent(UNUSED_PERCENT));
        }
        let gain = gain_permille(measured.interval);
        let step = |rate| Share::from_ppm(scale(share(rate).ppm(), gain));
        let most = if data_waits { share(target).percent(MOST_PERCENT) } else { share(target) };
        let most = most.min(Share::WHOLE);
        self.claim = self.claim.plus(step(target.saturating_sub(delivered)));
        self.claim = self.claim.minus(step(delivered.saturating_sub(target))).min(most);
    }
}

fn gain_permille(interval: Duration) -> u64 {
    let interval = interval.max(MESSAGE_INTERVAL).as_millis();
    GAIN_PERMILLE * MESSAGE_INTERVAL.as_millis() / interval
}

fn scale(ppm: u32, permille: u64) -> u32 {
    u32::try_from(u64::from(ppm) * permille / 1_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(rate: u64, delivered: Rate, interval_s: u64) -> ClaimFigures {
        ClaimFigures {
            needed: Needed { rate: Rate::from_mbps(rate), data_waits: true },
            delivered,
            whole: Some(Rate::from_mbps(24)),
            left: Share::ZERO,
            interval: Duration::from_secs(interval_s),
        }
    }

    fn ticks(control: &mut ClaimControl, count: u32, measured: &ClaimFigures) {
        (0..count).for_each(|_| control.on_tick(measured));
    }

    /// The lowest and the highest rate of the owner in the last 200 of 600 ticks, Mbit/s. The air
    /// carries `carries` Mbit/s. The others follow the claim after `delay` ticks.
    fn settled(carries: u64, delay: usize, interval_s: u64) -> (f64, f64) {
        let mut control = ClaimControl::default();
        let mut claims = vec![Share::ZERO; delay];
        let (mut least, mut most) = (f64::MAX, f64::MIN);
        for tick in 0..600 {
            claims.push(control.claim);
            let left = claims[claims.len() - 1 - delay];
            let delivered = left.of_rate(Rate::from_mbps(carries));
            control.on_tick(&ClaimFigures { left, ..measured(10, delivered, interval_s) });
            if tick >= 400 {
                least = least.min(delivered.as_mbps_f64());
                most = most.max(delivered.as_mbps_f64());
            }
        }
        (least, most)
    }

    #[test]
    fn the_owner_reaches_its_target_rate_and_keeps_it() {
        // The owner assumes that the air carries 24 Mbit/s. In truth the air carries less, as much,
        // or more.
        for carries in [20, 24, 28] {
            for (delay, interval) in [(2, 1), (5, 1), (16, 7)] {
                let (least, most) = settled(carries, delay, interval);
                assert!((12.4..=12.6).contains(&least), "{carries} {delay}: {least}");
                assert!((12.4..=12.6).contains(&most), "{carries} {delay}: {most}");
            }
        }
    }

    #[test]
    fn the_first_claim_is_the_share_of_a_fully_used_air() {
        let mut control = ClaimControl::default();
        ticks(&mut control, SETTLES_WITHIN, &measured(6, Rate::from_mbps(1), 1));
        assert!(control.short);
        assert_eq!(control.claim, Share::from_ppm(312_500));
        ticks(&mut control, 1_000, &measured(6, Rate::from_mbps(1), 1));
        assert_eq!(
            control.claim,
            Share::from_ppm(312_500).percent(MOST_PERCENT),
            "the largest claim"
        );
    }

    #[test]
    fn an_owner_above_its_target_rate_ends_its_claim() {
        let mut control = ClaimControl::default();
        ticks(&mut control, 1_000, &measured(6, Rate::from_mbps(8), 1));
        assert_eq!((control.claim, control.short), (Share::ZERO, false));
    }

    #[test]
    fn a_claim_below_the_unused_air_grows_within_seconds() {
        let mut control = ClaimControl::default();
        ticks(&mut control, 1_000, &measured(6, Rate::from_mbps(8), 1));
        let short =
            ClaimFigures { left: Share::from_percent(25), ..measured(6, Rate::from_mbps(5), 1) };
        ticks(&mut control, 6, &short);
        assert!(control.claim >= Share::from_percent(20), "{}", control.claim);
    }

    #[test]
    fn an_owner_whose_applications_send_less_claims_no_more_than_they_send() {
        let mut control = ClaimControl::default();
        let waits = measured(12, Rate::from_mbps(3), 1);
        ticks(&mut control, 100, &waits);
        let needed = Needed { rate: Rate::from_mbps(3), data_waits: false };
        let less = ClaimFigures { needed, ..waits };
        ticks(&mut control, 1, &less);
        // 125 % of 3 Mbit/s, of 24 Mbit/s.
        assert_eq!((control.claim, control.short), (Share::from_ppm(156_250), false));
        ticks(&mut control, 100, &less);
        assert_eq!(control.claim, Share::from_ppm(156_250));
        ticks(&mut control, 1, &waits);
        assert_eq!((control.claim, control.short), (Share::from_ppm(625_000), true), "at once");
    }

    #[test]
    fn without_a_measured_air_nothing_is_claimed() {
        let mut control = ClaimControl::default();
        ticks(&mut control, 20, &ClaimFigures { whole: None, ..measured(6, Rate::ZERO, 1) });
        assert_eq!((control.claim, control.short), (Share::ZERO, true));
    }
}
