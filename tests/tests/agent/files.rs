//! The agent and the sweep never remove a user's file at or near the path of the agent's socket.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Output;

use nix::sys::signal::Signal;

use wakeai_tests::agent::{BSSID, Fleet, in_namespace};
use wakeai_tests::bss::Bss;
use wakeai_tests::{Machine, nothing_left, stderr, wakeai};

fn api(socket: &Path) -> String {
    format!("[api]\nsocket = \"{}\"\n", socket.display())
}

fn start_at(fleet: &Fleet, bss: &Bss, socket: &Path) -> Output {
    let config = fleet.configure(1, BSSID, &api(socket));
    in_namespace(bss, "a").args(["agent", "--config"]).arg(config).output().unwrap()
}

#[test]
fn another_file_at_the_path_of_the_socket_is_kept_and_named() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let fleet = Fleet::new();
    let (directory, file) = (fleet.path("archive"), fleet.path("notes.txt"));
    let (link, live) = (fleet.path("link"), fleet.path("live.sock"));
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("thesis.tex"), "years of work").unwrap();
    fs::write(&file, "mine").unwrap();
    std::os::unix::fs::symlink(fleet.path("nowhere"), &link).unwrap();
    let _listener = UnixListener::bind(&live).unwrap();
    for (path, what) in [
        (&directory, "a directory"),
        (&file, "a regular file"),
        (&link, "a symbolic link"),
        (&live, "listens"),
    ] {
        let found = start_at(&fleet, &bss, path);
        let said = stderr(&found);
        assert_eq!(found.status.code(), Some(1), "{said}");
        assert!(said.contains(&path.display().to_string()) && said.contains(what), "{said}");
        assert!(path.symlink_metadata().is_ok(), "{} is gone", path.display());
    }
    assert_eq!(fs::read(directory.join("thesis.tex")).unwrap(), b"years of work");
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    nothing_left();
    wakeai(&["sweep"]);
}

#[test]
fn a_dead_socket_is_replaced_and_removed_with_the_agent() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let fleet = Fleet::new();
    let socket = fleet.path("agent.sock");
    drop(UnixListener::bind(&socket).unwrap());
    let mut agent = fleet.start(&bss, "a", 1, &api(&socket));
    assert!(agent.end(Signal::SIGTERM).success(), "{}", agent.log());
    assert!(!socket.exists());
    wakeai(&["sweep"]);
}

#[test]
fn a_file_in_place_of_a_dead_socket_is_kept_and_reported_once() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a"]);
    let fleet = Fleet::new();
    let socket = fleet.path("agent.sock");
    let mut agent = fleet.start(&bss, "a", 1, &api(&socket));
    agent.end(Signal::SIGKILL);
    fs::remove_file(&socket).unwrap();
    fs::create_dir(&socket).unwrap();
    fs::write(socket.join("photo.jpg"), "once").unwrap();

    let swept = stderr(&wakeai(&["sweep"]));
    assert!(swept.contains("left alone"), "{swept}");
    assert!(swept.contains(&socket.display().to_string()), "{swept}");
    assert_eq!(fs::read(socket.join("photo.jpg")).unwrap(), b"once");
    nothing_left();
    assert_eq!(stderr(&wakeai(&["sweep"])), "", "the second command finds nothing");
}

/// Writes the lease of a process that died before it made the socket, or before it could record which one it made.
fn dead_lease(path: &Path) {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    let lease = format!(
        "{{\"process\":{{\"pid\":{pid},\"start_time\":1}},\"sequence\":0,\"role\":{{\"role\":\"command\"}},\
         \"changes\":[{{\"kind\":\"socket\",\"path\":\"{}\",\"made\":null}}]}}",
        path.display()
    );
    fs::create_dir_all("/run/wakeai/leases").unwrap();
    fs::write(format!("/run/wakeai/leases/{pid}-1-0.json"), lease).unwrap();
}

#[test]
fn a_record_of_a_socket_without_its_identity_removes_only_a_dead_socket() {
    let Some(_machine) = Machine::take() else { return };
    let fleet = Fleet::new();
    let (directory, file) = (fleet.path("archive"), fleet.path("notes.txt"));
    fs::create_dir(&directory).unwrap();
    fs::write(&file, "mine").unwrap();
    let dead = fleet.path("agent.sock");
    drop(UnixListener::bind(&dead).unwrap());
    for path in [&directory, &file, &dead] {
        dead_lease(path);
        wakeai(&["sweep"]);
    }
    assert!(
        directory.is_dir() && file.is_file(),
        "the directory and the file did not belong to an agent"
    );
    assert!(!dead.exists(), "the socket on which nobody listens is removed");
    nothing_left();
}
