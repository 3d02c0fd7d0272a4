//! The PHY rate of the last frame, from nl80211's rate information.

use serde::{Serialize, Serializer};
use wakeai_units::Rate;
use wl_nl80211::Nl80211RateInfo;

/// The modulation of the last frame. A value is `None` if the driver does not report it, or if the modulation does
/// not have this value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PhyRate {
    /// The PHY rate.
    #[serde(rename = "mbps", serialize_with = "megabits")]
    pub rate: Rate,
    /// The amendment of 802.11 that defines this modulation. Without an MCS the value is
    /// `802.11a/b/g`.
    pub standard: &'static str,
    /// The index of the modulation and coding scheme (MCS). In 802.11n the index goes from 0 to 76 and includes the
    /// number of streams. In later amendments the index does not include this number.
    pub mcs: Option<u8>,
    /// The number of spatial streams.
    pub streams: Option<u8>,
    /// The channel width of the frame. It is also `None` if the frame used a resource unit (OFDMA).
    pub width_mhz: Option<u32>,
    /// The guard interval.
    pub guard_interval_ns: Option<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
pub(super) fn megabits<S: Serializer>(rate: &Rate, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(rate.as_mbps_f64())
}

impl PhyRate {
    /// Reads the rate in nl80211's fields. Returns `None` if the fields have no rate.
    pub(super) fn of(fields: &[Nl80211RateInfo]) -> Option<Self> {
        let mut found = Self {
            rate: bit_rate(fields)?,
            standard: "802.11a/b/g",
            mcs: None,
            streams: None,
            width_mhz: Some(20), // nl80211 has no field for 20 MHz
            guard_interval_ns: None,
        };
        let mut has_short_interval = false;
        for field in fields {
            match *field {
                Nl80211RateInfo::Mcs(mcs) => found.modulation("802.11n", mcs),
                Nl80211RateInfo::VhtMcs(mcs) => found.modulation("802.11ac", mcs),
                Nl80211RateInfo::HeMcs(mcs) => found.modulation("802.11ax", mcs),
                Nl80211RateInfo::EhtMcs(mcs) => found.modulation("802.11be", mcs),
                Nl80211RateInfo::S1gMcs(mcs) => found.modulation("802.11ah", mcs),
                Nl80211RateInfo::VhtNss(streams)
                | Nl80211RateInfo::HeNss(streams)
                | Nl80211RateInfo::EhtNss(streams)
                | Nl80211RateInfo::S1gNss(streams) => found.streams = Some(streams),
                Nl80211RateInfo::HeRuAlloc(_) | Nl80211RateInfo::EhtRuAlloc(_) => {
                    found.width_mhz = None;
                }
                Nl80211RateInfo::MhzWidth(width) => found.width_mhz = Some(width),
                Nl80211RateInfo::MhzWidth80Plus80 => found.width_mhz = Some(160),
                Nl80211RateInfo::ShortGi => has_short_interval = true,
                Nl80211RateInfo::HeGi(gi) => found.guard_interval_ns = guard_interval(gi.into()),
                Nl80211RateInfo::EhtGi(gi) => found.guard_interval_ns = guard_interval(gi.into()),
                _ => {}
            }
        }
        match (found.standard, found.mcs) {
            // The number of streams is part of the MCS (802.11-2020, 19.5). With MCS 33 and above, the streams of a
            // frame have different modulations.
            ("802.11n", Some(32)) => found.streams = Some(1),
            ("802.11n", Some(mcs)) if mcs < 32 => found.streams = Some(mcs / 8 + 1),
            _ => {}
        }
        if matches!(found.standard, "802.11n" | "802.11ac") {
            found.guard_interval_ns = Some(if has_short_interval { 400 } else { 800 });
        }
        Some(found)
    }

    fn modulation(&mut self, standard: &'static str, mcs: u8) {
        self.standard = standard;
        self.mcs = Some(mcs);
    }
}

/// The guard interval in nanoseconds with this number of `enum nl80211_he_gi`, which are those of `enum nl80211_eht_gi`,
/// too.
fn guard_interval(number: u8) -> Option<u32> {
    [800, 1_600, 3_200].get(usize::from(number)).copied()
}

/// Reads the rate in nl80211's fields, which have a unit of 100 kbit/s. The 16-bit field is absent if the rate
/// does not fit into it.
fn bit_rate(fields: &[Nl80211RateInfo]) -> Option<Rate> {
    let units = fields.iter().filter_map(|info| match info {
        Nl80211RateInfo::Bitrate32(units) => Some(u64::from(*units)),
        Nl80211RateInfo::Bitrate(units) => Some(u64::from(*units)),
        _ => None,
    });
    units.max().filter(|units| *units > 0).map(|units| Rate::from_bps(units * 100_000))
}

#[cfg(test)]
mod tests {
    use wl_nl80211::Nl80211HeGi;

    use super::*;

    fn of(fields: &[Nl80211RateInfo]) -> PhyRate {
        let rate = [Nl80211RateInfo::Bitrate32(1_300)];
        PhyRate::of(&[&rate, fields].concat()).unwrap()
    }

    #[test]
    fn a_rate_above_16_bits_is_read_and_zero_is_unknown() {
        let fast = bit_rate(&[Nl80211RateInfo::Bitrate32(96_078)]);
        assert_eq!(fast, Some(Rate::from_bps(9_607_800_000)));
        assert_eq!(bit_rate(&[Nl80211RateInfo::Bitrate(0)]), None);
        assert_eq!(PhyRate::of(&[Nl80211RateInfo::Mcs(7)]), None);
    }

    #[test]
    fn the_streams_of_802_11n_are_part_of_the_mcs() {
        for (mcs, streams) in
            [(0, Some(1)), (15, Some(2)), (31, Some(4)), (32, Some(1)), (40, None)]
        {
            let found = of(&[Nl80211RateInfo::Mcs(mcs), Nl80211RateInfo::MhzWidth(40)]);
            assert_eq!((found.streams, found.standard), (streams, "802.11n"), "{mcs}");
            assert_eq!((found.width_mhz, found.guard_interval_ns), (Some(40), Some(800)));
        }
    }

    #[test]
    fn each_amendment_has_its_fields() {
        let ac = of(&[
            Nl80211RateInfo::VhtMcs(9),
            Nl80211RateInfo::VhtNss(2),
            Nl80211RateInfo::MhzWidth(80),
            Nl80211RateInfo::ShortGi,
        ]);
        assert_eq!((ac.standard, ac.mcs, ac.streams), ("802.11ac", Some(9), Some(2)));
        assert_eq!((ac.width_mhz, ac.guard_interval_ns), (Some(80), Some(400)));
        let ax = of(&[
            Nl80211RateInfo::HeMcs(11),
            Nl80211RateInfo::HeNss(1),
            Nl80211RateInfo::HeGi(Nl80211HeGi::Usec3_2),
        ]);
        assert_eq!((ax.standard, ax.width_mhz), ("802.11ax", Some(20)));
        assert_eq!(ax.guard_interval_ns, Some(3_200));
        let unit = wl_nl80211::Nl80211HeRuAllocation::Tone(52);
        let shared = of(&[Nl80211RateInfo::HeMcs(1), Nl80211RateInfo::HeRuAlloc(unit)]);
        assert_eq!(shared.width_mhz, None, "a resource unit is narrower than the channel");
        let old = of(&[]);
        assert_eq!((old.standard, old.mcs, old.streams), ("802.11a/b/g", None, None));
        assert_eq!(old.guard_interval_ns, None);
    }
}
