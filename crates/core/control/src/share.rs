//! A share of the airtime, and a reservation of a share.

use std::fmt;

use wakeai_units::Rate;

/// A share of the airtime, in parts per million. A request may ask for more than the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    /// No airtime.
    pub const ZERO: Self = Self(0);
    /// All airtime.
    pub const WHOLE: Self = Self(1_000_000);

    /// A share of `ppm` parts per million.
    pub const fn from_ppm(ppm: u32) -> Self {
        Self(ppm)
    }

    /// A share of `percent` percent.
    pub const fn from_percent(percent: u32) -> Self {
        Self(percent.saturating_mul(10_000))
    }

    /// Parts per million.
    pub const fn ppm(self) -> u32 {
        self.0
    }

    /// The ratio of `part` to `whole`, rounded up; `None` where `whole` is zero.
    pub fn of(part: Rate, whole: Rate) -> Option<Self> {
        let whole = u128::from(whole.bits_per_second());
        let ppm = (u128::from(part.bits_per_second()) * u128::from(Self::WHOLE.0))
            .checked_add(whole.checked_sub(1)?)?
            / whole;
        Some(Self(u32::try_from(ppm).unwrap_or(u32::MAX)))
    }

    /// The sum, saturating.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference; zero where `other` is larger.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `percent` percent of this share.
    #[must_use]
    pub fn percent(self, percent: u32) -> Self {
        let ppm = u64::from(self.0) * u64::from(percent) / 100;
        Self(u32::try_from(ppm).unwrap_or(u32::MAX))
    }

    /// This part of `rate`.
    pub fn of_rate(self, rate: Rate) -> Rate {
        rate.times(u64::from(self.0), u64::from(Self::WHOLE.0))
    }
}

impl fmt::Display for Share {
    /// Formats a share as `40.3 %`. The number is rounded up, so that a share above a limit is not
    /// shown as equal to the limit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.0.div_ceil(1_000);
        write!(f, "{}.{} %", tenths / 10, tenths % 10)
    }
}

/// A station's request to its peers to leave a rate free, as the station announces it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reservation {
    /// The rate.
    pub rate: Rate,
    /// The share of the airtime that the rate takes: `rate / Max_i`, with `Max_i` the rate that the
    /// station reaches alone, or an estimate of it from the PHY rate. The share is fixed when the
    /// station makes the request.
    pub share: Share,
    /// The place in the order of requests: a smaller ticket comes first. A new ticket is one above
    /// the tickets of all peers' requests that the station then knows (Lamport's bakery algorithm).
    pub ticket: u64,
    /// The share of the airtime that the other stations have to leave free now. The claim is zero
    /// while the reservation is not admitted. Where the owner reaches its rate although the others
    /// leave nothing free, the claim falls to zero.
    pub claim: Share,
    /// Whether the reservation is admitted, and its owner delivers less than 99 % of the rate although
    /// data waits.
    pub short: bool,
}

/// The state of a station's own request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::Display)]
pub enum ReservationState {
    /// The station asks for no rate.
    #[default]
    #[strum(to_string = "nothing is reserved")]
    None,
    /// The request is not announced, because the station has had no data to send for two seconds,
    /// or has listened for less than two seconds since its start.
    #[strum(to_string = "waiting for data to send (at least 2 s after the start)")]
    Waiting,
    /// The share is unknown: neither the rate that the station reaches alone nor its PHY rate is
    /// known.
    #[strum(
        to_string = "refused: neither what this station reaches alone (max) nor its PHY rate (link_rate) is known"
    )]
    Unmeasured,
    /// The request does not fit beside the admitted reservations with smaller tickets.
    #[strum(
        to_string = "refused: it takes {share} of the air, {taken} is taken, the limit is {limit}"
    )]
    Refused {
        /// The share of the airtime that the request would take.
        share: Share,
        /// The share of all admitted reservations together.
        taken: Share,
        /// The largest share that all reservations together may have.
        limit: Share,
    },
    /// The request is admitted: the peers leave the rate free.
    #[strum(to_string = "admitted with {share} of the air")]
    Admitted {
        /// The share of the airtime that the reservation takes.
        share: Share,
    },
}

impl ReservationState {
    /// Whether the request is admitted.
    pub fn is_admitted(self) -> bool {
        matches!(self, Self::Admitted { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_up_and_shown_so() {
        let share = Share::of(Rate::from_bps(1), Rate::from_bps(3));
        assert_eq!(share, Some(Share::from_ppm(333_334)));
        assert_eq!(Share::of(Rate::from_mbps(1), Rate::ZERO), None);
        assert_eq!(Share::from_ppm(800_001).to_string(), "80.1 %");
        assert_eq!(Share::from_percent(80).to_string(), "80.0 %");
    }

    #[test]
    fn parts_of_rates_and_of_shares() {
        assert_eq!(Share::from_percent(40).of_rate(Rate::from_mbps(20)), Rate::from_mbps(8));
        assert_eq!(Share::from_percent(20).percent(75), Share::from_percent(15));
        assert_eq!(Share::ZERO.minus(Share::WHOLE), Share::ZERO);
    }
}
