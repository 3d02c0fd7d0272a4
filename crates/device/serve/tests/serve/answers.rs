//! Answers that come before the end of a body reach the client.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use crate::support::{OCTETS, TestServer, pattern, read_reply, send_head};

/// Sends a whole body without a look at what comes back, as many clients do, and then reads the answer.
fn sent_blindly(
    server: &TestServer,
    method: &str,
    path: &str,
    fields: &[&str],
    body: &[u8],
) -> u16 {
    let mut stream = server.dial();
    let length = format!("Content-Length: {}", body.len());
    let fields = [fields, &[length.as_str(), OCTETS, "Tus-Resumable: 1.0.0"]].concat();
    send_head(&mut stream, method, path, &fields);
    stream.write_all(body).expect("the server reads on after its answer");
    let reply = read_reply(&mut stream);
    assert_eq!(reply.field("connection"), "close");
    assert_eq!(stream.read(&mut [0; 1]).expect("an end without a reset"), 0);
    reply.status
}

#[test]
fn an_early_answer_reaches_a_client_that_sends_its_whole_body_first() {
    let server = TestServer::limited(|limits| limits.max_size = "1MB".parse().unwrap());
    let body = pattern(20_000_000);
    let path = server.create(1000, "a");
    let nowhere = format!("/files/{}", "0".repeat(32));
    for (method, path, fields, status) in [
        ("POST", "/files", "Upload-Length: 20000000", 413),
        ("PATCH", path.as_str(), "Upload-Offset: 0", 413),
        ("PATCH", path.as_str(), "Upload-Offset: 7", 409),
        ("PATCH", nowhere.as_str(), "Upload-Offset: 0", 404),
        ("PUT", "/files", "Accept: */*", 405),
        ("PATCH", path.as_str(), "Content-Encoding: gzip", 415),
    ] {
        assert_eq!(
            sent_blindly(&server, method, path, &[fields], &body),
            status,
            "{method} {fields}"
        );
    }
}

#[test]
fn an_early_answer_reaches_a_client_behind_a_quota_and_what_was_not_taken_is_no_request() {
    let server = TestServer::limited(|limits| limits.quota = Some("1MB".parse().unwrap()));
    let reply = server.ask("POST", "/files", &["Upload-Defer-Length: 1"], b"");
    let path = reply.field("location").to_owned();
    // The rest of the body looks like a request.
    let mut body = pattern(20_000_000);
    let request =
        format!("DELETE {path} HTTP/1.1\r\nHost: localhost\r\nTus-Resumable: 1.0.0\r\n\r\n");
    for at in (0..body.len() - request.len()).step_by(request.len()) {
        body[at..][..request.len()].copy_from_slice(request.as_bytes());
    }
    assert_eq!(sent_blindly(&server, "PATCH", &path, &["Upload-Offset: 0"], &body), 507);
    assert_eq!(server.head(&path).status, 200);
}

#[test]
fn a_head_that_is_too_large_is_answered_before_the_connection_ends() {
    let server = TestServer::start();
    let mut stream = server.dial();
    let long = "x".repeat(3_000_000);
    let head = format!("OPTIONS /files HTTP/1.1\r\nHost: localhost\r\nX-Long: {long}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("the server reads on after its answer");
    assert_eq!(read_reply(&mut stream).status, 431);
}

#[test]
fn a_client_that_never_stops_sending_is_cut_off() {
    let server = TestServer::limited(|limits| limits.max_size = "1MB".parse().unwrap());
    let mut stream: TcpStream = server.dial();
    let fields =
        ["Upload-Length: 2000000", "Content-Length: 9000000000000", OCTETS, "Tus-Resumable: 1.0.0"];
    send_head(&mut stream, "POST", "/files", &fields);
    let piece = pattern(1_000_000);
    let ended = loop {
        if let Err(error) = stream.write_all(&piece) {
            break error.kind();
        }
    };
    assert!(matches!(ended, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{ended}");
}

#[test]
fn an_answer_of_204_has_no_length() {
    let server = TestServer::start();
    let path = server.create(5, "a");
    assert_eq!(server.patch(&path, 0, &[], b"01234").get("content-length"), None);
    assert_eq!(server.ask("DELETE", &path, &[], b"").get("content-length"), None);
}
