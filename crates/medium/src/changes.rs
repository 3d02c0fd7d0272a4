//! What may change about a station in mid-run.

use wakeai_units::{Duration, Instant, Rate};

use crate::config::WifiStationConfig;
use crate::error::ConfigError;
use crate::link::Link;
use crate::medium::Wifi;
use crate::node::{Packet, StationId};
use crate::validate;

impl<P: Packet> Wifi<P> {
    /// Changes a station's extra wired delay, each way, for the packets that leave from now on.
    /// Those of one station and direction never overtake each other.
    ///
    /// # Errors
    ///
    /// There is no such station, or the delay is more than an hour.
    pub fn set_wired_delay(
        &mut self,
        _now: Instant,
        station: StationId,
        delay: Duration,
    ) -> Result<(), ConfigError> {
        self.change(station, |config| config.wired_delay = delay)
    }

    /// Changes a station's PHY rate for the frames that start from now on, to it and from it.
    ///
    /// # Errors
    ///
    /// There is no such station, or no such rate.
    pub fn set_rate(
        &mut self,
        _now: Instant,
        station: StationId,
        rate: Rate,
    ) -> Result<(), ConfigError> {
        self.change(station, |config| config.radio.rate = rate)
    }

    /// Changes a station's share of damaged MPDUs, in parts per million, for the frames that end
    /// from now on, to it and from it.
    ///
    /// # Errors
    ///
    /// There is no such station, or the share is more than a million.
    pub fn set_frame_error_rate(
        &mut self,
        _now: Instant,
        station: StationId,
        ppm: u32,
    ) -> Result<(), ConfigError> {
        self.change(station, |config| config.frame_error_ppm = ppm)
    }

    fn change(
        &mut self,
        station: StationId,
        change: impl FnOnce(&mut WifiStationConfig),
    ) -> Result<(), ConfigError> {
        let stations = self.links.len();
        let place = station.index();
        let current = self.config.stations.get(place);
        let mut changed =
            current.ok_or(ConfigError::NoSuchStation { found: station.0, stations })?.clone();
        change(&mut changed);
        validate::station(place, &changed, &self.config.bss)?;
        self.links[place] = Link::new(&changed, &self.config.bss)?;
        self.config.stations[place] = changed;
        Ok(())
    }
}
