//! Scenario and medium each have a table of PHY rates: they must be one.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::collections::BTreeSet;

use wakeai_medium::{
    AccessPointConfig, ConfigError, GuardInterval, Medium, MediumConfig, Standard as Spoken, Width,
    generator,
};
use wakeai_scenario::{Scenario, Standard};
use wakeai_units::{Duration, Rate};
use wakeai_world::StationQueue;

/// One station of the access point's own standard, at `rate`.
fn config(
    standard: Standard,
    width_mhz: u32,
    streams: u32,
    guard_interval: Duration,
    rate: Rate,
) -> MediumConfig {
    let mut config = MediumConfig::new(standard.name().parse::<Spoken>().unwrap(), 1);
    config.access_point = AccessPointConfig {
        width: format!("{width_mhz}MHz").parse::<Width>().unwrap(),
        streams: u8::try_from(streams).unwrap(),
        guard_interval: GuardInterval::try_from(guard_interval).unwrap(),
        ..config.access_point
    };
    config.stations[0].rate = rate;
    config
}

/// The rates that the medium names where it refuses one.
fn named(config: &MediumConfig) -> BTreeSet<Rate> {
    match Medium::<Vec<u8>>::new(config, generator(1)) {
        Err(ConfigError::Rate { allowed, .. }) => {
            allowed.split(", ").map(|rate| rate.parse().unwrap()).collect()
        }
        other => panic!("1 bit/s is no rate, but: {:?}", other.err()),
    }
}

#[test]
fn the_scenario_accepts_the_rates_that_the_medium_has_and_no_others() {
    let mut compared = 0;
    for standard in Standard::ALL {
        for &width in standard.widths_mhz() {
            for streams in 1..=standard.max_streams() {
                for &nanos in standard.guard_intervals_ns() {
                    let guard = Duration::from_nanos(nanos);
                    let accepted = standard.rates(width, streams, guard);
                    let any = config(standard, width, streams, guard, Rate::from_bps(1));
                    let has = named(&any);
                    let what = format!("{} {width} MHz, {streams}, {guard}", standard.name());
                    assert!(accepted.iter().eq(&has), "{what}: {accepted:?} and {has:?}");
                    for &rate in &accepted {
                        let config = config(standard, width, streams, guard, rate);
                        let medium = Medium::<Vec<u8>>::new(&config, generator(1));
                        assert!(medium.is_ok(), "{what}: {rate}");
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 1_000);
}

#[test]
fn the_medium_has_the_rate_of_a_station_that_is_older_than_its_access_point() {
    let pairs = [("802.11n", "a"), ("802.11ac", "a"), ("802.11ac", "n")];
    let he = ["a", "n", "ac"].map(|older| ("802.11ax", older));
    let mut built = 0;
    for (access_point, older) in pairs.into_iter().chain(he) {
        let newest = Standard::ALL.into_iter().find(|one| one.name() == access_point).unwrap();
        for width in newest.widths_mhz() {
            for guard in newest.guard_intervals_ns() {
                let text = format!(
                    "name = \"x\"\nduration = \"1s\"\n[access_point]\nstandard = \"{access_point}\"\n\
                     width = \"{width}MHz\"\nguard_interval = \"{guard}ns\"\nstreams = 4\n\
                     [[stations]]\nname = \"old\"\nstandard = \"802.11{older}\"\n\
                     [[flows]]\nfrom = \"old\"\nto = \"server\"\n"
                );
                let scenario = Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}"));
                let config = wakeai_world::medium_config(&scenario, StationQueue::of).unwrap();
                let medium = Medium::<Vec<u8>>::new(&config, generator(1));
                assert!(medium.is_ok(), "{text}{:?}", medium.err());
                built += 1;
            }
        }
    }
    assert_eq!(built, 4 + 2 * 8 + 3 * 12);
}
