//! The members of the group whose messages have a version that this agent does not read.

use std::net::IpAddr;

use wakeai_control::presence::OtherVersion;
use wakeai_units::{Duration, Instant};

/// The largest number of members that are listed.
const MOST: usize = 16;
/// A member stays listed for this long after its last message.
const NAMED_FOR: Duration = Duration::from_secs(600);
/// After this long without a message, a member can be replaced by another member.
const SILENT: Duration = Duration::from_secs(60);

/// The members, each with the time of its last message. There are at most [`MOST`] of them, and each station, format
/// and version is there once.
#[derive(Debug, Default)]
pub(crate) struct OtherVersions(Vec<(Instant, wakeai_api::OtherVersion)>);

impl OtherVersions {
    /// Takes a message that came from this address. `bssid` is this station's access point. A message
    /// is ignored here if no member of the group wrote it, or if it names another access point. The
    /// counter `wrong_version` counts such a message.
    pub(crate) fn heard(
        &mut self,
        now: Instant,
        from: IpAddr,
        bssid: Option<[u8; 6]>,
        other: OtherVersion,
    ) {
        let Some((at, station)) = other.sender else { return };
        if Some(at) != bssid {
            return;
        }
        let new = wakeai_api::OtherVersion {
            from: from.to_string(),
            station: station.to_string(),
            format: other.format.name().to_owned(),
            version: other.version,
            understood: other.format.version(),
            messages: 1,
            age_s: 0.0,
        };
        self.0.retain(|(last, _)| now.saturating_since(*last) <= NAMED_FOR);
        let known = self.0.iter_mut().find(|(_, known)| {
            (&known.station, &known.format, known.version)
                == (&new.station, &new.format, new.version)
        });
        if let Some((last, member)) = known {
            (*last, member.from) = (now, new.from);
            member.messages = member.messages.saturating_add(1);
            return;
        }
        if self.0.len() == MOST {
            let oldest = (0..MOST).min_by_key(|place| self.0[*place].0);
            let silent = oldest.filter(|place| now.saturating_since(self.0[*place].0) > SILENT);
            let Some(place) = silent else { return };
            self.0.remove(place);
        }
        tracing::warn!("{}", new.words());
        self.0.push((now, new));
    }

    /// The members, in the order of their first messages.
    pub(crate) fn shown(&self, now: Instant) -> Vec<wakeai_api::OtherVersion> {
        let aged = self.0.iter().map(|(last, member)| (now.saturating_since(*last), member));
        let young = aged.filter(|(age, _)| *age <= NAMED_FOR);
        let shown = young.map(|(age, member)| wakeai_api::OtherVersion {
            age_s: age.as_secs_f64(),
            ..member.clone()
        });
        shown.collect()
    }
}

#[cfg(test)]
mod tests {
    use wakeai_control::StationId;
    use wakeai_control::presence::MessageFormat;

    use super::*;

    const BSSID: [u8; 6] = [2; 6];

    fn other(station: u64, version: u8) -> OtherVersion {
        let sender = Some((BSSID, StationId(station)));
        OtherVersion { format: MessageFormat::Presence, version, sender }
    }

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    fn from(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn a_member_is_named_once_with_its_last_address() {
        let mut seen = OtherVersions::default();
        for count in 0..3 {
            seen.heard(at(count), from(7 + u8::try_from(count).unwrap()), Some(BSSID), other(5, 1));
        }
        let shown = seen.shown(at(4));
        assert_eq!(shown.len(), 1);
        let words = shown[0].words();
        assert!(words.starts_with("3 messages of presence version 1 from 192.0.2.9 "), "{words}");
    }

    #[test]
    fn strangers_and_members_elsewhere_are_not_named() {
        let mut seen = OtherVersions::default();
        let stranger = OtherVersion { sender: None, ..other(5, 1) };
        seen.heard(at(0), from(7), Some(BSSID), stranger);
        seen.heard(at(0), from(7), Some([9; 6]), other(5, 1));
        seen.heard(at(0), from(7), None, other(5, 1));
        assert!(seen.shown(at(0)).is_empty());
    }

    #[test]
    fn sixteen_members_are_named_for_ten_minutes() {
        let mut seen = OtherVersions::default();
        for station in 0..1_000 {
            seen.heard(at(0), from(1), Some(BSSID), other(station, 3));
        }
        assert_eq!(seen.0.len(), MOST);
        seen.heard(at(61), from(2), Some(BSSID), other(5_000, 3));
        let stations: Vec<String> =
            seen.shown(at(61)).into_iter().map(|member| member.station).collect();
        assert_eq!(stations.len(), MOST);
        assert!(stations.contains(&StationId(5_000).to_string()), "a silent one made room");
        assert_eq!(seen.shown(at(601)).len(), 1);
        assert!(seen.shown(at(662)).is_empty());
    }
}
