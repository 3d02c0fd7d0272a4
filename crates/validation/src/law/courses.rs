//! The settings of the matrix that are about changes, about steadiness and about members that lie.

use super::matrix::{Draft, Promise, Setting, TSQ, bss};

/// All of them.
pub(super) fn all() -> Vec<Setting> {
    let mut all = newcomers();
    all.extend(lies());
    all.extend(changes());
    all.extend(steady());
    all
}

/// One station begins to send beside `others` that do, and all agents know each other.
fn newcomers() -> Vec<Setting> {
    let joined = |name, standard, rtt_ms, others, keys: &'static str| {
        bss(standard, rtt_ms)
            .lasting(60, 5)
            .up("old", others, keys)
            .stations("new", 1, keys)
            .flow("new", "server", "start = \"20s\"")
            .promises(name, Promise::Newcomer(20.0))
    };
    vec![
        joined("new-n-4", "802.11n", 10.0, 3, ""),
        joined("new-n-4-tsq", "802.11n", 40.0, 3, TSQ),
        joined("new-n-10", "802.11n", 30.0, 9, ""),
        joined("new-n-10-tsq", "802.11n", 30.0, 9, TSQ),
        joined("new-n-10-100ms", "802.11n", 100.0, 9, ""),
        joined("new-n-20", "802.11n", 50.0, 19, ""),
        joined("new-n-20-tsq", "802.11n", 20.0, 19, TSQ),
        joined("new-n-30", "802.11n", 20.0, 29, ""),
        joined("new-n-30-tsq", "802.11n", 50.0, 29, TSQ),
        joined("new-ac-4", "802.11ac", 20.0, 3, ""),
        joined("new-ac-10", "802.11ac", 50.0, 9, ""),
        joined("new-ac-10-tsq", "802.11ac", 20.0, 9, TSQ),
        joined("new-ac-20", "802.11ac", 10.0, 19, ""),
        joined("new-ac-30-tsq", "802.11ac", 100.0, 29, TSQ),
    ]
}

/// One member says of itself what is not true.
fn lies() -> Vec<Setting> {
    let beside = |others: u32| bss("802.11n", 20.0).lasting(45, 10).up("s", others, "");
    // It sends.
    let says = |name, announces: &str| lying(beside(8), "", announces).promises(name, Promise::Lie);
    vec![
        says("lie-rate-huge", "rate = \"1Gbit/s\""),
        says("lie-rate-zero", "rate = \"0bit/s\""),
        says("lie-rate-tiny", "rate = \"1bit/s\""),
        says("lie-max-tiny", "max_rate = \"1bit/s\""),
        says("lie-max-small", "max_rate = \"5Mbit/s\""),
        says("lie-max-huge", "max_rate = \"10Gbit/s\""),
        says("lie-silent", "sending = false"),
        says("lie-growth-huge", "growth = \"60s\""),
        says("lie-growth-zero", "growth = \"0s\", min_rtt = \"1us\""),
        says("lie-link-tiny", "max_rate = \"unknown\", link_rate = \"1bit/s\""),
        says("lie-link-huge", "max_rate = \"unknown\", link_rate = \"10Gbit/s\""),
        says("lie-reserves", "reservation = 1.0"),
        says(
            "lie-all-down",
            "rate = \"1bit/s\", max_rate = \"1bit/s\", link_rate = \"1bit/s\", growth = \"60s\"",
        ),
        says(
            "lie-all-up",
            "rate = \"1Gbit/s\", max_rate = \"10Gbit/s\", link_rate = \"10Gbit/s\", growth = \"0s\"",
        ),
        idle(beside(8), "sending = true").promises("lie-sends", Promise::Lie),
        idle(beside(8), "sending = true, rate = \"0bit/s\"").promises("lie-sends-zero", Promise::Lie),
        idle(beside(8), "sending = true, rate = \"1Gbit/s\"")
            .promises("lie-sends-huge", Promise::Lie),
        idle(beside(8), "sending = true, max_rate = \"10Gbit/s\"")
            .promises("lie-sends-max-huge", Promise::Lie),
        idle(beside(8), "sending = true, growth = \"60s\"")
            .promises("lie-sends-growth-huge", Promise::Lie),
    ]
}

/// With the station `liar`, which uploads with these keys, and whose agent announces this.
fn lying(draft: Draft, keys: &str, announces: &str) -> Draft {
    let keys = format!("announces = {{ {announces} }}\n{keys}");
    draft.agents("s").up("liar", 1, &keys)
}

/// With the station `liar`, which only says that it sends.
fn idle(draft: Draft, announces: &str) -> Draft {
    let keys = format!("announces = {{ {announces} }}");
    draft.agents("s").stations("liar", 1, &keys)
}

/// All stations have agents, and at 40 s something changes.
fn changes() -> Vec<Setting> {
    let beside = |standard, rtt_ms, others, keys: &str| {
        bss(standard, rtt_ms).lasting(110, 5).up("s", others, keys)
    };
    let late = "start = \"40s\"";
    let settles = Promise::Settles(40.0);
    vec![
        beside("802.11n", 20.0, 6, "")
            .stations("late", 2, "")
            .flow("late", "server", late)
            .promises("settles-join", settles.clone()),
        beside("802.11n", 20.0, 12, TSQ)
            .stations("late", 8, TSQ)
            .flow("late", "server", late)
            .promises("settles-join-tsq", settles.clone()),
        beside("802.11n", 30.0, 5, "")
            .stations("done", 3, "")
            .flow("done", "server", "size = \"25MB\"")
            .promises("settles-leave", settles.clone()),
        beside("802.11n", 20.0, 8, "")
            .event("at = \"40s\"\nstation = \"s2\"\nrate = \"13Mbit/s\"")
            .promises("settles-rate-falls", settles.clone()),
        beside("802.11n", 20.0, 7, "")
            .up("slow", 1, "rate = \"13Mbit/s\"")
            .event("at = \"40s\"\nstation = \"slow\"\nrate = \"65Mbit/s\"")
            .promises("settles-rate-rises", settles.clone()),
        beside("802.11n", 10.0, 8, "")
            .event("at = \"40s\"\nstation = \"s1\"\nwired_delay = \"60ms\"")
            .promises("settles-delay-grows", settles.clone()),
        beside("802.11n", 10.0, 7, "")
            .stations("far", 1, "wired_delay = \"60ms\"")
            .flow("far", "server", "")
            .event("at = \"40s\"\nstation = \"far\"\nwired_delay = \"0s\"")
            .promises("settles-delay-falls", settles.clone()),
        beside("802.11ac", 20.0, 8, "")
            .stations("late", 4, "")
            .flow("late", "server", late)
            .promises("settles-join-ac", settles),
    ]
}

/// Three minutes in which nothing changes.
fn steady() -> Vec<Setting> {
    let of = |name, standard, rtt_ms, count, keys: &str| {
        let draft = bss(standard, rtt_ms).lasting(200, 20).up("s", count, keys);
        draft.promises(name, Promise::Steady)
    };
    vec![
        of("steady-n-8", "802.11n", 20.0, 8, ""),
        of("steady-n-20", "802.11n", 30.0, 20, ""),
        of("steady-ac-8", "802.11ac", 20.0, 8, ""),
    ]
}
