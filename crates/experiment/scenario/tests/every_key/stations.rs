//! The cases for the keys of `[[stations]]`.

use super::access_point::CELL;
use super::bss::BSSS;
use super::{Case, Effect, Settings};

/// Settings that start agents, without which announcements have no effect.
const LAW: Settings = &[("conditions.one.law", "airtime")];

pub(super) const CASES: &[Case] = &[
    Case {
        base: &[],
        set: &[("stations.1.name", "pad"), ("flows.1.from", "pad")],
        effect: Effect::Report(&[
            "runs[].flows[].station",
            "runs[].groups[].group",
            "runs[].stations[].station",
        ]),
    },
    Case::run(&[], &[("stations.tablet.count", "3")]),
    Case::run(BSSS, &[("stations.tablet.bss", "far")]),
    Case::run(&[], &[("stations.tablet.hears", "[\"phone\"]")]),
    Case::run(&[], &[("stations.tablet.standard", "802.11a")]),
    Case::run(&[], &[("stations.tablet.rate", "13Mbit/s")]),
    Case::run(&[], &[("stations.tablet.contention.aifsn", "7")]),
    Case::run(&[], &[("stations.tablet.contention.cw_min", "63")]),
    Case::run(&[], &[("stations.tablet.contention.cw_max", "15")]),
    Case::run(&[], &[("stations.tablet.contention.txop", "2528us")]),
    Case::run(&[], &[("stations.tablet.queue", "20")]),
    Case::run(CELL, &[("stations.tablet.queue", "20")]),
    Case::run(&[], &[("stations.tablet.host_queue", "tsq")]),
    Case::run(CELL, &[("stations.tablet.host_queue", "tsq")]),
    Case::run(&[], &[("stations.tablet.host_queue", "mac80211")]),
    Case::run(
        // UDP keeps the queue full, so that CoDel drops packets.
        &[("stations.tablet.host_queue", "tsq"), ("flows.1.kind", "udp")],
        &[("stations.tablet.host_queue", "mac80211")],
    ),
    Case::run(
        &[("stations.tablet.host_queue", "mac80211"), ("flows.1.kind", "udp")],
        &[("stations.tablet.queue", "20")],
    ),
    Case::run(
        // An agent gives datagrams a rate, below that of this flow.
        &[("conditions.one.law", "airtime"), ("flows.1.kind", "quic")],
        &[("stations.tablet.departure_times", "true")],
    ),
    Case::run(&[], &[("stations.tablet.frame_error_rate", "0.1")]),
    Case::run(&[], &[("stations.tablet.wired_delay", "20ms")]),
    Case::run(CELL, &[("stations.tablet.wired_delay", "20ms")]),
    Case {
        base: &[],
        set: &[("stations.tablet.max", "20Mbit/s")],
        effect: Effect::Report(&[
            "runs[].capacity_normalised",
            "runs[].mean_utilisation",
            "runs[].stations[].max_mbps",
        ]),
    },
    // An agent is configured with its station's solo goodput.
    Case::run(&[("conditions.one.law", "airtime")], &[("stations.tablet.max", "5Mbit/s")]),
    Case::run(&[("stations.tablet.queue", "50")], &[("stations.tablet.tcp", "classic")]),
    Case::run(&[("stations.tablet.queue", "50")], &[("stations.tablet.tcp", "linux-3.4")]),
    Case::run(&[], &[("stations.tablet.send_buffer", "32768")]),
    Case::run(LAW, &[("stations.tablet.announces.sending", "false")]),
    Case::run(LAW, &[("stations.tablet.announces.rate", "1Gbit/s")]),
    Case::run(LAW, &[("stations.tablet.announces.max_rate", "1bit/s")]),
    Case::run(
        &[("conditions.one.law", "airtime"), ("stations.tablet.announces.max_rate", "unknown")],
        &[("stations.tablet.announces.link_rate", "unknown")],
    ),
    // A station that announces no minimum RTT has no queueing delay, and does not count in the
    // median of the delays.
    Case::run(
        &[
            ("conditions.one.law", "airtime"),
            ("duration", "6s"),
            ("wired.delay", "30ms"),
            ("stations.phone.announces.growth", "10s"),
            ("stations.phone.announces.sending", "true"),
            ("stations.phone.announces.rate", "5Mbit/s"),
        ],
        &[("stations.phone.announces.min_rtt", "1us")],
    ),
    Case::run(
        &[
            ("conditions.one.law", "airtime"),
            ("stations.tablet.count", "4"),
            ("duration", "6s"),
            ("wired.delay", "30ms"),
        ],
        &[("stations.tablet.announces.growth", "10s")],
    ),
    Case::run(LAW, &[("stations.tablet.announces.reservation", "0.5")]),
    Case { base: &[], set: &[("stations.tablet.proxy", "true")], effect: Effect::Nothing },
];
