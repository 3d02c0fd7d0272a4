//! The cases for the keys of `[[flows]]`.

use super::{Case, Effect, Settings};

const SIZED: Settings = &[("flows.1.size", "1MB")];
const SPLIT: Settings = &[("flows.1.size", "1MB"), ("flows.1.chunks", "4")];
const UDP: Settings = &[("flows.1.kind", "udp")];
const QUIC: Settings = &[("flows.1.kind", "quic")];
/// QUIC in a queue that overflows, so that losses reduce its window.
const QUIC_LOSSES: Settings = &[("flows.1.kind", "quic"), ("stations.tablet.queue", "20")];
/// Settings with which a host's queue overflows again and again. CUBIC then grows after losses.
const LOSSES: Settings = &[QUEUE, DELAY];
const QUEUE: (&str, &str) = ("stations.tablet.queue", "30");
const DELAY: (&str, &str) = ("wired.delay", "10ms");
const AV: Settings = &[QUEUE, DELAY, ("flows.1.algorithm", "wakeai_av")];
const RTT_FAIR: Settings =
    &[QUEUE, DELAY, ("flows.1.algorithm", "wakeai_rtt"), ("flows.1.tcp_friendliness", "false")];
const RESERVING: Settings = &[
    ("duration", "6s"),
    ("conditions.one.law", "airtime"),
    ("flows.1.from", "tablet1"),
    ("flows.1.algorithm", "wakeai_av"),
    ("flows.1.rate", "3Mbit/s"),
];

const TURNING: Settings = &[
    ("duration", "6s"),
    ("conditions.one.law", "airtime"),
    ("flows.1.from", "tablet"),
    ("flows.1.size", "4MB"),
];

pub(super) const CASES: &[Case] = &[
    Case::run(&[], &[("flows.1.from", "tablet1")]),
    Case::run(&[], &[("flows.2.to", "tablet")]),
    Case::run(&[], UDP),
    Case::run(&[], QUIC),
    Case::run(QUIC_LOSSES, &[("flows.1.algorithm", "reno")]),
    Case::run(QUIC, &[("flows.1.limit", "1Mbit/s")]),
    Case::run(QUIC, &[("flows.1.size", "100kB")]),
    Case::run(&[], SIZED),
    Case::run(
        &[("flows.1.kind", "udp"), ("flows.1.rate", "1Mbit/s")],
        &[("flows.1.size", "100kB")],
    ),
    Case::run(&[], &[("flows.1.start", "1s")]),
    Case::run(&[], &[("flows.1.jitter", "1s")]),
    Case::run(LOSSES, &[("flows.1.algorithm", "reno")]),
    Case::run(SIZED, &[("flows.1.chunks", "4")]),
    Case::run(SIZED, &[("flows.1.chunks", "auto")]),
    Case::run(TURNING, &[("flows.1.turns", "true")]),
    Case::run(UDP, &[("flows.1.rate", "1Mbit/s")]),
    Case::run(AV, &[("flows.1.rate", "5Mbit/s")]),
    // With any other algorithm the rate is only the target of the achievement ratio (AVR), which
    // counts windows of 5 s.
    Case {
        base: &[("duration", "11s")],
        set: &[("flows.1.rate", "5Mbit/s")],
        effect: Effect::Report(&["runs[].flows[].avr"]),
    },
    Case::run(&[], &[("flows.1.limit", "2Mbit/s")]),
    Case::run(SIZED, &[("flows.1.limit", "4Mbit/s")]),
    Case::run(SPLIT, &[("flows.1.limit", "4Mbit/s")]),
    Case::run(LOSSES, &[("flows.1.beta", "0.6")]),
    Case::run(RTT_FAIR, &[("flows.1.rtt_ref", "1s")]),
    Case::run(LOSSES, &[("flows.1.tcp_friendliness", "false")]),
    Case::run(RESERVING, &[("flows.1.reserve", "true")]),
];
