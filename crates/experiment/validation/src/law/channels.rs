//! Settings with another access point on the channel, with a foreign load, and with hidden stations.

use super::setting::{Draft, Promise, Setting, TSQ, bss};

/// A foreign station: it sends datagrams at this rate to its own access point, and has no agent.
fn foreign(draft: Draft, rate: &str) -> Draft {
    let keys = format!("kind = 'udp'\nrate = '{rate}'");
    draft.stations("foreign", 1, "bss = 'theirs'").flow("foreign", "server", &keys).agents("mine")
}

/// All settings of this kind.
pub(super) fn all() -> Vec<Setting> {
    use Promise::All;
    // Both access points have agents on all their stations, which do not hear each other's messages.
    let beside = |name, standard, rtt_ms, [left, right]: [u32; 2], keys: &str| {
        bss(standard, rtt_ms)
            .access_point_named("left", "")
            .access_point_named("right", "")
            .up("a", left, &format!("bss = 'left'\n{keys}"))
            .up("b", right, &format!("bss = 'right'\n{keys}"))
            .promises(name, All)
    };
    // The foreign rate is about a third of what one station of the standard reaches alone.
    let loaded = |name, standard, rtt_ms, mine, rate: &str| {
        let draft = bss(standard, rtt_ms)
            .access_point_named("ours", "")
            .access_point_named("theirs", "")
            .up("mine", mine, "bss = 'ours'");
        foreign(draft, rate).promises(name, All)
    };
    let hidden = |name, standard, rtt_ms, half, keys| {
        bss(standard, rtt_ms)
            .access_point(keys)
            .up("near", half, "hears = ['near']")
            .up("far", half, "hears = ['far']")
            .promises(name, All)
    };
    let rts = "protection = 'rts-cts'";
    vec![
        beside("n-beside-5-5", "802.11n", 20.0, [5, 5], ""),
        beside("n-beside-2-8", "802.11n", 30.0, [2, 8], ""),
        beside("g-beside-6-6", "802.11g", 20.0, [6, 6], ""),
        beside("ac-beside-4-4", "802.11ac", 20.0, [4, 4], ""),
        beside("n-beside-6-6-tsq", "802.11n", 20.0, [6, 6], TSQ),
        loaded("n-foreign-third", "802.11n", 20.0, 6, "18Mbit/s"),
        loaded("g-foreign-third", "802.11g", 20.0, 8, "9Mbit/s"),
        loaded("ac-foreign-third", "802.11ac", 20.0, 4, "80Mbit/s"),
        hidden("n-hidden-halves", "802.11n", 20.0, 4, rts),
        hidden("g-hidden-halves", "802.11g", 20.0, 5, rts),
        hidden("ac-hidden-halves", "802.11ac", 20.0, 3, rts),
        hidden("n-hidden-bare", "802.11n", 20.0, 3, ""),
        hidden("g-hidden-bare", "802.11g", 30.0, 4, ""),
    ]
}
