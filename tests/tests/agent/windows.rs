//! Receive windows, unlike the bounds of sending, do not expire: whoever is left of an agent puts them back.

use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use nix::sys::signal::Signal;

use wakeai_tests::agent::{Agent, Fleet, send};
use wakeai_tests::bss::{Bss, WIFI};
use wakeai_tests::traffic::Download;
use wakeai_tests::{Machine, leftovers, nothing_left, stderr, wait_for, wakeai};

const LAW: &str = "[law]\nname = \"fixed\"\nreceive = 4\n";

fn bounded_station(bss: &Bss) -> (Agent, Download) {
    let agent = Fleet::new().start(bss, "a", 1, LAW);
    let download = Download::start(bss, "a", [10, 77, 0, 2]);
    download.bounded();
    (agent, download)
}

#[test]
fn an_agent_that_ends_puts_windows_back() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let (mut agent, download) = bounded_station(&bss);
    assert!(agent.end(Signal::SIGTERM).success());
    assert!(!download.is_bounded());
    nothing_left();
}

#[test]
fn windows_of_an_agent_that_hangs_are_put_back_until_it_runs_again() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let (agent, download) = bounded_station(&bss);
    let serving = agent.serving();
    send(serving, Signal::SIGSTOP);
    download.put_back();
    send(serving, Signal::SIGCONT);
    download.bounded();
}

#[test]
fn after_kill_9_of_one_of_the_two_processes_the_other_puts_windows_back() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let (mut agent, download) = bounded_station(&bss);
    send(agent.serving(), Signal::SIGKILL);
    download.put_back();
    assert_eq!(agent.wait().code(), Some(1));
    drop((agent, download));
    nothing_left();

    let (mut agent, download) = bounded_station(&bss);
    let serving = agent.serving();
    assert_eq!(agent.end(Signal::SIGKILL).signal(), Some(9));
    download.put_back();
    let process = format!("/proc/{serving}");
    wait_for("the other process ends", || (!std::path::Path::new(&process).exists()).then_some(()));
    assert!(wakeai(&["sweep"]).status.success());
    nothing_left();
}

/// Kills both processes of an agent before either can notice the end of the other.
fn kill_both(agent: &mut Agent) {
    let both = [agent.pid(), agent.serving()];
    for process in both {
        send(process, Signal::SIGSTOP);
    }
    send(both[1], Signal::SIGKILL);
    agent.end(Signal::SIGKILL);
}

#[test]
fn after_kill_9_of_both_processes_the_next_command_puts_windows_back() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let (mut agent, download) = bounded_station(&bss);
    kill_both(&mut agent);
    std::thread::sleep(Duration::from_secs(2)); // bounds of sending have expired
    assert!(download.is_bounded(), "nobody is left");
    assert!(!leftovers().is_empty());
    let any = wakeai(&["completion", "bash"]);
    assert!(any.status.success());
    assert!(stderr(&any).contains("bounds of receive windows"), "{}", stderr(&any));
    assert!(!download.is_bounded());
    nothing_left();
}

#[test]
fn the_next_command_puts_back_the_windows_of_a_dead_agent_beside_a_living_one() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "b", "server"]);
    let fleet = Fleet::new();
    let mut dying = fleet.start(&bss, "a", 1, LAW);
    let living = fleet.start(&bss, "b", 2, LAW);
    let server = [10, 77, 0, 3];
    let downloads = [Download::start(&bss, "a", server), Download::start(&bss, "b", server)];
    for download in &downloads {
        download.bounded();
    }
    kill_both(&mut dying);
    // The heartbeat of the dead agent may still be fresh.
    assert!(wakeai(&["sweep"]).status.success());
    assert!(!downloads[0].is_bounded());
    assert!(downloads[1].is_bounded());
    assert_eq!(living.state(), "controlling");
}

#[test]
fn windows_are_put_back_when_the_interface_goes() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server"]);
    let (agent, download) = bounded_station(&bss);
    bss.ip("a", &format!("link del {WIFI}"));
    download.put_back();
    wait_for("the agent waits for the interface", || {
        (agent.state() == "waiting-for-interface").then_some(())
    });
}
