//! Errors of a configuration.

use wakeai_units::Rate;
use wakeai_wifi::Standard;

/// Why a configuration, or a change of a station, is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A value that is not one of the allowed words.
    #[error("{what} is \"{found}\"; allowed: {allowed}")]
    Word {
        /// The key.
        what: &'static str,
        /// The value that was found.
        found: String,
        /// The allowed values.
        allowed: String,
    },
    /// A number that is out of range.
    #[error("{what} is {found}; allowed: {allowed}")]
    Range {
        /// The key.
        what: &'static str,
        /// The value that was found.
        found: u64,
        /// The allowed values.
        allowed: String,
    },
    /// A rate that the standard does not have with the configured width, streams and guard
    /// interval.
    #[error(
        "{standard} has no {what} of {found} with this width, these streams and this guard interval; it has {allowed}"
    )]
    Rate {
        /// The key.
        what: &'static str,
        /// The standard whose rates were searched.
        standard: Standard,
        /// The rate that was asked for.
        found: Rate,
        /// The rates that the standard has.
        allowed: String,
    },
    /// A station whose standard does not fit the access point's.
    #[error(
        "station {station} uses {found}, its access point {access_point}: they need the same band, and \
         the station no newer standard"
    )]
    Standard {
        /// The position of the station.
        station: usize,
        /// The standard of the station.
        found: Standard,
        /// The standard of the access point.
        access_point: Standard,
    },
    /// Access points on one channel whose standards are of different bands.
    #[error(
        "the access points on channel {channel} use {other} and {found}: they need the same band"
    )]
    Band {
        /// The channel.
        channel: u32,
        /// The standard of an access point.
        found: Standard,
        /// The standard of an access point before it on the same channel.
        other: Standard,
    },
    /// A setting that a station has on Wi-Fi but not on a cellular link.
    #[error("a station on a cellular link has no {0} of its own")]
    Cellular(&'static str),
    /// A station that does not exist.
    #[error("there is no station {found}: the BSS has {stations}, counted from 0")]
    NoSuchStation {
        /// The position asked for.
        found: u32,
        /// The number of stations.
        stations: usize,
    },
}
