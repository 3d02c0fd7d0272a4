//! The parts that all messages on the presence port have in common, in every format and version.
//! These are four bytes that name the format, a byte with the version, the access point and the
//! station at fixed places, and an authenticator at the end. The authenticator's key is derived for
//! one version of one format.
//!
//! So a message of another version is never taken for a message of this version. A station can
//! check the authenticator of another version, too, and then knows the station that the message
//! names.

use constant_time_eq::constant_time_eq;

use super::DecodeError;
use crate::StationId;

/// The length of the authenticator, bytes.
pub(super) const TAG_LEN: usize = 16;
/// The length of the first part of a message, the same in every version, bytes: format, version,
/// one byte of any meaning, BSSID, station.
const COMMON_LEN: usize = 20;

/// A format of messages on the presence port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum MessageFormat {
    /// Presence messages.
    Presence,
    /// Queries and answers of a fleet.
    Fleet,
}

impl MessageFormat {
    /// The name of the format. The keys of the format are derived from the group keys with a BLAKE3
    /// context that contains this name.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The version that this program writes and reads.
    pub const fn version(self) -> u8 {
        match self {
            Self::Presence => 2,
            Self::Fleet => 1,
        }
    }

    /// The first bytes of each message, in every version.
    pub(super) const fn magic(self) -> [u8; 4] {
        match self {
            Self::Presence => *b"WKAI",
            Self::Fleet => *b"WKFL",
        }
    }

    /// The first bytes of each message of this version.
    pub(super) const fn head(self) -> [u8; 5] {
        let [a, b, c, d] = self.magic();
        [a, b, c, d, self.version()]
    }
}

/// A message of a version that this program does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherVersion {
    /// The format.
    pub format: MessageFormat,
    /// The version in the message.
    pub version: u8,
    /// The access point and the station that the message names; `None` unless the authenticator
    /// shows that a member of the group wrote the message.
    pub sender: Option<([u8; 6], StationId)>,
}

/// Authenticates messages of one format with a group key, and also accepts messages under other
/// keys.
#[derive(Clone)]
pub(super) struct Seal {
    format: MessageFormat,
    /// The keys of the group. The first key authenticates this station's messages.
    group_keys: Vec<[u8; 32]>,
    /// The keys for the version of this program, one derived from each key of the group.
    keys: Vec<[u8; 32]>,
}

impl Seal {
    pub(super) fn new(format: MessageFormat, group_key: &[u8; 32], others: &[[u8; 32]]) -> Self {
        let group_keys: Vec<_> = std::iter::once(group_key).chain(others).copied().collect();
        let derive = |key: &[u8; 32]| derive(format, format.version(), key);
        Self { format, keys: group_keys.iter().map(derive).collect(), group_keys }
    }

    /// Appends the authenticator to a message.
    pub(super) fn close(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.extend(tag(&self.keys[0], &bytes));
        bytes
    }

    /// The message in `datagram`. The message has `N` bytes, the authenticator included.
    pub(super) fn open<'a, const N: usize>(
        &self,
        datagram: &'a [u8],
    ) -> Result<&'a [u8; N], DecodeError> {
        if datagram.get(..4) != Some(&self.format.magic()[..]) {
            return Err(DecodeError::Malformed);
        }
        let version = *datagram.get(4).ok_or(DecodeError::Malformed)?;
        if version != self.format.version() {
            return Err(DecodeError::WrongVersion(self.other(version, datagram)));
        }
        let message: &[u8; N] = datagram.try_into().map_err(|_| DecodeError::Malformed)?;
        if self.keys.iter().any(|key| is_authentic(key, message)) {
            Ok(message)
        } else {
            Err(DecodeError::Forged)
        }
    }

    fn other(&self, version: u8, datagram: &[u8]) -> OtherVersion {
        let mut keys = self.group_keys.iter().map(|key| derive(self.format, version, key));
        let long_enough = datagram.len() >= COMMON_LEN + TAG_LEN;
        let known = long_enough && keys.any(|key| is_authentic(&key, datagram));
        let sender = known.then(|| {
            let station = u64::from_be_bytes(std::array::from_fn(|index| datagram[12 + index]));
            (std::array::from_fn(|index| datagram[6 + index]), StationId(station))
        });
        OtherVersion { format: self.format, version, sender }
    }
}

/// Derives the key of the authenticator from the group key. The result differs for each version of
/// each format, so no version of a format is taken for another version, and the group key can have
/// other uses, too.
fn derive(format: MessageFormat, version: u8, group_key: &[u8; 32]) -> [u8; 32] {
    let context = format!("Wakeai {} v{version} authenticator", format.name());
    blake3::derive_key(&context, group_key)
}

/// The authenticator: the first 128 bits of a keyed BLAKE3 hash.
fn tag(key: &[u8; 32], body: &[u8]) -> [u8; TAG_LEN] {
    let hash = blake3::keyed_hash(key, body);
    std::array::from_fn(|index| hash.as_bytes()[index])
}

fn is_authentic(key: &[u8; 32], message: &[u8]) -> bool {
    let (body, found) = message.split_at(message.len() - TAG_LEN);
    // The duration must not depend on the place of the first difference.
    constant_time_eq(&tag(key, body), found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of any version: the parts that all versions have, and `more` bytes.
    fn message(format: MessageFormat, version: u8, key: &[u8; 32], more: usize) -> Vec<u8> {
        let mut bytes = format.magic().to_vec();
        bytes.extend([version, 0]);
        bytes.extend([2, 0, 0, 0, 0, 1]);
        bytes.extend(7_u64.to_be_bytes());
        bytes.resize(COMMON_LEN + more, 0xa5);
        let tag = tag(&derive(format, version, key), &bytes);
        bytes.extend(tag);
        bytes
    }

    #[test]
    fn a_message_of_another_version_is_told_apart_and_its_member_is_known() {
        let (ours, next, strange) = ([7; 32], [8; 32], [9; 32]);
        for format in [MessageFormat::Presence, MessageFormat::Fleet] {
            let seal = Seal::new(format, &ours, &[next]);
            for version in (0..=u8::MAX).filter(|version| *version != format.version()) {
                for (key, sender) in [(ours, true), (next, true), (strange, false)] {
                    for more in [0, 1, 204, 228, 400] {
                        let bytes = message(format, version, &key, more);
                        let found = seal.open::<264>(&bytes);
                        let sender = sender.then_some(([2, 0, 0, 0, 0, 1], StationId(7)));
                        let expected = OtherVersion { format, version, sender };
                        assert_eq!(found, Err(DecodeError::WrongVersion(expected)));
                    }
                }
            }
        }
    }

    #[test]
    fn the_key_of_one_version_or_format_opens_no_other() {
        let key = [7; 32];
        let seal = Seal::new(MessageFormat::Presence, &key, &[]);
        let good = message(MessageFormat::Presence, 2, &key, 10);
        assert!(seal.open::<46>(&good).is_ok());
        for (format, version) in
            [(MessageFormat::Presence, 1), (MessageFormat::Presence, 3), (MessageFormat::Fleet, 2)]
        {
            // The message names this version and format, but it has the authenticator of another
            // version or format.
            let mut forged = message(format, version, &key, 10);
            forged[..5].copy_from_slice(&good[..5]);
            let body = forged.len() - TAG_LEN;
            let tag = tag(&derive(format, version, &key), &forged[..body]);
            forged[body..].copy_from_slice(&tag);
            assert_eq!(seal.open::<46>(&forged), Err(DecodeError::Forged));
        }
    }

    #[test]
    fn a_damaged_message_of_another_version_names_no_member() {
        let seal = Seal::new(MessageFormat::Presence, &[7; 32], &[]);
        let good = message(MessageFormat::Presence, 3, &[7; 32], 30);
        for length in 5..good.len() {
            let found = seal.open::<264>(&good[..length]);
            let Err(DecodeError::WrongVersion(OtherVersion { version: 3, sender: None, .. })) =
                found
            else {
                panic!("{length}: {found:?}")
            };
        }
    }
}
