//! The next command after `kill -9` undoes the changes of the killed process.

use std::process::Command;

use nix::sys::signal::Signal;

use crate::cgroups::{Client, Group};
use crate::rig::{BEHIND, SERVER, Talk, Use, hosts, is_as_before, state};
use wakeai_tests::{Machine, stderr, wait_for, wakeai};

#[test]
fn after_kill_9_the_next_command_undoes_every_change() {
    let Some(_machine) = Machine::take() else { return };
    let (bss, group) = (hosts(), Group::new());
    bss.ip("a", "route change 192.0.2.0/24 via 10.77.0.2 mtu 1400 initcwnd 12 congctl cubic");
    let before = state(&bss);
    for algorithm in ["bbr", "wakeai_rtt"] {
        let existing = [Talk::open(&bss, SERVER), Talk::asking(&bss, SERVER, Some("cubic"))];
        let mut moving = Use::start(&bss, &format!("{algorithm} --connections"));
        let mut over = Use::start(&bss, &format!("{algorithm} --route 192.0.2.0/24"));
        let mut everything = Use::start(&bss, algorithm);
        let mut service = Use::run(&format!("{algorithm} --cgroup {}", group.path()), &[]);
        let (new, behind) = (Talk::open(&bss, SERVER), Talk::open(&bss, BEHIND));
        let client = Client::start(&bss, group.path());
        let talks = [&existing[0], &existing[1], &new, &behind];
        assert_eq!(talks.map(Talk::algorithm), [algorithm; 4]);

        for dying in [&mut moving, &mut over, &mut everything, &mut service] {
            dying.end(Signal::SIGKILL);
        }
        assert_eq!(
            talks.map(Talk::algorithm),
            [algorithm; 4],
            "nothing has undone the assignments"
        );
        let any = wakeai(&["sweep"]);
        assert!(any.status.success());
        let said = stderr(&any);
        for word in ["sysctl", "route to 192.0.2.0/24", "connections that were moved to"] {
            assert!(said.contains(word), "{word}: {said}");
        }
        assert!(!said.contains("warning"), "{said}");
        // The last connection gets the algorithm that its route had before.
        assert_eq!(talks.map(Talk::algorithm), ["reno", "cubic", "reno", "cubic"]);
        assert_eq!(client.algorithm(&bss), "reno");
        drop((client, existing, new, behind));
        is_as_before(&bss, &before);
        assert_eq!(stderr(&wakeai(&["sweep"])), "", "the second command finds nothing");
    }
}

#[test]
fn undoing_a_dead_assignment_leaves_a_living_one_alone() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    let (its, others) = (Talk::open(&bss, SERVER), Talk::open(&bss, BEHIND));
    let mut dying = Use::start(&bss, &format!("wakeai_rtt --connections --to {}", its.to()));
    let mut living = Use::start(&bss, &format!("wakeai_rtt --connections --to {}", others.to()));
    dying.end(Signal::SIGKILL);
    assert!(wakeai(&["sweep"]).status.success());
    assert_eq!(its.algorithm(), "reno");
    assert_eq!(others.algorithm(), "wakeai_rtt");
    living.ends_well();
    assert_eq!(others.algorithm(), "reno");
}

/// The algorithms in the kernel are shared with the machine, but a container has processes, pins and leases of its own.
#[test]
fn a_sweep_in_a_container_leaves_the_machines_assignments_alone() {
    let Some(_machine) = Machine::take() else { return };
    let (bss, group) = (hosts(), Group::new());
    let before = state(&bss);
    let mut living = Use::run(&format!("wakeai_rtt --cgroup {}", group.path()), &[]);
    let earlier = Client::start(&bss, group.path());
    wait_for("the algorithm is assigned", || {
        (earlier.algorithm(&bss) == "wakeai_rtt").then_some(())
    });

    let inside = |command: &str| {
        let mounts = "mount -t tmpfs none /run && mount -t bpf none /sys/fs/bpf";
        let script = format!("{mounts} && exec \"$0\" {command}");
        Command::new("unshare")
            .args(["--pid", "--fork", "--mount-proc", "--mount", "sh", "-c", &script])
            .arg(wakeai_tests::program())
            .output()
            .unwrap()
    };
    let swept = inside("sweep");
    assert!(swept.status.success());
    assert_eq!(stderr(&swept), "");
    let refused = inside("use wakeai_reno --for 1s");
    assert_eq!(refused.status.code(), Some(1));
    for word in ["from outside this container", "`nsenter --net=/run/netns/NAME wakeai ...`"] {
        assert!(stderr(&refused).contains(word), "{}", stderr(&refused));
    }

    let later = Client::start(&bss, group.path());
    wait_for("the algorithm is assigned", || (later.algorithm(&bss) == "wakeai_rtt").then_some(()));
    // If the sweep had marked the connection to be restored, its algorithm would change at an ACK.
    for _ in 0..3 {
        earlier.talk();
    }
    assert_eq!(earlier.algorithm(&bss), "wakeai_rtt");
    living.ends_well();
    drop((earlier, later));
    is_as_before(&bss, &before);
}
