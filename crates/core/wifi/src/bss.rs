//! The configuration of an access point and of its stations, with the defaults of each standard.

use wakeai_units::{Bytes, Duration, Rate};

use crate::{GuardInterval, Mode, Standard, Width};

/// The configuration of a BSS (an access point with its stations), which the access point decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bss {
    /// The access point's standard. A station may use an older one.
    pub standard: Standard,
    /// The queueing discipline of the packets for the stations.
    pub queue: QueueDiscipline,
    /// The protection frames before a unicast exchange.
    pub protection: Protection,
    /// With [`Protection::RtsCts`], the length of a PSDU (data field) above which a unicast data
    /// frame is protected (dot11RTSThreshold).
    pub rts_threshold: Bytes,
    /// Rate of broadcasts: one of [`Standard::legacy_rates`].
    pub basic_rate: Rate,
    /// Whether frames of 802.11b above 1 Mbit/s have the short preamble (802.11-2020 16.2.2.3).
    pub short_preamble: bool,
    /// The widest channel in use (n, ac, ax).
    pub width: Width,
    /// Most spatial streams in use (n, ac, ax).
    pub streams: u8,
    /// Guard interval of data symbols; see [`Bss::guard_interval_of`].
    pub guard_interval: GuardInterval,
    /// The longest A-MPDU (aggregate); see [`Bss::ampdu_of`].
    pub ampdu: Bytes,
    /// The largest number of subframes of an A-MPDU, which is also the window of a BlockAck
    /// agreement; see [`Bss::subframes_of`].
    pub ampdu_subframes: u16,
    /// The longest A-MSDU (several packets in one MPDU); zero for none. See [`Bss::amsdu_of`].
    pub amsdu: Bytes,
    /// Attempts after which a frame is given up, the first one counted (dot11ShortRetryLimit).
    pub retry_limit: u8,
    /// The rate of ACK, BlockAck, RTS and CTS, one of [`Standard::legacy_rates`]; `None` for the default of
    /// [`Bss::control_rate_for`].
    pub control_rate: Option<Rate>,
    /// How the access point's queue contends.
    pub contention: Contention,
}

impl Bss {
    /// The defaults of `standard`.
    pub const fn new(standard: Standard) -> Self {
        Self {
            standard,
            queue: QueueDiscipline::Fifo,
            protection: Protection::None,
            rts_threshold: Bytes::new(500),
            basic_rate: standard.legacy_rates()[0],
            short_preamble: false,
            width: standard.default_width(),
            streams: 1,
            guard_interval: standard.guard_intervals()[0],
            // ns-3's default for each standard; devices of ac and ax announce longer ones
            // (docs/reference/scenario.md).
            ampdu: Bytes::new(65_535),
            ampdu_subframes: standard.most_subframes(),
            amsdu: Bytes::ZERO,
            retry_limit: 7,
            control_rate: None,
            contention: Contention::of(standard),
        }
    }

    /// The guard interval of a station of `standard`. It is the access point's, or the default of
    /// `standard` where that standard does not have it.
    pub fn guard_interval_of(&self, standard: Standard) -> GuardInterval {
        let intervals = standard.guard_intervals();
        if intervals.contains(&self.guard_interval) { self.guard_interval } else { intervals[0] }
    }

    /// The longest A-MPDU of a station of `standard`; zero where the standard does not aggregate.
    pub fn ampdu_of(&self, standard: Standard) -> Bytes {
        self.ampdu.min(standard.longest_ampdu())
    }

    /// The most subframes of an A-MPDU of a station of `standard`; 1 where the standard does not
    /// aggregate.
    pub fn subframes_of(&self, standard: Standard) -> u16 {
        self.ampdu_subframes.min(standard.most_subframes())
    }

    /// The longest A-MSDU of a station of `standard`. In an A-MPDU of HT it is at most 4065 bytes, because the length
    /// field of the delimiter holds 4095 bytes of an MPDU (802.11-2020 9.7.1, 10.11).
    pub fn amsdu_of(&self, standard: Standard) -> Bytes {
        let longest = standard.longest_amsdu();
        let in_ampdu = standard == Standard::N && self.subframes_of(standard) > 1;
        let longest = if in_ampdu { longest.min(Bytes::new(4_065)) } else { longest };
        self.amsdu.min(longest)
    }

    /// The rate of ACK, BlockAck, RTS and CTS around data frames of `data_rate`. It is the
    /// configured rate, or the highest of the mandatory 6, 12 and 24 Mbit/s (1 and 2 in 802.11b) that is not above
    /// `data_rate` (10.6.6.5.2).
    pub fn control_rate_for(&self, data_rate: Rate) -> Rate {
        self.control_rate.unwrap_or_else(|| {
            let mandatory: &[u64] =
                if self.standard == Standard::B { &[2, 1] } else { &[24, 12, 6] };
            let mut mandatory = mandatory.iter().map(|mbps| Rate::from_mbps(*mbps));
            let lowest = self.standard.legacy_rates()[0];
            mandatory.find(|rate| *rate <= data_rate).unwrap_or(lowest)
        })
    }

    /// The default rate of a station of `standard`. It is the highest rate at the access point's
    /// width, streams and guard interval. A station of an older standard has one stream. Its width
    /// is the default of its standard where that is narrower than the access point's.
    pub fn default_rate(&self, standard: Standard) -> Rate {
        let (width, streams) = if standard == self.standard {
            (self.width, self.streams)
        } else {
            (self.width.min(standard.default_width()), 1)
        };
        let modes = Mode::of(standard, width, streams, self.guard_interval_of(standard));
        modes.map(|mode| mode.rate()).max().expect("every setting has its MCS 0")
    }

    /// The modes of stations of `standard`, for every width and number of streams up to the access
    /// point's. They are ordered from the widest channel to the narrowest, and within a width from
    /// one stream upwards. Modes with the same rate also have the same bits per symbol; only their
    /// preambles differ.
    fn modes(&self, standard: Standard) -> impl Iterator<Item = Mode> {
        let (widest, guard_interval) = (self.width, self.guard_interval_of(standard));
        let streams = 1..=self.streams.min(standard.most_streams());
        let widths = standard.widths().iter().rev().filter(move |width| **width <= widest);
        widths.flat_map(move |width| {
            let streams = streams.clone();
            streams.flat_map(move |streams| Mode::of(standard, *width, streams, guard_interval))
        })
    }

    /// The mode that a configured `rate` selects for a station of `standard`; `None` where no mode
    /// has this rate.
    pub fn mode(&self, standard: Standard, rate: Rate) -> Option<Mode> {
        self.modes(standard).find(|mode| mode.is_meant_by(rate))
    }

    /// The rates that a station of `standard` may be configured with, ascending.
    pub fn rates(&self, standard: Standard) -> Vec<Rate> {
        let mut rates: Vec<Rate> = self.modes(standard).map(|mode| mode.rate()).collect();
        rates.sort_unstable();
        rates.dedup();
        rates
    }
}

/// The radio of one station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationRadio {
    /// The standard of the frames between the station and the access point.
    pub standard: Standard,
    /// PHY rate of data frames, to the station and from it.
    pub rate: Rate,
    /// How the station's queue contends.
    pub contention: Contention,
}

impl StationRadio {
    /// The defaults of a station of `standard` in `bss`.
    pub fn new(standard: Standard, bss: &Bss) -> Self {
        let rate = bss.default_rate(standard);
        Self { standard, rate, contention: Contention::of(standard) }
    }
}

/// How one queue contends for the air (802.11-2020 10.3 for DCF, 10.23.2 for EDCA).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Contention {
    /// Slots between SIFS and the first backoff slot; DIFS is SIFS and 2 slots.
    pub aifsn: u8,
    /// The smallest contention window, in slots. A backoff is drawn from 0 to the contention
    /// window.
    pub cw_min: u16,
    /// Largest contention window, in slots, after repeated failures.
    pub cw_max: u16,
    /// The longest duration of one access (TXOP limit). Zero allows one exchange of any length.
    pub txop: Duration,
}

impl Contention {
    /// The most slots of [`Contention::aifsn`]: its field has four bits (802.11-2020 9.4.2.28).
    pub const MOST_AIFSN: u8 = 15;
    /// The largest contention window: `ECWmax` is at most 15 (9.4.2.28), 2^15 - 1 slots.
    pub const LARGEST_WINDOW: u16 = 32_767;

    /// The contention of `standard`: DCF for a, b and g, and the best-effort category of EDCA (table
    /// 9-155) for n, ac and ax. The TXOP is zero, as in the Wi-Fi Alliance's WMM and in every
    /// common access point.
    pub const fn of(standard: Standard) -> Self {
        let aifsn = if standard.is_qos() { 3 } else { 2 };
        Self { aifsn, cw_min: standard.least_window(), cw_max: 1_023, txop: Duration::ZERO }
    }
}

/// The queueing discipline of the access point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueDiscipline {
    /// One first-in, first-out queue for all stations. A packet that arrives while it is full is
    /// dropped.
    #[default]
    Fifo,
    /// One queue per station, served by deficit round robin in airtime. Where the shared buffer is
    /// full, the last packet of the longest queue is dropped.
    Fq,
}

/// The frames before a unicast exchange. They reserve the air where stations cannot hear or decode
/// the exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protection {
    /// No protection.
    #[default]
    None,
    /// CTS-to-self: the sender sends a CTS itself, which no station answers.
    CtsToSelf,
    /// RTS and CTS: a collision then costs an RTS instead of a data frame.
    RtsCts,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bss(standard: Standard, guard_interval: GuardInterval) -> Bss {
        Bss { guard_interval, ..Bss::new(standard) }
    }

    #[test]
    fn default_rates_are_those_of_the_tables() {
        let default = |standard, guard| bss(standard, guard).default_rate(standard).to_string();
        let (long, short) = (GuardInterval::Ns800, GuardInterval::Ns400);
        assert_eq!(default(Standard::A, long), "54Mbit/s");
        assert_eq!(default(Standard::G, long), "54Mbit/s");
        assert_eq!(default(Standard::N, long), "65Mbit/s");
        assert_eq!(default(Standard::N, short), "72.2Mbit/s");
        assert_eq!(default(Standard::Ac, long), "390Mbit/s");
        assert_eq!(default(Standard::Ac, short), "433.3Mbit/s");
        assert_eq!(default(Standard::Ax, long), "600.5Mbit/s");
    }

    #[test]
    fn printed_rates_have_the_bits_per_symbol_of_the_tables() {
        // 802.11-2020 19.5 and 21.5, 802.11ax-2021 27.5.
        let bits = |standard, guard, rate: &str| {
            bss(standard, guard).mode(standard, rate.parse().unwrap()).unwrap().bits_per_symbol()
        };
        let (long, short) = (GuardInterval::Ns800, GuardInterval::Ns400);
        assert_eq!(bits(Standard::G, long, "54Mbit/s"), 216);
        assert_eq!(bits(Standard::N, long, "65Mbit/s"), 260);
        assert_eq!(bits(Standard::N, short, "72.2Mbit/s"), 260);
        assert_eq!(bits(Standard::Ac, long, "390Mbit/s"), 1_560);
        assert_eq!(bits(Standard::Ac, short, "433.3Mbit/s"), 1_560);
        assert_eq!(bits(Standard::Ax, long, "600.5Mbit/s"), 8_166);
        assert_eq!(bits(Standard::Ax, long, "143.4Mbit/s"), 1_950);
    }

    /// Every setting of every standard.
    fn settings() -> Vec<Bss> {
        let mut settings = Vec::new();
        for standard in Standard::ALL {
            for &width in standard.widths() {
                for streams in 1..=standard.most_streams() {
                    for &guard_interval in standard.guard_intervals() {
                        settings.push(Bss { width, streams, ..bss(standard, guard_interval) });
                    }
                }
            }
        }
        settings
    }

    #[test]
    fn every_rate_means_a_mode_of_that_rate() {
        let mut compared = 0;
        for bss in settings() {
            for rate in bss.rates(bss.standard) {
                assert_eq!(bss.mode(bss.standard, rate).unwrap().rate(), rate, "{bss:?}");
                compared += 1;
            }
        }
        assert!(compared > 1_000);
    }

    #[test]
    fn a_station_may_be_configured_with_its_default_rate() {
        let mut compared = 0;
        for bss in settings() {
            for standard in Standard::ALL.into_iter().filter(|one| one.can_join(bss.standard)) {
                let rate = bss.default_rate(standard);
                assert!(bss.rates(standard).contains(&rate), "{standard} in {bss:?}");
                compared += 1;
            }
        }
        assert!(compared > 500);
    }

    #[test]
    fn combinations_that_802_11ac_leaves_out_are_not_there() {
        let top = |width, streams| {
            Bss { width, streams, ..Bss::new(Standard::Ac) }.default_rate(Standard::Ac)
        };
        assert_eq!(top(Width::Mhz20, 1), Rate::from_mbps(78)); // MCS 8; there is no MCS 9
        assert_eq!(top(Width::Mhz20, 3), Rate::from_mbps(260)); // MCS 9
        let modes =
            |streams| Mode::of(Standard::Ac, Width::Mhz80, streams, GuardInterval::Ns800).count();
        assert_eq!((modes(1), modes(3)), (10, 9));
    }

    #[test]
    fn the_fastest_of_all_are_600_and_9608_mbps() {
        let n = Bss { width: Width::Mhz40, streams: 4, ..bss(Standard::N, GuardInterval::Ns400) };
        assert_eq!(n.default_rate(Standard::N), Rate::from_mbps(600));
        let ax = Bss { width: Width::Mhz160, streams: 8, ..Bss::new(Standard::Ax) };
        assert_eq!(ax.default_rate(Standard::Ax), Rate::from_bps(9_607_800_000));
    }

    #[test]
    fn an_older_station_has_its_own_default_width_and_one_stream() {
        let ax = Bss { streams: 2, ..Bss::new(Standard::Ax) };
        assert_eq!(ax.default_rate(Standard::N), Rate::from_mbps(65));
        assert_eq!(ax.default_rate(Standard::Ac), Rate::from_mbps(390));
        let narrow = Bss { width: Width::Mhz20, ..ax };
        assert_eq!(narrow.default_rate(Standard::Ac), Rate::from_mbps(78));
    }

    #[test]
    fn a_station_of_an_older_standard_keeps_within_its_own_limits() {
        let ax = Bss {
            ampdu: Bytes::new(2_000_000),
            ampdu_subframes: 200,
            ..bss(Standard::Ax, GuardInterval::Ns3200)
        };
        let limits = |standard| {
            let guard = ax.guard_interval_of(standard).duration().as_nanos();
            (ax.ampdu_of(standard).get(), ax.subframes_of(standard), guard)
        };
        assert_eq!(limits(Standard::Ax), (2_000_000, 200, 3_200));
        assert_eq!(limits(Standard::Ac), (1_048_575, 64, 800));
        assert_eq!(limits(Standard::N), (65_535, 64, 800));
        assert_eq!(limits(Standard::A), (0, 1, 800));
    }

    #[test]
    fn control_frames_go_at_the_highest_of_6_12_24_not_above_the_data() {
        let bss = Bss::new(Standard::G);
        let control =
            |mbps| bss.control_rate_for(Rate::from_mbps(mbps)).bits_per_second() / 1_000_000;
        assert_eq!([54, 24, 18, 12, 9, 6].map(control), [24, 24, 12, 12, 6, 6]);
        let given = Bss { control_rate: Some(Rate::from_mbps(6)), ..bss };
        assert_eq!(given.control_rate_for(Rate::from_mbps(54)), Rate::from_mbps(6));
    }

    #[test]
    fn stations_join_access_points_of_their_band_that_are_not_older() {
        let joined = |access_point| Standard::ALL.map(|one| one.can_join(access_point));
        assert_eq!(joined(Standard::A), [true, false, false, false, false, false]);
        assert_eq!(joined(Standard::G), [false, false, true, false, false, false]);
        assert_eq!(joined(Standard::N), [true, false, false, true, false, false]);
        assert_eq!(joined(Standard::Ac), [true, false, false, true, true, false]);
        assert_eq!(joined(Standard::Ax), [true, false, false, true, true, true]);
    }
}
