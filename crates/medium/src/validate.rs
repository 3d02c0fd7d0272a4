//! The ranges of a configuration.

use wakeai_units::{Duration, Rate};

use crate::config::{
    AccessPointConfig, Contention, GuardInterval, MediumConfig, StationConfig, WiredConfig,
};
use crate::error::ConfigError;
use crate::rates;

/// Longest delay on the wire.
const LONGEST_DELAY: Duration = Duration::from_secs(3_600);

/// Everything but the rates, which are looked up where they are used.
pub(crate) fn validate(config: &MediumConfig) -> Result<(), ConfigError> {
    access_point(&config.access_point)?;
    wired(&config.wired)?;
    stations(config.stations.len())?;
    for (place, one) in config.stations.iter().enumerate() {
        station(place, one, &config.access_point)?;
    }
    Ok(())
}

fn access_point(point: &AccessPointConfig) -> Result<(), ConfigError> {
    packets("buffer", point.buffer)?;
    range("retry_limit", u64::from(point.retry_limit), 1, 255, "1 to 255 attempts")?;
    range("ampdu", point.ampdu.get(), 1, 6_500_631, "1 to 6500631 bytes")?;
    if let Some(subframes) = point.ampdu_subframes {
        range("ampdu_subframes", u64::from(subframes), 1, 256, "1 to 256")?;
    }
    if let Some(rules) = &point.contention {
        contention(rules)?;
    }
    let most = rates::most_streams(point.standard);
    let allowed = match most {
        1 => "1 (a, g)",
        4 => "1 to 4 (n)",
        _ => "1 to 8 (ac, ax)",
    };
    range("streams", u64::from(point.streams), 1, u64::from(most), allowed)?;
    width(point)?;
    guard_interval(point)
}

fn width(point: &AccessPointConfig) -> Result<(), ConfigError> {
    let allowed = match rates::most_streams(point.standard) {
        1 => "20MHz (a, g)",
        4 => "20MHz, 40MHz (n)",
        _ => "20MHz, 40MHz, 80MHz, 160MHz (ac, ax)",
    };
    let fits = point.width <= rates::widest(point.standard);
    let found = || point.width.to_string();
    fits.then_some(()).ok_or_else(|| ConfigError::Word { what: "width", found: found(), allowed })
}

fn guard_interval(point: &AccessPointConfig) -> Result<(), ConfigError> {
    let (least, most, allowed) = rates::guard_intervals(point.standard);
    let fits = (least..=most).contains(&point.guard_interval);
    let found = || Duration::from_nanos(GuardInterval::nanos(point.guard_interval)).to_string();
    fits.then_some(()).ok_or_else(|| ConfigError::Word {
        what: "guard_interval",
        found: found(),
        allowed,
    })
}

pub(crate) fn wired(wired: &WiredConfig) -> Result<(), ConfigError> {
    if wired.rate == Rate::ZERO {
        return Err(ConfigError::Range {
            what: "wired.rate",
            found: 0,
            allowed: "1bit/s and more",
        });
    }
    packets("wired.queue", wired.queue)?;
    delay("wired.delay", wired.delay)
}

/// One station.
pub(crate) fn station(
    place: usize,
    station: &StationConfig,
    point: &AccessPointConfig,
) -> Result<(), ConfigError> {
    if !station.standard.can_join(point.standard) {
        let (found, access_point) = (station.standard, point.standard);
        return Err(ConfigError::Standard { station: place, found, access_point });
    }
    packets("queue", station.queue)?;
    let ppm = u64::from(station.frame_error_ppm);
    range("frame_error_ppm", ppm, 0, 1_000_000, "0 to 1000000 parts per million")?;
    delay("wired_delay", station.wired_delay)?;
    station.contention.as_ref().map_or(Ok(()), contention)
}

fn contention(rules: &Contention) -> Result<(), ConfigError> {
    range("aifsn", u64::from(rules.aifsn), 1, 15, "1 to 15")?;
    range("cw_max", u64::from(rules.cw_max), 0, 32_767, "cw_min to 32767")?;
    let cw_max = u64::from(rules.cw_max);
    range("cw_min", u64::from(rules.cw_min), 0, cw_max, "0 to cw_max")?;
    let txop = rules.txop.as_micros();
    range(
        "txop in us",
        txop,
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
    allowed: &'static str,
) -> Result<(), ConfigError> {
    let fits = (least..=most).contains(&found);
    fits.then_some(()).ok_or(ConfigError::Range { what, found, allowed })
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
