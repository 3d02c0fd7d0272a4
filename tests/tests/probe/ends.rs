//! Listener and sender end by themselves when the other one is gone.

use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use wakeai_tests::probe::Listener;
use wakeai_tests::{stderr, wait_for, wakeai};

/// The program under test, in the namespace of the test.
fn here() -> Command {
    let mut command = Command::new(wakeai_tests::program());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn sender(listener: &Listener) -> Command {
    let mut command = here();
    command.args(["probe", "buffer", "--json"]).args(listener.peer());
    command
}

#[test]
fn a_listener_ends_when_nobody_comes() {
    let mut listener = Listener::start(here(), "buffer", "127.0.0.1:0", &["--wait", "300ms"]);
    let (status, ended) = listener.end();
    assert_eq!((status.code(), &ended["ending"]), (Some(1), &"nobody_came".into()));
}

#[test]
fn a_sender_ends_when_its_listener_is_killed_and_a_listener_when_its_sender_is() {
    let mut listener = Listener::start(here(), "buffer", "127.0.0.1:0", &[]);
    let mut running = sender(&listener).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    listener.child.kill().unwrap();
    wait_for("the sender ends", || running.try_wait().unwrap());
    let said = stderr(&running.wait_with_output().unwrap());
    assert!(said.contains("has not answered for") || said.contains("does not answer"), "{said}");

    let mut listener = Listener::start(here(), "buffer", "127.0.0.1:0", &[]);
    let mut running = sender(&listener).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    running.kill().unwrap();
    running.wait().unwrap();
    wait_for("the listener ends", || listener.child.try_wait().unwrap());
    assert_eq!(listener.end().1["ending"], "silence");
}

#[test]
fn ctrl_c_ends_both_ends_and_the_listener_learns_of_it() {
    let mut listener = Listener::start(here(), "buffer", "127.0.0.1:0", &[]);
    let mut running = sender(&listener).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    kill(Pid::from_raw(running.id().cast_signed()), Signal::SIGINT).unwrap();
    wait_for("the sender ends", || running.try_wait().unwrap());
    assert_eq!(running.wait().unwrap().code(), Some(130));
    let (status, ended) = listener.end();
    assert!(status.success(), "{ended}");
    assert_eq!(ended["ending"], "done");
}

#[test]
fn where_the_way_is_as_fast_as_the_sender_the_command_says_that_no_queue_fills() {
    // A listening socket of both address families answers a sender of either family.
    for (listen, to) in
        [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "[::1]"), ("[::]:0", "127.0.0.1")]
    {
        if listen != "127.0.0.1:0" && std::net::UdpSocket::bind("[::1]:0").is_err() {
            println!("SKIPPED: no IPv6 here");
            continue;
        }
        let listener = Listener::start(here(), "buffer", listen, &[]);
        let port = listener.address.rsplit_once(':').unwrap().1;
        let to = format!("{to}:{port}");
        let found = wakeai(&["probe", "buffer", "--to", &to, "--token", &listener.token]);
        assert_eq!(found.status.code(), Some(1));
        assert!(
            stderr(&found).contains("does not fill; raise --rate"),
            "{listen}: {}",
            stderr(&found)
        );
    }
}

#[test]
fn a_wrong_token_gets_no_answer() {
    let listener = Listener::start(here(), "buffer", "127.0.0.1:0", &[]);
    let wrong = "0".repeat(32);
    let found = wakeai(&["probe", "buffer", "--to", &listener.address, "--token", &wrong]);
    assert_eq!(found.status.code(), Some(1));
    assert!(stderr(&found).contains("does not answer"), "{}", stderr(&found));
}

#[test]
fn tokens_and_addresses_that_do_not_belong_together_are_bad_usage() {
    let token = "0".repeat(32);
    let cases: [&[&str]; 6] = [
        &[],
        &["--listen", "--to", "192.0.2.1", "--token", &token],
        &["--to", "192.0.2.1"],
        &["--to", "192.0.2.1", "--to", "192.0.2.2", "--token", &token],
        &["--to", "192.0.2.1", "--token", "secret"],
        &["--to", "192.168.1", "--token", &token],
    ];
    for arguments in cases {
        let found = wakeai(&[&["probe", "buffer"] as &[&str], arguments].concat());
        assert_eq!(found.status.code(), Some(2), "{arguments:?}: {}", stderr(&found));
    }
}
