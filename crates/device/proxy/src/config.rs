//! The configuration of a proxy. Its documentation is the help of `wakeai proxy`.

use std::net::SocketAddr;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use wakeai_net::Local;
use wakeai_units::{Bytes, Duration};

use crate::access::Access;
use crate::rates::TargetRate;

/// Which of the proxy's two connections crosses the wireless hop, and so uses the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Leg {
    /// The connection to the destination, for uploads.
    Destination,
    /// The connection to the client, for downloads.
    Client,
    /// Both connections.
    Both,
}

/// Connections that the proxy intercepts, see [`crate::transparent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Intercepted {
    /// Those that this machine forwards.
    Forwarded,
    /// Those that programs on this machine open.
    Own,
}

/// Reads the name of a network interface. It accepts names of at most 15 bytes, as the kernel does, and
/// refuses characters that have a meaning in a rule of nft.
fn interface(text: &str) -> Result<String, String> {
    let sound = |byte: u8| byte.is_ascii_graphic() && !b"\"\\*/".contains(&byte);
    let whole = (1..16).contains(&text.len()) && text.bytes().all(sound);
    whole.then(|| text.to_owned()).ok_or_else(|| {
        format!("found {text:?}, expected the name of an interface, such as \"eth0\", for --in-interface")
    })
}

/// The configuration of a proxy.
#[derive(Clone, Debug, Args)]
pub struct Config {
    /// The addresses to listen on for SOCKS5 and HTTP CONNECT.
    #[arg(
        help = "The address on which to listen, link-local ones with their interface ([fe80::5%eth0]:1080); may \
                  be repeated [default: 127.0.0.1:1080, or none with --transparent]"
    )]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = wakeai_net::socket_address)]
    pub listen: Vec<SocketAddr>,
    /// Intercept the connections that this machine forwards, or those that its own programs open. Needs
    /// root and nft. The interception stops when the proxy stops. `forwarded` needs --in-interface, or both --allow-from and
    /// --allow-to, because intercepted connections do not pass the FORWARD chain of a firewall
    #[arg(long, value_name = "WHOSE", value_delimiter = ',')]
    pub transparent: Vec<Intercepted>,
    /// Intercept only forwarded connections that come in by this interface; may be repeated
    #[arg(long = "in-interface", value_name = "INTERFACE", value_delimiter = ',', value_parser = interface)]
    pub in_interfaces: Vec<String>,
    /// Serve as this user, with the capabilities that serving takes, once the ports are bound and the rules are made;
    /// needs root
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// The congestion control of the wireless hop [default: the host's default]
    #[arg(long, value_name = "NAME")]
    pub algorithm: Option<String>,
    /// The target rate of each connection over the wireless hop, for the algorithm `wakeai_av`. With
    /// NETWORK=RATE it applies to destinations in that network; may be repeated, the longest prefix applies
    #[arg(long = "rate", value_name = "[NETWORK=]RATE", value_delimiter = ',')]
    pub rates: Vec<TargetRate>,
    /// Which connection of the proxy goes over the wireless hop
    #[arg(long, value_name = "WHICH", default_value = "destination")]
    pub leg: Leg,
    /// The sources that are served, and the destinations that they may reach.
    #[command(flatten)]
    pub access: Access,
    /// The largest number of connections at a time; further ones wait in the kernel's queue. One client may have at
    /// most three times as many as are still unused, which is three quarters for a single client. If explicit and transparent clients are served, each kind may have half
    #[arg(long = "max-connections", value_name = "N", default_value_t = 8000,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_000_000))]
    pub connections: usize,
    /// The memory of the pipes that hold relayed bytes; connections without a pipe are relayed by copying
    #[arg(long, value_name = "SIZE", default_value = "64MB")]
    pub memory: Bytes,
    /// The time for a client to send its request, for its name to be looked up, and then for one of the name's addresses to
    /// accept
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub connect_timeout: Duration,
    /// A connection that carries no data for this long is reset. The time shrinks to as little as a sixtieth when few
    /// connections are free
    #[arg(long, value_name = "TIME", default_value = "3600s")]
    pub idle_timeout: Duration,
    /// Where Prometheus may ask for the proxy's figures, on the loopback interface: /metrics at this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<Local>,
    /// Whether the proxy gives up privileges once it listens and no longer needs them. The process must then have only one
    /// thread, as it must to serve as another user.
    #[arg(skip = true)]
    pub confined: bool,
}

impl Config {
    /// Whether the proxy intercepts these connections.
    pub fn intercepts(&self, whose: Intercepted) -> bool {
        self.transparent.contains(&whose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_interface_ends_no_rule() {
        for name in ["eth0", "wlan0.7", "br-lan", "a23456789012345"] {
            assert!(interface(name).is_ok(), "{name}");
        }
        for name in ["", "eth 0", "eth0\" accept", "a\nb", "a/b", "eth*", "a234567890123456"] {
            assert!(interface(name).is_err(), "{name}");
        }
    }
}
