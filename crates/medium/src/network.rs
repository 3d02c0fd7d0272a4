//! Either medium behind one face, for those who drive what a scenario asks for.

use rand_pcg::Pcg64Mcg;
use wakeai_units::{Duration, Instant, Rate};

use crate::cellular::{Cellular, CellularConfig};
use crate::config::MediumConfig;
use crate::counters::Counters;
use crate::departures::Departure;
use crate::error::ConfigError;
use crate::medium::Medium;
use crate::node::{Delivery, Destination, Node, Packet, StationId};

/// What a [`Network`] is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkConfig {
    /// An 802.11 BSS.
    Wifi(MediumConfig),
    /// A cellular base station.
    Cellular(CellularConfig),
}

impl NetworkConfig {
    /// Stations on it.
    pub fn stations(&self) -> usize {
        match self {
            Self::Wifi(config) => config.stations.len(),
            Self::Cellular(config) => config.stations.len(),
        }
    }
}

/// A [`Medium`] or a [`Cellular`] link; each method is the one of the same name there.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one of them per run")]
pub enum Network<P> {
    /// An 802.11 BSS.
    Wifi(Medium<P>),
    /// A cellular base station.
    Cellular(Cellular<P>),
}

/// Calls the method of the same name.
macro_rules! either {
    ($network:expr, $method:ident($($argument:expr),*)) => {
        match $network {
            Network::Wifi(medium) => medium.$method($($argument),*),
            Network::Cellular(cellular) => cellular.$method($($argument),*),
        }
    };
}

impl<P: Packet> Network<P> {
    /// An idle network at [`Instant::ZERO`]; `rng` is for what is left to chance, which on a
    /// cellular link is nothing.
    ///
    /// # Errors
    ///
    /// As [`Medium::new`] and [`Cellular::new`].
    pub fn new(config: &NetworkConfig, rng: Pcg64Mcg) -> Result<Self, ConfigError> {
        Ok(match config {
            NetworkConfig::Wifi(config) => Self::Wifi(Medium::new(config, rng)?),
            NetworkConfig::Cellular(config) => Self::Cellular(Cellular::new(config)?),
        })
    }

    /// See [`Medium::enqueue`].
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

    /// See [`Medium::room`].
    pub fn room(&self, from: Node) -> usize {
        either!(self, room(from))
    }

    /// See [`Medium::queued`].
    pub fn queued(&self, from: Node) -> usize {
        either!(self, queued(from))
    }

    /// See [`Medium::queued_at_access_point`].
    pub fn queued_at_access_point(&self) -> usize {
        either!(self, queued_at_access_point())
    }

    /// See [`Medium::queued_for_server`].
    pub fn queued_for_server(&self) -> usize {
        either!(self, queued_for_server())
    }

    /// See [`Medium::watch_departures`].
    pub fn watch_departures(&mut self, station: StationId) {
        either!(self, watch_departures(station));
    }

    /// See [`Medium::poll_departure`].
    pub fn poll_departure(&mut self) -> Option<Departure<P>> {
        either!(self, poll_departure())
    }

    /// See [`Medium::handle_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        either!(self, handle_timeout(now));
    }

    /// See [`Medium::poll_delivery`].
    pub fn poll_delivery(&mut self) -> Option<Delivery<P>> {
        either!(self, poll_delivery())
    }

    /// See [`Medium::next_timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        either!(self, next_timeout())
    }

    /// See [`Medium::packets_inside`].
    pub fn packets_inside(&self) -> usize {
        either!(self, packets_inside())
    }

    /// See [`Medium::counters`] and [`Cellular::counters`].
    pub fn counters(&self) -> &Counters {
        either!(self, counters())
    }

    /// See [`Medium::set_wired_delay`].
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

    /// See [`Medium::set_rate`].
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

    /// See [`Medium::set_frame_error_rate`].
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
