//! The target rates of `wakeai_av`, by destination.

use std::io;
use std::net::IpAddr;
use std::str::FromStr;

use socket2::SockRef;
use tokio::net::TcpStream;
use wakeai_host::Network;
use wakeai_kernel::Control;
use wakeai_units::Rate;

/// The target rate of each connection to a network; without a network, of every connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetRate {
    to: Option<Network>,
    rate: Rate,
}

impl FromStr for TargetRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |reason: String| {
            format!("found {text:?}, expected RATE or NETWORK=RATE, such as \"5Mbit/s\": {reason}")
        };
        let (to, rate) = match text.split_once('=') {
            Some((to, rate)) => {
                (Some(to.parse::<Network>().map_err(|error| wrong(error.to_string()))?), rate)
            }
            None => (None, text),
        };
        let rate: Rate = rate.parse().map_err(|error| wrong(format!("{error}")))?;
        if rate.bytes_per_second() == 0 {
            return Err(wrong("a target rate must be above zero".to_owned()));
        }
        Ok(Self { to, rate })
    }
}

/// The target rate of connections to `destination`. Of the networks that contain it, the one with
/// the longest prefix decides.
pub(crate) fn target(rates: &[TargetRate], destination: IpAddr) -> Option<Rate> {
    let fits = |target: &&TargetRate| target.to.is_none_or(|to| to.contains(destination));
    let narrowness = |target: &&TargetRate| target.to.map(Network::length);
    rates.iter().filter(fits).max_by_key(narrowness).map(|target| target.rate)
}

pub(crate) fn set(control: &Control, leg: &TcpStream, rate: Rate) -> io::Result<()> {
    let cookie = SockRef::from(leg).cookie()?;
    control.set_target(cookie, rate.bytes_per_second()).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_network_of_a_destination_decides() {
        let rates: Vec<TargetRate> = ["10.0.0.0/8=2Mbit/s", "5Mbit/s", "10.1.0.0/16=1Mbit/s"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        let of = |address: &str| target(&rates, address.parse().unwrap());
        assert_eq!(of("10.1.2.3"), Some(Rate::from_mbps(1)));
        assert_eq!(of("::ffff:10.1.2.3"), Some(Rate::from_mbps(1)));
        assert_eq!(of("10.2.2.3"), Some(Rate::from_mbps(2)));
        assert_eq!(of("fd00::1"), Some(Rate::from_mbps(5)));
        assert_eq!(target(&rates[..1], "192.0.2.1".parse().unwrap()), None);
    }

    #[test]
    fn nonsense_is_refused_with_what_was_found_and_why() {
        for text in ["", "5", "=5Mbit/s", "10.0.0.1/8=5Mbit/s", "10.0.0.0/8=", "0Mbit/s"] {
            let error = text.parse::<TargetRate>().unwrap_err();
            assert!(error.contains(&format!("found {text:?}")), "{error}");
        }
    }
}
