//! The rates of mac80211, which the driver tells by index and flags, as modulations of the medium.

use wakeai_wifi::{GuardInterval, Mode, Standard, Width};

use super::message::TriedRates;

/// The flags of a rate (the driver's header).
const MCS: u16 = 1 << 3;
const WIDTH_40: u16 = 1 << 5;
const SHORT_GUARD: u16 = 1 << 7;
const VHT_MCS: u16 = 1 << 8;
const WIDTH_80: u16 = 1 << 9;
const WIDTH_160: u16 = 1 << 10;

/// The highest frequency of the band at 2.4 GHz, whose radios have DSSS, in MHz.
const LAST_WITH_DSSS: u32 = 2_484;

/// The indices of a radio's rates without MCS: those of DSSS first, where the band has them.
fn legacy(frequency: u32) -> impl Iterator<Item = Mode> {
    let of = |standard| Mode::of(standard, Width::Mhz20, 1, GuardInterval::Ns800);
    let dsss = of(Standard::B).filter(move |_| frequency <= LAST_WITH_DSSS);
    dsss.chain(of(Standard::A))
}

/// The modulation that mac80211 names; `None` where the medium has none such.
pub(crate) fn modulation(index: i8, flags: u16, frequency: u32) -> Option<Mode> {
    let index = usize::try_from(index).ok()?;
    let guard_interval =
        if flags & SHORT_GUARD != 0 { GuardInterval::Ns400 } else { GuardInterval::Ns800 };
    let width = [(WIDTH_160, Width::Mhz160), (WIDTH_80, Width::Mhz80), (WIDTH_40, Width::Mhz40)];
    let width = width.into_iter().find(|(flag, _)| flags & flag != 0);
    let width = width.map_or(Width::Mhz20, |(_, width)| width);
    let (standard, streams, mcs) = if flags & VHT_MCS != 0 {
        (Standard::Ac, (index >> 4) as u8 + 1, index & 15)
    } else if flags & MCS != 0 {
        (Standard::N, (index / 8) as u8 + 1, index % 8)
    } else {
        return legacy(frequency).nth(index);
    };
    Mode::with_mcs(standard, width, streams, guard_interval, mcs)
}

/// A rate by the numbers that programs show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// Of DSSS and OFDM, in units of 500 kbit/s.
    Legacy { half_mbps: u8 },
    /// The MCS of HT, which counts streams by eights, at 40 MHz or 20.
    Ht { index: u8, wide: bool, short_guard: bool },
    /// The MCS of VHT, and radiotap's number of the width: 0, 1, 4 and 11 for 20, 40, 80 and 160 MHz.
    Vht { index: u8, streams: u8, width_code: u8, short_guard: bool },
}

/// A rate that a sender tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) modulation: Mode,
    index: u8,
    flags: u16,
}

impl Rate {
    /// The rate that mac80211 names; `None` where the medium has none such.
    fn of(index: i8, flags: u16, frequency: u32) -> Option<Self> {
        let modulation = modulation(index, flags, frequency)?;
        Some(Self { modulation, index: index.unsigned_abs(), flags })
    }

    /// The numbers that programs show for it.
    pub(crate) fn named(&self) -> Named {
        let Self { modulation, index, flags } = *self;
        let has = |flag| flags & flag != 0;
        let short_guard = has(SHORT_GUARD);
        if has(VHT_MCS) {
            let codes = [(WIDTH_160, 11), (WIDTH_80, 4), (WIDTH_40, 1)];
            let code = codes.into_iter().find(|(flag, _)| has(*flag));
            return Named::Vht {
                index: index & 15,
                streams: (index >> 4) + 1,
                width_code: code.map_or(0, |(_, code)| code),
                short_guard,
            };
        }
        if has(MCS) {
            return Named::Ht { index, wide: has(WIDTH_40), short_guard };
        }
        Named::Legacy { half_mbps: (modulation.rate().bits_per_second() / 500_000) as u8 }
    }
}

/// The index of the rate at which a receiver is told a frame came: the rate itself, or the highest one without MCS that
/// is not above it, because the driver takes no other.
pub(crate) fn received_index(modulation: Mode, frequency: u32) -> u32 {
    let all = || (0..).zip(legacy(frequency));
    let same = all().find(|(_, one)| *one == modulation);
    let below = || {
        let fitting = all().filter(|(_, one)| one.rate() <= modulation.rate());
        fitting.max_by_key(|(_, one)| one.rate())
    };
    same.or_else(below).map_or(0, |(index, _)| index)
}

/// The rates that the sender of a frame tries, each with its number of attempts; at least one.
#[derive(Clone, Debug)]
pub(crate) struct Chain(Vec<(Rate, u8)>);

impl Chain {
    /// What mac80211 names of what the medium has; the lowest rate once where that is nothing.
    pub(crate) fn of(rates: &TriedRates, frequency: u32) -> Self {
        let named = rates.iter().take_while(|(index, ..)| *index >= 0);
        let known = named.filter_map(|&(index, count, flags)| {
            Some((Rate::of(index, flags, frequency)?, count.max(1)))
        });
        let mut known: Vec<_> = known.collect();
        if known.is_empty() {
            let lowest = Rate::of(0, 0, frequency).expect("each band has rates without MCS");
            known.push((lowest, 1));
        }
        Self(known)
    }

    /// The number of attempts, at most 255.
    pub(crate) fn attempts(&self) -> u8 {
        self.0.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// The rate of this attempt, where 0 is the first; the last one after that.
    pub(crate) fn at(&self, attempt: u8) -> &Rate {
        let mut left = attempt;
        for (rate, count) in &self.0 {
            match left.checked_sub(*count) {
                Some(rest) => left = rest,
                None => return rate,
            }
        }
        &self.0.last().expect("a chain has a rate").0
    }
}

/// The rates with the attempts that were made.
pub(crate) fn tried(rates: &TriedRates, attempts: u8) -> TriedRates {
    let mut left = attempts;
    let mut report = *rates;
    for (index, count, _) in &mut report {
        let made = if *index < 0 { 0 } else { left.min((*count).max(1)) };
        left -= made;
        (*index, *count) = if made == 0 { (-1, 0) } else { (*index, made) };
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate in 100 kbit/s.
    fn tenths(index: i8, flags: u16, frequency: u32) -> u64 {
        modulation(index, flags, frequency).unwrap().rate().bits_per_second() / 100_000
    }

    #[test]
    fn indices_count_from_1_mbps_at_2_4_ghz_and_from_6_at_5() {
        assert_eq!([0, 3, 4, 11].map(|index| tenths(index, 0, 2412)), [10, 110, 60, 540]);
        assert_eq!([0, 7].map(|index| tenths(index, 0, 5180)), [60, 540]);
        assert_eq!(modulation(12, 0, 2412), None);
        assert_eq!(modulation(-1, 0, 2412), None);
    }

    #[test]
    fn mcs_streams_width_and_guard_interval_come_from_index_and_flags() {
        assert_eq!(tenths(7, MCS, 2412), 650);
        assert_eq!(tenths(15, MCS | SHORT_GUARD, 2412), 1_444);
        assert_eq!(tenths(7, MCS | WIDTH_40, 5180), 1_350);
        assert_eq!(tenths(0x19, VHT_MCS | WIDTH_80 | SHORT_GUARD, 5180), 8_667);
        assert_eq!(modulation(0x09, VHT_MCS, 5180), None, "VHT leaves MCS 9 out at 20 MHz");
    }

    #[test]
    fn an_attempt_has_the_numbers_of_its_rate() {
        let rates =
            [(7, 2, MCS | SHORT_GUARD), (0x19, 1, VHT_MCS | WIDTH_80), (11, 1, 0), (-1, 0, 0)];
        let of = |attempt| Chain::of(&rates, 2412).at(attempt).named();
        let ht = Named::Ht { index: 7, wide: false, short_guard: true };
        assert_eq!([of(0), of(1)], [ht, ht]);
        let vht = Named::Vht { index: 9, streams: 2, width_code: 4, short_guard: false };
        assert_eq!(of(2), vht);
        let last = Named::Legacy { half_mbps: 108 };
        assert_eq!([of(3), of(9)], [last, last]);
        let lowest = Named::Legacy { half_mbps: 12 };
        assert_eq!(Chain::of(&[(-1, 0, 0); 4], 5180).at(0).named(), lowest);
    }

    #[test]
    fn a_receiver_is_told_the_highest_rate_below_an_mcs() {
        let told = |index, flags, frequency| {
            received_index(modulation(index, flags, frequency).unwrap(), frequency)
        };
        assert_eq!((told(7, MCS, 2412), told(7, MCS, 5180)), (11, 7));
        assert_eq!(told(0, MCS, 2412), 4, "6.5 Mbit/s as 6");
        assert_eq!((told(3, 0, 2412), told(4, 0, 2412)), (3, 4));
    }

    #[test]
    fn the_report_has_the_attempts_that_were_made() {
        let rates = [(11, 2, 0), (9, 3, 0), (4, 1, 0), (-1, 0, 0)];
        assert_eq!(tried(&rates, 1), [(11, 1, 0), (-1, 0, 0), (-1, 0, 0), (-1, 0, 0)]);
        assert_eq!(tried(&rates, 4), [(11, 2, 0), (9, 2, 0), (-1, 0, 0), (-1, 0, 0)]);
        assert_eq!(tried(&rates, 6), rates);
        assert!(tried(&rates, 0).iter().all(|(index, ..)| *index == -1));
    }
}
