//! The agent's configuration. It is a TOML file, which the agent reads once when it starts.
//!
//! [`Config::load`] reads a file and [`Config::to_toml`] writes one. [`Examined::load`] lists all
//! problems of a file. The agent itself finds the values that depend on the host, such as the
//! interface's index. `docs/reference/agent.md` lists every key.

mod edit;
mod error;
mod read;

use std::fmt::{self, Display};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use strum::{IntoStaticStr, VariantArray};
use wakeai_control::{AirtimeKnobs, LawConfig};
use wakeai_net::Local;
use wakeai_units::{Duration, Rate};

pub use edit::{Changed, EditError, Measured, write_measured};
pub use error::ConfigError;
pub use read::Examined;

/// The file that the agent reads by default.
pub const DEFAULT_PATH: &str = "/etc/wakeai/agent.toml";
/// The UDP port of presence messages. Agents announce themselves to each other with these messages.
/// IANA has not assigned this port.
pub const DEFAULT_PORT: u16 = 19719;

/// The text in a file of a value that the agent finds itself: it asks the kernel periodically.
const AUTO: &str = "auto";

/// The hardware address of an access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bssid(pub [u8; 6]);

impl FromStr for Bssid {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut octets = [0; 6];
        let mut parts = text.split(':');
        for octet in &mut octets {
            let part = parts.next().filter(|part| part.len() == 2).ok_or(())?;
            *octet = u8::from_str_radix(part, 16).map_err(|_| ())?;
        }
        // Group addresses (802-2014, 8.2.2) and the zero address are refused, because no access
        // point has such an address.
        let usable = parts.next().is_none() && octets[0] & 1 == 0 && octets != [0; 6];
        usable.then_some(Self(octets)).ok_or(())
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Group {
    /// The number of the group.
    Id(u32),
    /// The name of the group.
    Name(String),
}

/// The settings of a station that its operator chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The Wi-Fi interface. The agent sends presence messages over it, and limits the congestion
    /// windows of the connections that use it, and of no others.
    pub interface: String,
    /// The file with the group key.
    pub key_file: PathBuf,
    /// This station's number among its peers. By default the number is derived from the machine id
    /// and the interface's hardware address.
    pub station: Option<u64>,
    /// The access point's address. Stations at another access point are not peers.
    /// With `None` the agent finds it itself: it asks the kernel periodically.
    pub bssid: Option<Bssid>,
    /// The PHY rate.
    /// With `None` the agent finds it itself: it asks the kernel periodically.
    pub link_rate: Option<Rate>,
    /// The goodput that this station reaches alone as a sender, if it was measured.
    pub max: Option<Rate>,
    /// The goodput that this station reaches alone as a receiver, if it was measured.
    pub max_down: Option<Rate>,
    /// The rate that this station asks its peers to leave free while it sends.
    pub reserve: Option<Rate>,
    /// The address at which Prometheus may read the agent's metrics. By default the agent does not
    /// serve metrics.
    pub metrics: Option<Local>,
    /// The settings of presence messages.
    pub presence: Presence,
    /// The properties of the access point that the operator states.
    pub access_point: AccessPoint,
    /// The law that turns observations into bounds. With `None` the agent sends presence messages and counts peers,
    /// but sets no bounds.
    pub law: Option<LawConfig>,
    /// How datagrams are slowed.
    pub datagrams: Datagrams,
    /// The local API.
    pub api: Api,
    /// The log.
    pub log: Log,
}

/// How datagrams are slowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Datagrams {
    /// The interface's queueing discipline.
    pub queue: Queue,
}

/// What the agent does with the interface's root queueing discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Queue {
    /// It puts `fq` in place of the kernel's default, so that datagrams wait for their departure times.
    #[default]
    Fq,
    /// It leaves the discipline as it is.
    Leave,
}

impl Queue {
    /// The name in the file.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The settings of presence messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presence {
    /// The UDP port of presence messages. It must be the same on every station.
    pub port: u16,
    /// The address that presence messages are sent to.
    /// With `None` the agent finds it itself: it asks the kernel periodically.
    pub broadcast: Option<Ipv4Addr>,
    /// The largest difference between the clocks of stations. With `None` the clocks are not compared.
    pub clock_tolerance: Option<Duration>,
}

/// The properties of the access point that the operator states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessPoint {
    /// The access point's buffer, in packets.
    pub buffer: u32,
    /// The PHY rate of broadcasts.
    pub basic_rate: Rate,
    /// The largest share of the airtime that all stations together may reserve, in percent. The rest is for stations
    /// without a reservation, and for the overhead of the reservations.
    pub reservable_percent: u32,
}

/// The local API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Api {
    /// The socket of the API. The default is `/run/wakeai/agent-<namespace inode>.sock`.
    pub socket: Option<PathBuf>,
    /// A group whose members may use the API, besides root and the agent's own user.
    pub group: Option<Group>,
}

/// The log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The format of a line.
    pub format: LogFormat,
    /// The filter for log lines. It is a level, or directives in the syntax of `tracing`.
    pub level: String,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum LogFormat {
    /// Plain text.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl LogFormat {
    /// The name in the file.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Default for Presence {
    fn default() -> Self {
        Self { port: DEFAULT_PORT, broadcast: None, clock_tolerance: None }
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

impl Config {
    /// A configuration with the two required keys, and defaults for the others.
    pub fn new(interface: impl Into<String>, key_file: impl Into<PathBuf>) -> Self {
        Self {
            interface: interface.into(),
            key_file: key_file.into(),
            station: None,
            bssid: None,
            link_rate: None,
            max: None,
            max_down: None,
            reserve: None,
            metrics: None,
            presence: Presence::default(),
            access_point: AccessPoint::default(),
            law: Some(LawConfig::Airtime(AirtimeKnobs::default())),
            datagrams: Datagrams::default(),
            api: Api::default(),
            log: Log::default(),
        }
    }

    /// Reads and checks the file at `path`.
    ///
    /// # Errors
    /// [`ConfigError`]. It has all problems: the place and the key of each, what was found and what is allowed.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Examined::load(path).into_config()
    }

    /// Checks `text` as the content of a configuration file.
    ///
    /// # Errors
    /// [`ConfigError`], with all problems.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Examined::parse(text, None).into_config()
    }

    /// The law's name in the file.
    pub fn law_name(&self) -> &'static str {
        self.law.as_ref().map_or("none", |law| law.name().as_str())
    }
}

#[cfg(test)]
mod tests;
