//! Uploads whose server is killed several times, and whose network is cut in the middle of a piece.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::content;
use crate::receiver::{Kind, NOBODY, Receiver};
use wakeai_tests::bss::{Bss, WIFI};
use wakeai_tests::{Machine, must, wait_for};

/// A file that is sent to each server, and the network to it.
struct Case {
    bytes: u64,
    piece: u64,
    mbps: u64,
    /// The number of times that the server is killed.
    kills: u64,
}

/// The case of `make test`, which takes about fifteen seconds for each server. The rate leaves a busy machine time to interrupt it.
const SMALL: Case = Case { bytes: 32_000_000, piece: 1_000_000, mbps: 40, kills: 2 };
/// The case of `make test-peers`: one gigabyte.
const LARGE: Case = Case { bytes: 1_000_000_000, piece: 8_000_000, mbps: 800, kills: 5 };

#[test]
fn serve_gets_the_file_whole_and_once() {
    is_uploaded(Kind::Serve, &SMALL);
}

#[test]
fn apache_gets_the_file_whole_and_once() {
    is_uploaded(Kind::Apache, &SMALL);
}

#[test]
fn nginx_gets_the_file_whole() {
    is_uploaded(Kind::Nginx, &SMALL);
}

#[test]
#[ignore = "make test-peers"]
fn rclone_gets_the_file_whole() {
    is_uploaded(Kind::Rclone, &SMALL);
}

#[test]
#[ignore = "minutes, and tusd: make test-peers"]
fn every_server_gets_a_gigabyte() {
    for kind in [Kind::Serve, Kind::Tusd, Kind::Nginx, Kind::Apache, Kind::Rclone] {
        is_uploaded(kind, &LARGE);
    }
}

/// Uploads the file while the server is killed and the network is cut. The file has to arrive
/// unchanged, and only what was cut may be sent twice.
fn is_uploaded(kind: Kind, case: &Case) {
    let Some(_machine) = Machine::share() else { return };
    let home = tempfile::tempdir().unwrap();
    let bss = Bss::new(&["tablet", "server"]);
    let shape =
        format!("tc qdisc add dev {WIFI} root tbf rate {}mbit burst 256kb latency 50ms", case.mbps);
    bss.inside("tablet", &shape);
    let file = home.path().join("photo.bin");
    content::write(&file, case.bytes);
    let server_home = home.path().join("server");
    fs::create_dir(&server_home).unwrap();
    fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
    // An older file of the same name is replaced.
    let served = server_home.join("served");
    fs::create_dir(&served).unwrap();
    if matches!(kind, Kind::Nginx | Kind::Apache) {
        fs::write(served.join("photo.bin"), vec![7; case.bytes as usize / 2]).unwrap();
        chown(served.join("photo.bin"), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let mut receiver = Receiver::start(kind, &bss, &server_home);
    let before = arrived(&bss);
    let mut upload = put(&bss, &receiver, &file, case.piece, home.path());
    for kill in 0..=case.kills {
        let already = arrived(&bss);
        // The first interruption comes in the middle of the first piece, the others in the middle
        // of later pieces.
        let parts = if kill == 0 { 0 } else { case.bytes / 8 };
        let enough = parts + case.piece / 3;
        wait_while_running(&mut upload, "a part of the file arrives", || {
            arrived(&bss) - already > enough
        });
        if kill < case.kills {
            receiver.kill_and_restart();
        } else {
            cut(&bss, &mut upload);
        }
    }
    let output = upload.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{kind:?}: {said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(content::is_whole(&receiver.received("photo.bin"), case.bytes), "{kind:?}: {report}");
    let lost = if kind.continues() { case.piece } else { case.bytes };
    let most = (case.kills + 1) * lost;
    let again = report["bytes_again"].as_u64().unwrap();
    assert!(again <= most, "{kind:?}: at most {most} bytes may be sent again: {report}");
    // Headers, handshakes and retransmissions of TCP are a few percent.
    let wire = arrived(&bss) - before;
    assert!(wire <= (case.bytes + most) / 100 * 105, "{kind:?}: {wire} bytes: {report}");
    assert!(report["resumes"].as_u64().unwrap() > case.kills, "{kind:?}: {report}");
    println!("{kind:?}: {wire} bytes on the wire: {report}");
}

fn put(bss: &Bss, receiver: &Receiver<'_>, file: &Path, piece: u64, home: &Path) -> Child {
    let mut command = Command::new(wakeai_tests::program());
    command.arg("put").arg(file).args(receiver.arguments());
    command.args(["--json", "--chunk-size", &format!("{piece}B")]);
    command.env("XDG_STATE_HOME", home.join("state")).env_remove("WAKEAI_TOKEN");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    bss.namespace("tablet").run(|| command.spawn().unwrap()).unwrap()
}

/// The bytes that have arrived at the server's interface.
fn arrived(bss: &Bss) -> u64 {
    let text = must("ip", &format!("-n {} -s -j link show dev {WIFI}", bss.name("server")));
    let links: Value = serde_json::from_str(&text).unwrap();
    links[0]["stats64"]["rx"]["bytes"].as_u64().unwrap()
}

/// Cuts the network during a connection, until the client has given the connection up.
fn cut(bss: &Bss, upload: &mut Child) {
    let connected = || !bss.inside("tablet", "ss -Htn state established dport = :8080").is_empty();
    let set = |state: &str| bss.ip("air", &format!("link set tablet-{WIFI} {state}"));
    wait_while_running(upload, "the network is cut during a connection", || {
        set("down");
        let during = connected();
        if !during {
            set("up"); // the client was between two pieces
        }
        during
    });
    wait_while_running(upload, "the client gives up its connection", || !connected());
    set("up");
}

fn wait_while_running(upload: &mut Child, what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || {
        assert_eq!(upload.try_wait().unwrap(), None, "the upload ended before {what}");
        is_so().then_some(())
    });
}
