//! The cases for the keys of `[[events]]` and `[[conditions]]`.

use super::access_point::IS_A_CELL;
use super::{Case, Effect, Settings};

const EVENT: Settings =
    &[("events", "[{ at = \"1s\", station = \"tablet\", rate = \"13Mbit/s\" }]")];
const EVENT_IN_A_CELL: Settings =
    &[IS_A_CELL, ("events", "[{ at = \"1s\", station = \"tablet\", wired_delay = \"5ms\" }]")];
const LAW: Settings = &[("conditions.one.law", "airtime")];
const BY_HAND: Settings = &[
    ("conditions.one.law", "fixed"),
    ("conditions.one.bounds", "[{ stations = \"tablet1\", floor = 2, ceiling = 20 }]"),
    // A short queue causes losses. Without them no window would become as small as its floor.
    ("stations.tablet.queue", "8"),
];

/// The law with its name as a parameter, so that it can have others.
const WITH_PARAMETERS: Settings = &[
    ("conditions.one.law", "{ name = \"airtime\" }"),
    ("stations.tablet.count", "4"),
    ("duration", "6s"),
];
/// A law with which one station holds a longer queue than the other.
const MIXED: Settings = &[
    ("conditions.one.law", "airtime"),
    (
        "conditions.one.laws",
        "[{ stations = \"tablet1\", law = { name = \"airtime\", queue_min = \"70ms\" } }]",
    ),
    ("duration", "6s"),
];
/// Bounds set by hand on hosts whose own limit of the queue is less than an aggregate.
const SMALL_QUEUES: Settings = &[
    ("conditions.one.law", "fixed"),
    ("conditions.one.bounds", "[{ stations = \"tablet\", floor = 60, ceiling = 60 }]"),
    ("stations.tablet.host_queue", "tsq"),
];

const DOWNLOADS: Settings = &[
    ("flows.1.from", "server"),
    ("flows.1.to", "tablet"),
    ("conditions.one.law", "fixed"),
    ("conditions.one.bounds", "[{ stations = \"tablet\", receive = 60 }]"),
];

pub(super) const CASES: &[Case] = &[
    Case::run(EVENT, &[("events.1.at", "2s")]),
    Case::run(EVENT, &[("events.1.station", "tablet2")]),
    Case::run(EVENT, &[("events.1.wired_delay", "20ms")]),
    Case::run(EVENT_IN_A_CELL, &[("events.1.wired_delay", "20ms")]),
    Case::run(EVENT, &[("events.1.rate", "26Mbit/s")]),
    Case::run(EVENT, &[("events.1.frame_error_rate", "0.2")]),
    Case {
        base: &[],
        set: &[("conditions.one.name", "two")],
        effect: Effect::Report(&["runs[].condition"]),
    },
    Case::run(&[], &[("conditions.one.law", "airtime")]),
    Case::run(&[], BY_HAND),
    Case::run(&[], &[("conditions.one.law", "shimada-before")]),
    Case::run(LAW, &[("conditions.one.law", "shimada-after")]),
    Case::run(WITH_PARAMETERS, &[("conditions.one.law.name", "shimada-before")]),
    Case::run(WITH_PARAMETERS, &[("conditions.one.law.queue_rounds_percent", "2000")]),
    Case::run(WITH_PARAMETERS, &[("conditions.one.law.queue_min", "70ms")]),
    Case::run(WITH_PARAMETERS, &[("conditions.one.law.queue_max", "20ms")]),
    Case::run(WITH_PARAMETERS, &[("conditions.one.law.downloads", "false")]),
    Case::run(LAW, &[("conditions.one.agents", "tablet1")]),
    Case::run(
        LAW,
        &[("conditions.one.laws", "[{ stations = \"tablet1\", law = \"shimada-after\" }]")],
    ),
    Case::run(MIXED, &[("conditions.one.laws.1.stations", "tablet")]),
    Case::run(MIXED, &[("conditions.one.laws.1.law", "shimada-after")]),
    Case::run(BY_HAND, &[("conditions.one.bounds", "[{ stations = \"tablet\", ceiling = 4 }]")]),
    Case::run(BY_HAND, &[("conditions.one.bounds.1.stations", "tablet2")]),
    Case::run(BY_HAND, &[("conditions.one.bounds.1.floor", "15")]),
    Case::run(BY_HAND, &[("conditions.one.bounds.1.ceiling", "4")]),
    Case::run(SMALL_QUEUES, &[("conditions.one.bounds.1.small_queue", "65535")]),
    Case::run(DOWNLOADS, &[("conditions.one.bounds.1.receive", "4")]),
    Case::run(&[], &[("conditions.one.set", "{ wired.delay = \"20ms\" }")]),
];
