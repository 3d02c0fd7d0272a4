//! The radio's counters on the channel in use (`NL80211_CMD_GET_SURVEY`).

use serde::Serialize;
use wl_nl80211::packet_core::Nla as _;
use wl_nl80211::{Nl80211Attr, Nl80211Message, Nl80211SurveyInfo};

/// The number of the field that marks the channel in use. The library wl-nl80211 does not know this
/// field.
const IN_USE: u16 = 3;

/// The counters of the channel in use. A value that the driver does not report is `None`. The times are sums since
/// the driver began to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Survey {
    /// The noise level in the channel.
    pub noise_dbm: Option<i8>,
    /// The time that the radio was on this channel.
    pub active_ms: Option<u64>,
    /// The part of `active_ms` in which the radio sensed the primary channel as busy.
    pub busy_ms: Option<u64>,
    /// The part of `active_ms` in which the radio received.
    pub rx_ms: Option<u64>,
    /// The part of `active_ms` in which the radio sent.
    pub tx_ms: Option<u64>,
}

impl Survey {
    /// Finds the channel in use among the channels of the radio. This is the channel with the interface's frequency.
    /// If the frequency is unknown, it is the channel that the driver marks.
    pub(super) fn of(channels: &[Nl80211Message], frequency_mhz: Option<u32>) -> Self {
        let mut channels = channels.iter().flat_map(|channel| &channel.attributes);
        let is_here = |fields: &[Nl80211SurveyInfo]| {
            fields.iter().any(|field| match (field, frequency_mhz) {
                (Nl80211SurveyInfo::Frequency(mhz), Some(ours)) => *mhz == ours,
                (Nl80211SurveyInfo::Other(field), None) => field.kind() == IN_USE,
                _ => false,
            })
        };
        let found = channels.find_map(|attribute| match attribute {
            Nl80211Attr::SurveyInfo(fields) if is_here(fields) => Some(fields),
            _ => None,
        });
        found.map_or_else(Self::default, |fields| Self::read(fields))
    }

    fn read(fields: &[Nl80211SurveyInfo]) -> Self {
        let mut found = Self::default();
        for field in fields {
            match *field {
                Nl80211SurveyInfo::Noise(dbm) => found.noise_dbm = Some(dbm),
                Nl80211SurveyInfo::ActiveTime(ms) => found.active_ms = Some(ms),
                Nl80211SurveyInfo::BusyTime(ms) => found.busy_ms = Some(ms),
                // wl-nl80211 0.8 swaps these two fields. A test that uses the bytes of a message will fail
                // when the library is corrected.
                Nl80211SurveyInfo::TimeTx(ms) => found.rx_ms = Some(ms),
                Nl80211SurveyInfo::TimeRx(ms) => found.tx_ms = Some(ms),
                _ => {}
            }
        }
        if found.active_ms == Some(0) {
            // The radio is on this channel. A time of 0 therefore shows that the driver does not count the times, or
            // counts them only while it scans.
            return Self { noise_dbm: found.noise_dbm, ..Self::default() };
        }
        found
    }
}
