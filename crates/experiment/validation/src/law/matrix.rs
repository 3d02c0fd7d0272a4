//! The matrix of settings that judge the law.
//!
//! Each is a complete scenario, so `wakeai sim` and `wakeai lab` can run it (`wakeai-validation law
//! --write DIR` writes them as files). Whoever changes the law runs all of them.

use super::setting::{JITTER, Promise, Setting, TSQ, bss};
use super::{channels, downloads, dynamics};

const MAC80211: &str = "host_queue = 'mac80211'";
const LIMITED: &str = "limit = '800kbit/s'\njitter = '500ms'";

/// All settings of the matrix.
pub fn matrix() -> Vec<Setting> {
    let beside = [uploads(), hosts(), unequal(), paths(), transfers(), neighbours()];
    [beside.concat(), downloads::all(), dynamics::all(), channels::all()].concat()
}

/// Settings of equal stations with endless uploads and plain FIFO hosts.
fn uploads() -> Vec<Setting> {
    use Promise::All;
    let access_point = |name, keys, stations| {
        bss("802.11n", 20.0).access_point(keys).up("s", stations, "").promises(name, All)
    };
    vec![
        bss("802.11a", 20.0).up("s", 1, "").promises("a-1", All),
        bss("802.11a", 10.0).up("s", 6, "").promises("a-6", All),
        bss("802.11g", 40.0).up("s", 10, "").promises("g-10", All),
        bss("802.11g", 5.0).up("s", 20, "").promises("g-20", All),
        bss("802.11g", 100.0).up("s", 30, "").promises("g-30", All),
        bss("802.11n", 25.0).up("s", 1, "").promises("n-1", All),
        bss("802.11n", 60.0).up("s", 2, "").promises("n-2", All),
        bss("802.11n", 5.0).up("s", 4, "").promises("n-4", All),
        bss("802.11n", 20.0).up("s", 10, "").promises("n-10", All),
        bss("802.11n", 80.0).up("s", 16, "").promises("n-16", All),
        bss("802.11n", 8.0).up("s", 20, "").promises("n-20", All),
        bss("802.11n", 30.0).up("s", 30, "").promises("n-30", All),
        bss("802.11n", 3.0).up("s", 40, "").promises("n-40", All),
        bss("802.11n", 15.0).lasting(30, 5).up("s", 100, "").promises("n-100", All),
        bss("802.11n", 10.0)
            .access_point("width = '40MHz'\nstreams = 2")
            .up("s", 12, "rate = '270Mbit/s'")
            .promises("n-wide", All),
        bss("802.11ac", 25.0).up("s", 1, "").promises("ac-1", All),
        bss("802.11ac", 15.0).up("s", 4, "").promises("ac-4", All),
        bss("802.11ac", 25.0).up("s", 12, "").promises("ac-12", All),
        bss("802.11ac", 8.0).lasting(25, 5).up("s", 30, "").promises("ac-30", All),
        bss("802.11ax", 10.0).up("s", 6, "").promises("ax-6", All),
        bss("802.11ax", 40.0).lasting(25, 5).up("s", 20, "").promises("ax-20", All),
        access_point("n-8-fq", "queue = 'fq'", 8),
        access_point("n-12-buffer-50", "buffer = 50", 12),
        access_point("n-12-buffer-1000", "buffer = 1000", 12),
    ]
}

/// Settings of hosts with small queues.
fn hosts() -> Vec<Setting> {
    use Promise::All;
    vec![
        bss("802.11n", 20.0).up("s", 1, TSQ).promises("n-1-tsq", All),
        bss("802.11n", 25.0).up("s", 10, TSQ).promises("n-10-tsq", All),
        bss("802.11n", 15.0).up("s", 20, TSQ).promises("n-20-tsq", All),
        bss("802.11n", 6.0).up("s", 40, TSQ).promises("n-40-tsq", All),
        bss("802.11g", 20.0).up("s", 10, TSQ).promises("g-10-tsq", All),
        bss("802.11ac", 30.0).up("s", 8, TSQ).promises("ac-8-tsq", All),
        bss("802.11ax", 20.0).up("s", 8, TSQ).promises("ax-8-tsq", All),
        bss("802.11n", 20.0).up("s", 8, MAC80211).promises("n-8-mac80211", All),
        bss("802.11n", 10.0).up("s", 24, MAC80211).promises("n-24-mac80211", All),
        bss("802.11ac", 15.0).up("s", 10, MAC80211).promises("ac-10-mac80211", All),
    ]
}

/// Settings of stations with unequal rates and paths.
fn unequal() -> Vec<Setting> {
    use Promise::All;
    let beside_n = |name, rtt_ms, ac, n| {
        let draft = bss("802.11ac", rtt_ms).up("ac", ac, "").up("n", n, "standard = '802.11n'");
        draft.promises(name, All)
    };
    // The devices of Matsuno et al., section 7.2.
    let matsuno = |name, wired| {
        bss("802.11ac", 2.0)
            .access_point("streams = 2")
            .wired(wired)
            .up("fast", 1, "rate = '780Mbit/s'")
            .up("phone", 1, "rate = '585Mbit/s'")
            .up("tablet", 2, "standard = '802.11n'\nrate = '52Mbit/s'")
            .promises(name, All)
    };
    vec![
        bss("802.11n", 25.0)
            .up("slow", 1, "rate = '13Mbit/s'")
            .up("fast", 5, "")
            .promises("n-slow", All),
        bss("802.11g", 30.0)
            .up("slow", 2, "rate = '6Mbit/s'")
            .up("fast", 4, "")
            .promises("g-slow", All),
        beside_n("ac-beside-n", 25.0, 3, 3),
        beside_n("ac-beside-n-50", 50.0, 4, 2),
        matsuno("matsuno-1000", ""),
        matsuno("matsuno-100", "rate = '100Mbit/s'"),
        bss("802.11n", 10.0)
            .further("near", 4, 0.0)
            .further("far", 4, 90.0)
            .promises("n-near-and-far", All),
        bss("802.11n", 5.0)
            .lasting(60, 20)
            .further("near", 5, 0.0)
            .further("far", 1, 300.0)
            .promises("n-one-far", All),
    ]
}

/// Settings with long paths, lossy air, or a bottleneck in the wire.
fn paths() -> Vec<Setting> {
    use Promise::All;
    let behind = |name, standard, rtt_ms, wire, stations| {
        bss(standard, rtt_ms).wired(wire).up("s", stations, "").promises(name, All)
    };
    vec![
        bss("802.11n", 250.0).lasting(60, 20).up("s", 6, "").promises("n-6-250ms", All),
        bss("802.11n", 500.0).lasting(90, 30).up("s", 8, "").promises("n-8-500ms", All),
        bss("802.11ac", 120.0).lasting(60, 20).up("s", 6, "").promises("ac-6-120ms", All),
        bss("802.11n", 40.0).up("s", 8, "frame_error_rate = 0.3").promises("n-8-lossy", All),
        behind("wire-20", "802.11n", 20.0, "rate = '20Mbit/s'\nqueue = 200", 8),
        behind("wire-50", "802.11ac", 30.0, "rate = '50Mbit/s'\nqueue = 1000", 6),
    ]
}

/// Settings with sized transfers, several connections per station, or applications with a low rate.
fn transfers() -> Vec<Setting> {
    use Promise::{All, Ideal, Limited, Short};
    let sized = |standard, rtt, count, size: &str, jitter: &str| {
        let keys = format!("size = '{size}'\njitter = '{jitter}'");
        bss(standard, rtt).lasting(600, 0).stations("s", count, "").flow("s", "server", &keys)
    };
    vec![
        sized("802.11g", 10.0, 20, "8MB", "500ms").promises("g-20-sized", Ideal),
        sized("802.11g", 25.0, 30, "6MB", "500ms").promises("g-30-sized", Ideal),
        sized("802.11n", 15.0, 24, "3MB", "10s").promises("n-24-short", Short),
        sized("802.11n", 40.0, 40, "1MB", "8s").promises("n-40-short", Short),
        (0..4)
            .fold(bss("802.11n", 20.0).stations("s", 6, ""), |draft, _| {
                draft.flow("s", "server", JITTER)
            })
            .promises("n-6-by-4", All),
        bss("802.11n", 20.0)
            .stations("little", 5, "")
            .flow("little", "server", LIMITED)
            .up("much", 5, "")
            .promises("n-half-limited", Limited("little", 0.8)),
    ]
}

/// Settings with stations without agents, with other traffic, or with changes.
fn neighbours() -> Vec<Setting> {
    use Promise::{All, Beside};
    let partly = |name, standard, rtt_ms, with, without, keys: &str| {
        let draft = bss(standard, rtt_ms).lasting(65, 5).agents("with").up("with", with, "");
        draft.up("without", without, keys).promises(name, Beside("with"))
    };
    let changed = |name, rtt_ms, change: &str| {
        let draft = bss("802.11n", rtt_ms).up("s", 6, "");
        draft.event(&format!("at = '15s'\n{change}")).promises(name, All)
    };
    vec![
        partly("n-half-agents", "802.11n", 20.0, 4, 4, ""),
        partly("n-one-agent", "802.11n", 15.0, 1, 7, ""),
        partly("g-half-agents", "802.11g", 25.0, 5, 5, ""),
        partly("n-one-agent-tsq", "802.11n", 20.0, 1, 5, TSQ),
        bss("802.11n", 30.0)
            .up("s", 6, "")
            .stations("radio", 1, "")
            .flow("radio", "server", "kind = 'udp'\nrate = '4Mbit/s'")
            .promises("n-udp", All),
        changed("n-rate-falls", 20.0, "station = 's2'\nrate = '13Mbit/s'"),
        changed("n-delay-grows", 10.0, "station = 's1'\nwired_delay = '60ms'"),
    ]
}
