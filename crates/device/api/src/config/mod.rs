//! The agent's configuration. It is a TOML file, which the agent reads once when it starts.
//!
//! [`Config::load`] reads a file and [`Config::to_toml`] writes one. [`Examined::load`] lists all
//! problems of a file. The agent itself finds the values that depend on the host, such as the
//! interface's index. `docs/reference/agent.md` lists every key.

mod edit;
mod error;
mod examine;
mod law;
mod value;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wakeai_control::{AirtimeKnobs, LawConfig};
use wakeai_net::Local;
use wakeai_units::{Duration, Rate};

pub use edit::{Changed, EditError, Measured, write_measured};
pub use error::ConfigError;
pub use examine::Examined;
pub use law::MAX_SEGMENTS;
pub(crate) use value::positive_rate;
pub use value::{Automatic, Bssid, Group};

/// The file that the agent reads by default.
pub const DEFAULT_PATH: &str = "/etc/wakeai/agent.toml";
/// The UDP port of presence messages. Agents announce themselves to each other with these messages.
/// IANA has not assigned this port.
pub const DEFAULT_PORT: u16 = 19719;

/// The settings of a station that its operator chooses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The Wi-Fi interface. The agent sends presence messages over it, and limits the congestion
    /// windows of the connections that use it, and of no others.
    #[serde(deserialize_with = "value::interface")]
    pub interface: String,
    /// The file with the group key.
    pub key_file: PathBuf,
    /// This station's number among its peers. By default the number is derived from the machine id
    /// and the interface's hardware address.
    #[serde(default)]
    pub station: Option<u64>,
    /// The access point's address. Stations at another access point are not peers.
    #[serde(default, deserialize_with = "value::bssid")]
    pub bssid: Automatic<Bssid>,
    /// The PHY rate.
    #[serde(default, deserialize_with = "value::automatic_rate")]
    pub link_rate: Automatic<Rate>,
    /// The goodput that this station reaches alone, if it was measured.
    #[serde(default, deserialize_with = "value::rate", serialize_with = "value::optional_text")]
    pub max: Option<Rate>,
    /// The rate that this station asks its peers to leave free while it sends.
    #[serde(default, deserialize_with = "value::rate", serialize_with = "value::optional_text")]
    pub reserve: Option<Rate>,
    /// The address at which Prometheus may read the agent's metrics. By default the agent does not
    /// serve metrics.
    #[serde(default, deserialize_with = "value::metrics", serialize_with = "value::optional_text")]
    pub metrics: Option<Local>,
    /// The settings of presence messages.
    #[serde(default)]
    pub presence: Presence,
    /// The properties of the access point that the operator states.
    #[serde(default)]
    pub access_point: AccessPoint,
    /// The law that turns observations into bounds. With `None` the agent sends presence messages and counts peers,
    /// but sets no bounds.
    #[serde(default = "default_law", with = "law")]
    pub law: Option<LawConfig>,
    /// The local API.
    #[serde(default)]
    pub api: Api,
    /// The log.
    #[serde(default)]
    pub log: Log,
}

/// The settings of presence messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Presence {
    /// The UDP port of presence messages. It must be the same on every station.
    #[serde(deserialize_with = "value::port")]
    pub port: u16,
    /// The address that presence messages are sent to.
    #[serde(deserialize_with = "value::address")]
    pub broadcast: Automatic<Ipv4Addr>,
    /// The largest difference between the clocks of stations. With `None` the clocks are not compared.
    #[serde(deserialize_with = "value::tolerance", serialize_with = "value::optional_text")]
    pub clock_tolerance: Option<Duration>,
}

/// The properties of the access point that the operator states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessPoint {
    /// The access point's buffer, in packets.
    #[serde(deserialize_with = "value::packets")]
    pub buffer: u32,
    /// The PHY rate of broadcasts.
    #[serde(deserialize_with = "value::basic_rate", serialize_with = "value::text")]
    pub basic_rate: Rate,
    /// The largest share of the airtime that all stations together may reserve, in percent. The rest is for stations
    /// without a reservation, and for the overhead of the reservations.
    #[serde(deserialize_with = "value::percent")]
    pub reservable_percent: u32,
}

/// The local API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Api {
    /// The socket of the API. The default is `/run/wakeai/agent-<namespace inode>.sock`.
    #[serde(deserialize_with = "value::socket")]
    pub socket: Option<PathBuf>,
    /// A group whose members may use the API, besides root and the agent's own user.
    pub group: Option<Group>,
}

/// The log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// The format of a line.
    pub format: LogFormat,
    /// The filter for log lines. It is a level, or directives in the syntax of `tracing`.
    pub level: String,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Plain text.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl Default for Presence {
    fn default() -> Self {
        Self { port: DEFAULT_PORT, broadcast: Automatic::Auto, clock_tolerance: None }
    }
}

impl Default for AccessPoint {
    fn default() -> Self {
        Self { buffer: 300, basic_rate: Rate::from_mbps(6), reservable_percent: 80 }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::Text, level: "info".to_owned() }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the type of the field")]
fn default_law() -> Option<LawConfig> {
    Some(LawConfig::Airtime(AirtimeKnobs::default()))
}

impl Config {
    /// A configuration with the two required keys, and defaults for the others.
    pub fn new(interface: impl Into<String>, key_file: impl Into<PathBuf>) -> Self {
        Self {
            interface: interface.into(),
            key_file: key_file.into(),
            station: None,
            bssid: Automatic::Auto,
            link_rate: Automatic::Auto,
            max: None,
            reserve: None,
            metrics: None,
            presence: Presence::default(),
            access_point: AccessPoint::default(),
            law: default_law(),
            api: Api::default(),
            log: Log::default(),
        }
    }

    /// Reads and checks the file at `path`.
    ///
    /// # Errors
    /// The first [`ConfigError`]. The error names the file, the line and the key, the value that
    /// was found and the values that are allowed. [`Examined::load`] returns all errors.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Examined::load(path).into_config()
    }

    /// Checks `text` as the content of a configuration file.
    ///
    /// # Errors
    /// The first [`ConfigError`].
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Examined::parse(text).into_config()
    }

    /// The content of a file. [`Config::parse`] reads the same configuration from it.
    ///
    /// # Errors
    /// [`ConfigError`] if a value is out of the range that its key allows.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        let text = toml::to_string(self)?;
        Self::parse(&text).map(|_| text)
    }

    /// The law's name in the file.
    pub fn law_name(&self) -> &'static str {
        self.law.as_ref().map_or("none", |law| law.build().name())
    }
}

#[cfg(test)]
mod tests;
