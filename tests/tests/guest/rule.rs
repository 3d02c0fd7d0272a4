//! `wakeai use`.

use std::fs;
use std::time::Instant;

use crate::passed;
use crate::rig::{SERVER, Talk, Use, hosts, is_as_before, state};
use wakeai_tests::{stderr, wakeai};

const CGROUPS: &str = "/sys/fs/cgroup";

pub(crate) fn moves_connections_and_covers_a_cgroup() {
    let began = Instant::now();
    wakeai(&["sweep"]); // unmounts a bpffs that only Wakeai needed
    let bss = hosts();
    let before = state(&bss);
    let short = wakeai(&["use", "wakeai_reno", "--namespace", &bss.name("a"), "--for", "1s"]);
    assert!(short.status.success(), "{}", stderr(&short));
    assert!(!stderr(&short).contains("sockets"), "there are none: {}", stderr(&short));
    let talk = Talk::asking(&bss, SERVER, Some("cubic"));
    let mut existing = Use::start(&bss, "wakeai_rtt --connections");
    assert_eq!(talk.algorithm(), "wakeai_rtt");
    existing.ends_well();
    assert_eq!(talk.algorithm(), "cubic", "the connection has its own algorithm again");

    let mut route = Use::start(&bss, "bbr --route 192.0.2.0/24");
    assert_eq!(Talk::open(&bss, crate::rig::BEHIND).algorithm(), "bbr");
    route.ends_well();

    let group = format!("{CGROUPS}/ruled");
    fs::create_dir(&group).unwrap();
    let enter = |group: &str| {
        fs::write(format!("{group}/cgroup.procs"), std::process::id().to_string()).unwrap();
    };
    let mut cgroup = Use::run(&format!("wakeai_cubic --cgroup {group}"), &[]);
    enter(&group);
    let inside = Talk::open(&bss, SERVER);
    enter(CGROUPS);
    assert_eq!(inside.algorithm(), "wakeai_cubic");
    assert_eq!(
        Talk::open(&bss, SERVER).algorithm(),
        "reno",
        "the connection is outside of the cgroup"
    );
    cgroup.ends_well();
    assert_eq!(inside.algorithm(), "reno");

    let mut everything = Use::start(&bss, "wakeai_compound");
    assert_eq!(Talk::open(&bss, SERVER).algorithm(), "wakeai_compound");
    everything.ends_well();
    drop((talk, inside));
    fs::remove_dir(group).unwrap();
    wakeai(&["sweep"]);
    is_as_before(&bss, &before);
    passed("`use` ruled connections, a route, a cgroup and a namespace", began);
}
