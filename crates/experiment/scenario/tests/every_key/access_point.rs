//! The cases for the keys of `[access_point]`, for Wi-Fi and cellular links.

use super::{Case, Settings};

/// A cell in place of the access point.
pub(super) const IS_A_CELL: (&str, &str) =
    ("access_point", "{ medium = \"cellular\", uplink = \"10Mbit/s\", downlink = \"20Mbit/s\" }");
pub(super) const CELL: Settings = &[IS_A_CELL];

/// Settings that start agents. Keys of broadcasts have an effect only on the agents' presence
/// messages.
const AGENTS: Settings = &[("conditions.one.law", "airtime")];

pub(super) const CASES: &[Case] = &[
    // `IS_A_CELL` replaces the key `standard` by the keys of a cell.
    Case::run(&[], &[("access_point.medium", "cellular"), IS_A_CELL]),
    Case::run(&[], &[("access_point.stack", "mac80211")]),
    Case::run(&[], &[("access_point.buffer", "10")]),
    Case::run(CELL, &[("access_point.buffer", "10")]),
    Case::run(&[], &[("access_point.buffer", "15kB")]),
    Case::run(CELL, &[("access_point.buffer", "15kB")]),
    Case::run(&[], &[("access_point.standard", "802.11ac")]),
    Case::run(&[("flows.2.to", "tablet")], &[("access_point.queue", "fq")]),
    Case::run(&[], &[("access_point.protection", "cts-to-self")]),
    Case::run(&[], &[("access_point.protection", "rts-cts")]),
    Case::run(
        &[("access_point.protection", "rts-cts")],
        &[("access_point.rts_threshold", "20000")],
    ),
    Case::run(AGENTS, &[("access_point.basic_rate", "24Mbit/s")]),
    Case::run(&[], &[("access_point.control_rate", "6Mbit/s")]),
    Case::run(&[("access_point.standard", "802.11b")], &[("access_point.preamble", "short")]),
    Case::run(&[], &[("access_point.width", "40MHz")]),
    Case::run(&[], &[("access_point.streams", "2")]),
    Case::run(&[], &[("access_point.guard_interval", "400ns")]),
    Case::run(&[], &[("access_point.ampdu", "10000")]),
    Case::run(&[], &[("access_point.ampdu_subframes", "4")]),
    Case::run(&[], &[("access_point.amsdu", "3839")]),
    Case::run(&[("stations.tablet.frame_error_rate", "0.5")], &[("access_point.retry_limit", "2")]),
    Case::run(&[], &[("access_point.contention.aifsn", "7")]),
    Case::run(&[], &[("access_point.contention.cw_min", "63")]),
    Case::run(&[], &[("access_point.contention.cw_max", "15")]),
    Case::run(&[], &[("access_point.contention.txop", "2528us")]),
    Case::run(CELL, &[("access_point.uplink", "5Mbit/s")]),
    Case::run(CELL, &[("access_point.downlink", "5Mbit/s")]),
    Case::run(CELL, &[("access_point.scheduler", "round-robin")]),
];
