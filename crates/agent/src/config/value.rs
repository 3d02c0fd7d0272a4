//! The values of keys: each says in its own error what was found and what is allowed.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use wakeai_control::Share;
use wakeai_units::{Duration, Rate};

/// A value that the agent finds by itself unless the configuration states it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Automatic<T> {
    /// Ask the kernel, again and again.
    #[default]
    Auto,
    /// What the operator says.
    Given(T),
}

impl<T> Automatic<T> {
    /// The stated value, if there is one.
    pub fn given(self) -> Option<T> {
        match self {
            Self::Auto => None,
            Self::Given(value) => Some(value),
        }
    }

    pub(super) fn convert<U>(self, into: impl FnOnce(T) -> U) -> Automatic<U> {
        match self {
            Self::Auto => Automatic::Auto,
            Self::Given(value) => Automatic::Given(into(value)),
        }
    }
}

impl<'de, T> Deserialize<'de> for Automatic<T>
where
    T: FromStr<Err: fmt::Display>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let value =
            text.parse().map_err(|error| D::Error::custom(format!("{error}, or \"auto\"")))?;
        Ok(Self::Given(value))
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
        // A group address (802-2014, 8.2.2) or none at all cannot be an access point's.
        let usable = parts.next().is_none() && octets[0] & 1 == 0 && octets != [0; 6];
        usable.then_some(Self(octets)).ok_or_else(wrong)
    }
}

impl fmt::Display for Bssid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, octet) in self.0.iter().enumerate() {
            write!(f, "{}{octet:02x}", if index == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

/// A user group, by number or by name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a group's name or number")]
pub enum Group {
    /// Its number.
    Id(u32),
    /// Its name.
    Name(String),
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
pub(super) struct InterfaceName(pub(super) String);

impl TryFrom<String> for InterfaceName {
    type Error = String;

    /// As the kernel's `dev_valid_name` has it.
    fn try_from(name: String) -> Result<Self, Self::Error> {
        let fits = (1..=15).contains(&name.len()) && name != "." && name != "..";
        if fits && !name.contains(|c: char| c == '/' || c == ':' || c.is_whitespace()) {
            return Ok(Self(name));
        }
        Err(format!(
            "found {name:?}, expected an interface's name of 1 to 15 bytes such as \"wlan0\""
        ))
    }
}

macro_rules! parsed {
    ($(#[$doc:meta])* $name:ident($inner:ty), $parse:expr) => {
        $(#[$doc])*
        pub(crate) struct $name(pub(crate) $inner);

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let parse: fn(&str) -> Result<$inner, String> = $parse;
                parse(text).map(Self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }
    };
}

parsed!(
    /// A rate above zero.
    PositiveRate(Rate),
    |text| {
        let rate: Rate = text.parse().map_err(|error| format!("{error}"))?;
        if rate == Rate::ZERO {
            return Err(format!("found {text:?}, expected a rate above zero"));
        }
        Ok(rate)
    }
);

parsed!(
    /// The rate of broadcasts: at least 1 Mbit/s, the lowest of 802.11.
    BasicRate(Rate),
    |text| {
        let rate: Rate = text.parse().map_err(|error| format!("{error}"))?;
        let (lowest, highest) = (Rate::from_mbps(1), Rate::from_mbps(54));
        if rate < lowest || rate > highest {
            return Err(format!("found {text:?}, allowed are 1Mbit/s to 54Mbit/s"));
        }
        Ok(rate)
    }
);

parsed!(
    /// How far two clocks may be apart.
    Tolerance(Duration),
    |text| {
        let tolerance: Duration = text.parse().map_err(|error| format!("{error}"))?;
        if tolerance < Duration::from_millis(1) || tolerance > Duration::from_secs(60) {
            return Err(format!("found {text:?}, allowed are 1ms to 60s"));
        }
        Ok(tolerance)
    }
);

parsed!(
    /// An RTT growth to aim at.
    QueueTime(Duration),
    |text| {
        let time: Duration = text.parse().map_err(|error| format!("{error}"))?;
        if time < Duration::from_millis(1) || time > Duration::from_secs(10) {
            return Err(format!("found {text:?}, allowed are 1ms to 10s"));
        }
        Ok(time)
    }
);

parsed!(
    /// An IPv4 address that a datagram may be sent to.
    Address(Ipv4Addr),
    |text| text.parse().map_err(|_| format!("found {text:?}, expected an IPv4 address"))
);

impl Default for BasicRate {
    fn default() -> Self {
        Self(Rate::from_mbps(6))
    }
}

/// A path that a Unix socket can have.
#[derive(Deserialize)]
#[serde(try_from = "PathBuf")]
pub(super) struct SocketPath(pub(super) PathBuf);

impl TryFrom<PathBuf> for SocketPath {
    type Error = String;

    /// `sun_path` has 108 bytes with the zero at its end (unix(7)).
    fn try_from(path: PathBuf) -> Result<Self, Self::Error> {
        let length = path.as_os_str().len();
        if path.is_absolute() && length <= 107 {
            return Ok(Self(path));
        }
        Err(format!(
            "found {} ({length} bytes), expected an absolute path of at most 107 bytes",
            path.display()
        ))
    }
}

/// A UDP port that can be bound and named.
#[derive(Deserialize)]
#[serde(try_from = "i64")]
pub(super) struct Port(pub(super) u16);

impl Default for Port {
    fn default() -> Self {
        Self(super::DEFAULT_PORT)
    }
}

impl TryFrom<i64> for Port {
    type Error = String;

    fn try_from(found: i64) -> Result<Self, Self::Error> {
        match u16::try_from(found) {
            Ok(port) if port != 0 => Ok(Self(port)),
            _ => Err(format!("found {found}, allowed are 1 to 65535")),
        }
    }
}

/// A queue length in packets.
#[derive(Deserialize)]
#[serde(try_from = "i64")]
pub(super) struct Packets(pub(super) u32);

impl Default for Packets {
    fn default() -> Self {
        Self(300)
    }
}

impl TryFrom<i64> for Packets {
    type Error = String;

    fn try_from(found: i64) -> Result<Self, Self::Error> {
        match u32::try_from(found) {
            Ok(packets @ 1..=1_000_000) => Ok(Self(packets)),
            _ => Err(format!("found {found}, allowed are 1 to 1000000")),
        }
    }
}

/// The part of the air that may be reserved, in hundredths. The rest is for those without a
/// reservation, and for what reservations cost.
#[derive(Deserialize)]
#[serde(try_from = "i64")]
pub(super) struct Reservable(pub(super) Share);

impl Default for Reservable {
    fn default() -> Self {
        Self(Share::from_percent(80))
    }
}

impl TryFrom<i64> for Reservable {
    type Error = String;

    fn try_from(found: i64) -> Result<Self, Self::Error> {
        match u32::try_from(found) {
            Ok(percent @ 0..=95) => Ok(Self(Share::from_percent(percent))),
            _ => Err(format!("found {found}, allowed are 0 to 95")),
        }
    }
}
