//! The settings of the matrix with changes during the run, with steady load, and with members that
//! announce false values.

use super::setting::{Draft, Promise, Setting, TSQ, bss};

/// Keys of a flow with plain CUBIC, whose window no agent bounds.
const UNBOUND: &str = "jitter = '500ms'\nalgorithm = 'ns3_cubic'";
/// Keys of a station that does not announce its solo goodput.
const UNMEASURED: &str = "announces = { max_rate = 'unknown' }";

/// All settings of this file.
pub(super) fn all() -> Vec<Setting> {
    [newcomers(), obedient(), heedless(), silent(), changes(), steady()].concat()
}

/// Settings in which one station begins to send while `others` are sending, and all agents know
/// each other.
fn newcomers() -> Vec<Setting> {
    let joined = |name, standard, rtt_ms, others, keys: &'static str| {
        bss(standard, rtt_ms)
            .lasting(60, 5)
            .up("old", others, keys)
            .stations("new", 1, keys)
            .flow("new", "server", "start = '20s'")
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

/// Eight stations that announce true values.
fn honest(keys: &str) -> Draft {
    bss("802.11n", 20.0).lasting(45, 10).agents("s").up("s", 8, keys)
}

/// Settings in which a member that announces false values sends, and obeys the law itself.
fn obedient() -> Vec<Setting> {
    let says = |name, announces: &str| {
        let keys = format!("announces = {{ {announces} }}");
        honest("").up("liar", 1, &keys).promises(name, Promise::Lie)
    };
    vec![
        says("lie-rate-huge", "rate = '1Gbit/s'"),
        says("lie-rate-tiny", "rate = '1bit/s'"),
        says("lie-max-tiny", "max_rate = '1bit/s'"),
        says("lie-max-huge", "max_rate = '10Gbit/s'"),
        says("lie-silent", "sending = false"),
        says("lie-growth-huge", "growth = '60s'"),
        says("lie-growth-zero", "growth = '0s', min_rtt = '1us'"),
    ]
}

/// Settings in which a member that announces false values sends and obeys no law, so that its agent
/// affects nothing but the announcements.
fn heedless() -> Vec<Setting> {
    let beside = |draft: Draft, name, announces: &str| {
        let keys = format!("announces = {{ {announces} }}");
        draft
            .stations("liar", 1, &keys)
            .flow("liar", "server", UNBOUND)
            .promises(name, Promise::Lie)
    };
    let says = |name, announces: &str| beside(honest(""), name, announces);
    // No station's maximum is known, so the weights are the PHY rates.
    let by_link = |name, announces: &str| beside(honest(UNMEASURED), name, announces);
    vec![
        says("lie-hog-truth", "min_rtt = '20ms'"),
        says("lie-hog-rate-huge", "rate = '1Gbit/s'"),
        says("lie-hog-rate-zero", "rate = '0bit/s'"),
        says("lie-hog-rate-tiny", "rate = '1bit/s'"),
        says("lie-hog-max-tiny", "max_rate = '1bit/s'"),
        says("lie-hog-max-small", "max_rate = '5Mbit/s'"),
        says("lie-hog-max-huge", "max_rate = '10Gbit/s'"),
        says("lie-hog-silent", "sending = false"),
        says("lie-hog-growth-huge", "growth = '60s'"),
        says("lie-hog-growth-zero", "growth = '0s', min_rtt = '1us'"),
        Setting {
            promise: Promise::LieWithReservation(0.5),
            ..says("lie-hog-reserves", "reservation = 0.5")
        },
        says("lie-hog-reserves-all", "reservation = 1.0"),
        says(
            "lie-hog-all-down",
            "rate = '1bit/s', max_rate = '1bit/s', link_rate = '1bit/s', growth = '60s'",
        ),
        says(
            "lie-hog-all-up",
            "rate = '1Gbit/s', max_rate = '10Gbit/s', link_rate = '10Gbit/s', growth = '0s'",
        ),
        by_link("lie-hog-link-truth", "max_rate = 'unknown'"),
        by_link("lie-hog-link-tiny", "max_rate = 'unknown', link_rate = '1bit/s'"),
        by_link("lie-hog-link-huge", "max_rate = 'unknown', link_rate = '10Gbit/s'"),
        by_link("lie-hog-link-none", "max_rate = 'unknown', link_rate = 'unknown'"),
    ]
}

/// Settings in which a member that announces false values sends no data.
fn silent() -> Vec<Setting> {
    let beside = |draft: Draft, name, announces: &str| {
        let keys = format!("announces = {{ sending = true, {announces} }}");
        draft.stations("liar", 1, &keys).promises(name, Promise::Lie)
    };
    let says = |name, announces: &str| beside(honest(""), name, announces);
    let by_link = |name, announces: &str| beside(honest(UNMEASURED), name, announces);
    // Sixty liars stand for one member that announces sixty stations.
    let crowd = |name, announces: &str| {
        let keys = format!("announces = {{ sending = true, min_rtt = '20ms'{announces} }}");
        honest("").stations("liar", 60, &keys).promises(name, Promise::Lie)
    };
    vec![
        crowd("lie-crowd", ""),
        crowd("lie-crowd-rates", ", rate = '1Mbit/s', max_rate = '40Mbit/s'"),
        crowd("lie-crowd-growth", ", rate = '1bit/s', growth = '60s'"),
        says("lie-sends", "min_rtt = '20ms'"),
        says("lie-sends-rate-huge", "rate = '1Gbit/s', max_rate = '40Mbit/s'"),
        says("lie-sends-rate-tiny", "rate = '1bit/s', max_rate = '40Mbit/s'"),
        says("lie-sends-max-tiny", "rate = '5Mbit/s', max_rate = '1bit/s'"),
        says("lie-sends-max-huge", "rate = '5Mbit/s', max_rate = '10Gbit/s'"),
        says(
            "lie-sends-growth-huge",
            "rate = '5Mbit/s', max_rate = '40Mbit/s', min_rtt = '20ms', growth = '60s'",
        ),
        says(
            "lie-sends-growth-zero",
            "rate = '5Mbit/s', max_rate = '40Mbit/s', min_rtt = '1us', growth = '0s'",
        ),
        Setting {
            promise: Promise::LieWithReservation(0.5),
            ..says(
                "lie-sends-reserves",
                "rate = '5Mbit/s', max_rate = '40Mbit/s', reservation = 0.5",
            )
        },
        by_link("lie-sends-link-tiny", "rate = '5Mbit/s', link_rate = '1bit/s'"),
        by_link("lie-sends-link-huge", "rate = '5Mbit/s', link_rate = '10Gbit/s'"),
    ]
}

/// Settings in which all stations have agents and a change happens at 40 s.
fn changes() -> Vec<Setting> {
    let beside = |standard, rtt_ms, others, keys: &str| {
        bss(standard, rtt_ms).lasting(110, 5).up("s", others, keys)
    };
    let joins = |name, standard, others, late, keys: &str| {
        beside(standard, 20.0, others, keys)
            .stations("late", late, keys)
            .flow("late", "server", "start = '40s'")
            .promises(name, Promise::Settles(40.0))
    };
    let changes = |name, draft: Draft, station: &str, key: &str| {
        draft
            .event(&format!("at = '40s'\nstation = '{station}'\n{key}"))
            .promises(name, Promise::Settles(40.0))
    };
    let n = |rtt_ms, others| beside("802.11n", rtt_ms, others, "");
    let far = n(10.0, 7).stations("far", 1, "wired_delay = '60ms'").flow("far", "server", "");
    let [slower, faster] = ["rate = '13Mbit/s'", "rate = '65Mbit/s'"];
    vec![
        joins("settles-join", "802.11n", 6, 2, ""),
        joins("settles-join-tsq", "802.11n", 12, 8, TSQ),
        n(30.0, 5)
            .stations("done", 3, "")
            .flow("done", "server", "size = '25MB'")
            .promises("settles-leave", Promise::Settles(40.0)),
        changes("settles-rate-falls", n(20.0, 7).up("slowed", 1, ""), "slowed", slower),
        changes("settles-rate-rises", n(20.0, 7).up("sped", 1, slower), "sped", faster),
        changes("settles-delay-grows", n(10.0, 8), "s1", "wired_delay = '60ms'"),
        changes("settles-delay-grows-of-two", n(10.0, 2), "s1", "wired_delay = '20ms'"),
        changes("settles-delay-falls", far, "far", "wired_delay = '0s'"),
        joins("settles-join-ac", "802.11ac", 8, 4, ""),
    ]
}

/// Settings that last three minutes and in which nothing changes.
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
