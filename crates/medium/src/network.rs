//! Either medium behind one face, for those who drive what a scenario asks for.

use rand_pcg::Pcg64Mcg;
use wakeai_units::{Duration, Instant, Rate};

use crate::cellular::{Cellular, CellularConfig};
use crate::config::WifiConfig;
use crate::counters::Counters;
use crate::departures::Departure;
use crate::error::ConfigError;
use crate::medium::Wifi;
use crate::node::{Delivery, Destination, Node, Packet, StationId};

/// What a [`Medium`] is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediumConfig {
    /// An 802.11 BSS.
    Wifi(WifiConfig),
    /// A cellular base station.
    Cellular(CellularConfig),
}

impl MediumConfig {
    /// Stations on it.
    pub fn stations(&self) -> usize {
        match self {
            Self::Wifi(config) => config.stations.len(),
            Self::Cellular(config) => config.stations.len(),
        }
    }
}

/// A [`Wifi`] or a [`Cellular`] link; each method is the one of the same name there.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one of them per run")]
pub enum Medium<P> {
    /// An 802.11 BSS.
    Wifi(Wifi<P>),
    /// A cellular base station.
    Cellular(Cellular<P>),
}

/// Calls the method of the same name.
macro_rules! either {
    ($medium:expr, $method:ident($($argument:expr),*)) => {
        match $medium {
            Medium::Wifi(medium) => medium.$method($($argument),*),
            Medium::Cellular(cellular) => cellular.$method($($argument),*),
        }
    };
}

impl<P: Packet> Medium<P> {
    /// An idle medium at [`Instant::ZERO`]; `rng` is for what is left to chance, which on a
    /// cellular link is nothing.
    ///
    /// # Errors
    ///
    /// As [`Wifi::new`] and [`Cellular::new`].
    pub fn new(config: &MediumConfig, rng: Pcg64Mcg) -> Result<Self, ConfigError> {
        Ok(match config {
            MediumConfig::Wifi(config) => Self::Wifi(Wifi::new(config, rng)?),
            MediumConfig::Cellular(config) => Self::Cellular(Cellular::new(config)?),
        })
    }

    /// See [`Wifi::enqueue`].
    ///
    /// # Errors
    ///
    /// The packet itself, which was not taken.
    pub fn enqueue(
        &mut self,
        now: Instant,
        from: Node,
        to: Destination,
        packet: P,
    ) -> Result<(), P> {
        either!(self, enqueue(now, from, to, packet))
    }

    /// See [`Wifi::room`].
    pub fn room(&self, from: Node) -> usize {
        either!(self, room(from))
    }

    /// See [`Wifi::queued`].
    pub fn queued(&self, from: Node) -> usize {
        either!(self, queued(from))
    }

    /// See [`Wifi::queued_at_access_point`].
    pub fn queued_at_access_point(&self) -> usize {
        either!(self, queued_at_access_point())
    }

    /// See [`Wifi::queued_for_server`].
    pub fn queued_for_server(&self) -> usize {
        either!(self, queued_for_server())
    }

    /// See [`Wifi::watch_departures`].
    pub fn watch_departures(&mut self, station: StationId) {
        either!(self, watch_departures(station));
    }

    /// See [`Wifi::poll_departure`].
    pub fn poll_departure(&mut self) -> Option<Departure<P>> {
        either!(self, poll_departure())
    }

    /// See [`Wifi::handle_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        either!(self, handle_timeout(now));
    }

    /// See [`Wifi::poll_delivery`].
    pub fn poll_delivery(&mut self) -> Option<Delivery<P>> {
        either!(self, poll_delivery())
    }

    /// See [`Wifi::next_timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        either!(self, next_timeout())
    }

    /// See [`Wifi::packets_inside`].
    pub fn packets_inside(&self) -> usize {
        either!(self, packets_inside())
    }

    /// See [`Wifi::counters`] and [`Cellular::counters`].
    pub fn counters(&self) -> &Counters {
        either!(self, counters())
    }

    /// See [`Wifi::set_wired_delay`].
    ///
    /// # Errors
    ///
    /// There is no such station, or the delay is out of range.
    pub fn set_wired_delay(
        &mut self,
        now: Instant,
        station: StationId,
        delay: Duration,
    ) -> Result<(), ConfigError> {
        either!(self, set_wired_delay(now, station, delay))
    }

    /// See [`Wifi::set_rate`].
    ///
    /// # Errors
    ///
    /// There is no such station or rate, or the link is cellular.
    pub fn set_rate(
        &mut self,
        now: Instant,
        station: StationId,
        rate: Rate,
    ) -> Result<(), ConfigError> {
        either!(self, set_rate(now, station, rate))
    }

    /// See [`Wifi::set_frame_error_rate`].
    ///
    /// # Errors
    ///
    /// There is no such station, the share is out of range, or the link is cellular.
    pub fn set_frame_error_rate(
        &mut self,
        now: Instant,
        station: StationId,
        ppm: u32,
    ) -> Result<(), ConfigError> {
        either!(self, set_frame_error_rate(now, station, ppm))
    }
}
