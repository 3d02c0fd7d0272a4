//! Configurations of earlier versions are read, with the same meaning.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use wakeai_api::config::{Bssid, Config, Group, LogFormat};
use wakeai_control::{AirtimeKnobs, LawConfig};
use wakeai_units::{Duration, Rate};

#[test]
fn a_configuration_of_0_1_0_is_read_with_all_its_values() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent-of-0.1.0.toml");
    let config = Config::load(&path).unwrap();
    assert_eq!(config.interface, "wlan0");
    assert_eq!(config.key_file, PathBuf::from("/etc/wakeai/group.key"));
    assert_eq!(config.station, Some(17));
    assert_eq!(config.bssid, Some(Bssid([2, 0, 0x5e, 0x10, 0, 1])));
    assert_eq!(config.link_rate, Some(Rate::from_mbps(54)));
    assert_eq!(config.max, Some(Rate::from_mbps(31)));
    assert_eq!(config.reserve, Some(Rate::from_bps(9_660_000)));
    assert_eq!(config.presence.port, 19720);
    assert_eq!(config.presence.broadcast, Some(Ipv4Addr::new(192, 168, 1, 255)));
    assert_eq!(config.presence.clock_tolerance, Some(Duration::from_secs(1)));
    assert_eq!(config.access_point.buffer, 400);
    assert_eq!(config.access_point.basic_rate, Rate::from_mbps(12));
    assert_eq!(config.access_point.reservable_percent, 60);
    let knobs = AirtimeKnobs {
        queue_rounds_percent: 150,
        queue_min: Duration::from_millis(10),
        queue_max: Duration::from_millis(50),
        downloads: true,
    };
    assert_eq!(config.law, Some(LawConfig::Airtime(knobs)));
    assert_eq!(config.api.socket, Some(PathBuf::from("/run/wakeai/agent.sock")));
    assert_eq!(config.api.group, Some(Group::Name("wakeai".to_owned())));
    assert_eq!(config.log.format, LogFormat::Json);
    assert_eq!(config.log.level, "wakeai_agent=debug");
}

/// An answer of version 0.1.0 to `status`, which lacks the fields that were added since.
#[test]
fn a_status_of_0_1_0_is_read() {
    let line = r#"{"version":1,"status":{"state":"controlling","pid":7,"program":"0.1.0","uptime_s":9.5,
        "netns":4026531840,"interface":"wlan0","station":"0000000000000011","bssid":"02:00:5e:10:00:01",
        "link_rate_mbps":54.0,"presence_to":"10.77.0.255:19719","presence":{"sent":3},"law":"airtime",
        "default_algorithm":"wakeai_cubic","senders":1,"peers":0,"delivery_rate_mbps":0.0,"rtt_ms":null,
        "min_rtt_ms":null,"growth_ms":null,"reservation":null,"turn":null,"connections":[],
        "connections_left_out":0}}"#;
    let answer: wakeai_api::Answer = serde_json::from_str(line).unwrap();
    let wakeai_api::Body::Status(status) = answer.body else { panic!("{answer:?}") };
    assert_eq!((status.program.as_str(), status.other_versions.len()), ("0.1.0", 0));
}
