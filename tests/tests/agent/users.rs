//! Attacks by other users of the machine on an agent and on commands.

use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Output};

use nix::sys::signal::Signal;
use wakeai_api::config::DEFAULT_PORT;
use wakeai_host::Namespace;

use wakeai_tests::agent::{Agent, BSSID, Fleet, in_namespace, send};
use wakeai_tests::bss::{Bss, WIFI};
use wakeai_tests::{Machine, leftovers, must, nothing_left, stderr, wait_for, wakeai};

const LEASES: &str = "/run/wakeai/leases";
const LOCKS: [&str; 2] = ["/run/wakeai/leases/.lock", "/run/wakeai/kernel.lock"];

/// Another user, who needs no entry in /etc/passwd.
const STRANGER: [&str; 4] = ["--reuid=65533", "--regid=65533", "--clear-groups", "--"];

#[test]
fn no_other_user_can_hold_a_lock_not_even_an_old_one() {
    let Some(_machine) = Machine::take() else { return };
    fs::create_dir_all(LEASES).unwrap();
    fs::set_permissions(LEASES, Permissions::from_mode(0o755)).unwrap();
    for lock in LOCKS {
        fs::write(lock, "").unwrap();
        fs::set_permissions(lock, Permissions::from_mode(0o644)).unwrap();
    }
    assert!(wakeai(&["sweep"]).status.success());
    for lock in LOCKS {
        let mut stranger = Command::new("setpriv");
        stranger.args(STRANGER).args(["flock", "--nonblock", lock, "true"]);
        let found = stranger.output().unwrap();
        assert!(!found.status.success(), "{lock} can be held by everybody");
        assert!(stderr(&found).contains("Permission denied"), "{}", stderr(&found));
    }
}

#[test]
fn status_tells_another_user_that_it_may_not_ask() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let fleet = Fleet::new();
    let program = fleet.program();
    let status = || {
        let mut stranger = Command::new("setpriv");
        stderr(&stranger.args(STRANGER).arg(&program).arg("status").output().unwrap())
    };
    assert!(status().contains("no agent runs on this machine"), "{}", status());
    let _agent = fleet.start(&bss, "a", 1, "");
    assert!(status().contains("only root, the agent's user"), "{}", status());
}

/// Binds the UDP port of presence messages in this process.
fn take_port(namespace: &Namespace) -> std::io::Result<UdpSocket> {
    namespace.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, DEFAULT_PORT))).unwrap()
}

#[test]
fn nobody_takes_the_port_while_the_interface_is_down_or_gone() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b"]);
    let fleet = Fleet::new();
    let agent = fleet.start(&bss, "a", 1, "");
    let _other = fleet.start(&bss, "b", 2, "");
    let is = |wanted: &str| (agent.state() == wanted).then_some(());
    wait_for("the peer is heard", || (agent.peers() == [2]).then_some(()));

    bss.ip("a", &format!("link set {WIFI} down"));
    wait_for("the agent waits for the interface that is down", || is("waiting-for-interface"));
    take_port(&bss.namespace("a")).unwrap_err();
    bss.ip("a", &format!("link set {WIFI} up"));
    wait_for("the agent controls again", || is("controlling"));
    let accepted = agent.metric("presence_accepted");
    let heard = || (agent.metric("presence_accepted") > accepted).then_some(());
    wait_for("the peer is heard again", heard);

    bss.ip("a", &format!("link del {WIFI}"));
    wait_for("the agent waits for the deleted interface", || is("waiting-for-interface"));
    take_port(&bss.namespace("a")).unwrap_err();
}

#[test]
fn a_start_whose_port_is_in_use_names_the_process() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let fleet = Fleet::new();
    let _holder = take_port(&bss.namespace("a")).unwrap();
    let config = fleet.configure(1, BSSID, "");
    let found = in_namespace(&bss, "a").args(["agent", "--config"]).arg(config).output().unwrap();
    assert_eq!(found.status.code(), Some(1));
    let expected = format!("process {} (", std::process::id());
    assert!(stderr(&found).contains(&expected), "{}", stderr(&found));
    nothing_left();
    wakeai(&["sweep"]);
}

/// The lease of a running agent.
fn lease(agent: &Agent) -> std::path::PathBuf {
    let prefix = format!("{}-", agent.pid());
    let files = fs::read_dir(LEASES).unwrap().map(|entry| entry.unwrap());
    let mut its = files.filter(|file| {
        let name = file.file_name().into_string().unwrap();
        name.starts_with(&prefix) && file.path().extension().is_some_and(|of| of == "json")
    });
    its.next().unwrap().path()
}

#[test]
fn a_sweep_keeps_the_lease_of_an_agent_of_another_version() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let mut agent = Fleet::new().start(&bss, "a", 1, "");
    let (lease, good) = (lease(&agent), fs::read(lease(&agent)).unwrap());
    fs::write(&lease, r#"{"process":{"pid":1},"role":{"role":"of-a-later-version"}}"#).unwrap();
    let swept = stderr(&wakeai(&["sweep"]));
    assert!(swept.contains(&format!("the running process {} ", agent.pid())), "{swept}");
    assert!(lease.exists());
    let ticks = agent.metric("ticks");
    wait_for("some ticks pass", || (agent.metric("ticks") > ticks + 2).then_some(()));
    assert_eq!(agent.state(), "controlling");
    fs::write(&lease, good).unwrap();
    assert!(agent.end(Signal::SIGTERM).success());
    wakeai(&["sweep"]);
    nothing_left();
}

#[test]
fn an_agent_that_cannot_write_bounds_is_without_bounds() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let mut agent = Fleet::new().start(&bss, "a", 1, "");
    let is = |wanted: &str| (agent.state() == wanted).then_some(());
    wait_for("the agent controls", || is("controlling"));
    // From now on the kernel refuses each write of the map from user space.
    must("bpftool", "map freeze pinned /sys/fs/bpf/wakeai/interface_bounds");
    wait_for("the agent reports that it is without bounds", || is("without-bounds"));
    assert!(agent.metric("faults_bound") > 0);
    assert!(agent.end(Signal::SIGTERM).success());
    wakeai(&["sweep"]);
    nothing_left();
}

#[test]
fn an_agent_whose_algorithms_are_gone_is_without_bounds() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b"]);
    let fleet = Fleet::new();
    let mut agent = fleet.start(&bss, "a", 1, "");
    let is = |agent: &Agent, wanted: &str| (agent.state() == wanted).then_some(());
    wait_for("the agent controls", || is(&agent, "controlling"));
    fs::remove_dir_all("/sys/fs/bpf/wakeai").unwrap(); // the last references
    wait_for("the agent reports that it is without bounds", || is(&agent, "without-bounds"));
    assert!(agent.log().contains("not registered any more"), "{}", agent.log());

    // The new algorithms have the same names, but read other maps.
    let mut other = fleet.start(&bss, "b", 2, "");
    wait_for("the other agent controls", || is(&other, "controlling"));
    let ticks = agent.metric("ticks");
    wait_for("some ticks pass", || (agent.metric("ticks") > ticks + 2).then_some(()));
    assert_eq!(agent.state(), "without-bounds");
    assert!(agent.end(Signal::SIGTERM).success());
    assert!(other.end(Signal::SIGTERM).success());
    wakeai(&["sweep"]);
    nothing_left();
}

/// The value of a field in `/proc/PID/status`.
fn status_of(pid: u32, field: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().to_owned()
}

/// The capabilities that the process may use (`<linux/capability.h>`).
fn capabilities(pid: u32) -> u64 {
    u64::from_str_radix(&status_of(pid, "CapPrm:"), 16).unwrap()
}

const KEPT: u64 = 1 << 12 | 1 << 38 | 1 << 39; // NET_ADMIN, PERFMON, BPF
const KILL: u64 = 1 << 5;
const NOBODY: &str = "65534";

#[test]
fn with_a_user_the_agent_runs_as_it_and_undoes_every_change() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b"]);
    let before = bss.default("a");
    let fleet = Fleet::new();
    let mut agent = fleet.start_as(&bss, "a", 1, &["--user", "nobody"]);
    let _other = fleet.start(&bss, "b", 2, "");
    wait_for("the agent controls", || (agent.state() == "controlling").then_some(()));
    wait_for("the peer is heard", || (agent.peers() == [2]).then_some(()));
    assert_eq!(bss.default("a"), format!("wakeai_{before}"));

    let pid = agent.serving();
    assert_ne!(pid, agent.pid());
    let ids: Vec<_> = status_of(pid, "Uid:").split_whitespace().map(str::to_owned).collect();
    assert_eq!(ids, [NOBODY; 4]);
    assert_eq!(status_of(pid, "Groups:"), "");
    assert_eq!(
        capabilities(pid),
        KEPT,
        "the serving process owns nothing, and has no capability to override permissions"
    );
    assert_eq!(capabilities(agent.pid()), KEPT | KILL);
    let lease = fs::metadata(lease(&agent)).unwrap();
    assert_eq!(
        (lease.uid(), lease.mode() & 0o777),
        (0, 0o600),
        "only root may write the lease, because the sweep executes it as root"
    );

    assert!(agent.end(Signal::SIGTERM).success(), "{}", agent.log());
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(bss.default("a"), before);
    assert!(!leftovers().iter().any(|left| left.contains(&format!("/{}-", agent.pid()))));
}

#[test]
fn the_end_of_either_process_ends_both() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let before = bss.default("a");
    let fleet = Fleet::new();
    for options in [&["--user", "nobody"][..], &[]] {
        let mut agent = fleet.start_as(&bss, "a", 1, options);
        send(agent.serving(), Signal::SIGKILL);
        assert!(!agent.wait().success(), "{}", agent.log());
        assert_eq!(bss.default("a"), before, "the other process has restored it");
        nothing_left();
    }

    let mut agent = fleet.start_as(&bss, "a", 1, &["--user", "nobody"]);
    let pid = agent.serving();
    agent.end(Signal::SIGKILL);
    wait_for("the serving process ends", || {
        (!Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    });
    wakeai(&["sweep"]);
    assert_eq!(bss.default("a"), before);
    nothing_left();
}

/// The output of an agent that should refuse to start. timeout(1) ends an agent that starts, with status 124.
fn refused_start(bss: &Bss, name: &str, config: &Path) -> Output {
    let program = in_namespace(bss, name);
    let mut start = Command::new("timeout");
    start.arg("30").arg(program.get_program()).args(program.get_args());
    start.args(["agent", "--config"]).arg(config).output().unwrap()
}

#[test]
fn pins_in_a_directory_of_another_user_are_refused() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b"]);
    let fleet = Fleet::new();
    let _agent = fleet.start(&bss, "a", 1, "");
    std::os::unix::fs::chown("/sys/fs/bpf/wakeai", Some(65533), None).unwrap();
    let config = fleet.configure(2, BSSID, "");
    let found = refused_start(&bss, "b", &config);
    std::os::unix::fs::chown("/sys/fs/bpf/wakeai", Some(0), None).unwrap();
    assert_eq!(found.status.code(), Some(1));
    assert!(stderr(&found).contains("a directory of user 65533"), "{}", stderr(&found));
}

#[test]
fn a_configuration_or_key_that_others_may_change_is_refused() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let fleet = Fleet::new();
    let config = fleet.configure(1, BSSID, "");
    let refused = || {
        let found = refused_start(&bss, "a", &config);
        assert_eq!(found.status.code(), Some(2));
        stderr(&found)
    };
    fs::set_permissions(&config, Permissions::from_mode(0o666)).unwrap();
    assert!(refused().contains("chmod go-w"), "{}", refused());
    fs::set_permissions(&config, Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::chown(fleet.path("group.key"), Some(65533), None).unwrap();
    assert!(refused().contains("found user 65533"), "{}", refused());
}
