//! Lost connections, take-over, and stops.

use std::io::Write as _;
use std::net::Shutdown;

use wakeai_tus::Algorithm;

use crate::support::{OCTETS, TestServer, checksum, pattern, read_reply, send_head, wait_for};

#[test]
fn what_arrived_before_the_connection_was_cut_is_kept() {
    let server = TestServer::start();
    let body = pattern(3_000_000);
    let path = server.create(body.len(), "cut");
    let stream = server.begin(&path, 0, body.len(), &body[..600_000]);
    // Otherwise HEAD may come before this request, and the offset that it tells is out of date afterwards.
    wait_for("the request is served", || (server.written(&path) > 0).then_some(()));
    stream.shutdown(Shutdown::Both).unwrap();
    drop(stream);
    // The kernel may not have delivered everything; whatever HEAD tells is there.
    let offset = server.offset(&path);
    assert!(offset <= 600_000);
    assert_eq!(server.patch(&path, offset, &[], &body[offset..]).status, 204);
    assert_eq!(std::fs::read(server.file("cut")).unwrap(), body);
}

#[test]
fn nothing_unverified_counts_after_a_cut() {
    let server = TestServer::start();
    let body = pattern(3_000_000);
    let path = server.create(body.len(), "cut");
    let sum = checksum(Algorithm::Sha256, &body);
    let mut stream = server.dial();
    let length = format!("Content-Length: {}", body.len());
    let fields = ["Upload-Offset: 0", &length, &sum, OCTETS, "Tus-Resumable: 1.0.0"];
    send_head(&mut stream, "PATCH", &path, &fields);
    stream.write_all(&body[..2_900_000]).unwrap();
    // Otherwise HEAD may come before this request.
    wait_for("the request is served", || (server.written(&path) > 0).then_some(()));
    drop(stream);
    assert_eq!(server.offset(&path), 0);
    assert_eq!(server.patch(&path, 0, &[&sum], &body).status, 204);
    assert_eq!(std::fs::read(server.file("cut")).unwrap(), body);
}

#[test]
fn a_newer_request_takes_an_upload_over_from_a_silent_connection() {
    let server = TestServer::start();
    let body = pattern(6_000_000);
    let path = server.create(body.len(), "taken");
    // The old connections stay open, as dead ones do for the server.
    let mut first = server.begin(&path, 0, body.len(), &body[..2_100_000]);
    wait_for("bytes are written", || (server.written(&path) > 0).then_some(()));
    let offset = server.offset(&path);
    assert!(offset > 0);
    assert_eq!(read_reply(&mut first).status, 423);
    let mut second = server.begin(&path, offset, body.len() - offset, &body[offset..][..2_100_000]);
    wait_for("bytes are written", || (server.written(&path) > offset).then_some(()));
    assert_eq!(server.patch(&path, 0, &[], &body).status, 409, "it is no longer empty");
    assert_eq!(read_reply(&mut second).status, 423);
    let offset = server.offset(&path);
    assert_eq!(server.patch(&path, offset, &[], &body[offset..]).status, 204);
    assert_eq!(std::fs::read(server.file("taken")).unwrap(), body);
    let (report, _directory) = server.stop();
    assert_eq!(report.taken_over, 2);
}

#[test]
fn a_body_that_stalls_ends_and_is_kept() {
    let server = TestServer::limited(|limits| limits.body_timeout = "200ms".parse().unwrap());
    let path = server.create(100, "stalled");
    let mut stream = server.begin(&path, 0, 100, b"0123456789");
    let reply = read_reply(&mut stream);
    assert_eq!((reply.status, reply.field("upload-offset")), (408, "10"));
    assert_eq!(reply.field("connection"), "close");
    assert_eq!(server.offset(&path), 10);
}

#[test]
fn a_stop_keeps_what_has_arrived() {
    let server = TestServer::start();
    let body = pattern(2_500_000);
    let path = server.create(body.len(), "stopped");
    let mut stream = server.begin(&path, 0, body.len(), &body[..2_100_000]);
    wait_for("bytes are written", || (server.written(&path) > 0).then_some(()));
    let (_, directory) = server.stop();
    let reply = read_reply(&mut stream);
    assert_eq!(reply.status, 503);
    let kept: usize = reply.field("upload-offset").parse().unwrap();
    assert!(kept > 0);
    let server = TestServer::on(directory, |_| ());
    assert_eq!(server.offset(&path), kept);
    assert_eq!(server.patch(&path, kept, &[], &body[kept..]).status, 204);
    assert_eq!(std::fs::read(server.file("stopped")).unwrap(), body);
    let sum = checksum(Algorithm::Sha256, &body).replace("Upload-Checksum: sha256 ", "");
    assert_eq!(server.digest(&path), format!("sha-256=:{sum}:"));
}

#[test]
fn bytes_behind_the_record_are_cut_off() {
    let server = TestServer::start();
    let path = server.create(10, "tail");
    assert_eq!(server.patch(&path, 0, &[], b"01234").status, 204);
    let (_, directory) = server.stop();
    let data = directory.path().join(".wakeai-uploads").join(path.rsplit('/').next().unwrap());
    std::fs::OpenOptions::new().append(true).open(&data).unwrap().write_all(b"XXX").unwrap();
    let server = TestServer::on(directory, |_| ());
    assert_eq!(server.offset(&path), 5);
    assert_eq!(server.patch(&path, 5, &[], b"56789").status, 204);
    assert_eq!(std::fs::read(server.file("tail")).unwrap(), b"0123456789");
}

#[test]
fn a_crash_between_the_last_byte_and_the_name_is_made_up_for() {
    let server = TestServer::start();
    let path = server.create(5, "late");
    assert_eq!(server.patch(&path, 0, &[], b"0123").status, 204);
    let (_, directory) = server.stop();
    let uploads = directory.path().join(".wakeai-uploads");
    let data = uploads.join(path.rsplit('/').next().unwrap());
    let journal = uploads.join("journal");
    let kept = std::fs::read(&journal).unwrap();
    let server = TestServer::on(directory, |_| ());
    assert_eq!(server.patch(&path, 4, &[], b"4").status, 204);
    let (_, directory) = server.stop();
    // The state before the last byte was recorded.
    std::fs::rename(directory.path().join("late"), &data).unwrap();
    std::fs::write(&journal, kept).unwrap();
    let server = TestServer::on(directory, |_| ());
    assert_eq!(server.offset(&path), 4);
    assert_eq!(server.head(&path).get("wakeai-name"), None);
    assert_eq!(server.patch(&path, 4, &[], b"4").status, 204);
    assert_eq!(std::fs::read(server.file("late")).unwrap(), b"01234");
}

#[test]
fn a_crash_between_the_record_and_the_name_is_made_up_for_at_the_start() {
    let server = TestServer::start();
    let path = server.create(5, "named");
    assert_eq!(server.patch(&path, 0, &[], b"01234").status, 204);
    let (_, directory) = server.stop();
    let data = directory.path().join(".wakeai-uploads").join(path.rsplit('/').next().unwrap());
    std::fs::rename(directory.path().join("named"), &data).unwrap();
    std::fs::write(directory.path().join("named"), b"another").unwrap();
    let server = TestServer::on(directory, |_| ());
    wait_for("the file has a name", || std::fs::read(server.file("named (2)")).ok());
    let reply = server.head(&path);
    assert_eq!(
        (reply.field("upload-offset"), reply.field("wakeai-name")),
        ("5", "named%20%282%29")
    );
    assert_eq!(std::fs::read(server.file("named (2)")).unwrap(), b"01234");
    assert_eq!(std::fs::read(server.file("named")).unwrap(), b"another");
    let (_, directory) = server.stop();
    let server = TestServer::on(directory, |_| ());
    assert_eq!(server.head(&path).field("wakeai-name"), "named%20%282%29", "it is on disk");
}

#[test]
fn a_state_without_its_bytes_is_not_taken_for_a_finished_upload() {
    let server = TestServer::start();
    let path = server.create(5, "lost");
    let other = server.create(5, "other");
    assert_eq!(server.patch(&path, 0, &[], b"0123").status, 204);
    let (_, directory) = server.stop();
    // As a crash may leave it: the names of a new upload's files reach the disk one after the other.
    let data = directory.path().join(".wakeai-uploads").join(path.rsplit('/').next().unwrap());
    std::fs::remove_file(data).unwrap();
    // What a crash or an earlier version may leave.
    for stray in ["", ".state"] {
        let stray = format!("{}{stray}", "ab".repeat(16));
        std::fs::write(directory.path().join(".wakeai-uploads").join(stray), "stray").unwrap();
    }
    let server = TestServer::on(directory, |_| ());
    assert!(server.unfinished().is_empty());
    assert_eq!(server.head(&path).status, 404);
    assert_eq!(server.patch(&other, 0, &[], b"01234").status, 204);
}

#[test]
fn a_crash_between_the_link_and_the_unlink_leaves_one_file() {
    let server = TestServer::start();
    let path = server.create(5, "linked");
    assert_eq!(server.patch(&path, 0, &[], b"01234").status, 204);
    let (_, directory) = server.stop();
    let data = directory.path().join(".wakeai-uploads").join(path.rsplit('/').next().unwrap());
    std::fs::hard_link(directory.path().join("linked"), &data).unwrap();
    let server = TestServer::on(directory, |_| ());
    wait_for("the second name is gone", || (!data.exists()).then_some(()));
    assert_eq!(server.head(&path).field("wakeai-name"), "linked");
    assert_eq!(server.names(), ["linked"]);
    assert_eq!(std::fs::read(server.file("linked")).unwrap(), b"01234");
}
