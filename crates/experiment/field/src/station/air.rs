//! What the Wi-Fi driver tells about the machine's link.

use wakeai_agent::{Link, WifiReader};

use crate::protocol::{Air, Way};

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
