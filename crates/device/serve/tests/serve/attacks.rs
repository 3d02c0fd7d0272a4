//! Requests that lie, and requests that never end.

use std::io::Write as _;

use crate::support::{OCTETS, TestServer, is_closed, read_reply, send_head};

#[test]
fn another_version_or_none_is_refused() {
    let server = TestServer::start();
    for version in [&["Tus-Resumable: 0.2.2"][..], &[], &["Tus-Resumable: 1.0.0, 2"]] {
        let mut stream = server.dial();
        send_head(&mut stream, "POST", "/files", &[version, &["Upload-Length: 1"]].concat());
        let reply = read_reply(&mut stream);
        assert_eq!((reply.status, reply.field("tus-version")), (412, "1.0.0"));
    }
    let reply = server.ask("POST", "/files", &["Tus-Resumable: 1.0.0", "Upload-Length: 1"], b"");
    assert_eq!(reply.status, 400, "a field that comes twice");
}

#[test]
fn forged_lengths_are_refused() {
    let server = TestServer::limited(|limits| limits.max_size = "1MB".parse().unwrap());
    for (length, status) in [
        ("1000001", 413),
        ("9223372036854775807", 413),
        ("9223372036854775808", 400),
        ("18446744073709551616", 400),
        ("-1", 400),
        ("+1", 400),
        ("1e3", 400),
        ("0x10", 400),
        ("", 400),
        ("1, 1", 400),
    ] {
        let reply = server.ask("POST", "/files", &[&format!("Upload-Length: {length}")], b"");
        assert_eq!(reply.status, status, "{length:?}: {}", reply.body);
    }
    for fields in [
        &[][..],
        &["Upload-Defer-Length: 2"],
        &["Upload-Length: 1", "Upload-Defer-Length: 1"],
        &["Upload-Length: 1", "Upload-Length: 2"],
        &["Upload-Length: 1", "Upload-Metadata: filename !!!"],
        &["Upload-Length: 1", "Upload-Metadata: a YQ==,a YQ=="],
    ] {
        assert_eq!(server.ask("POST", "/files", fields, b"").status, 400, "{fields:?}");
    }
    assert_eq!(server.ask("POST", "/files", &["Upload-Length: 1", OCTETS], b"22").status, 413);
    assert_eq!(server.ask("POST", "/files", &["Upload-Length: 9"], b"data").status, 415);
    let path = server.ask("POST", "/files", &["Upload-Defer-Length: 1"], b"");
    let path = path.field("location").to_owned();
    assert_eq!(server.patch(&path, 0, &["Upload-Length: 1000001"], b"").status, 413);
    assert_eq!(server.patch(&path, 0, &[], &vec![0; 1_000_001]).status, 413);
    assert_eq!(server.offset(&path), 0);
    let (report, _directory) = server.stop();
    assert_eq!(report.created, 1);
}

#[test]
fn forged_offsets_are_refused() {
    let server = TestServer::start();
    let path = server.create(10, "a");
    assert_eq!(server.patch(&path, 0, &[], b"12345").status, 204);
    for (offset, status) in [
        ("0", 409),
        ("4", 409),
        ("6", 409),
        ("10", 409),
        ("9223372036854775807", 409),
        ("18446744073709551615", 400),
        ("-5", 400),
        ("5 ", 204), // the space is not part of the value
    ] {
        let fields = [&format!("Upload-Offset: {offset}"), OCTETS];
        assert_eq!(server.ask("PATCH", &path, &fields, b"").status, status, "{offset}");
    }
    assert_eq!(server.ask("PATCH", &path, &[OCTETS], b"x").status, 400);
    assert_eq!(server.ask("PATCH", &path, &["Upload-Offset: 5"], b"x").status, 415);
    assert_eq!(server.patch(&path, 5, &[], b"123456").status, 413);
    assert_eq!(server.offset(&path), 5);
}

#[test]
fn a_body_of_unknown_size_cannot_go_beyond_the_length() {
    let server = TestServer::start();
    let path = server.create(10, "a");
    let mut stream = server.dial();
    let fields = ["Upload-Offset: 0", "Transfer-Encoding: chunked", OCTETS, "Tus-Resumable: 1.0.0"];
    send_head(&mut stream, "PATCH", &path, &fields);
    stream.write_all(b"8\r\n12345678\r\n8\r\n12345678\r\n0\r\n\r\n").unwrap();
    assert_eq!(read_reply(&mut stream).status, 413);
    assert_eq!(server.offset(&path), 0);
    let mut stream = server.dial();
    send_head(&mut stream, "PATCH", &path, &fields);
    stream.write_all(b"8\r\n12345678\r\n2\r\n90\r\n0\r\n\r\n").unwrap();
    assert_eq!(read_reply(&mut stream).status, 204);
    assert_eq!(server.names(), ["a"]);
}

#[test]
fn no_path_reaches_a_file() {
    let server = TestServer::start();
    std::fs::write(server.file("secret"), "secret").unwrap();
    let id = "0".repeat(32);
    for path in [
        "/files/secret",
        "/files/../secret",
        "/files/%2e%2e/secret",
        "/files/.wakeai-uploads",
        &format!("/files/{id}"),
        &format!("/files/{id}.json"),
        &format!("/files/{}", "F".repeat(32)),
        "/files/+0000000000000000000000000000000",
        "//",
    ] {
        for method in ["HEAD", "PATCH", "DELETE"] {
            let fields = ["Upload-Offset: 0", OCTETS];
            assert_eq!(server.ask(method, path, &fields, b"x").status, 404, "{method} {path}");
        }
    }
    assert_eq!(server.ask("GET", "/files/secret", &[], b"").status, 405);
    assert_eq!(server.ask("PUT", "/files", &[], b"").status, 405);
    assert_eq!(std::fs::read(server.file("secret")).unwrap(), b"secret");
}

#[test]
fn heads_are_limited_in_time_and_size() {
    let server = TestServer::limited(|limits| limits.head_timeout = "300ms".parse().unwrap());
    let mut slow = server.dial();
    slow.write_all(b"POST /files HTTP/1.1\r\nHost: localhost\r\n").unwrap();
    let mut silent = server.dial();
    let mut idle = server.dial();
    send_head(&mut idle, "OPTIONS", "/files", &[]);
    assert_eq!(read_reply(&mut idle).status, 204);
    for stream in [&mut slow, &mut silent, &mut idle] {
        assert!(is_closed(stream) || is_closed(stream), "closed, maybe after a 408");
    }
    let server = TestServer::start();
    for length in [20_000, 100_000, 300_000] {
        let long = format!("X-Long: {}", "x".repeat(length));
        let mut stream = server.dial();
        let head = format!("OPTIONS /files HTTP/1.1\r\nHost: localhost\r\n{long}\r\n\r\n");
        let _ = stream.write_all(head.as_bytes());
        assert_eq!(read_reply(&mut stream).status, 431, "{length}");
    }
    let mut stream = server.dial();
    let fields = vec!["X-Many: x"; 100];
    send_head(&mut stream, "OPTIONS", "/files", &fields);
    assert_eq!(read_reply(&mut stream).status, 431);
    let metadata = format!("Upload-Metadata: filename {}", "QUFB".repeat(2000));
    assert_eq!(server.ask("POST", "/files", &["Upload-Length: 1", &metadata], b"").status, 400);
}

#[test]
fn a_web_page_s_name_for_this_machine_is_refused() {
    let server = TestServer::start();
    for (host, status) in [
        ("attacker.example", 421),
        ("attacker.example:8080", 421),
        ("127.0.0.1:8080", 204),
        ("[::1]:8080", 204),
        ("localhost", 204),
    ] {
        let mut stream = server.dial();
        write!(stream, "OPTIONS /files HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        assert_eq!(read_reply(&mut stream).status, status, "{host}");
    }
}

#[test]
fn garbage_is_answered_and_forgotten() {
    let server = TestServer::start();
    for garbage in [&b"\x16\x03\x01\x02\x00\x01\x00"[..], b"\0\0\0\0\r\n\r\n", b"SSH-2.0-x\r\n\r\n"]
    {
        let mut stream = server.dial();
        stream.write_all(garbage).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        while !is_closed(&mut stream) {}
    }
    assert_eq!(server.ask("OPTIONS", "/files", &[], b"").status, 204);
}
