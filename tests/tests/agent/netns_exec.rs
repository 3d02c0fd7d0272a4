//! Commands under `ip netns exec`, which mounts a separate `/sys` for them.

use std::fs;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;

use wakeai_tests::agent::Fleet;
use wakeai_tests::bss::Bss;
use wakeai_tests::traffic::Upload;
use wakeai_tests::{Machine, nothing_left, stderr, stdout, wait_for, wakeai};

/// The program under test as `ip netns exec` runs it.
fn exec(bss: &Bss, name: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &bss.name(name), wakeai_tests::program()]);
    command.stdin(Stdio::null());
    command
}

#[test]
fn an_agent_under_ip_netns_exec_shares_the_registration() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b"]);
    let fleet = Fleet::new();
    let law = "[law]\nname = \"fixed\"\nceiling = 5\n";
    let (from, to) = (bss.namespace("b"), bss.namespace("a"));
    let upload = Upload::start(from, &to, Ipv4Addr::new(10, 77, 0, 1), "cubic");
    let mut first = fleet.start(&bss, "a", 1, law);
    let mut second = fleet.start_by(exec(&bss, "b"), &bss, "b", 2, law);
    wait_for("the connection is bound", || (upload.cwnd() <= 5).then_some(()));
    assert_eq!(upload.algorithm(), "wakeai_cubic");
    assert!(first.end(Signal::SIGTERM).success());
    wait_for("the second agent controls", || (second.state() == "controlling").then_some(()));
    assert!(second.end(Signal::SIGTERM).success(), "{}", second.log());
    assert_eq!(upload.algorithm(), "cubic");
    nothing_left();
    wakeai(&["sweep"]); // unmounts a bpffs that only Wakeai needed
}

#[test]
fn the_first_to_register_may_be_under_ip_netns_exec() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b"]);
    let fleet = Fleet::new();
    let mut first = fleet.start_by(exec(&bss, "a"), &bss, "a", 1, "");
    let mut second = fleet.start(&bss, "b", 2, "");
    wait_for("the second agent controls", || (second.state() == "controlling").then_some(()));
    assert!(second.end(Signal::SIGTERM).success());
    assert!(first.end(Signal::SIGTERM).success(), "{}", first.log());
    nothing_left();
    wakeai(&["sweep"]);
}

#[test]
fn use_proxy_and_doctor_work_there_while_an_agent_holds_the_registration() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b"]);
    let _agent = Fleet::new().start(&bss, "a", 1, "");
    let used = exec(&bss, "b").args(["use", "wakeai_rtt", "--connections"]).output().unwrap();
    // The command could read the connections, and found none.
    assert_eq!(used.status.code(), Some(1), "{}", stderr(&used));
    assert!(stderr(&used).contains("there is no such connection"), "{}", stderr(&used));
    let hidden = exec(&bss, "b").args(["use", "wakeai_rtt", "--cgroup", "/any"]).output().unwrap();
    assert_eq!(hidden.status.code(), Some(77), "{}", stderr(&hidden));
    assert!(stderr(&hidden).contains("`ip netns exec` hides it"), "{}", stderr(&hidden));
    let doctor = exec(&bss, "b").arg("doctor").output().unwrap();
    assert!(stdout(&doctor).contains("bpffs: mounted at /sys/fs/bpf"), "{}", stdout(&doctor));

    let listen = ["--listen", "127.0.0.1:1080", "--json"];
    let mut proxy = exec(&bss, "b")
        .args(["proxy", "--algorithm", "wakeai_cubic"])
        .args(listen)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = std::io::BufReader::new(proxy.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    assert!(line.contains("\"listening\""), "{line:?}");
    let pid = nix::unistd::Pid::from_raw(proxy.id().cast_signed());
    nix::sys::signal::kill(pid, Signal::SIGTERM).unwrap();
    assert!(proxy.wait().unwrap().success());
}

/// An agent cannot unmount a bpffs that it has mounted, because it keeps no privilege for that. It records the mount,
/// and a later command unmounts it.
#[test]
fn a_command_that_does_not_see_the_bpffs_keeps_its_note() {
    let Some(_machine) = Machine::take() else { return };
    let is_mounted = || fs::read_to_string("/proc/mounts").unwrap().contains(" /sys/fs/bpf ");
    wakeai(&["sweep"]);
    if is_mounted() {
        return println!("SKIPPED: another program has mounted the bpffs of this machine");
    }
    let bss = Bss::new(&["a"]);
    let mut agent = Fleet::new().start(&bss, "a", 1, "");
    assert!(agent.end(Signal::SIGTERM).success());
    assert!(is_mounted(), "the agent may not unmount it");
    // The command is process 1 of its PID namespace, so it takes its own mounts for those of the machine.
    let script = "umount /sys/fs/bpf && exec \"$0\" sweep";
    let elsewhere = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "--mount", "sh", "-c", script])
        .arg(wakeai_tests::program())
        .status();
    assert!(elsewhere.unwrap().success());
    assert!(is_mounted());
    wakeai(&["sweep"]);
    assert!(!is_mounted(), "the next command that sees the bpffs unmounts it");
}

#[test]
fn an_agent_works_where_the_loopback_is_down() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    bss.ip("a", "address flush dev lo");
    bss.ip("a", "link set lo down");
    let agent = Fleet::new().start(&bss, "a", 1, "");
    assert_eq!(agent.state(), "controlling");
}
