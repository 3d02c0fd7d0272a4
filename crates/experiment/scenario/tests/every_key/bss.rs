//! The cases for the keys of `[[bss]]`.

use super::{Case, Effect, Settings};

/// Two access points on one channel; the stations that send are at the first, those that receive at the second.
const TWO: (&str, &str) = ("bss", "[{ name = \"near\" }, { name = \"far\" }]");
const SENDERS: (&str, &str) = ("stations.tablet.bss", "near");
const RECEIVERS: (&str, &str) = ("stations.phone.bss", "far");
pub(super) const BSSS: Settings = &[TWO, SENDERS, RECEIVERS];

/// As [`BSSS`], with agents, whose presence messages are broadcasts.
const AGENTS: Settings = &[TWO, SENDERS, RECEIVERS, ("conditions.one.law", "airtime")];

/// As [`BSSS`], with a receiver at the first access point, too.
const DOWN: Settings = &[TWO, SENDERS, RECEIVERS, ("flows.2.to", "tablet")];

pub(super) const CASES: &[Case] = &[
    // The name is only in the file.
    Case {
        base: BSSS,
        set: &[("bss.near.name", "close"), ("stations.tablet.bss", "close")],
        effect: Effect::Report(&[]),
    },
    Case::run(BSSS, &[("bss.far.channel", "6")]),
    Case::run(BSSS, &[("bss.near.hears", "[\"tablet\"]")]),
    Case::run(BSSS, &[("bss.near.wired.rate", "5Mbit/s")]),
    Case::run(BSSS, &[("bss.near.wired.delay", "20ms")]),
    Case::run(BSSS, &[("bss.near.wired.loss", "0.01")]),
    Case::run(
        &[TWO, SENDERS, RECEIVERS, ("bss.near.wired.rate", "5Mbit/s")],
        &[("bss.near.wired.queue", "8")],
    ),
    Case::run(BSSS, &[("bss.far.buffer", "10")]),
    Case::run(BSSS, &[("bss.near.standard", "802.11ac")]),
    Case::run(
        &[TWO, ("stations.tablet.bss", "far"), RECEIVERS, ("flows.2.to", "tablet")],
        &[("bss.far.queue", "fq")],
    ),
    Case::run(BSSS, &[("bss.near.protection", "rts-cts")]),
    Case::run(
        &[TWO, SENDERS, RECEIVERS, ("bss.near.protection", "rts-cts")],
        &[("bss.near.rts_threshold", "20000")],
    ),
    Case::run(AGENTS, &[("bss.near.basic_rate", "24Mbit/s")]),
    Case::run(
        &[TWO, SENDERS, RECEIVERS, ("access_point.standard", "802.11b")],
        &[("bss.near.preamble", "short")],
    ),
    Case::run(BSSS, &[("bss.near.control_rate", "6Mbit/s")]),
    Case::run(BSSS, &[("bss.near.width", "40MHz")]),
    Case::run(BSSS, &[("bss.near.streams", "2")]),
    Case::run(BSSS, &[("bss.near.guard_interval", "400ns")]),
    Case::run(BSSS, &[("bss.near.ampdu", "10000")]),
    Case::run(BSSS, &[("bss.near.ampdu_subframes", "4")]),
    Case::run(BSSS, &[("bss.near.amsdu", "3839")]),
    Case::run(
        &[TWO, SENDERS, RECEIVERS, ("stations.tablet.frame_error_rate", "0.5")],
        &[("bss.near.retry_limit", "2")],
    ),
    Case::run(BSSS, &[("bss.far.contention.aifsn", "7")]),
    Case::run(BSSS, &[("bss.far.contention.cw_min", "63")]),
    Case::run(DOWN, &[("bss.near.contention.cw_max", "15")]),
    Case::run(DOWN, &[("bss.near.contention.txop", "2528us")]),
];
