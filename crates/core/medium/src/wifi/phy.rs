//! Time on the air: preamble and whole symbols.

use wakeai_units::Duration;
use wakeai_wifi::{GuardInterval, Mode, Standard};

/// The SERVICE field before the data, in bits (802.11-2020 17.3.5.2).
const SERVICE_BITS: u64 = 16;

/// The duration of a symbol of non-HT OFDM. The end of an HT or VHT PPDU (transmission) is rounded
/// up to a multiple of it.
const LEGACY_SYMBOL: Duration = Duration::from_micros(4);

/// The start of every OFDM PPDU: L-STF 8 us, L-LTF 8 us, L-SIG 4 us (17.3.2, 19.3.2, 21.3.2).
const LEGACY_PREAMBLE: Duration = Duration::from_micros(20);

/// The long preamble and header of DSSS and CCK: SYNC and SFD 144 us, header 48 us (16.2.2.2). The short ones take
/// half of it.
const DSSS_PREAMBLE: Duration = Duration::from_micros(192);

/// A PHY rate, with everything that determines the duration of a PPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PhyRate {
    /// All fields before the data field.
    pub(crate) preamble: Duration,
    /// N_DBPS: data bits in one symbol, in parts of a bit.
    pub(crate) bits_per_symbol: u64,
    /// The parts of a bit: 2 for 802.11b, whose symbol here is the microsecond in which it sends 5.5 bits; 1 otherwise.
    pub(crate) parts: u64,
    /// The bits before the data: SERVICE, which 802.11b does not have.
    pub(crate) service_bits: u64,
    /// Time of one symbol, guard interval included.
    pub(crate) symbol: Duration,
    /// The tail bits of all encoders together: 6 for each convolutional encoder, none for LDPC.
    pub(crate) tail_bits: u64,
    /// The data field is rounded up to a multiple of this. It makes a difference with the short
    /// guard interval: its symbols take 3.6 us, but the PPDU must end on the 4 us grid of L-SIG
    /// (19.4.3).
    pub(crate) grid: Duration,
    /// The silence at the end that is part of the frame.
    pub(crate) signal_extension: Duration,
}

impl PhyRate {
    /// The rate of frames of `mode` (TXTIME, 802.11-2020 17.4.3, 18.5.3.2, 19.4.3, 21.4.3) between
    /// stations of `standard`. The band of `standard` decides on the signal extension.
    pub(crate) fn new(mode: &Mode, standard: Standard) -> Self {
        let (bits_per_symbol, symbol) = (mode.bits_per_symbol(), mode.symbol());
        let he = mode.standard == Standard::Ax;
        if mode.standard == Standard::B {
            return Self::dsss(mode);
        }
        Self {
            preamble: preamble(mode),
            bits_per_symbol,
            parts: 1,
            service_bits: SERVICE_BITS,
            symbol,
            // There is one convolutional encoder for each 540 Mbit/s at the long guard interval
            // (21.3.10.5). HE uses LDPC, which has no tail (27.3.12.5).
            tail_bits: if he { 0 } else { 6 * bits_per_symbol.div_ceil(2_160) },
            grid: if he { symbol } else { LEGACY_SYMBOL },
            signal_extension: standard.signal_extension(),
        }
    }

    /// The rate of a DSSS or CCK frame with the long preamble (TXTIME, 16.3.4): whole microseconds.
    fn dsss(mode: &Mode) -> Self {
        let symbol = Duration::from_micros(1);
        Self {
            preamble: DSSS_PREAMBLE,
            bits_per_symbol: mode.bits_per_symbol(),
            parts: mode.symbol().as_nanos() / symbol.as_nanos(),
            service_bits: 0,
            symbol,
            tail_bits: 0,
            grid: symbol,
            signal_extension: Duration::ZERO,
        }
    }

    /// The same rate with the short preamble, where 802.11b has it: at 1 Mbit/s it has none (16.2.2.3).
    pub(crate) fn with_short_preamble(self) -> Self {
        let has_short = self.preamble == DSSS_PREAMBLE && self.bits_per_symbol > 2;
        Self { preamble: if has_short { DSSS_PREAMBLE / 2 } else { self.preamble }, ..self }
    }

    /// The duration (TXTIME) of a PSDU (data field) of `psdu` bytes.
    pub(crate) fn duration(&self, psdu: u32) -> Duration {
        let bits = (self.service_bits + 8 * u64::from(psdu) + self.tail_bits) * self.parts;
        let data = self.symbol.as_nanos() * bits.div_ceil(self.bits_per_symbol);
        let on_grid = self.grid == self.symbol;
        let data = if on_grid { data } else { data.next_multiple_of(self.grid.as_nanos()) };
        self.preamble + Duration::from_nanos(data) + self.signal_extension
    }

    /// The time from the start of the PPDU to the end of the symbol that completes the first
    /// `bytes` bytes of the PSDU.
    pub(crate) fn until(&self, bytes: u32) -> Duration {
        let bits = (self.service_bits + 8 * u64::from(bytes)) * self.parts;
        self.preamble + self.symbol * bits.div_ceil(self.bits_per_symbol)
    }

    /// The longest PSDU, in bytes, whose duration is at most `limit`; zero where none fits.
    pub(crate) fn longest_psdu(&self, limit: Duration) -> u32 {
        let data = limit.saturating_sub(self.preamble + self.signal_extension).as_nanos();
        let grid = self.grid.as_nanos();
        let symbols = data / grid * grid / self.symbol.as_nanos();
        let bits = symbols * self.bits_per_symbol / self.parts;
        let bytes = bits.saturating_sub(self.service_bits + self.tail_bits) / 8;
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}

/// The duration of the fields before the data field: non-HT (17.3.2), HT mixed format (19.3.2), VHT
/// (21.3.2) and HE SU (27.3.4). It includes the training fields for the mode's streams.
fn preamble(mode: &Mode) -> Duration {
    let training = u64::from(match mode.streams {
        3 => 4,
        5 => 6,
        7 => 8,
        streams => streams,
    });
    LEGACY_PREAMBLE
        + match mode.standard {
            Standard::A | Standard::B | Standard::G => Duration::ZERO,
            // HT-SIG 8 us, HT-STF 4 us, HT-LTFs of 4 us.
            Standard::N => Duration::from_micros(12 + 4 * training),
            // VHT-SIG-A 8 us, VHT-STF 4 us, VHT-LTFs of 4 us, VHT-SIG-B 4 us.
            Standard::Ac => Duration::from_micros(16 + 4 * training),
            // RL-SIG 4 us, HE-SIG-A 8 us, HE-STF 4 us, HE-LTFs. With guard intervals of 0.8 and 1.6
            // us these are 2x (6.4 us), with 3.2 us they are 4x (12.8 us). There is no packet
            // extension.
            Standard::Ax => Duration::from_micros(16) + he_training(mode.guard_interval) * training,
        }
}

fn he_training(guard: GuardInterval) -> Duration {
    match guard {
        GuardInterval::Ns400 | GuardInterval::Ns800 => Duration::from_nanos(7_200),
        GuardInterval::Ns1600 => Duration::from_nanos(8_000),
        GuardInterval::Ns3200 => Duration::from_nanos(16_000),
    }
}

#[cfg(test)]
mod tests {
    use wakeai_units::Rate;
    use wakeai_wifi::{Bss, LEGACY_RATES, Width};

    use super::*;

    fn legacy(standard: Standard, rate: Rate) -> PhyRate {
        PhyRate::new(&Mode::legacy(standard, rate).unwrap(), standard)
    }

    fn micros(rate_mbps: u64, psdu: u32, standard: Standard) -> u64 {
        legacy(standard, Rate::from_mbps(rate_mbps)).duration(psdu).as_micros()
    }

    #[test]
    fn erp_ofdm_frames_last_what_ns3_measured() {
        // A frame has 1500 bytes of IP, LLC/SNAP 8, MAC header 24, FCS 4. An ACK has 14 bytes.
        assert_eq!(micros(54, 1_536, Standard::G), 254);
        assert_eq!(micros(24, 14, Standard::G), 34);
    }

    #[test]
    fn frames_of_802_11b_last_whole_microseconds_after_either_preamble() {
        // 12,288 bits at 11 Mbit/s are 1117.09 us; an ACK of 112 bits at 2 Mbit/s 56, at 1 Mbit/s 112.
        assert_eq!(micros(11, 1_536, Standard::B), 192 + 1_118);
        assert_eq!(micros(2, 14, Standard::B), 192 + 56);
        assert_eq!(micros(1, 14, Standard::B), 192 + 112);
        let slow = legacy(Standard::B, Rate::from_bps(5_500_000));
        assert_eq!(slow.duration(1_536).as_nanos(), (192 + 2_235) * 1_000); // 2234.2
        let short = |rate| legacy(Standard::B, rate).with_short_preamble().duration(14).as_micros();
        assert_eq!([short(Rate::from_mbps(2)), short(Rate::from_mbps(1))], [96 + 56, 192 + 112]);
    }

    #[test]
    fn ofdm_at_5_ghz_has_no_signal_extension() {
        assert_eq!(micros(54, 1_536, Standard::A), 248);
        assert_eq!(micros(6, 14, Standard::A), 44);
    }

    #[test]
    fn the_longest_psdu_fits_and_one_more_byte_does_not() {
        for rate in LEGACY_RATES {
            let rate = legacy(Standard::G, rate);
            let limit = Duration::from_nanos(1_234_567);
            let psdu = rate.longest_psdu(limit);
            assert!(rate.duration(psdu) <= limit && rate.duration(psdu + 1) > limit);
        }
    }

    #[test]
    fn preambles_last_36_40_and_43_2_us_with_one_stream() {
        let length = |standard| {
            let mut modes = Mode::of(standard, Width::Mhz20, 1, GuardInterval::Ns800);
            preamble(&modes.next().unwrap()).as_nanos()
        };
        assert_eq!(length(Standard::N), 36_000);
        assert_eq!(length(Standard::Ac), 40_000);
        assert_eq!(length(Standard::Ax), 43_200);
    }

    #[test]
    fn short_guard_interval_ends_on_the_4_us_grid() {
        let bss = Bss { guard_interval: GuardInterval::Ns400, ..Bss::new(Standard::N) };
        let mode = bss.mode(Standard::N, Rate::from_bps(72_200_000)).unwrap();
        let rate = PhyRate::new(&mode, Standard::N);
        // 1538 bytes are 12326 bits, or 48 symbols of 3.6 us. These 172.8 us are rounded up to 176
        // us.
        assert_eq!(rate.duration(1_538).as_nanos(), 36_000 + 176_000);
    }
}
