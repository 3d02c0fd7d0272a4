//! The arguments of `wakeai use`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use wakeai_assign::{AssignOptions, ScopeName};
use wakeai_host::Network;
use wakeai_kernel::Destination;
use wakeai_units::{Duration, Rate};

/// Assign a congestion control algorithm to connections, until Ctrl-C
///
/// Without a route, a cgroup, a unit or connections it applies to all connections that are opened in
/// the network namespace from now on, except where a program asks for another algorithm. At the end
/// every setting is restored, and connections that still exist get their former algorithm back. Needs
/// root.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("what").args(["algorithm", "list", "undo", "set"]).required(true)),
    group(ArgGroup::new("scope")
        .args(["route", "cgroup", "unit", "connections", "connection"])),
    group(ArgGroup::new("movable").args(["cgroup", "unit", "connections"])),
    after_help = "\
Examples:
  wakeai use wakeai_rtt                             new connections of this network namespace
  wakeai use bbr --route 192.0.2.0/24 --for 10min   new connections over a route, for ten minutes
  wakeai use wakeai_rtt --unit backup.service       new connections of a service
  wakeai use wakeai_av --rate 5Mbit/s --connections --to 192.0.2.0/24:443
                                                    existing connections to this network
  wakeai use --list                                 list the assignments of this machine
  wakeai use --set 4711 --rate 8Mbit/s              set the target rate of assignment 4711
  wakeai use --undo all                             end all assignments

docs/guides/algorithms.md explains which algorithm to choose."
)]
pub(crate) struct UseArguments {
    /// An algorithm of the kernel or of Wakeai: `wakeai_cubic`, `wakeai_reno`, `wakeai_bbr`,
    /// `wakeai_rtt`, `wakeai_av`, `wakeai_compound`
    pub(crate) algorithm: Option<String>,
    /// The network namespace: a name of `ip netns`, or an inode [default: the current one]
    #[arg(long, value_name = "NAME|INODE", requires = "algorithm",
          conflicts_with_all = ["cgroup", "unit"])]
    pub(crate) namespace: Option<String>,
    /// New connections over the route to exactly this network; `default` is that of IPv4, `::/0`
    /// that of IPv6
    #[arg(long, value_name = "NETWORK", requires = "algorithm", value_parser = route)]
    pub(crate) route: Option<Destination>,
    /// The interface of the route, if several routes lead to the same network
    #[arg(long, value_name = "INTERFACE", requires = "route")]
    pub(crate) dev: Option<String>,
    /// New connections of the processes in this cgroup v2 and in those below it
    #[arg(long, value_name = "PATH", requires = "algorithm")]
    pub(crate) cgroup: Option<PathBuf>,
    /// New connections of this systemd unit
    #[arg(long, value_name = "NAME", requires = "algorithm")]
    pub(crate) unit: Option<String>,
    /// All existing connections
    #[arg(long, requires = "algorithm")]
    pub(crate) connections: bool,
    /// The existing connection with this cookie, in decimal as `wakeai monitor --json` shows it (`ss -e`
    /// shows it in hexadecimal); may be repeated
    #[arg(long, value_name = "COOKIE", requires = "algorithm")]
    pub(crate) connection: Vec<u64>,
    /// With a cgroup, a unit or `--connections`: only connections to this network; an IPv6 network with a port
    /// is written in brackets
    #[arg(long, value_name = "NETWORK[:PORT]", requires = "movable", value_parser = destination)]
    pub(crate) to: Option<Destination>,
    /// The target rate of each connection; `wakeai_av` needs one, other algorithms take none
    #[arg(long, value_name = "RATE", value_parser = Rate::above_zero)]
    pub(crate) rate: Option<Rate>,
    /// End after this time, such as 10min
    #[arg(long = "for", value_name = "TIME", requires = "algorithm")]
    pub(crate) duration: Option<Duration>,
    /// List the assignments that are in force on this machine
    #[arg(long)]
    pub(crate) list: bool,
    /// End the assignment with this ID, or all assignments, and wait until every setting is restored
    #[arg(long, value_name = "ID|all", value_parser = which)]
    pub(crate) undo: Option<Which>,
    /// Change the target rate of the assignment with this ID
    #[arg(long, value_name = "ID", requires = "rate")]
    pub(crate) set: Option<u32>,
    /// Print one JSON object per assignment
    #[arg(long, conflicts_with_all = ["undo", "set"])]
    pub(crate) json: bool,
}

/// The assignment to end. `None` stands for all assignments; under this name clap takes it for the value of an option.
type Which = Option<u32>;

fn which(text: &str) -> Result<Which, String> {
    if text == "all" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| "expected an ID of --list, or all".to_owned())
}

impl UseArguments {
    /// The assignment of `algorithm` that these arguments describe.
    pub(crate) fn options(&self, algorithm: String) -> AssignOptions {
        let scope = if let Some(network) = self.route {
            ScopeName::Route { network, interface: self.dev.clone() }
        } else if let Some(path) = &self.cgroup {
            ScopeName::Cgroup(path.clone())
        } else if let Some(unit) = &self.unit {
            ScopeName::Unit(unit.clone())
        } else if self.connections || !self.connection.is_empty() {
            ScopeName::Existing(self.connection.clone())
        } else {
            ScopeName::Namespace
        };
        AssignOptions {
            algorithm,
            namespace: self.namespace.clone(),
            scope,
            destination: self.to,
            rate: self.rate,
            duration: self.duration,
        }
    }
}

/// A network with or without a port: `192.0.2.0/24:443`, `[2001:db8::/32]:443`.
fn destination(text: &str) -> Result<Destination, String> {
    let (network, port) = match text.strip_prefix('[') {
        Some(text) => {
            let (network, rest) = text.split_once(']').ok_or("expected [NETWORK]:PORT")?;
            (network, Some(rest.strip_prefix(':').ok_or("expected [NETWORK]:PORT")?))
        }
        None if text.contains('.') => match text.split_once(':') {
            Some((network, port)) => (network, Some(port)),
            None => (text, None),
        },
        None => (text, None),
    };
    let network: Network = network.parse().map_err(|error| format!("{error}"))?;
    let port = port.map(|port| match port.parse() {
        Ok(0) | Err(_) => Err(format!("found port {port:?}, allowed are 1 to 65535")),
        Ok(port) => Ok(port),
    });
    let (address, length) = (network.address(), network.length());
    Ok(Destination { address, length, port: port.transpose()? })
}

fn route(text: &str) -> Result<Destination, String> {
    let text = if text == "default" { "0.0.0.0/0" } else { text };
    let network: Network = text.parse().map_err(|error| format!("{error}"))?;
    Ok(Destination { address: network.address(), length: network.length(), port: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_has_a_network_and_perhaps_a_port() {
        let parsed = |text: &str| {
            let Destination { address, length, port } = destination(text).unwrap();
            (address.to_string(), length, port)
        };
        assert_eq!(parsed("192.0.2.0/24"), ("192.0.2.0".to_owned(), 24, None));
        assert_eq!(parsed("192.0.2.1:5"), ("192.0.2.1".to_owned(), 32, Some(5)));
        assert_eq!(parsed("2001:db8::/32"), ("2001:db8::".to_owned(), 32, None));
        assert_eq!(parsed("[2001:db8::/32]:443"), ("2001:db8::".to_owned(), 32, Some(443)));
        assert_eq!(parsed("::1"), ("::1".to_owned(), 128, None));
    }

    #[test]
    fn a_text_that_is_no_destination_is_refused() {
        for text in ["", "wlan0", "192.0.2.1/24", "192.0.2.1:0", "192.0.2.1:x", "[::1]", "[::1"] {
            assert!(destination(text).is_err(), "{text}");
        }
    }
}
