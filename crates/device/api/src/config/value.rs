//! Reads and writes the values of keys. Each error says which value was found and which values are
//! allowed.

use std::fmt::{self, Display};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wakeai_net::{Local, LocalError};
use wakeai_units::{Bytes, Duration, Rate};

/// A value that the configuration may state. Otherwise the agent finds the value itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Automatic<T> {
    /// The agent finds the value itself: it asks the kernel periodically.
    #[default]
    Auto,
    /// The value that the operator states.
    Given(T),
}

/// The text of [`Automatic::Auto`] in a file.
const AUTO: &str = "auto";

impl<T> Automatic<T> {
    /// The stated value, if there is one.
    pub fn given(self) -> Option<T> {
        match self {
            Self::Auto => None,
            Self::Given(value) => Some(value),
        }
    }
}

impl<T> From<Option<T>> for Automatic<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Auto, Self::Given)
    }
}

impl<T: Display> Serialize for Automatic<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => to.serialize_str(AUTO),
            Self::Given(value) => to.collect_str(value),
        }
    }
}

/// The hardware address of an access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bssid(pub [u8; 6]);

impl FromStr for Bssid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("found {text:?}, expected six octets such as \"02:00:5e:10:00:01\"");
        let mut octets = [0; 6];
        let mut parts = text.split(':');
        for octet in &mut octets {
            let part = parts.next().filter(|part| part.len() == 2).ok_or_else(wrong)?;
            *octet = u8::from_str_radix(part, 16).map_err(|_| wrong())?;
        }
        // Group addresses (802-2014, 8.2.2) and the zero address are refused, because no access
        // point has such an address.
        let usable = parts.next().is_none() && octets[0] & 1 == 0 && octets != [0; 6];
        usable.then_some(Self(octets)).ok_or_else(wrong)
    }
}

impl Display for Bssid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, rest @ ..] = self.0;
        write!(f, "{first:02x}")?;
        rest.iter().try_for_each(|octet| write!(f, ":{octet:02x}"))
    }
}

/// A user group, by number or by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a group's name or number")]
pub enum Group {
    /// The number of the group.
    Id(u32),
    /// The name of the group.
    Name(String),
}

/// Writes a value as a string.
pub(super) fn text<S: Serializer>(value: &impl Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

/// Writes a value as a string. Writes nothing for `None`.
#[expect(clippy::ref_option, reason = "the signature that serde calls")]
pub(super) fn optional_text<S, T>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error>
where
    S: Serializer,
    T: Display,
{
    value.as_ref().map(ToString::to_string).serialize(to)
}

/// Reads a string and parses it.
fn parsed<'de, D, T>(from: D, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
{
    parse(&String::deserialize(from)?).map_err(D::Error::custom)
}

/// Reads a string. The string `auto` gives [`Automatic::Auto`]. Any other string is parsed.
fn automatic<'de, D, T>(
    from: D,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Automatic<T>, D::Error>
where
    D: Deserializer<'de>,
{
    parsed(from, |text| match text {
        AUTO => Ok(Automatic::Auto),
        _ => parse(text).map(Automatic::Given).map_err(|error| format!("{error}, or \"{AUTO}\"")),
    })
}

/// Reads an integer from `least` to `most`.
fn integer<'de, D, T>(from: D, least: i64, most: i64) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<i64>,
{
    let found = i64::deserialize(from)?;
    let in_range = Some(found).filter(|found| (least..=most).contains(found));
    in_range
        .and_then(|found| T::try_from(found).ok())
        .ok_or_else(|| D::Error::custom(format!("found {found}, allowed are {least} to {most}")))
}

/// Reads a quantity from `least` to `most`.
fn within<T>(text: &str, least: T, most: T) -> Result<T, String>
where
    T: Copy + FromStr<Err: Display> + PartialOrd + Display,
{
    let value: T = text.parse().map_err(|error: T::Err| error.to_string())?;
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(format!("found {text:?}, allowed are {least} to {most}"))
}

/// Reads a rate above zero.
pub(crate) fn positive_rate(text: &str) -> Result<Rate, String> {
    let rate: Rate = text.parse().map_err(|error| format!("{error}"))?;
    if rate == Rate::ZERO {
        return Err(format!("found {text:?}, expected a rate above zero"));
    }
    Ok(rate)
}

pub(super) fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Rate>, D::Error> {
    parsed(from, positive_rate).map(Some)
}

pub(super) fn automatic_rate<'de, D>(from: D) -> Result<Automatic<Rate>, D::Error>
where
    D: Deserializer<'de>,
{
    automatic(from, positive_rate)
}

/// Reads a rate from 1 Mbit/s, the lowest of 802.11, to 54 Mbit/s, the highest of 802.11a and g.
pub(super) fn basic_rate<'de, D: Deserializer<'de>>(from: D) -> Result<Rate, D::Error> {
    parsed(from, |text| within(text, Rate::from_mbps(1), Rate::from_mbps(54)))
}

pub(super) fn duration<'de, D>(
    from: D,
    least: Duration,
    most: Duration,
) -> Result<Duration, D::Error>
where
    D: Deserializer<'de>,
{
    parsed(from, |text| within(text, least, most))
}

/// Reads a size in bytes.
pub(super) fn size<'de, D>(from: D, least: Bytes, most: Bytes) -> Result<Bytes, D::Error>
where
    D: Deserializer<'de>,
{
    parsed(from, |text| within(text, least, most))
}

pub(super) fn tolerance<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    duration(from, Duration::from_millis(1), Duration::from_secs(60)).map(Some)
}

pub(super) fn bssid<'de, D: Deserializer<'de>>(from: D) -> Result<Automatic<Bssid>, D::Error> {
    automatic(from, str::parse)
}

pub(super) fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Automatic<Ipv4Addr>, D::Error> {
    let expected = |text: &str| format!("found {text:?}, expected an IPv4 address");
    automatic(from, |text| text.parse().map_err(|_| expected(text)))
}

/// Reads the address for serving metrics.
pub(super) fn metrics<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Local>, D::Error> {
    parsed(from, |text| text.parse().map(Some).map_err(|error: LocalError| error.to_string()))
}

/// Reads a UDP port. Port 0 is refused.
pub(super) fn port<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
    integer(from, 1, 65_535)
}

/// Reads a queue length in packets.
pub(super) fn packets<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    integer(from, 1, 1_000_000)
}

/// Reads the share of the airtime that may be reserved, in percent.
pub(super) fn percent<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    integer(from, 0, 95)
}

/// Reads the name of an interface. The name must follow the rules of the kernel's `dev_valid_name`.
pub(super) fn interface<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    let fits = (1..=15).contains(&name.len()) && name != "." && name != "..";
    if fits && !name.contains(|c: char| c == '/' || c == ':' || c.is_whitespace()) {
        return Ok(name);
    }
    Err(D::Error::custom(format!(
        "found {name:?}, expected an interface's name of 1 to 15 bytes such as \"wlan0\""
    )))
}

/// Reads the path of a Unix socket. The kernel's `sun_path` has 108 bytes, and the last one is a
/// zero byte (unix(7)).
pub(super) fn socket<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    let path = PathBuf::deserialize(from)?;
    let length = path.as_os_str().len();
    if path.is_absolute() && length <= 107 {
        return Ok(Some(path));
    }
    Err(D::Error::custom(format!(
        "found {} ({length} bytes), expected an absolute path of at most 107 bytes",
        path.display()
    )))
}
