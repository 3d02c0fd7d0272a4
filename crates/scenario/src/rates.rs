//! The PHY rates that each standard has, rounded to 100 kbit/s as its tables print them.

use wakeai_units::{Duration, Rate};

use crate::radio::Standard;

/// Non-HT OFDM (802.11-2020, table 17-4), Mbit/s.
const LEGACY_MBPS: [u64; 8] = [6, 9, 12, 18, 24, 36, 48, 54];

/// Bits per subcarrier, and the code rate as a fraction, of MCS 0 to 11 (802.11-2020, tables 19-27
/// and 21-29; 802.11ax-2021, table 27-55).
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

/// Width, streams and MCS that 802.11ac leaves out (802.11-2020, 21.5), because its encoders
/// cannot share the bits evenly. At 20 MHz those MCS 9 are left out that have a fraction of a bit.
const LEFT_OUT: [(u32, u32, usize); 4] = [(80, 3, 6), (80, 6, 9), (80, 7, 6), (160, 3, 9)];

/// The rates of one setting, by MCS.
pub(crate) fn of(
    standard: Standard,
    width_mhz: u32,
    streams: u32,
    guard_interval: Duration,
) -> Vec<Rate> {
    let (mcs, symbol_ns) = match standard {
        Standard::A | Standard::G => return LEGACY_MBPS.map(Rate::from_mbps).to_vec(),
        Standard::N => (&MCS[..8], 3_200),
        Standard::Ac => (&MCS[..10], 3_200),
        Standard::Ax => (&MCS[..], 12_800),
    };
    let symbol_ns = symbol_ns + guard_interval.as_nanos();
    let per_bit = data_subcarriers(standard, width_mhz) * u64::from(streams);
    let rates = mcs.iter().enumerate().filter_map(|(index, (bits, numerator, denominator))| {
        let coded = per_bit * bits * numerator;
        let whole = coded.is_multiple_of(*denominator);
        let left_out =
            standard == Standard::Ac && (!whole || LEFT_OUT.contains(&(width_mhz, streams, index)));
        (!left_out).then(|| rounded(coded, denominator * symbol_ns))
    });
    rates.collect()
}

/// Data subcarriers, `N_SD` (802.11-2020, tables 19-6 and 21-5; 802.11ax-2021, table 27-13).
fn data_subcarriers(standard: Standard, width_mhz: u32) -> u64 {
    match (standard, width_mhz) {
        (Standard::Ax, 20) => 234,
        (Standard::Ax, 40) => 468,
        (Standard::Ax, 80) => 980,
        (Standard::Ax, _) => 1_960,
        (_, 20) => 52,
        (_, 40) => 108,
        (_, 80) => 234,
        _ => 468,
    }
}

/// `bits` in `nanos`, rounded to 100 kbit/s.
fn rounded(bits: u64, nanos: u64) -> Rate {
    Rate::from_bps((bits * 10_000 + nanos / 2) / nanos * 100_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_nanos(800);
    const SHORT: Duration = Duration::from_nanos(400);

    #[test]
    fn defaults_are_those_of_the_tables() {
        let top = |standard: Standard, gi| {
            standard.top_rate(standard.default_width_mhz(), 1, gi).to_string()
        };
        assert_eq!(top(Standard::A, LONG), "54Mbit/s");
        assert_eq!(top(Standard::G, LONG), "54Mbit/s");
        assert_eq!(top(Standard::N, LONG), "65Mbit/s");
        assert_eq!(top(Standard::N, SHORT), "72.2Mbit/s");
        assert_eq!(top(Standard::Ac, LONG), "390Mbit/s");
        assert_eq!(top(Standard::Ac, SHORT), "433.3Mbit/s");
        assert_eq!(top(Standard::Ax, LONG), "600.5Mbit/s");
    }

    #[test]
    fn combinations_that_802_11ac_leaves_out_are_not_there() {
        assert_eq!(Standard::Ac.top_rate(20, 1, LONG), Rate::from_mbps(78)); // MCS 8
        assert_eq!(Standard::Ac.top_rate(20, 3, LONG), Rate::from_mbps(260)); // has its MCS 9
        assert_eq!(of(Standard::Ac, 80, 3, LONG).len(), 9);
        assert_eq!(of(Standard::Ac, 80, 1, LONG).len(), 10);
    }

    #[test]
    fn the_fastest_of_all_are_600_and_9608_mbps() {
        assert_eq!(Standard::N.top_rate(40, 4, SHORT), Rate::from_mbps(600));
        assert_eq!(Standard::Ax.top_rate(160, 8, LONG), Rate::from_bps(9_607_800_000));
    }
}
