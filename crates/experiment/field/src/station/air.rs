//! What the Wi-Fi driver tells about the machine's link.

use wakeai_agent::{Link, WifiReader};

use crate::protocol::{Air, AirDuring, Way};

/// Reads the link of the machine's interface. An error says why there is none.
pub(super) fn read(way: &Way) -> Result<Air, String> {
    let reader = WifiReader::open().map_err(|error| error.to_string())?;
    let stations = reader.stations(way.interface.as_deref()).map_err(|error| error.to_string())?;
    let index = stations.first().ok_or("it is no client of an access point")?;
    reader.link(*index).map(|link| air(&link)).map_err(|error| error.to_string())
}

fn air(link: &Link) -> Air {
    let rate = |traffic: &wakeai_agent::Traffic| {
        traffic.rate.as_ref().and_then(|rate| {
            let value = serde_json::to_value(rate).ok()?;
            value.get("mbps")?.as_f64()
        })
    };
    Air {
        ssid: link.ssid.clone(),
        bssid: link.bssid.map(|bssid| bssid.to_string()),
        frequency_mhz: link.frequency_mhz,
        width_mhz: link.width_mhz,
        signal_dbm: link.signal_average_dbm.or(link.signal_dbm),
        tx_mbps: rate(&link.tx),
        rx_mbps: rate(&link.rx),
        retries: link.retries,
        failed: link.failed,
        connected_s: link.connected_s,
        active_ms: link.channel.active_ms,
        busy_ms: link.channel.busy_ms,
        rx_ms: link.channel.rx_ms,
        tx_ms: link.channel.tx_ms,
    }
}

/// Takes the means of the readings of a run.
#[derive(Debug, Default)]
pub(super) struct Means {
    readings: u32,
    signal_dbm: Mean,
    tx_mbps: Mean,
    rx_mbps: Mean,
    bssids: Vec<String>,
}

#[derive(Debug, Default)]
struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1;
        }
    }

    fn get(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

impl Means {
    pub(super) fn add(&mut self, air: &Air) {
        self.readings += 1;
        self.signal_dbm.add(air.signal_dbm.map(f64::from));
        self.tx_mbps.add(air.tx_mbps);
        self.rx_mbps.add(air.rx_mbps);
        if let Some(bssid) = air.bssid.as_ref().filter(|bssid| Some(*bssid) != self.bssids.last()) {
            self.bssids.push(bssid.clone());
        }
    }

    /// The means; `None` without a reading.
    pub(super) fn get(self) -> Option<AirDuring> {
        (self.readings > 0).then(|| AirDuring {
            readings: self.readings,
            signal_dbm: self.signal_dbm.get(),
            tx_mbps: self.tx_mbps.get(),
            rx_mbps: self.rx_mbps.get(),
            bssids: self.bssids,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_the_driver_tells_at_times_has_the_mean_of_those_times() {
        let reading = |bssid: &str, signal_dbm, tx_mbps| Air {
            bssid: Some(bssid.to_owned()),
            signal_dbm,
            tx_mbps,
            ..Air::default()
        };
        let mut means = Means::default();
        for air in [
            reading("a", Some(-50), Some(65.0)),
            reading("a", Some(-60), None),
            reading("b", None, Some(130.0)),
            reading("a", None, None),
        ] {
            means.add(&air);
        }
        let expected = AirDuring {
            readings: 4,
            signal_dbm: Some(-55.0),
            tx_mbps: Some(97.5),
            rx_mbps: None,
            bssids: ["a", "b", "a"].map(str::to_owned).to_vec(),
        };
        assert_eq!(means.get(), Some(expected));
        assert_eq!(Means::default().get(), None);
    }
}
