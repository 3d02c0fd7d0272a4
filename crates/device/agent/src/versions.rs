//! The members of the group whose messages have a version that this agent does not read.

use std::net::IpAddr;

use wakeai_control::StationId;
use wakeai_control::presence::{MessageFormat, OtherVersion};
use wakeai_units::{Duration, Instant};

/// The largest number of members that are listed.
const MOST: usize = 16;
/// A member stays listed for this long after its last message.
const NAMED_FOR: Duration = Duration::from_secs(600);
/// After this long without a message, a member can be replaced by another member.
const SILENT: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Member {
    from: IpAddr,
    station: StationId,
    format: MessageFormat,
    version: u8,
    messages: u64,
    last: Instant,
}

/// The members by station, format and version. There are at most [`MOST`] of them.
#[derive(Debug, Default)]
pub(crate) struct OtherVersions(Vec<Member>);

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
        let (format, version) = (other.format, other.version);
        self.expire(now);
        let known = self.0.iter_mut().find(|member| {
            (member.station, member.format, member.version) == (station, format, version)
        });
        if let Some(member) = known {
            (member.from, member.last) = (from, now);
            member.messages = member.messages.saturating_add(1);
            return;
        }
        if self.0.len() == MOST {
            let oldest = (0..MOST).min_by_key(|place| self.0[*place].last);
            let silent = oldest.filter(|place| now.saturating_since(self.0[*place].last) > SILENT);
            let Some(place) = silent else { return };
            self.0.remove(place);
        }
        let member = Member { from, station, format, version, messages: 1, last: now };
        tracing::warn!("{}", member.shown(now).words());
        self.0.push(member);
    }

    /// The members, in the order of their first messages.
    pub(crate) fn shown(&self, now: Instant) -> Vec<wakeai_api::OtherVersion> {
        let young = |member: &&Member| now.saturating_since(member.last) <= NAMED_FOR;
        self.0.iter().filter(young).map(|member| member.shown(now)).collect()
    }

    fn expire(&mut self, now: Instant) {
        self.0.retain(|member| now.saturating_since(member.last) <= NAMED_FOR);
    }
}

impl Member {
    fn shown(&self, now: Instant) -> wakeai_api::OtherVersion {
        wakeai_api::OtherVersion {
            from: self.from.to_string(),
            station: self.station.to_string(),
            format: self.format.name().to_owned(),
            version: self.version,
            understood: self.format.version(),
            messages: self.messages,
            age_s: now.saturating_since(self.last).as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
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
