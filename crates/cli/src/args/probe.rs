//! The arguments of `wakeai probe`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgGroup, Args, Subcommand};
use wakeai_net::{AddressError, LookupError, lookup_blocking, socket_address_or_port};
use wakeai_probe::Token;
use wakeai_units::{Duration, Rate};

use super::time_within;

/// The port of a listener that names none.
const DEFAULT_PORT: u16 = 4780;

/// Measure this access point
///
/// A measurement of buffer and solo has two ends. One runs with --listen and prints a token and the command for
/// the other end.
#[derive(Debug, Args)]
pub(crate) struct ProbeArguments {
    #[command(subcommand)]
    pub(crate) probe: Probe,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Probe {
    Buffer(BufferArguments),
    Solo(SoloArguments),
    Air(AirArguments),
}

/// Measure the buffer of the access point
///
/// Bursts of numbered UDP datagrams go from the wired side to a station, faster than the air takes them. The
/// losses and delays tell how many packets the access point keeps, whether its limit counts packets or bytes,
/// whether all packets wait in one queue, and whether it drops packets before the queue is full. It takes
/// seconds, during which the stations of this access point are disturbed. Needs no privileges; a listener with
/// root gets a longer socket buffer.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("end").args(["listen", "to"]).required(true)),
    after_help = "\
Examples:
  wakeai probe buffer --listen                              on the station
  wakeai probe buffer --to 192.168.1.23 --token TOKEN       on a machine with a cable to the access point
  wakeai probe buffer --to 192.168.1.23 --token TOKEN --to 192.168.1.24 --token TOKEN
                                                            with a listener on a second station, too

docs/guides/field.md explains the results."
)]
pub(crate) struct BufferArguments {
    #[command(flatten)]
    pub(crate) end: ListenArguments,
    /// Measure the way to the listener at this address or name; twice, with two tokens, to compare the queues of two
    /// stations
    #[arg(long, value_name = "HOST[:PORT]", requires = "token")]
    pub(crate) to: Vec<OtherEnd>,
    /// The token that the listener has printed
    #[arg(long, value_name = "TOKEN", requires = "to")]
    pub(crate) token: Vec<Token>,
    /// The number of bursts whose spread is reported
    #[arg(long, value_name = "N", default_value_t = 10, conflicts_with = "listen",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// The fastest rate to send at; it must be below the rate of every cable up to the access point
    #[arg(long, value_name = "RATE", default_value = "900Mbit/s", conflicts_with = "listen",
          value_parser = Rate::above_zero)]
    pub(crate) rate: Rate,
    #[command(flatten)]
    pub(crate) write: WriteArguments,
}

/// Measure what this station reaches alone
///
/// One TCP connection each way, with the kernel's congestion control, and the round trips of small datagrams
/// before and meanwhile. The station runs --to, and a machine with a cable to the access point --listen. If
/// other stations send meanwhile, the result is not what the station reaches alone: the command asks the agent
/// of this network namespace for its peers, and looks for seconds with less goodput.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("end").args(["listen", "to"]).required(true)),
    after_help = "\
Examples:
  wakeai probe solo --listen                            on a machine with a cable to the access point
  wakeai probe solo --to 192.168.1.5 --token TOKEN      on the station

docs/guides/field.md explains the results."
)]
pub(crate) struct SoloArguments {
    #[command(flatten)]
    pub(crate) end: ListenArguments,
    /// Measure the way to the listener at this address or name
    #[arg(long, value_name = "HOST[:PORT]", requires = "token")]
    pub(crate) to: Option<OtherEnd>,
    /// The token that the listener has printed
    #[arg(long, value_name = "TOKEN", requires = "to")]
    pub(crate) token: Option<Token>,
    /// The seconds that are measured in each direction, after three seconds that are not
    #[arg(long, value_name = "TIME", default_value = "10s", conflicts_with = "listen",
          value_parser = whole_seconds)]
    pub(crate) time: Duration,
    /// The socket of the agent to ask [default: that of this network namespace, if one runs]
    #[arg(long, value_name = "PATH", conflicts_with = "listen")]
    pub(crate) socket: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) write: WriteArguments,
}

/// Show what the driver tells about the link to the access point
///
/// For each Wi-Fi station of this network namespace: access point, channel, signal, PHY rates, retries, airtime, and
/// how busy the channel is, from nl80211. Two readings give the figures of the time between them. Drivers differ in
/// what they count: the last line names what this one does not tell. It sends nothing and needs no privileges.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wakeai probe air
  wakeai probe air --interface wlan0 --interval 10s
  wakeai probe air --json

docs/guides/field.md explains the results.")]
pub(crate) struct AirArguments {
    /// Show this interface only [default: all stations]
    #[arg(long, value_name = "NAME")]
    pub(crate) interface: Option<String>,
    /// The time between the two readings, from 100ms to 1h
    #[arg(long, value_name = "TIME", default_value = "1s",
          value_parser = time_within(Duration::from_millis(100), Duration::from_secs(3_600)))]
    pub(crate) interval: Duration,
    /// Print one JSON object instead; null is what the driver does not tell
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of a listening end, and of both ends.
#[derive(Debug, Args)]
pub(crate) struct ListenArguments {
    /// Listen, for one measurement, at this address [default: 0.0.0.0:4780]
    #[arg(long, value_name = "ADDRESS[:PORT]", num_args = 0..=1, default_missing_value = "0.0.0.0",
          value_parser = place)]
    pub(crate) listen: Option<SocketAddr>,
    /// With --listen: the longest wait for the other end
    #[arg(long, value_name = "TIME", default_value = "10min", conflicts_with = "to")]
    pub(crate) wait: Duration,
    /// Print JSON: one object, and a listener one more at its start
    #[arg(long)]
    pub(crate) json: bool,
}

/// The argument of a measuring end whose result is a key of the agent's configuration.
#[derive(Debug, Args)]
pub(crate) struct WriteArguments {
    /// Write the result into this configuration of an agent, whose comments stay
    #[arg(long, value_name = "FILE", conflicts_with = "listen", num_args = 0..=1,
          default_missing_value = wakeai_api::config::DEFAULT_PATH)]
    pub(crate) write: Option<PathBuf>,
}

fn place(text: &str) -> Result<SocketAddr, AddressError> {
    socket_address_or_port(text, DEFAULT_PORT)
}

/// Where the other end listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OtherEnd {
    Address(SocketAddr),
    /// A name, which is looked up when it is needed, and a port.
    Name(String, u16),
}

impl OtherEnd {
    /// The addresses, in the order in which they should be tried.
    pub(crate) fn addresses(&self) -> Result<Vec<SocketAddr>, LookupError> {
        match self {
            Self::Address(address) => Ok(vec![*address]),
            Self::Name(name, port) => lookup_blocking(name, *port),
        }
    }
}

impl FromStr for OtherEnd {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match socket_address_or_port(text, DEFAULT_PORT) {
            Ok(address) => return Ok(Self::Address(address)),
            Err(error @ AddressError::Zone(_)) => return Err(error.to_string()),
            Err(_) => {}
        }
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) => (name, port.parse().ok()),
            None => (text, Some(DEFAULT_PORT)),
        };
        let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        // A last label of digits is an address that is written wrong (RFC 3696 section 2).
        let last = name.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
        let is_name = name.bytes().all(sound) && last.bytes().any(|byte| !byte.is_ascii_digit());
        port.filter(|_| is_name).map(|port| Self::Name(name.to_owned(), port)).ok_or_else(|| {
            format!(
                "expected an address or a name, with or without a port, such as 192.168.1.23, \
                 192.168.1.23:{DEFAULT_PORT}, fe80::5%wlan0 or tablet.lan"
            )
        })
    }
}

fn whole_seconds(text: &str) -> Result<Duration, String> {
    let time: Duration = text.parse().map_err(|error| format!("{error}"))?;
    let second = Duration::from_secs(1);
    let is_whole = time.as_nanos().is_multiple_of(second.as_nanos());
    if is_whole && (second..=wakeai_probe::solo::MOST_TIME).contains(&time) {
        return Ok(time);
    }
    Err(format!("expected whole seconds, from 1s to {}", wakeai_probe::solo::MOST_TIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_end_is_an_address_or_a_name() {
        for (text, end) in [
            ("192.168.1.23", OtherEnd::Address("192.168.1.23:4780".parse().unwrap())),
            ("[2001:db8::5]:80", OtherEnd::Address("[2001:db8::5]:80".parse().unwrap())),
            ("tablet.lan", OtherEnd::Name("tablet.lan".to_owned(), 4780)),
            ("tablet:80", OtherEnd::Name("tablet".to_owned(), 80)),
        ] {
            assert_eq!(text.parse(), Ok(end), "{text}");
        }
        for wrong in
            ["", "192.168.1", "300.1.1.1", "a b", "tablet:", "tablet:65536", "192.168.1.2:x"]
        {
            let said = wrong.parse::<OtherEnd>().unwrap_err();
            assert!(said.starts_with("expected an address or a name"), "{wrong}: {said}");
        }
        let said = "fe80::5".parse::<OtherEnd>().unwrap_err();
        assert!(said.contains("name the interface behind it, as in fe80::5%"), "{said}");
    }
}
