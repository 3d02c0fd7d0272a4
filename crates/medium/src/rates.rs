//! The rates of HT, VHT and HE, and what a rate in a configuration stands for.
//!
//! A rate is written as in the tables of the standard, rounded to 0.1 Mbit/s (`72.2Mbit/s`); what
//! the air needs is the exact number of data bits per symbol (N_DBPS). So a rate is looked up
//! among those that the standard has, and never multiplied by a symbol time and rounded.

use wakeai_units::{Duration, Rate};

use crate::config::{GuardInterval, Width};
use crate::error::ConfigError;
use crate::phy::{LEGACY_MBPS, LEGACY_PREAMBLE, LEGACY_SYMBOL, PhyRate};
use crate::{AccessPointConfig, Standard};

/// Coded bits per subcarrier and the numerator and denominator of the code rate, by MCS: BPSK 1/2
/// to 1024-QAM 5/6. HT ends at 7, VHT at 9, HE at 11 (802.11-2020 19.5, 21.5, 802.11ax 27.5).
const MCS: [(u64, u64, u64); 12] = [
    (1, 1, 2),
    (2, 1, 2),
    (2, 3, 4),
    (4, 1, 2),
    (4, 3, 4),
    (6, 2, 3),
    (6, 3, 4),
    (6, 5, 6),
    (8, 3, 4),
    (8, 5, 6),
    (10, 3, 4),
    (10, 5, 6),
];

/// VHT combinations of width, streams and MCS that the standard leaves out because the encoders
/// could not share the bits evenly (21.5). At 20 MHz MCS 9 goes by its fraction of a bit.
const VHT_LEFT_OUT: [(Width, u8, usize); 4] =
    [(Width::Mhz80, 3, 6), (Width::Mhz80, 6, 9), (Width::Mhz80, 7, 6), (Width::Mhz160, 3, 9)];

/// Tables of rates are rounded to 0.1 Mbit/s: a rate is meant if it is within half of that.
const ROUNDING_BPS: u64 = 50_000;

/// One entry of the tables.
#[derive(Clone, Copy)]
struct Entry {
    streams: u8,
    /// N_DBPS as a fraction; HE rounds it down (27.5), HT and VHT have none that needs it.
    bits_numerator: u64,
    bits_denominator: u64,
    symbol: Duration,
}

impl Entry {
    fn rate(self) -> Rate {
        let per_second = self.bits_numerator * 1_000_000_000;
        Rate::from_bps(per_second / (self.bits_denominator * self.symbol.as_nanos()))
    }
}

/// What `rate` means for a station of `standard` in this BSS.
pub(crate) fn find(
    standard: Standard,
    rate: Rate,
    bss: &AccessPointConfig,
) -> Result<PhyRate, ConfigError> {
    if !standard.is_qos() {
        return PhyRate::legacy(standard, rate)
            .ok_or_else(|| unknown("rate", standard, rate, legacy_names()));
    }
    let found = entries(standard, bss)
        .find(|entry| {
            entry.rate().bits_per_second().abs_diff(rate.bits_per_second()) <= ROUNDING_BPS
        })
        .ok_or_else(|| {
            let names: Vec<String> = entries(standard, bss).map(|e| name(e.rate())).collect();
            unknown("rate", standard, rate, names.join(", "))
        })?;
    Ok(phy_rate(standard, guard_interval(standard, bss), found))
}

/// A rate of broadcasts or control frames, which are non-HT OFDM in every standard.
pub(crate) fn find_legacy(
    what: &'static str,
    standard: Standard,
    rate: Rate,
) -> Result<PhyRate, ConfigError> {
    PhyRate::legacy(standard, rate).ok_or_else(|| unknown(what, standard, rate, legacy_names()))
}

/// The highest of the mandatory 6, 12 and 24 Mbit/s that is not above `rate` (10.6.6.5.2).
pub(crate) fn control_rate(rate: Rate) -> Rate {
    let mandatory = [24, 12].map(Rate::from_mbps);
    mandatory.into_iter().find(|control| *control <= rate).unwrap_or(Rate::from_mbps(6))
}

/// All rates, the widest channel and the fewest streams first: where two entries have the same
/// rate they have the same N_DBPS too, and differ in their preamble only.
fn entries(standard: Standard, bss: &AccessPointConfig) -> impl Iterator<Item = Entry> {
    let widths = [Width::Mhz160, Width::Mhz80, Width::Mhz40, Width::Mhz20];
    let widest = bss.width.min(widest(standard));
    let (symbol, most_mcs) = (symbol(standard, guard_interval(standard, bss)), most_mcs(standard));
    let streams = bss.streams.min(most_streams(standard));
    widths.into_iter().filter(move |width| *width <= widest).flat_map(move |width| {
        (1..=streams).flat_map(move |streams| {
            (0..=most_mcs).filter_map(move |mcs| entry(standard, width, streams, mcs, symbol))
        })
    })
}

/// The access point's guard interval where `standard` has it, and else the one that all have.
fn guard_interval(standard: Standard, bss: &AccessPointConfig) -> GuardInterval {
    let (least, most, _) = guard_intervals(standard);
    let has = (least..=most).contains(&bss.guard_interval);
    if has { bss.guard_interval } else { GuardInterval::Ns800 }
}

fn entry(
    standard: Standard,
    width: Width,
    streams: u8,
    mcs: usize,
    symbol: Duration,
) -> Option<Entry> {
    let (bits, numerator, denominator) = MCS[mcs];
    let coded = data_subcarriers(standard, width) * bits * u64::from(streams);
    let whole = (coded * numerator).is_multiple_of(denominator);
    let left_out =
        standard == Standard::Ac && (!whole || VHT_LEFT_OUT.contains(&(width, streams, mcs)));
    (!left_out).then_some(Entry {
        streams,
        bits_numerator: coded * numerator,
        bits_denominator: denominator,
        symbol,
    })
}

fn phy_rate(standard: Standard, guard: GuardInterval, entry: Entry) -> PhyRate {
    let bits_per_symbol = entry.bits_numerator / entry.bits_denominator;
    let he = standard == Standard::Ax;
    PhyRate {
        preamble: preamble(standard, guard, entry.streams),
        bits_per_symbol,
        symbol: entry.symbol,
        // One convolutional encoder for each 540 Mbit/s at the long guard interval (21.3.10.5);
        // HE uses LDPC, which has no tail (27.3.12.5).
        tail_bits: if he { 0 } else { 6 * bits_per_symbol.div_ceil(2_160) },
        grid: if he { entry.symbol } else { LEGACY_SYMBOL },
        signal_extension: standard.signal_extension(),
    }
}

/// Everything ahead of the data field: HT mixed format (19.3.2), VHT (21.3.2) and HE SU
/// (27.3.4) for as many training fields as there are streams.
fn preamble(standard: Standard, guard: GuardInterval, streams: u8) -> Duration {
    let training = u64::from(match streams {
        3 => 4,
        5 => 6,
        7 => 8,
        streams => streams,
    });
    LEGACY_PREAMBLE
        + match standard {
            Standard::A | Standard::G => Duration::ZERO,
            // HT-SIG 8 us, HT-STF 4 us, HT-LTFs of 4 us.
            Standard::N => Duration::from_micros(12 + 4 * training),
            // VHT-SIG-A 8 us, VHT-STF 4 us, VHT-LTFs of 4 us, VHT-SIG-B 4 us.
            Standard::Ac => Duration::from_micros(16 + 4 * training),
            // RL-SIG 4 us, HE-SIG-A 8 us, HE-STF 4 us, HE-LTFs: 2x (6.4 us) with guard intervals
            // of 0.8 and 1.6 us, 4x (12.8 us) with 3.2 us. No packet extension.
            Standard::Ax => Duration::from_micros(16) + he_training(guard) * training,
        }
}

fn he_training(guard: GuardInterval) -> Duration {
    match guard {
        GuardInterval::Ns400 | GuardInterval::Ns800 => Duration::from_nanos(7_200),
        GuardInterval::Ns1600 => Duration::from_nanos(8_000),
        GuardInterval::Ns3200 => Duration::from_nanos(16_000),
    }
}

/// T_SYM: 3.2 us and the guard interval, for HE 12.8 us and the guard interval.
fn symbol(standard: Standard, guard: GuardInterval) -> Duration {
    let without = if standard == Standard::Ax { 12_800 } else { 3_200 };
    Duration::from_nanos(without + guard.nanos())
}

/// N_SD (19.3.6, 21.3.6, 27.3.9).
fn data_subcarriers(standard: Standard, width: Width) -> u64 {
    match (standard == Standard::Ax, width) {
        (false, Width::Mhz20) => 52,
        (false, Width::Mhz40) => 108,
        (false, Width::Mhz80) | (true, Width::Mhz20) => 234,
        (false, Width::Mhz160) | (true, Width::Mhz40) => 468,
        (true, Width::Mhz80) => 980,
        (true, Width::Mhz160) => 1_960,
    }
}

pub(crate) fn widest(standard: Standard) -> Width {
    match standard {
        Standard::A | Standard::G => Width::Mhz20,
        Standard::N => Width::Mhz40,
        Standard::Ac | Standard::Ax => Width::Mhz160,
    }
}

pub(crate) fn most_streams(standard: Standard) -> u8 {
    match standard {
        Standard::A | Standard::G => 1,
        Standard::N => 4,
        Standard::Ac | Standard::Ax => 8,
    }
}

/// The shortest and the longest guard interval, and what may stand in a configuration.
pub(crate) fn guard_intervals(standard: Standard) -> (GuardInterval, GuardInterval, &'static str) {
    match standard {
        Standard::A | Standard::G => (GuardInterval::Ns800, GuardInterval::Ns800, "800ns (a, g)"),
        Standard::N | Standard::Ac => {
            (GuardInterval::Ns400, GuardInterval::Ns800, "400ns, 800ns (n, ac)")
        }
        Standard::Ax => (GuardInterval::Ns800, GuardInterval::Ns3200, "800ns, 1.6us, 3.2us (ax)"),
    }
}

fn most_mcs(standard: Standard) -> usize {
    match standard {
        Standard::A | Standard::G | Standard::N => 7,
        Standard::Ac => 9,
        Standard::Ax => 11,
    }
}

fn unknown(what: &'static str, standard: Standard, found: Rate, allowed: String) -> ConfigError {
    ConfigError::Rate { what, standard, found, allowed }
}

fn legacy_names() -> String {
    LEGACY_MBPS.map(|mbps| Rate::from_mbps(mbps).to_string()).join(", ")
}

/// A rate as the tables print it, rounded to 0.1 Mbit/s.
fn name(rate: Rate) -> String {
    let tenths = (rate.bits_per_second() + ROUNDING_BPS) / (2 * ROUNDING_BPS);
    Rate::from_bps(tenths * 2 * ROUNDING_BPS).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(standard: Standard, rate: &str, guard: GuardInterval) -> u64 {
        let mut bss = AccessPointConfig::new(standard);
        bss.guard_interval = guard;
        find(standard, rate.parse().unwrap(), &bss).unwrap().bits_per_symbol
    }

    #[test]
    fn printed_rates_have_the_bits_per_symbol_of_the_tables() {
        // 19.5, 21.5 and 27.5.
        assert_eq!(bits(Standard::N, "65Mbit/s", GuardInterval::Ns800), 260);
        assert_eq!(bits(Standard::N, "72.2Mbit/s", GuardInterval::Ns400), 260);
        assert_eq!(bits(Standard::Ac, "390Mbit/s", GuardInterval::Ns800), 1_560);
        assert_eq!(bits(Standard::Ac, "433.3Mbit/s", GuardInterval::Ns400), 1_560);
        assert_eq!(bits(Standard::Ax, "600.5Mbit/s", GuardInterval::Ns800), 8_166);
        assert_eq!(bits(Standard::Ax, "143.4Mbit/s", GuardInterval::Ns800), 1_950);
    }

    #[test]
    fn every_default_rate_is_one_that_the_standard_has() {
        for standard in [Standard::A, Standard::G, Standard::N, Standard::Ac, Standard::Ax] {
            let bss = AccessPointConfig::new(standard);
            assert!(find(standard, standard.default_rate(), &bss).is_ok(), "{standard}");
        }
    }

    #[test]
    fn a_rate_that_does_not_exist_is_refused_with_those_that_do() {
        let bss = AccessPointConfig::new(Standard::N);
        let refused = find(Standard::N, Rate::from_mbps(64), &bss).unwrap_err().to_string();
        assert!(refused.contains("64Mbit/s") && refused.contains("58.5Mbit/s, 65Mbit/s"));
    }

    #[test]
    fn preambles_last_36_40_and_43_2_us_with_one_stream() {
        let length = |standard| preamble(standard, GuardInterval::Ns800, 1).as_nanos();
        assert_eq!(length(Standard::N), 36_000);
        assert_eq!(length(Standard::Ac), 40_000);
        assert_eq!(length(Standard::Ax), 43_200);
    }

    #[test]
    fn short_guard_interval_ends_on_the_4_us_grid() {
        let mut bss = AccessPointConfig::new(Standard::N);
        bss.guard_interval = GuardInterval::Ns400;
        let rate = find(Standard::N, Rate::from_bps(72_200_000), &bss).unwrap();
        // 1538 bytes: 12326 bits are 48 symbols of 3.6 us, 172.8 us, hence 176 us.
        assert_eq!(rate.duration(1_538).as_nanos(), 36_000 + 176_000);
    }

    #[test]
    fn responses_use_the_highest_mandatory_rate_not_above_the_data() {
        let control = |mbps| control_rate(Rate::from_mbps(mbps));
        assert_eq!(control(54), Rate::from_mbps(24));
        assert_eq!(control(18), Rate::from_mbps(12));
        assert_eq!(control(9), Rate::from_mbps(6));
    }
}
