//! How much of the air an owner needs the others to leave.

use wakeai_units::{Duration, Rate};

use super::Share;

/// What an owner steers its rate to, percent of the reserved one: above it, because a rate that
/// varies is held in every span of some seconds only by a mean above it.
const AIM_PERCENT: u64 = 125;
/// Less than this is short of it, percent.
const SHORT_PERCENT: u64 = 99;
/// The part of what is missing that is claimed in addition each tick, permille, where the others
/// hear of it within a second; less where messages are rarer, so that a claim is followed before
/// the next one is made.
const GAIN_PERMILLE: u64 = 150;
const HEARD_WITHIN: Duration = Duration::from_secs(1);
/// The part of what a claim lacks to be felt at all that is added each tick, percent.
const UNFELT_PERCENT: u32 = 25;
/// No more is claimed than this multiple of what the reservation takes of a full air, percent.
const MOST_PERCENT: u32 = 130;
/// Ticks after the admission in which the claim is what the reservation takes of a full air: until
/// it is heard and followed, and what is delivered is a mean of what came of it.
const SETTLES_WITHIN: u32 = 8;

/// An integrator: it claims more while the owner is below its aim, and less while above.
///
/// Where the others have to leave a claim `c` of what the air carries for this station, `A`, and
/// send all the rest, the owner gets `A·c`: so what is missing, over `A`, is what the claim lacks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClaimControl {
    claim: Share,
    short: bool,
    /// Since it was admitted.
    ticks: u32,
}

/// What an owner has to go by at a tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct Felt {
    /// What is reserved.
    pub(super) rate: Rate,
    /// What it delivers: a mean of some ticks.
    pub(super) delivered: Rate,
    /// What the air carries for this station; `None` where nothing is known of it.
    pub(super) whole: Option<Rate>,
    /// The part of that which the others leave already.
    pub(super) left: Share,
    /// The time between own presence messages.
    pub(super) interval: Duration,
}

impl ClaimControl {
    pub(super) fn claim(&self) -> Share {
        self.claim
    }

    pub(super) fn is_short(&self) -> bool {
        self.short
    }

    pub(super) fn on_tick(&mut self, felt: &Felt) {
        let part = |percent| felt.rate.mul_div(percent, 100).unwrap_or(felt.rate);
        let share =
            |rate| felt.whole.and_then(|whole| Share::of(rate, whole)).unwrap_or(Share::ZERO);
        let (aim, delivered) = (part(AIM_PERCENT), felt.delivered);
        self.short = delivered < part(SHORT_PERCENT);
        self.ticks = self.ticks.saturating_add(1);
        if self.ticks <= SETTLES_WITHIN {
            self.claim = share(aim).min(Share::WHOLE);
            return;
        }
        if self.short {
            // A claim of less than the others leave anyway binds nobody.
            let unfelt = felt.left.min(share(aim)).minus(self.claim);
            self.claim = self.claim.plus(unfelt.percent(UNFELT_PERCENT));
        }
        let gain = gain_permille(felt.interval);
        let step = |rate| Share::from_ppm(scale(share(rate).ppm(), gain));
        let most = share(aim).percent(MOST_PERCENT).min(Share::WHOLE);
        self.claim = self.claim.plus(step(aim.saturating_sub(delivered)));
        self.claim = self.claim.minus(step(delivered.saturating_sub(aim))).min(most);
    }
}

fn gain_permille(interval: Duration) -> u64 {
    let interval = interval.max(HEARD_WITHIN).as_millis();
    GAIN_PERMILLE * HEARD_WITHIN.as_millis() / interval
}

fn scale(ppm: u32, permille: u64) -> u32 {
    u32::try_from(u64::from(ppm) * permille / 1_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn felt(rate: u64, delivered: Rate, interval_s: u64) -> Felt {
        Felt {
            rate: Rate::from_mbps(rate),
            delivered,
            whole: Some(Rate::from_mbps(24)),
            left: Share::ZERO,
            interval: Duration::from_secs(interval_s),
        }
    }

    fn ticks(control: &mut ClaimControl, count: u32, felt: &Felt) {
        (0..count).for_each(|_| control.on_tick(felt));
    }

    /// The least and the most that the owner gets in the end, where the air carries so much and
    /// the others leave the claim `delay` ticks later.
    fn settled(carries: u64, delay: usize, interval_s: u64) -> (f64, f64) {
        let mut control = ClaimControl::default();
        let mut claims = vec![Share::ZERO; delay];
        let (mut least, mut most) = (f64::MAX, f64::MIN);
        for tick in 0..600 {
            claims.push(control.claim());
            let left = claims[claims.len() - 1 - delay];
            let delivered = left.of_rate(Rate::from_mbps(carries));
            control.on_tick(&Felt { left, ..felt(10, delivered, interval_s) });
            if tick >= 400 {
                least = least.min(delivered.as_mbps_f64());
                most = most.max(delivered.as_mbps_f64());
            }
        }
        (least, most)
    }

    #[test]
    fn the_owner_comes_to_its_aim_and_stays_there() {
        // Also where the air carries less, or more, than it was thought to.
        for carries in [20, 24, 28] {
            for (delay, interval) in [(2, 1), (5, 1), (16, 7)] {
                let (least, most) = settled(carries, delay, interval);
                assert!((12.4..=12.6).contains(&least), "{carries} {delay}: {least}");
                assert!((12.4..=12.6).contains(&most), "{carries} {delay}: {most}");
            }
        }
    }

    #[test]
    fn it_begins_with_what_a_full_air_would_have_to_leave() {
        let mut control = ClaimControl::default();
        ticks(&mut control, SETTLES_WITHIN, &felt(6, Rate::from_mbps(1), 1));
        assert!(control.is_short());
        assert_eq!(control.claim(), Share::from_ppm(312_500));
        ticks(&mut control, 1_000, &felt(6, Rate::from_mbps(1), 1));
        assert_eq!(
            control.claim(),
            Share::from_ppm(312_500).percent(MOST_PERCENT),
            "and no further"
        );
    }

    #[test]
    fn whoever_gets_more_than_it_asked_for_claims_less_and_at_last_nothing() {
        let mut control = ClaimControl::default();
        ticks(&mut control, 1_000, &felt(6, Rate::from_mbps(8), 1));
        assert_eq!((control.claim(), control.is_short()), (Share::ZERO, false));
    }

    #[test]
    fn a_claim_that_nobody_feels_is_made_good_within_seconds() {
        let mut control = ClaimControl::default();
        ticks(&mut control, 1_000, &felt(6, Rate::from_mbps(8), 1));
        let short = Felt { left: Share::from_percent(25), ..felt(6, Rate::from_mbps(5), 1) };
        ticks(&mut control, 6, &short);
        assert!(control.claim() >= Share::from_percent(20), "{}", control.claim());
    }

    #[test]
    fn without_a_word_of_the_air_nothing_is_claimed() {
        let mut control = ClaimControl::default();
        ticks(&mut control, 20, &Felt { whole: None, ..felt(6, Rate::ZERO, 1) });
        assert_eq!((control.claim(), control.is_short()), (Share::ZERO, true));
    }
}
