//! The ranges of a configuration.

use std::fmt::Display;

use wakeai_units::{Duration, Rate};
use wakeai_wifi::{Bss, Contention, Standard, StationRadio, Wired};

use crate::config::{WifiConfig, WifiStationConfig};
use crate::error::ConfigError;

/// Longest delay on the wire.
const LONGEST_DELAY: Duration = Duration::from_secs(3_600);

/// Everything but the rates, which are looked up where they are used.
pub(crate) fn validate(config: &WifiConfig) -> Result<(), ConfigError> {
    packets("buffer", config.buffer)?;
    bss(&config.bss)?;
    wired(&config.wired)?;
    stations(config.stations.len())?;
    for (place, one) in config.stations.iter().enumerate() {
        station(place, one, &config.bss)?;
    }
    Ok(())
}

fn bss(bss: &Bss) -> Result<(), ConfigError> {
    let standard = bss.standard;
    let longest = Standard::Ax.longest_ampdu();
    range("retry_limit", u64::from(bss.retry_limit), 1, 255, "1 to 255 attempts")?;
    range("ampdu", bss.ampdu.get(), 1, longest.get(), "1 to 6500631 bytes")?;
    range("ampdu_subframes", u64::from(bss.ampdu_subframes), 1, 256, "1 to 256")?;
    contention(&bss.contention)?;
    let most = standard.most_streams();
    range("streams", u64::from(bss.streams), 1, u64::from(most), &format!("1 to {most}"))?;
    one_of("width", &bss.width, standard.widths())?;
    one_of("guard_interval", &bss.guard_interval, standard.guard_intervals())
}

fn one_of<T: Display + PartialEq>(
    what: &'static str,
    found: &T,
    allowed: &[T],
) -> Result<(), ConfigError> {
    if allowed.contains(found) {
        return Ok(());
    }
    let names: Vec<String> = allowed.iter().map(T::to_string).collect();
    Err(ConfigError::Word { what, found: found.to_string(), allowed: names.join(", ") })
}

pub(crate) fn wired(wired: &Wired) -> Result<(), ConfigError> {
    range("wired.rate", wired.rate.bits_per_second(), 1, u64::MAX, "1bit/s and more")?;
    packets("wired.queue", wired.queue as usize)?;
    delay("wired.delay", wired.delay)
}

/// One station.
pub(crate) fn station(place: usize, one: &WifiStationConfig, bss: &Bss) -> Result<(), ConfigError> {
    let StationRadio { standard, rate: _, contention: rules } = &one.radio;
    if !standard.can_join(bss.standard) {
        let (found, access_point) = (*standard, bss.standard);
        return Err(ConfigError::Standard { station: place, found, access_point });
    }
    packets("queue", one.queue)?;
    let ppm = u64::from(one.frame_error_ppm);
    range("frame_error_ppm", ppm, 0, 1_000_000, "0 to 1000000 parts per million")?;
    delay("wired_delay", one.wired_delay)?;
    contention(rules)
}

fn contention(rules: &Contention) -> Result<(), ConfigError> {
    let Contention { aifsn, cw_min, cw_max, txop } = *rules;
    range("aifsn", u64::from(aifsn), 1, u64::from(Contention::MOST_AIFSN), "1 to 15")?;
    let largest = u64::from(Contention::LARGEST_WINDOW);
    range("cw_max", u64::from(cw_max), 0, largest, "cw_min to 32767")?;
    range("cw_min", u64::from(cw_min), 0, u64::from(cw_max), "0 to cw_max")?;
    range(
        "txop in us",
        txop.as_micros(),
        0,
        65_535 * 32,
        "0 to 2097120 us, the most that 16 bits of 32 us hold",
    )
}

pub(crate) fn delay(what: &'static str, delay: Duration) -> Result<(), ConfigError> {
    let (found, most) = (delay.as_nanos(), LONGEST_DELAY.as_nanos());
    range(what, found, 0, most, "0s to 1h, in nanoseconds")
}

fn range(
    what: &'static str,
    found: u64,
    least: u64,
    most: u64,
    allowed: &str,
) -> Result<(), ConfigError> {
    let fits = (least..=most).contains(&found);
    let allowed = || allowed.to_owned();
    fits.then_some(()).ok_or_else(|| ConfigError::Range { what, found, allowed: allowed() })
}

/// How many stations there may be.
pub(crate) fn stations(count: usize) -> Result<(), ConfigError> {
    range("stations", count as u64, 0, 1_000_000, "0 to 1000000")
}

/// The length of a queue.
pub(crate) fn packets(what: &'static str, count: usize) -> Result<(), ConfigError> {
    range(what, count as u64, 1, u64::from(u32::MAX), "1 and more packets")
}

/// A rate that is granted in intervals.
pub(crate) fn granted_rate(what: &'static str, rate: Rate) -> Result<(), ConfigError> {
    let most = Rate::from_mbps(1_000_000).bits_per_second();
    range(what, rate.bits_per_second(), 1, most, "1bit/s to 1000Gbit/s")
}
