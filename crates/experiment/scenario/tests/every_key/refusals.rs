//! Keys that would have no effect together with others. Each is refused, and the error names it.

use super::Settings;
use super::access_point::CELL;

/// Settings that are not allowed together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    /// The settings of the scenario before.
    pub(crate) base: Settings,
    /// The settings that are refused.
    pub(crate) set: Settings,
    /// The key that the error names.
    pub(crate) names: &'static str,
}

const fn refused(base: Settings, set: Settings, names: &'static str) -> Refusal {
    Refusal { base, set, names }
}

const QUIC: Settings = &[("flows.1.kind", "quic"), ("flows.1.size", "1MB")];
const UDP: Settings = &[("flows.1.kind", "udp"), ("flows.1.rate", "1Mbit/s")];
const STACK: Settings = &[("access_point.stack", "mac80211")];
const DCF: Settings = &[("access_point.standard", "802.11a")];

pub(crate) const REFUSALS: &[Refusal] = &[
    refused(&[], &[("access_point.medium", "cellular")], "access_point.standard"),
    refused(&[], &[("access_point.uplink", "1Mbit/s")], "access_point.uplink"),
    refused(&[], &[("access_point.downlink", "1Mbit/s")], "access_point.downlink"),
    refused(&[], &[("access_point.scheduler", "round-robin")], "access_point.scheduler"),
    refused(CELL, &[("access_point.queue", "fq")], "access_point.queue"),
    refused(CELL, &[("access_point.stack", "mac80211")], "access_point.stack"),
    refused(STACK, &[("access_point.buffer", "181")], "access_point.buffer"),
    refused(STACK, &[("access_point.buffer", "15kB")], "access_point.buffer"),
    refused(STACK, &[("stations.tablet.queue", "100")], "stations.tablet.queue"),
    refused(STACK, &[("stations.tablet.host_queue", "tsq")], "stations.tablet.host_queue"),
    refused(STACK, &[("bss", "[{ name = \"near\" }]")], "bss"),
    refused(CELL, &[("access_point.ampdu_subframes", "4")], "access_point.ampdu_subframes"),
    refused(CELL, &[("stations.tablet.standard", "802.11n")], "stations.tablet.standard"),
    refused(CELL, &[("stations.tablet.rate", "6Mbit/s")], "stations.tablet.rate"),
    refused(CELL, &[("stations.tablet.contention.aifsn", "3")], "stations.tablet.contention"),
    refused(
        CELL,
        &[("stations.tablet.frame_error_rate", "0.1")],
        "stations.tablet.frame_error_rate",
    ),
    refused(
        CELL,
        &[("events", "[{ at = \"1s\", station = \"tablet\", frame_error_rate = 0.1 }]")],
        "events.1.frame_error_rate",
    ),
    refused(
        CELL,
        &[("events", "[{ at = \"1s\", station = \"tablet\", rate = \"6Mbit/s\" }]")],
        "events.1.rate",
    ),
    refused(DCF, &[("access_point.ampdu", "4000")], "access_point.ampdu"),
    refused(DCF, &[("access_point.ampdu_subframes", "4")], "access_point.ampdu_subframes"),
    refused(DCF, &[("access_point.amsdu", "3839")], "access_point.amsdu"),
    refused(DCF, &[("access_point.preamble", "short")], "access_point.preamble"),
    refused(DCF, &[("access_point.width", "40MHz")], "access_point.width"),
    refused(DCF, &[("access_point.streams", "2")], "access_point.streams"),
    refused(DCF, &[("access_point.guard_interval", "400ns")], "access_point.guard_interval"),
    refused(&[], &[("access_point.ampdu_subframes", "65")], "access_point.ampdu_subframes"),
    refused(
        &[("stations.tablet.tcp", "classic")],
        &[("stations.tablet.host_queue", "tsq")],
        "stations.tablet.host_queue",
    ),
    refused(
        &[("stations.tablet.tcp", "classic")],
        &[("stations.tablet.host_queue", "mac80211")],
        "stations.tablet.host_queue",
    ),
    refused(
        &[("stations.tablet.tcp", "linux-3.4")],
        &[("stations.tablet.host_queue", "tsq")],
        "stations.tablet.host_queue",
    ),
    refused(CELL, &[("stations.tablet.host_queue", "mac80211")], "stations.tablet.host_queue"),
    refused(
        &[("stations.tablet.tcp", "classic")],
        &[("stations.tablet.proxy", "true")],
        "stations.tablet.proxy",
    ),
    refused(UDP, &[("flows.1.algorithm", "cubic")], "flows.1.algorithm"),
    refused(UDP, &[("flows.1.beta", "0.2")], "flows.1.beta"),
    refused(UDP, &[("flows.1.rtt_ref", "100ms")], "flows.1.rtt_ref"),
    refused(UDP, &[("flows.1.tcp_friendliness", "false")], "flows.1.tcp_friendliness"),
    refused(UDP, &[("flows.1.limit", "1Mbit/s")], "flows.1.limit"),
    refused(UDP, &[("flows.1.reserve", "true")], "flows.1.reserve"),
    refused(QUIC, &[("flows.1.algorithm", "bbr")], "flows.1.algorithm"),
    refused(QUIC, &[("flows.1.beta", "0.2")], "flows.1.beta"),
    refused(QUIC, &[("flows.1.rate", "1Mbit/s")], "flows.1.rate"),
    refused(QUIC, &[("flows.1.chunks", "2")], "flows.1.chunks"),
    refused(QUIC, &[("flows.1.turns", "true")], "flows.1.turns"),
    refused(&[], &[("flows.1.reserve", "true")], "flows.1.reserve"),
    refused(UDP, &[("flows.1.chunks", "2")], "flows.1.chunks"),
    refused(&[], &[("flows.1.chunks", "2")], "flows.1.chunks"),
    refused(&[], &[("flows.1.chunks", "auto")], "flows.1.chunks"),
    refused(&[], &[("flows.1.turns", "true")], "flows.1.turns"),
    refused(UDP, &[("flows.1.turns", "true")], "flows.1.turns"),
    refused(&[], &[("conditions.one.agents", "tablet")], "conditions.one.agents"),
    refused(
        &[],
        &[("conditions.one.bounds", "[{ stations = \"tablet\" }]")],
        "conditions.one.bounds",
    ),
    refused(&[], &[("conditions.one.law", "fixed")], "conditions.one.bounds"),
    refused(
        &[],
        &[("conditions.one.laws", "[{ stations = \"tablet\", law = \"airtime\" }]")],
        "conditions.one.laws",
    ),
    refused(
        &[("conditions.one.law", "airtime")],
        &[("conditions.one.laws", "[{ stations = \"tablet\", law = \"fixed\" }]")],
        "conditions.one.laws.1.law",
    ),
    refused(
        &[("conditions.one.law", "airtime")],
        &[(
            "conditions.one.laws",
            "[{ stations = [\"tablet\", \"tablet1\"], law = \"shimada-after\" }]",
        )],
        "conditions.one.laws.1.stations",
    ),
    refused(
        &[],
        &[("conditions.one.law", "{ name = \"shimada-after\", queue_min = \"9ms\" }")],
        "conditions.one.law.queue_min",
    ),
    refused(
        &[],
        &[("conditions.one.law", "{ name = \"airtime\", queue_min = \"80ms\" }")],
        "conditions.one.law.queue_min",
    ),
    refused(
        &[],
        &[("conditions.one.law", "{ name = \"airtime\", queue_max = \"11s\" }")],
        "conditions.one.law.queue_max",
    ),
    refused(
        &[],
        &[("conditions.one.law", "{ name = \"airtime\", queue_rounds_percent = 0 }")],
        "conditions.one.law.queue_rounds_percent",
    ),
    refused(&[], &[("conditions.one.law", "{ queue_min = \"9ms\" }")], "conditions.one.law.name"),
    refused(
        &[],
        &[(
            "conditions",
            "[{ name = \"one\", law = \"fixed\", \
              bounds = [{ stations = \"tablet\", floor = 2, small_queue = 9 }] }]",
        )],
        "conditions.one.bounds.1.small_queue",
    ),
    refused(&[], &[("conditions.one.set", "{ name = \"two\" }")], "conditions.one.set"),
];
