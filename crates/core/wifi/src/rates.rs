//! The tables of rates: every modulation and coding scheme of each standard.
//!
//! The tables print a rate rounded to 0.1 Mbit/s (`72.2Mbit/s`), but the time on the air follows
//! from the exact number of data bits per symbol (N_DBPS). So a configured rate is not used in
//! computations. It selects a mode of its standard.

use wakeai_units::{Duration, Rate};

use crate::{GuardInterval, Standard, Width};

/// The rates of non-HT OFDM (802.11-2020 table 17-4): the only rates of a and g, and the rates of
/// broadcasts and control frames in every standard but b.
pub const LEGACY_RATES: [Rate; 8] = [
    Rate::from_mbps(6),
    Rate::from_mbps(9),
    Rate::from_mbps(12),
    Rate::from_mbps(18),
    Rate::from_mbps(24),
    Rate::from_mbps(36),
    Rate::from_mbps(48),
    Rate::from_mbps(54),
];

/// The rates of DSSS and CCK (802.11-2020 15.2.3.4 and 16.2.3.4): the only rates of b.
pub const DSSS_RATES: [Rate; 4] =
    [Rate::from_mbps(1), Rate::from_mbps(2), Rate::from_bps(5_500_000), Rate::from_mbps(11)];

/// A time in which each rate of b sends a whole number of bits.
const DSSS_SYMBOL: Duration = Duration::from_micros(2);

/// Symbols of non-HT OFDM in a second: each lasts 4 us.
const LEGACY_SYMBOLS_PER_SECOND: u64 = 250_000;

/// For each MCS (modulation and coding scheme): the coded bits per subcarrier, and the numerator
/// and denominator of the code rate. They go from BPSK 1/2 to 1024-QAM 5/6 (802.11-2020 19.5 and
/// 21.5, 802.11ax-2021 27.5).
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

/// Combinations of width, streams and MCS that VHT leaves out, because its encoders could not share
/// the bits evenly (802.11-2020 21.5). VHT also leaves out combinations whose symbol would carry a
/// fraction of a bit, such as MCS 9 with one stream at 20 MHz. The code finds those by computation.
const VHT_LEFT_OUT: [(Width, u8, usize); 4] =
    [(Width::Mhz80, 3, 6), (Width::Mhz80, 6, 9), (Width::Mhz80, 7, 6), (Width::Mhz160, 3, 9)];

/// Half of the 0.1 Mbit/s to which the tables round. A configured rate means a mode within this
/// distance.
const ROUNDING_BPS: u64 = 50_000;

/// One row of a table of rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// The standard whose table the row is from. For a broadcast or a control frame it is 802.11a,
    /// whatever the standard of the BSS, unless that is 802.11b.
    pub standard: Standard,
    /// Spatial streams.
    pub streams: u8,
    /// Guard interval of a data symbol.
    pub guard_interval: GuardInterval,
    /// N_DBPS, the data bits per symbol, as a fraction. HE rounds it down to a whole number
    /// (802.11ax-2021 27.5). In HT and VHT the fraction is a whole number.
    bits: (u64, u64),
}

impl Mode {
    /// The modes of `standard` with this width, these streams and this guard interval, by MCS.
    pub fn of(
        standard: Standard,
        width: Width,
        streams: u8,
        guard_interval: GuardInterval,
    ) -> impl Iterator<Item = Self> {
        let most_mcs = match standard {
            Standard::B => 3,
            Standard::A | Standard::G | Standard::N => 7,
            Standard::Ac => 9,
            Standard::Ax => 11,
        };
        (0..=most_mcs)
            .filter_map(move |mcs| Self::with_mcs(standard, width, streams, guard_interval, mcs))
    }

    /// The mode of this MCS, or of this place in the table of a standard without MCS; `None` where the table does not have it.
    pub fn with_mcs(
        standard: Standard,
        width: Width,
        streams: u8,
        guard_interval: GuardInterval,
        mcs: usize,
    ) -> Option<Self> {
        let bits = if standard.is_qos() {
            let (bits, numerator, denominator) = *MCS.get(mcs)?;
            let coded = data_subcarriers(standard, width) * u64::from(streams) * bits;
            (coded * numerator, denominator)
        } else if standard == Standard::B {
            (DSSS_RATES.get(mcs)?.bits_per_second(), 500_000)
        } else {
            (LEGACY_RATES.get(mcs)?.bits_per_second(), LEGACY_SYMBOLS_PER_SECOND)
        };
        let left_out = standard == Standard::Ac
            && (!bits.0.is_multiple_of(bits.1) || VHT_LEFT_OUT.contains(&(width, streams, mcs)));
        (!left_out).then_some(Self { standard, streams, guard_interval, bits })
    }

    /// The mode of a broadcast or a control frame in a BSS of `standard`. These are DSSS in 802.11b, and non-HT OFDM in
    /// every other standard. `None` unless `rate` is one of [`Standard::legacy_rates`].
    pub fn legacy(standard: Standard, rate: Rate) -> Option<Self> {
        let table = if standard == Standard::B { standard } else { Standard::A };
        let mut modes = Self::of(table, Width::Mhz20, 1, GuardInterval::Ns800);
        modes.find(|mode| mode.rate() == rate)
    }

    /// The rate as the tables print it, rounded to 0.1 Mbit/s.
    pub fn rate(&self) -> Rate {
        let nanos = self.bits.1 * self.symbol().as_nanos();
        Rate::from_bps((self.bits.0 * 10_000 + nanos / 2) / nanos * 100_000)
    }

    /// Whether a configured `rate` means this mode.
    pub(crate) fn is_meant_by(&self, rate: Rate) -> bool {
        let exact = self.bits.0 * 1_000_000_000 / (self.bits.1 * self.symbol().as_nanos());
        exact.abs_diff(rate.bits_per_second()) <= ROUNDING_BPS
    }

    /// N_DBPS: data bits in one symbol.
    pub fn bits_per_symbol(&self) -> u64 {
        self.bits.0 / self.bits.1
    }

    /// T_SYM, the duration of a symbol: the guard interval and 3.2 us (12.8 us for HE). For 802.11b it is the time in
    /// which a whole number of bits is sent at each of its rates, 2 us.
    pub fn symbol(&self) -> Duration {
        if self.standard == Standard::B {
            return DSSS_SYMBOL;
        }
        let without = if self.standard == Standard::Ax { 12_800 } else { 3_200 };
        Duration::from_nanos(without) + self.guard_interval.duration()
    }
}

/// N_SD, the number of data subcarriers (802.11-2020 19.3.6 and 21.3.6, 802.11ax-2021 27.3.9).
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
