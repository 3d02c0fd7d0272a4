//! The start of an agent, its privileges, the refusal of a second agent, the orderly end, and an interface that
//! vanishes and comes back.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use nix::sys::signal::Signal;
use wakeai_api::Request;

use wakeai_tests::agent::{BSSID, Fleet, in_namespace};
use wakeai_tests::bss::{Bss, WIFI};
use wakeai_tests::traffic::Upload;
use wakeai_tests::{Machine, leftovers, must, nothing_left, stderr, stdout, wait_for, wakeai};

/// `CAP_NET_ADMIN`, `CAP_PERFMON`, `CAP_BPF` (`<linux/capability.h>`).
const KEPT: u64 = 1 << 12 | 1 << 38 | 1 << 39;

#[test]
fn a_running_agent_has_three_capabilities_and_cannot_get_more() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let agent = Fleet::new().start(&bss, "a", 1, "");
    let processes = [agent.pid(), agent.serving()];
    assert_ne!(processes[0], processes[1], "one keeps the lease, the other serves");
    let tasks = processes.map(|pid| fs::read_dir(format!("/proc/{pid}/task")).unwrap());
    for task in tasks.into_iter().flatten() {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().to_owned()
        };
        let set = |name| u64::from_str_radix(&field(name), 16).unwrap();
        assert_eq!(set("CapEff:"), KEPT);
        assert_eq!(set("CapPrm:"), KEPT);
        assert_eq!(set("CapBnd:"), KEPT);
        assert_eq!((set("CapInh:"), set("CapAmb:")), (0, 0));
        assert_eq!(field("NoNewPrivs:"), "1");
    }
}

#[test]
fn a_second_agent_of_a_namespace_is_refused_and_the_first_goes_on() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let fleet = Fleet::new();
    let first = fleet.start(&bss, "a", 1, "");
    let config = fleet.configure(2, BSSID, "");
    let second = in_namespace(&bss, "a").args(["agent", "--config"]).arg(config).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let expected = format!(
        "an agent runs already in this network namespace (pid {}, interface {WIFI})",
        first.pid()
    );
    assert!(stderr(&second).contains(&expected), "{}", stderr(&second));
    assert_eq!(first.state(), "controlling");
}

#[test]
fn sigterm_undoes_every_change() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let uploads = ["cubic", "reno"].map(|algorithm| {
        let (from, to) = (bss.namespace("a"), bss.namespace("server"));
        (algorithm, Upload::start(from, &to, Ipv4Addr::new(10, 77, 0, 2), algorithm))
    });
    // The kernel may not allow CUBIC in a namespace. The default is then Reno.
    bss.set_default("a", "cubic");
    let before = bss.default("a");
    let law = "[law]\nname = \"fixed\"\nceiling = 5\n";
    let mut agent = Fleet::new().start(&bss, "a", 1, law);
    let during = bss.default("a");
    assert_eq!(during, format!("wakeai_{before}"));
    for (algorithm, upload) in &uploads {
        let ours = format!("wakeai_{algorithm}");
        wait_for("the connection is moved", || (upload.algorithm() == ours).then_some(()));
    }
    assert!(!leftovers().is_empty(), "while the agent runs, there is something to undo");

    assert!(agent.end(Signal::SIGTERM).success(), "{}", agent.log());
    assert_eq!(bss.default("a"), before);
    nothing_left();
    for (algorithm, upload) in &uploads {
        assert_eq!(upload.algorithm(), *algorithm);
        wait_for("the window grows again", || (upload.cwnd() > 5).then_some(()));
    }
    wakeai(&["sweep"]); // unmounts a bpffs that only Wakeai needed
}

#[test]
fn the_last_of_two_agents_removes_the_shared_parts() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b"]);
    let fleet = Fleet::new();
    let mut first = fleet.start(&bss, "a", 1, "");
    let mut second = fleet.start(&bss, "b", 2, "");
    assert!(first.end(Signal::SIGTERM).success());
    assert!(must("bpftool", "struct_ops list").contains("wakeai_cubic"));
    assert_eq!(second.state(), "controlling");
    assert!(second.end(Signal::SIGINT).success());
    nothing_left();
    wakeai(&["sweep"]);
}

#[test]
fn an_interface_may_go_down_vanish_and_come_back() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b"]);
    let fleet = Fleet::new();
    let agent = fleet.start(&bss, "a", 1, "");
    let _other = fleet.start(&bss, "b", 2, "");
    let heard = || (agent.peers() == [2]).then_some(());
    let is = |wanted: &str| (agent.state() == wanted).then_some(());
    wait_for("the peer is heard", heard);

    bss.ip("a", &format!("link set {WIFI} down"));
    wait_for("the agent waits for the interface that is down", || is("waiting-for-interface"));
    bss.ip("a", &format!("link set {WIFI} up"));
    wait_for("the agent controls again", || is("controlling"));
    wait_for("the peer is heard again", heard);

    bss.ip("a", &format!("addr flush dev {WIFI} scope global"));
    wait_for("the agent waits for an address", || is("waiting-for-address"));
    bss.ip("a", &format!("addr add 10.77.0.1/24 brd + dev {WIFI}"));
    wait_for("the agent has an address and controls", || is("controlling"));

    bss.ip("a", &format!("link del {WIFI}"));
    wait_for("the agent waits for the deleted interface", || is("waiting-for-interface"));
    assert!(agent.metric("faults_interface") > 0);
    bss.plug("a", WIFI);
    bss.ip("a", &format!("addr add 10.77.0.1/24 brd + dev {WIFI}"));
    wait_for("the agent controls over the new interface", || is("controlling"));
    let sent = agent.metric("presence_accepted");
    wait_for("the peer is heard over the new interface", || {
        (agent.metric("presence_accepted") > sent).then_some(())
    });
}

#[test]
fn without_a_law_nothing_is_changed() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let upload = Upload::start(
        bss.namespace("a"),
        &bss.namespace("server"),
        Ipv4Addr::new(10, 77, 0, 2),
        "cubic",
    );
    let agent = Fleet::new().start(&bss, "a", 1, "[law]\nname = \"none\"\n");
    let ticks = agent.metric("ticks");
    wait_for("some ticks pass", || (agent.metric("ticks") > ticks + 2).then_some(()));
    wait_for("the connection is seen", || {
        (agent.ask(Request::Status)["connections"][0]["sending"] == true).then_some(())
    });
    assert_eq!(upload.algorithm(), "cubic");
    assert!(!must("bpftool", "struct_ops list").contains("wakeai"));
}

#[test]
fn an_interface_that_is_no_wifi_needs_the_access_point_stated() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let fleet = Fleet::new();
    let run = |text: String| {
        let path = fleet.path("auto.toml");
        fs::write(&path, text).unwrap();
        in_namespace(&bss, "a").args(["agent", "--config"]).arg(path).output().unwrap()
    };
    let key = fleet.path("group.key");
    let shown = key.display().to_string();
    let auto = run(format!("interface = {WIFI:?}\nkey_file = {shown:?}\nstation = 1\n"));
    assert_eq!(auto.status.code(), Some(1));
    assert!(stderr(&auto).contains("is not a Wi-Fi station"), "{}", stderr(&auto));
    let missing = run(format!("interface = \"wlan9\"\nkey_file = {shown:?}\n"));
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("no interface wlan9; it has: "), "{}", stderr(&missing));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let open = run(format!("interface = {WIFI:?}\nkey_file = {shown:?}\n"));
    assert_eq!(open.status.code(), Some(2));
    assert!(stderr(&open).contains("found mode 644"), "{}", stderr(&open));
}

#[test]
fn where_the_default_is_bbr_an_agent_puts_wakeai_bbr_in_its_place() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    assert!(bss.set_default("a", "bbr"), "this kernel has no bbr, or does not allow it here");
    let doctor = in_namespace(&bss, "a").arg("doctor").stdout(Stdio::piped()).output().unwrap();
    assert!(stdout(&doctor).contains("bbr, in whose place an agent puts wakeai_bbr"));
    let (from, to) = (bss.namespace("a"), bss.namespace("server"));
    let upload = Upload::start(from, &to, Ipv4Addr::new(10, 77, 0, 2), "bbr");
    let law = "[law]\nname = \"fixed\"\nceiling = 5\n";
    let mut agent = Fleet::new().start(&bss, "a", 1, law);
    assert_eq!(bss.default("a"), "wakeai_bbr");
    wait_for("the connection is moved", || (upload.algorithm() == "wakeai_bbr").then_some(()));
    wait_for("the ceiling holds", || (upload.cwnd() <= 5).then_some(()));

    assert!(agent.end(Signal::SIGTERM).success(), "{}", agent.log());
    assert_eq!(bss.default("a"), "bbr");
    nothing_left();
    assert_eq!(upload.algorithm(), "bbr");
    wait_for("the window grows again", || (upload.cwnd() > 5).then_some(()));
    wakeai(&["sweep"]);
}
