//! Time on the air: preamble and whole symbols.

use wakeai_units::{Duration, Rate};

use crate::Standard;

/// SERVICE field ahead of the data, in bits (802.11-2020 17.3.5.2).
const SERVICE_BITS: u64 = 16;

/// Symbol of non-HT OFDM, and the grid that the end of an HT or VHT PPDU is rounded up to.
pub(crate) const LEGACY_SYMBOL: Duration = Duration::from_micros(4);

/// L-STF 8 us, L-LTF 8 us, L-SIG 4 us: the start of every OFDM PPDU (17.3.2, 19.3.2, 21.3.2).
pub(crate) const LEGACY_PREAMBLE: Duration = Duration::from_micros(20);

/// The data rates of non-HT OFDM (table 17-4), in Mbit/s.
pub(crate) const LEGACY_MBPS: [u64; 8] = [6, 9, 12, 18, 24, 36, 48, 54];

/// One way to put a PSDU on the air, with everything that its duration depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PhyRate {
    /// All fields before the data field.
    pub(crate) preamble: Duration,
    /// N_DBPS: data bits in one symbol.
    pub(crate) bits_per_symbol: u64,
    /// Time of one symbol, guard interval included.
    pub(crate) symbol: Duration,
    /// Tail bits of all encoders together: 6 for each convolutional one, none for LDPC.
    pub(crate) tail_bits: u64,
    /// The data field is rounded up to a multiple of this; it matters with the short guard
    /// interval, whose 3.6 us symbols must end on the 4 us grid that L-SIG counts in (19.4.3).
    pub(crate) grid: Duration,
    /// Silence at the end that belongs to the frame.
    pub(crate) signal_extension: Duration,
}

impl PhyRate {
    /// Non-HT OFDM at `rate` (TXTIME, 17.4.3 and 18.5.3.2); `None` unless it is one of the eight.
    pub(crate) fn legacy(standard: Standard, rate: Rate) -> Option<Self> {
        let mbps = LEGACY_MBPS.into_iter().find(|mbps| Rate::from_mbps(*mbps) == rate)?;
        Some(Self {
            preamble: LEGACY_PREAMBLE,
            bits_per_symbol: mbps * LEGACY_SYMBOL.as_micros(),
            symbol: LEGACY_SYMBOL,
            tail_bits: 6,
            grid: LEGACY_SYMBOL,
            signal_extension: standard.signal_extension(),
        })
    }

    /// TXTIME of a PSDU of `psdu` bytes.
    pub(crate) fn duration(&self, psdu: u32) -> Duration {
        let bits = SERVICE_BITS + 8 * u64::from(psdu) + self.tail_bits;
        let data = self.symbol.as_nanos() * bits.div_ceil(self.bits_per_symbol);
        let on_grid = self.grid == self.symbol;
        let data = if on_grid { data } else { data.next_multiple_of(self.grid.as_nanos()) };
        self.preamble + Duration::from_nanos(data) + self.signal_extension
    }

    /// From the begin of the PPDU to the end of the symbol that completes `bytes` of the PSDU.
    pub(crate) fn until(&self, bytes: u32) -> Duration {
        let bits = SERVICE_BITS + 8 * u64::from(bytes);
        self.preamble + self.symbol * bits.div_ceil(self.bits_per_symbol)
    }

    /// The longest PSDU, in bytes, whose TXTIME is at most `limit`; zero where none fits.
    pub(crate) fn longest_psdu(&self, limit: Duration) -> u32 {
        let data = limit.saturating_sub(self.preamble + self.signal_extension).as_nanos();
        let grid = self.grid.as_nanos();
        let symbols = data / grid * grid / self.symbol.as_nanos();
        let bits = symbols * self.bits_per_symbol;
        let bytes = bits.saturating_sub(SERVICE_BITS + self.tail_bits) / 8;
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(rate_mbps: u64, psdu: u32, standard: Standard) -> u64 {
        let rate = PhyRate::legacy(standard, Rate::from_mbps(rate_mbps)).unwrap();
        rate.duration(psdu).as_micros()
    }

    #[test]
    fn erp_ofdm_frames_last_what_ns3_measured() {
        // 1500 bytes of IP, LLC/SNAP 8, MAC header 24, FCS 4; 14 bytes of ACK.
        assert_eq!(micros(54, 1_536, Standard::G), 254);
        assert_eq!(micros(24, 14, Standard::G), 34);
    }

    #[test]
    fn ofdm_at_5_ghz_has_no_signal_extension() {
        assert_eq!(micros(54, 1_536, Standard::A), 248);
        assert_eq!(micros(6, 14, Standard::A), 44);
    }

    #[test]
    fn the_longest_psdu_fits_and_one_more_byte_does_not() {
        for mbps in LEGACY_MBPS {
            let rate = PhyRate::legacy(Standard::G, Rate::from_mbps(mbps)).unwrap();
            let limit = Duration::from_nanos(1_234_567);
            let psdu = rate.longest_psdu(limit);
            assert!(rate.duration(psdu) <= limit && rate.duration(psdu + 1) > limit);
        }
    }
}
