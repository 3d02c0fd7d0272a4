//! The settings of the matrix with downloads, with other congestion control than CUBIC, and with fleets of which a
//! part governs uploads alone.

use super::setting::{Draft, JITTER, Promise, Receiving, Setting, bss};

/// An endless flow of the kernel's BBR, which is `wakeai_bbr` under a law.
const BBR: &str = "algorithm = 'bbr'\njitter = '500ms'";
/// A host whose queueing discipline obeys departure times, as behind the agent's `fq`.
const DEPARTURES: &str = "departure_times = true";
/// An endless QUIC connection.
const QUIC: &str = "kind = 'quic'\njitter = '500ms'";
/// A call: 100 kbit/s.
const CALL: &str = "kind = 'udp'\nrate = '100kbit/s'\njitter = '500ms'";
/// Short buffers of the access point, packets, and long ones. The default is 300.
const SHORT_50: &str = "buffer = 50";
const SHORT_100: &str = "buffer = 100";
const LONG: &str = "buffer = 1000";
const LONG_2000: &str = "buffer = 2000";
const LONG_5000: &str = "buffer = 5000";
/// The same with a queue for each station.
const FAIR: &str = "queue = 'fq'";
const FAIR_LONG: &str = "buffer = 1000\nqueue = 'fq'";
const FAIR_2000: &str = "buffer = 2000\nqueue = 'fq'";

/// All settings of this file.
pub(super) fn all() -> Vec<Setting> {
    let directions = [down(), both()].concat();
    [directions, unequal(), transfers(), mixed_fleets(), other_traffic(), quic()].concat()
}

/// A BSS whose access point has this buffer.
fn at(standard: &'static str, rtt_ms: f64, buffer: &'static str) -> Draft {
    bss(standard, rtt_ms).access_point(buffer)
}

/// Equal stations that receive.
fn down() -> Vec<Setting> {
    let of = |name, standard, rtt_ms, buffer, count| {
        let draft = at(standard, rtt_ms, buffer).down("down", count, "");
        draft.promises(name, Promise::Receives(Receiving::Down))
    };
    let far = |name, standard, buffer| {
        let draft = at(standard, 200.0, buffer).lasting(60, 20).down("down", 8, "");
        draft.promises(name, Promise::Receives(Receiving::Down))
    };
    vec![
        of("n-down", "802.11n", 20.0, "", 8),
        of("g-12-down", "802.11g", 20.0, LONG, 12),
        of("n-8-down", "802.11n", 35.0, LONG, 8),
        of("n-8-down-fq", "802.11n", 35.0, FAIR_LONG, 8),
        of("n-25-down", "802.11n", 10.0, "", 25),
        of("ac-8-down", "802.11ac", 30.0, LONG, 8),
        of("g-3-down", "802.11g", 30.0, "", 3),
        of("g-8-down-100", "802.11g", 12.0, SHORT_100, 8),
        of("g-12-down-5000", "802.11g", 60.0, LONG_5000, 12),
        of("g-25-down", "802.11g", 20.0, LONG, 25),
        of("g-8-down-fq", "802.11g", 20.0, FAIR_LONG, 8),
        of("n-3-down", "802.11n", 50.0, LONG, 3),
        of("n-8-down-50", "802.11n", 35.0, SHORT_50, 8),
        of("n-8-down-100", "802.11n", 60.0, SHORT_100, 8),
        of("n-8-down-300", "802.11n", 35.0, "", 8),
        of("n-8-down-2000", "802.11n", 35.0, LONG_2000, 8),
        of("n-8-down-5000", "802.11n", 100.0, LONG_5000, 8),
        of("n-12-down", "802.11n", 20.0, LONG, 12),
        of("n-12-down-100ms", "802.11n", 100.0, LONG_2000, 12),
        of("n-25-down-long", "802.11n", 12.0, LONG, 25),
        of("n-25-down-50ms", "802.11n", 50.0, "", 25),
        of("n-3-down-fq", "802.11n", 100.0, FAIR_2000, 3),
        of("n-12-down-fq", "802.11n", 20.0, FAIR, 12),
        of("n-25-down-fq", "802.11n", 12.0, FAIR_LONG, 25),
        of("ac-3-down", "802.11ac", 20.0, "", 3),
        of("ac-8-down-300", "802.11ac", 30.0, "", 8),
        of("ac-8-down-5000", "802.11ac", 50.0, LONG_5000, 8),
        of("ac-12-down", "802.11ac", 12.0, LONG_2000, 12),
        of("ac-25-down", "802.11ac", 20.0, LONG, 25),
        of("ac-8-down-fq", "802.11ac", 30.0, FAIR_LONG, 8),
        of("ac-3-down-fq", "802.11ac", 60.0, FAIR, 3),
        far("n-8-down-200ms", "802.11n", LONG),
        far("ac-8-down-200ms", "802.11ac", LONG_2000),
    ]
}

/// Stations that send and stations that receive, or that do both.
fn both() -> Vec<Setting> {
    let apart = |name, standard, rtt_ms, buffer, (up, down)| {
        let draft = at(standard, rtt_ms, buffer).up("up", up, "").down("down", down, "");
        draft.promises(name, Promise::Receives(Receiving::BothWays))
    };
    let each = |name, standard, rtt_ms, buffer, count| {
        let draft = at(standard, rtt_ms, buffer).up("both", count, "");
        let draft = draft.flow("server", "both", JITTER);
        draft.promises(name, Promise::Receives(Receiving::BothWays))
    };
    vec![
        apart("n-3-and-3", "802.11n", 20.0, "", (3, 3)),
        apart("n-6-and-4", "802.11n", 40.0, "", (6, 4)),
        apart("ac-4-and-4", "802.11ac", 20.0, "", (4, 4)),
        each("n-4-both", "802.11n", 35.0, "", 4),
        apart("g-4-and-4", "802.11g", 20.0, LONG, (4, 4)),
        apart("n-2-and-2", "802.11n", 20.0, LONG, (2, 2)),
        apart("n-4-and-4", "802.11n", 35.0, LONG, (4, 4)),
        apart("n-4-and-4-fq", "802.11n", 35.0, FAIR_LONG, (4, 4)),
        apart("n-4-and-4-100ms", "802.11n", 100.0, LONG_2000, (4, 4)),
        apart("n-8-and-8", "802.11n", 20.0, LONG, (8, 8)),
        apart("ac-2-and-2", "802.11ac", 30.0, LONG, (2, 2)),
        apart("ac-8-and-8", "802.11ac", 20.0, LONG_2000, (8, 8)),
        each("n-8-both", "802.11n", 20.0, LONG, 8),
        each("ac-4-both", "802.11ac", 30.0, LONG, 4),
    ]
}

/// Stations with unequal paths or rates.
fn unequal() -> Vec<Setting> {
    use Receiving::{BothWays, Down, SlowAndFast};
    let receives = |name, draft: Draft, kind| draft.promises(name, Promise::Receives(kind));
    let near = |standard, buffer| at(standard, 10.0, buffer).lasting(60, 20);
    let fast = |standard, count| at(standard, 20.0, LONG).down("fast", count, "");
    let further = |ms: f64| format!("wired_delay = '{}ms'", ms / 2.0);
    let far = |name, standard, buffer, ms| {
        let draft = near(standard, buffer).down("near", 4, "").down("far", 4, &further(ms));
        receives(name, draft, Down)
    };
    let far_down = near("802.11n", LONG).up("near", 4, "").down("far", 4, &further(90.0));
    vec![
        far("n-near-and-far-down", "802.11n", LONG, 190.0),
        far("n-near-and-far-down-fq", "802.11n", FAIR_LONG, 90.0),
        far("ac-near-and-far-down", "802.11ac", LONG, 90.0),
        receives("n-near-up-far-down", far_down, BothWays),
        receives(
            "n-slow-down",
            fast("802.11n", 4).down("slow", 4, "rate = '6.5Mbit/s'"),
            SlowAndFast,
        ),
        receives("n-one-slow-down", fast("802.11n", 7).down("slow", 1, "rate = '6.5Mbit/s'"), Down),
        receives(
            "g-slow-down",
            fast("802.11g", 4).down("slow", 4, "rate = '6Mbit/s'"),
            SlowAndFast,
        ),
        receives(
            "ac-and-n-down",
            fast("802.11ac", 4).down("slow", 4, "standard = '802.11n'"),
            SlowAndFast,
        ),
    ]
}

/// Downloads with a size.
fn transfers() -> Vec<Setting> {
    let sized = |draft: Draft, count, size: &str, jitter: &str| {
        let keys = format!("size = '{size}'\njitter = '{jitter}'");
        draft.lasting(300, 0).stations("s", count, "").flow("server", "s", &keys)
    };
    // Each station loads thirty files within half a minute.
    let web = |draft: Draft, count| {
        let draft = draft.lasting(120, 0).stations("web", count, "");
        (0..30).fold(draft, |draft, file| {
            let size = ["30kB", "100kB", "400kB"][file % 3];
            draft.flow("server", "web", &format!("size = '{size}'\nstart = '2s'\njitter = '30s'"))
        })
    };
    vec![
        sized(at("802.11g", 20.0, LONG), 12, "8MB", "500ms")
            .promises("g-12-down-sized", Promise::Ideal),
        sized(at("802.11n", 12.0, ""), 24, "3MB", "10s")
            .promises("n-24-down-short", Promise::Short),
        sized(at("802.11n", 35.0, LONG), 12, "20MB", "500ms")
            .promises("n-12-down-sized", Promise::Ideal),
        sized(at("802.11n", 35.0, LONG), 40, "1MB", "8s")
            .promises("n-40-down-short", Promise::Short),
        sized(at("802.11ac", 20.0, LONG), 24, "10MB", "8s")
            .promises("ac-24-down-short", Promise::Short),
        web(at("802.11n", 30.0, LONG), 10).promises("n-10-web", Promise::Short),
        web(at("802.11ac", 20.0, ""), 20).promises("ac-20-web", Promise::Short),
        web(at("802.11n", 30.0, LONG), 8)
            .down("bulk", 4, "")
            .lasting(60, 0)
            .promises("n-web-beside-bulk", Promise::Web),
        web(at("802.11n", 30.0, LONG), 8)
            .up("bulk", 4, "")
            .lasting(150, 0)
            .promises("n-web-beside-uploads", Promise::Web),
    ]
}

/// Stations with agents beside others without, or beside agents that govern uploads alone.
fn mixed_fleets() -> Vec<Setting> {
    let beside = |name, draft: Draft| draft.lasting(65, 5).promises(name, Promise::Beside("with"));
    let downs = |standard, rtt_ms, with, without| {
        let draft = at(standard, rtt_ms, LONG).down("with", with, "");
        draft.down("without", without, "")
    };
    let some = |draft: Draft| draft.agents("with");
    let old = |draft: Draft| draft.uploads_alone("without");
    vec![
        beside("g-half-agents-down", some(downs("802.11g", 20.0, 5, 5))),
        beside("n-half-agents-down", some(downs("802.11n", 30.0, 4, 4))),
        beside("n-one-agent-down", some(downs("802.11n", 20.0, 1, 7))),
        beside("ac-half-agents-down", some(downs("802.11ac", 30.0, 4, 4))),
        beside(
            "n-agents-down-others-up",
            some(at("802.11n", 30.0, LONG).down("with", 4, "").up("without", 4, "")),
        ),
        beside(
            "n-half-agents-both",
            some(at("802.11n", 30.0, LONG).up("with", 3, "").up("without", 3, ""))
                .flow("server", "with", JITTER)
                .flow("server", "without", JITTER),
        ),
        beside("n-half-old-down", old(downs("802.11n", 30.0, 4, 4))),
        beside("ac-half-old-down", old(downs("802.11ac", 30.0, 4, 4))),
        beside(
            "n-down-old-up",
            old(at("802.11n", 30.0, LONG).down("with", 4, "").up("without", 4, "")),
        ),
        beside(
            "n-half-old-both",
            old(at("802.11n", 30.0, LONG).up("with", 3, "").up("without", 3, ""))
                .flow("server", "with", JITTER)
                .flow("server", "without", JITTER),
        ),
    ]
}

/// BBR beside CUBIC, and calls beside bulk transfers.
fn other_traffic() -> Vec<Setting> {
    use Receiving::{BothWays, Down};
    let up = |name, standard, rtt_ms, buffer| {
        let draft = at(standard, rtt_ms, buffer).up("cubic", 4, "").stations("bbr", 4, "");
        draft.flow("bbr", "server", BBR).promises(name, Promise::All)
    };
    let down = |name, standard, rtt_ms, buffer| {
        let draft = at(standard, rtt_ms, buffer).down("cubic", 4, "").stations("bbr", 4, "");
        draft.flow("server", "bbr", BBR).promises(name, Promise::Receives(Down))
    };
    let calls = |name, draft: Draft, kind| {
        let draft = draft.stations("call", 3, "").flow("server", "call", CALL);
        draft.flow("call", "server", CALL).promises(name, Promise::Receives(kind))
    };
    let bulk = |standard, buffer| at(standard, 30.0, buffer).down("down", 8, "");
    vec![
        up("n-bbr-and-cubic", "802.11n", 30.0, ""),
        up("ac-bbr-and-cubic", "802.11ac", 20.0, ""),
        down("n-bbr-and-cubic-down", "802.11n", 35.0, LONG),
        down("ac-bbr-and-cubic-down", "802.11ac", 30.0, ""),
        at("802.11n", 35.0, LONG)
            .stations("up", 4, "")
            .flow("up", "server", BBR)
            .down("down", 4, "")
            .promises("n-bbr-up-cubic-down", Promise::Receives(BothWays)),
        at("802.11n", 35.0, LONG)
            .up("up", 4, "")
            .stations("down", 4, "")
            .flow("server", "down", BBR)
            .promises("n-cubic-up-bbr-down", Promise::Receives(BothWays)),
        calls("n-calls-beside-down", bulk("802.11n", LONG), Down),
        calls("n-calls-beside-down-fq", bulk("802.11n", FAIR_LONG), Down),
        calls("ac-calls-beside-down", bulk("802.11ac", ""), Down),
        calls(
            "n-calls-beside-both",
            at("802.11n", 30.0, LONG).up("up", 4, "").down("down", 4, ""),
            BothWays,
        ),
    ]
}

/// QUIC beside TCP. An agent gives what a station sends by QUIC a rate, and leaves alone what it receives. Datagrams above the
/// rate are dropped, or wait where the host's queueing discipline obeys departure times.
fn quic() -> Vec<Setting> {
    let beside = |name, standard, rtt_ms, buffer, keys: &str| {
        let draft = at(standard, rtt_ms, buffer).up("tcp", 4, "").stations("quic", 4, keys);
        draft.flow("quic", "server", QUIC).promises(name, Promise::All)
    };
    vec![
        beside("n-quic-and-tcp", "802.11n", 30.0, LONG, ""),
        beside("ac-quic-and-tcp", "802.11ac", 20.0, "", ""),
        beside("n-quic-and-tcp-departures", "802.11n", 30.0, LONG, DEPARTURES),
        beside("ac-quic-and-tcp-departures", "802.11ac", 20.0, "", DEPARTURES),
        at("802.11n", 30.0, LONG)
            .stations("quic", 4, "")
            .flow("quic", "server", QUIC)
            .down("down", 4, "")
            .promises("n-quic-up-tcp-down", Promise::Receives(Receiving::BothWays)),
        at("802.11n", 30.0, LONG)
            .lasting(65, 5)
            .down("tcp", 4, "")
            .stations("quic", 4, "")
            .flow("server", "quic", QUIC)
            .promises("n-quic-beside-tcp-down", Promise::Beside("tcp")),
    ]
}
