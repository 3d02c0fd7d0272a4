//! The core protocol and each extension.

use wakeai_tus::Algorithm;

use crate::support::{OCTETS, TestServer, checksum, pattern, wait_for};

#[test]
fn options_tells_what_the_server_can_do() {
    let server = TestServer::limited(|limits| limits.max_size = "5MB".parse().unwrap());
    let reply = server.ask("OPTIONS", "/files", &[], b"");
    assert_eq!(reply.status, 204);
    assert_eq!(reply.field("tus-version"), "1.0.0");
    assert_eq!(reply.field("tus-max-size"), "5000000");
    assert_eq!(reply.field("tus-checksum-algorithm"), "sha1,sha256");
    let expected =
        "creation,creation-with-upload,creation-defer-length,expiration,termination,checksum";
    assert_eq!(reply.field("tus-extension"), expected);
}

#[test]
fn an_upload_in_pieces_becomes_a_file_with_its_digest() {
    let server = TestServer::start();
    let body = pattern(3_000_001);
    let path = server.create(body.len(), "video.mp4");
    assert_eq!(server.offset(&path), 0);
    for (at, piece) in body.chunks(1_000_000).enumerate() {
        assert!(server.names().is_empty(), "the file appears when it is complete");
        let reply = server.patch(&path, at * 1_000_000, &[], piece);
        assert_eq!(reply.status, 204, "{reply:?}");
        assert_eq!(reply.field("upload-offset"), (at * 1_000_000 + piece.len()).to_string());
    }
    assert_eq!(std::fs::read(server.file("video.mp4")).unwrap(), body);
    let head = server.head(&path);
    assert_eq!(head.field("upload-offset"), "3000001");
    assert_eq!(head.field("upload-length"), "3000001");
    assert_eq!(head.field("cache-control"), "no-store");
    assert_eq!(head.field("wakeai-name"), "video.mp4");
    assert_eq!(head.get("repr-digest"), None, "it was not wanted");
    let whole = checksum(Algorithm::Sha256, &body).replace("Upload-Checksum: sha256 ", "");
    assert_eq!(server.digest(&path), format!("sha-256=:{whole}:"));
    assert_eq!(server.patch(&path, body.len(), &[], b"").status, 204, "nothing is missing");
    assert_eq!(server.patch(&path, body.len(), &[], b"x").status, 413);
    let (report, _directory) = server.stop();
    assert_eq!((report.created, report.completed), (1, 1));
    assert_eq!(report.bytes_acknowledged, 3_000_001);
}

#[test]
fn an_upload_without_bytes_is_complete_at_once() {
    let server = TestServer::start();
    let path = server.create(0, "empty");
    assert_eq!(server.offset(&path), 0);
    assert_eq!(std::fs::read(server.file("empty")).unwrap(), b"");
}

#[test]
fn creation_takes_first_bytes() {
    let server = TestServer::start();
    let reply = server.ask("POST", "/files", &["Upload-Length: 11", OCTETS], b"hello ");
    assert_eq!((reply.status, reply.field("upload-offset")), (201, "6"));
    let path = reply.field("location").to_owned();
    assert_eq!(server.patch(&path, 6, &[], b"world").status, 204);
    assert_eq!(server.names().len(), 1);
    let reply = server.ask("POST", "/files", &["Upload-Length: 5", OCTETS], b"hello");
    assert_eq!((reply.status, reply.field("upload-offset")), (201, "5"));
    assert_eq!(server.names().len(), 2);
}

#[test]
fn the_length_may_come_later() {
    let server = TestServer::start();
    let path = server.ask("POST", "/files", &["Upload-Defer-Length: 1"], b"");
    let path = path.field("location").to_owned();
    assert_eq!(server.patch(&path, 0, &[], b"hello ").status, 204);
    let head = server.head(&path);
    assert_eq!(head.field("upload-defer-length"), "1");
    assert_eq!(head.get("upload-length"), None);
    assert_eq!(server.patch(&path, 6, &["Upload-Length: 3"], b"").status, 400);
    assert_eq!(server.patch(&path, 6, &["Upload-Length: 11"], b"wor").status, 204);
    assert_eq!(server.head(&path).field("upload-length"), "11");
    assert_eq!(server.patch(&path, 9, &["Upload-Length: 12"], b"ld").status, 400);
    let (_, directory) = server.stop();
    let server = TestServer::on(directory, |_| ());
    assert_eq!(server.head(&path).field("upload-length"), "11", "after a restart, too");
    assert_eq!(server.patch(&path, 9, &[], b"ld").status, 204);
    assert_eq!(server.names().len(), 1);
}

#[test]
fn a_terminated_upload_is_gone_and_a_finished_file_stays() {
    let server = TestServer::start();
    let path = server.create(10, "a");
    assert_eq!(server.patch(&path, 0, &[], b"12345").status, 204);
    assert_eq!(server.ask("DELETE", &path, &[], b"").status, 204);
    assert_eq!(server.head(&path).status, 404);
    assert_eq!(server.ask("DELETE", &path, &[], b"").status, 404);
    assert!(server.unfinished().is_empty());
    let path = server.create(2, "b");
    assert_eq!(server.patch(&path, 0, &[], b"12").status, 204);
    assert_eq!(server.ask("DELETE", &path, &[], b"").status, 204);
    assert_eq!(server.names(), ["b"]);
}

#[test]
fn a_body_counts_only_with_its_checksum() {
    let server = TestServer::start();
    let body = pattern(700_000);
    let path = server.create(2 * body.len(), "sums");
    let wrong = checksum(Algorithm::Sha1, b"other bytes");
    let reply = server.patch(&path, 0, &[&wrong], &body);
    assert_eq!((reply.status, reply.field("upload-offset")), (460, "0"));
    assert_eq!(server.offset(&path), 0);
    let sum = checksum(Algorithm::Sha1, &body);
    assert_eq!(server.patch(&path, 0, &[&sum], &body).status, 204);
    let sum = checksum(Algorithm::Sha256, &body);
    let reply = server.patch(&path, body.len(), &[&sum.replace("sha256 ", "sha256 A")], &body);
    assert_eq!(reply.status, 400, "a digest of another length");
    let reply = server.patch(&path, body.len(), &["Upload-Checksum: md5 AAAA"], &body);
    assert_eq!(reply.status, 400);
    let wrong = checksum(Algorithm::Sha256, b"other bytes");
    assert_eq!(server.patch(&path, body.len(), &[&wrong], &body).status, 460);
    assert_eq!(server.patch(&path, body.len(), &[&sum], &body).status, 204);
    assert_eq!(std::fs::read(server.file("sums")).unwrap(), body.repeat(2));
    let whole =
        checksum(Algorithm::Sha256, &body.repeat(2)).replace("Upload-Checksum: sha256 ", "");
    assert_eq!(server.digest(&path), format!("sha-256=:{whole}:"));
}

#[test]
fn an_unfinished_upload_expires_and_a_finished_file_stays() {
    let server = TestServer::limited(|limits| limits.expire_after = "1s".parse().unwrap());
    let unfinished = server.create(10, "a");
    let finished = server.create(1, "b");
    assert_eq!(server.patch(&finished, 0, &[], b"x").status, 204);
    assert!(server.head(&unfinished).get("upload-expires").is_none_or(|at| at.ends_with("GMT")));
    for path in [&unfinished, &finished] {
        wait_for("it has expired", || (server.head(path).status == 404).then_some(()));
    }
    assert!(server.unfinished().is_empty());
    assert_eq!(server.names(), ["b"]);
    let (report, _) = server.stop();
    assert_eq!(report.expired, 1);
}

#[test]
fn another_method_may_stand_in_a_header_field() {
    let server = TestServer::start();
    let path = server.create(3, "a");
    let fields = ["X-HTTP-Method-Override: PATCH", "Upload-Offset: 0", OCTETS];
    assert_eq!(server.ask("POST", &path, &fields, b"abc").status, 204);
    assert_eq!(server.names(), ["a"]);
}
