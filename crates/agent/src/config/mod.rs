//! The agent's configuration: a TOML file, read once at start.
//!
//! [`Config::load`] reads and checks the file alone, and [`Examined::load`] tells all that is wrong with
//! it; [`Config::load_key`] then reads the group key that it names. What the host decides (the interface's index, the access point's address)
//! is found at start and again while running, never here.
//! `docs/reference/agent.md` lists every key.

mod error;
mod examine;
mod law;
mod value;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use wakeai_control::Share;
use wakeai_units::{Duration, Rate};

pub use error::ConfigError;
pub use examine::Examined;
pub use law::LawChoice;
pub(crate) use value::PositiveRate;
pub use value::{Automatic, Bssid, Group};

use crate::key::{GroupKey, KeyError};

/// Where the configuration is looked for when no other file is named.
pub const DEFAULT_PATH: &str = "/etc/wakeai/agent.toml";
/// The UDP port of presence messages, unassigned at IANA.
pub const DEFAULT_PORT: u16 = 19719;

/// All that the operator of a station decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The Wi-Fi interface. Presence is sent and bounds bind on it alone.
    pub interface: String,
    /// The file with the group key.
    pub key_file: PathBuf,
    /// This station's number among its peers; by default derived from the machine id and the
    /// interface's hardware address.
    pub station: Option<u64>,
    /// The access point's address: stations with another one are not peers.
    pub bssid: Automatic<Bssid>,
    /// The PHY rate.
    pub link_rate: Automatic<Rate>,
    /// What this station reaches alone, if someone measured it.
    pub max: Option<Rate>,
    /// What this station asks its peers to leave free while it sends.
    pub reserve: Option<Rate>,
    /// UDP port of presence messages.
    pub port: u16,
    /// Where presence messages go.
    pub broadcast: Automatic<Ipv4Addr>,
    /// How far stations' clocks may be apart, where they are synchronised at all.
    pub clock_tolerance: Option<Duration>,
    /// The access point's buffer, in packets.
    pub buffer: u32,
    /// The rate of broadcasts on the air.
    pub basic_rate: Rate,
    /// The most of the air that all stations together may reserve.
    pub reservable: Share,
    /// The law that turns observations into bounds.
    pub law: LawChoice,
    /// The socket of the local API; by default `/run/wakeai/agent-<namespace inode>.sock`.
    pub socket: Option<PathBuf>,
    /// A group that may ask the local API, beside root and the agent's own user.
    pub group: Option<Group>,
    /// How log lines look.
    pub log_format: LogFormat,
    /// Which log lines are written: a level, or directives as `tracing` reads them.
    pub log_level: String,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl Config {
    /// Reads and checks `path`.
    ///
    /// # Errors
    /// The first [`ConfigError`], with the file, the line, the key, what was found and what is allowed;
    /// [`Examined::load`] has all.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Examined::load(path).into_config()
    }

    /// Checks `text` as the content of a configuration file.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`].
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Examined::parse(text).into_config()
    }

    /// Reads the group key that this configuration names.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn load_key(&self) -> Result<GroupKey, KeyError> {
        GroupKey::load(&self.key_file)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_field_names, reason = "named as the keys are")]
struct File {
    interface: value::InterfaceName,
    key_file: PathBuf,
    station: Option<u64>,
    #[serde(default)]
    bssid: Automatic<Bssid>,
    #[serde(default)]
    link_rate: Automatic<PositiveRate>,
    max: Option<PositiveRate>,
    reserve: Option<PositiveRate>,
    #[serde(default)]
    presence: PresenceSection,
    #[serde(default)]
    access_point: AccessPointSection,
    law: Option<law::LawSection>,
    #[serde(default)]
    api: ApiSection,
    #[serde(default)]
    log: LogSection,
}

impl File {
    fn into_config(self, law: LawChoice) -> Config {
        Config {
            interface: self.interface.0,
            key_file: self.key_file,
            station: self.station,
            bssid: self.bssid,
            link_rate: self.link_rate.convert(|rate| rate.0),
            max: self.max.map(|rate| rate.0),
            reserve: self.reserve.map(|rate| rate.0),
            port: self.presence.port.0,
            broadcast: self.presence.broadcast.convert(|address| address.0),
            clock_tolerance: self.presence.clock_tolerance.map(|tolerance| tolerance.0),
            buffer: self.access_point.buffer.0,
            basic_rate: self.access_point.basic_rate.0,
            reservable: self.access_point.reservable_percent.0,
            law,
            socket: self.api.socket.map(|path| path.0),
            group: self.api.group,
            log_format: self.log.format,
            log_level: self.log.level,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PresenceSection {
    port: value::Port,
    broadcast: Automatic<value::Address>,
    clock_tolerance: Option<value::Tolerance>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AccessPointSection {
    buffer: value::Packets,
    basic_rate: value::BasicRate,
    reservable_percent: value::Reservable,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ApiSection {
    socket: Option<value::SocketPath>,
    group: Option<Group>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LogSection {
    format: LogFormat,
    level: String,
}

impl Default for LogSection {
    fn default() -> Self {
        Self { format: LogFormat::Text, level: "info".to_owned() }
    }
}

#[cfg(test)]
mod tests;
