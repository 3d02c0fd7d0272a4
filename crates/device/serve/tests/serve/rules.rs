//! Rules of HTTP and tus. docs/reference/serve-http.md has the table of them.

use std::io::{Read as _, Write as _};

use wakeai_tus::Algorithm;

use crate::support::{OCTETS, Reply, TestServer, checksum, is_closed, read_reply, send_head};

const VERSION: &str = "Tus-Resumable: 1.0.0";

/// Sends a PATCH with these further fields to an upload of ten bytes, which then has the offset that is returned.
fn patched(server: &TestServer, fields: &[&str]) -> (Reply, usize) {
    let path = server.create(10, "a");
    let mut fields = [&["Upload-Offset: 0"], fields].concat();
    if !fields.iter().any(|field| field.to_lowercase().starts_with("content-type")) {
        fields.push(OCTETS);
    }
    let reply = server.ask("PATCH", &path, &fields, b"01234");
    (reply, server.offset(&path))
}

#[test]
fn a_media_type_has_no_case_and_may_have_parameters() {
    let server = TestServer::start();
    for kind in [
        "application/offset+octet-stream",
        "Application/Offset+Octet-Stream",
        "application/offset+octet-stream; charset=utf-8",
        "application/offset+octet-stream ;a=\"b;c\"",
        "APPLICATION/OFFSET+OCTET-STREAM;charset=UTF-8",
    ] {
        let field = format!("Content-Type: {kind}");
        assert_eq!(patched(&server, &[&field]).0.status, 204, "{kind}");
        let reply = server.ask("POST", "/files", &["Upload-Length: 5", &field], b"01234");
        assert_eq!((reply.status, reply.field("upload-offset")), (201, "5"), "{kind}");
    }
    for kind in
        ["application/octet-stream", "application/offset+octet-stream-x", "", ";", "text/plain"]
    {
        let (reply, offset) = patched(&server, &[&format!("Content-Type: {kind}")]);
        assert_eq!((reply.status, offset), (415, 0), "{kind}");
        assert_eq!(reply.field("accept-patch"), "application/offset+octet-stream");
    }
}

#[test]
fn what_the_server_does_not_do_is_refused_before_the_body() {
    let server = TestServer::start();
    let sum = checksum(Algorithm::Sha256, b"01234");
    let digest = sum.replace("Upload-Checksum: sha256 ", "");
    for (field, status) in [
        ("Content-Encoding: gzip", 415),
        ("Content-Encoding: identity, br", 415),
        ("Content-Range: bytes 0-4/10", 400),
        ("Expect: 200-ok", 417),
        ("Expect: 100-continue, x", 417),
        ("Upload-Checksum: md5 AAAA", 400),
        ("Upload-Checksum: crc32 AAAA", 400),
        ("Trailer: Upload-Checksum", 400),
        ("Content-Digest: sha-256=:AAAA:", 400),
        (&format!("Repr-Digest: sha-256=:{digest}:"), 400),
        ("Digest: sha-256=AAAA", 400),
        ("Content-MD5: AAAA", 400),
        ("Upload-Concat: partial", 400),
    ] {
        // The body is not sent at all: the answer does not wait for it.
        for (method, path, own) in [
            ("PATCH", server.create(10, "a"), "Upload-Offset: 0"),
            ("POST", "/files".to_owned(), "Upload-Length: 10"),
        ] {
            let mut stream = server.dial();
            send_head(
                &mut stream,
                method,
                &path,
                &[field, own, "Content-Length: 5", OCTETS, VERSION],
            );
            let reply = read_reply(&mut stream);
            assert_eq!(reply.status, status, "{method} {field}: {reply:?}");
            assert!(!reply.body.is_empty());
        }
    }
    for field in ["Content-Encoding: identity", "Range: bytes=0-1", &sum] {
        assert_eq!(patched(&server, &[field]).0.status, 204, "{field}");
    }
    // A client that waits for it is told to go on; one that is refused is not.
    let path = server.create(5, "a");
    let mut stream = server.dial();
    let fields = ["Upload-Offset: 0", "Content-Length: 5", "Expect: 100-Continue", OCTETS, VERSION];
    send_head(&mut stream, "PATCH", &path, &fields);
    assert_eq!(read_reply(&mut stream).status, 100);
    stream.write_all(b"01234").unwrap();
    assert_eq!(read_reply(&mut stream).status, 204);
    let mut stream = server.dial();
    send_head(&mut stream, "PATCH", &path, &fields);
    assert_eq!(read_reply(&mut stream).status, 409);
    assert_eq!(
        patched(&server, &["Content-Encoding: gzip"]).0.field("accept-encoding"),
        "identity"
    );
}

#[test]
fn a_body_is_chunked_or_has_a_length() {
    let server = TestServer::start();
    let path = server.create(10, "a");
    let chunked = |coding: &str, more: &[&str], body: &[u8]| {
        let mut stream = server.dial();
        let coding = format!("Transfer-Encoding: {coding}");
        let fields = [&["Upload-Offset: 0", &coding, OCTETS, VERSION], more].concat();
        send_head(&mut stream, "PATCH", &path, &fields);
        stream.write_all(body).unwrap();
        read_reply(&mut stream)
    };
    for coding in ["gzip, chunked", "chunked, chunked, gzip", "identity", "gzip"] {
        let status = chunked(coding, &[], b"5\r\n01234\r\n0\r\n\r\n").status;
        assert!([400, 501].contains(&status), "{coding}: {status}");
        assert_eq!(server.offset(&path), 0, "{coding}");
    }
    assert_eq!(chunked("gzip, chunked", &[], b"5\r\n01234\r\n0\r\n\r\n").status, 501);
    // A checksum that nobody has announced would go without a comparison.
    let body = b"5\r\n01234\r\n0\r\nUpload-Checksum: sha1 AAAA\r\n\r\n";
    assert_eq!(chunked("chunked", &[], body).status, 400);
    assert_eq!(server.offset(&path), 0);
    // The length and the coding may come from two programs that disagree: no further request on this connection.
    let reply = chunked("Chunked", &["Content-Length: 3"], b"5\r\n01234\r\n0\r\n\r\n");
    assert_eq!((reply.status, reply.field("connection")), (204, "close"));
    assert_eq!(server.offset(&path), 5);
    // A body without a type, whatever frames it, is not lost without a word.
    let mut stream = server.dial();
    let fields = ["Upload-Length: 5", "Transfer-Encoding: chunked", VERSION];
    send_head(&mut stream, "POST", "/files", &fields);
    stream.write_all(b"5\r\n01234\r\n0\r\n\r\n").unwrap();
    assert_eq!(read_reply(&mut stream).status, 415);
}

#[test]
fn a_request_names_one_valid_host() {
    let server = TestServer::start();
    for (first, fields, status) in [
        ("OPTIONS /files HTTP/1.1", "", 400),
        ("OPTIONS /files HTTP/1.1", "Host: localhost\r\nHost: localhost\r\n", 400),
        ("OPTIONS /files HTTP/1.1", "Host: a b\r\n", 400),
        ("OPTIONS /files HTTP/1.1", "Host: u@localhost\r\n", 400),
        ("OPTIONS /files HTTP/1.0", "", 204),
        ("OPTIONS * HTTP/1.1", "Host: localhost\r\n", 204),
        // The target goes before the field.
        ("OPTIONS http://localhost/files HTTP/1.1", "Host: attacker.example\r\n", 204),
        ("OPTIONS http://attacker.example/files HTTP/1.1", "Host: localhost\r\n", 421),
    ] {
        let mut stream = server.dial();
        write!(stream, "{first}\r\n{fields}\r\n").unwrap();
        assert_eq!(read_reply(&mut stream).status, status, "{first} {fields}");
    }
}

#[test]
fn a_method_that_a_path_does_not_take_is_answered_with_those_that_it_takes() {
    let server = TestServer::start();
    let path = server.create(10, "a");
    for (method, path, status, allowed) in [
        ("GET", "/files", 405, Some("OPTIONS, POST")),
        ("PATCH", "/files", 405, Some("OPTIONS, POST")),
        ("GET", path.as_str(), 405, Some("OPTIONS, HEAD, PATCH, DELETE")),
        ("POST", path.as_str(), 405, Some("OPTIONS, HEAD, PATCH, DELETE")),
        ("PROPFIND", "/files", 501, None),
        ("BREW", path.as_str(), 501, None),
        ("OPTIONS", "/files", 204, Some("OPTIONS, POST")),
        ("OPTIONS", path.as_str(), 204, Some("OPTIONS, HEAD, PATCH, DELETE")),
    ] {
        let reply = server.ask(method, path, &[], b"");
        assert_eq!((reply.status, reply.get("allow")), (status, allowed), "{method} {path}");
    }
}

#[test]
fn preconditions_hold_or_nothing_happens() {
    let server = TestServer::start();
    for (field, status, offset) in [
        ("If-Match: *", 204, 5),
        ("If-Match: \"tag\"", 412, 0),
        ("If-None-Match: *", 412, 0),
        ("If-None-Match: \"tag\", W/\"other\"", 204, 5),
        ("If-Modified-Since: Sat, 29 Oct 1994 19:43:31 GMT", 204, 5),
        ("If-Unmodified-Since: Sat, 29 Oct 1994 19:43:31 GMT", 204, 5),
        ("If-Range: \"tag\"", 204, 5),
    ] {
        let (reply, found) = patched(&server, &[field]);
        assert_eq!((reply.status, found), (status, offset), "{field}");
    }
    let path = server.create(10, "a");
    assert_eq!(server.ask("HEAD", &path, &["If-None-Match: *"], b"").status, 304);
    assert_eq!(server.ask("DELETE", &path, &["If-Match: \"tag\""], b"").status, 412);
    assert_eq!(server.ask("POST", "/files", &["Upload-Length: 1", "If-Match: *"], b"").status, 412);
    assert_eq!(
        server.ask("POST", "/files", &["Upload-Length: 1", "If-None-Match: *"], b"").status,
        201
    );
    let nowhere = format!("/files/{}", "0".repeat(32));
    assert_eq!(server.ask("HEAD", &nowhere, &["If-None-Match: *"], b"").status, 404);
}

#[test]
fn every_extension_that_is_announced_works_and_no_other_is_announced() {
    let server = TestServer::start();
    let told = server.ask("OPTIONS", "/files", &[], b"");
    for extension in told.field("tus-extension").split(',') {
        let works = match extension {
            "creation" => server.create(1, "a").starts_with("/files/"),
            "creation-with-upload" => {
                let reply = server.ask("POST", "/files", &["Upload-Length: 9", OCTETS], b"012");
                (reply.status, reply.get("upload-offset")) == (201, Some("3"))
            }
            "creation-defer-length" => {
                let reply = server.ask("POST", "/files", &["Upload-Defer-Length: 1"], b"");
                server.patch(reply.field("location"), 0, &["Upload-Length: 1"], b"x").status == 204
            }
            "expiration" => {
                server.head(&server.create(1, "a")).field("upload-expires").ends_with("GMT")
            }
            "termination" => server.ask("DELETE", &server.create(1, "a"), &[], b"").status == 204,
            "checksum" => told.field("tus-checksum-algorithm").split(',').all(|name| {
                let wrong = format!(
                    "Upload-Checksum: {name} {}",
                    "A".repeat(if name == "sha1" { 27 } else { 43 }) + "="
                );
                server.patch(&server.create(1, "a"), 0, &[&wrong], b"x").status == 460
            }),
            other => panic!("{other} is announced"),
        };
        assert!(works, "{extension}");
    }
    // concatenation and checksum-trailer are not announced, and are refused.
    for field in [
        "Upload-Concat: partial",
        "Upload-Concat: final;/files/a /files/b",
        "Trailer: Upload-Checksum",
    ] {
        assert_eq!(server.ask("POST", "/files", &["Upload-Length: 1", field], b"").status, 400);
    }
}

#[test]
fn no_answer_is_kept_by_a_cache() {
    let server = TestServer::start();
    let path = server.create(1, "a");
    for reply in
        [server.head(&path), server.head("/files/none"), server.ask("OPTIONS", "/files", &[], b"")]
    {
        assert_eq!(reply.field("cache-control"), "no-store");
        assert_eq!(reply.field("tus-resumable"), "1.0.0");
        assert!(reply.field("date").ends_with("GMT"));
    }
}

#[test]
fn an_answer_to_head_has_no_body() {
    let server = TestServer::start();
    let path = server.create(1, "a");
    for (path, status) in [(path.as_str(), "200"), ("/files/none", "404")] {
        let mut stream = server.dial();
        send_head(&mut stream, "HEAD", path, &[VERSION, "Connection: close"]);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(answer.ends_with("\r\n\r\n"), "{answer}");
    }
}

#[test]
fn heads_that_contradict_the_grammar_get_400_and_the_connection_ends() {
    let server = TestServer::start();
    let path = server.create(5, "a");
    let start = format!(
        "PATCH {path} HTTP/1.1\r\nHost: localhost\r\n{VERSION}\r\n{OCTETS}\r\nUpload-Offset: 0\r\n"
    );
    for wrong in [
        "Content-Length : 5",
        "Content-Length: 5, 6",
        "Content-Length: -5",
        "Content-Length: 5\r\nContent-Length: 6",
    ] {
        let mut stream = server.dial();
        write!(stream, "{start}{wrong}\r\n\r\n01234").unwrap();
        assert_eq!(read_reply(&mut stream).status, 400, "{wrong}");
        assert!(is_closed(&mut stream), "{wrong}");
    }
    assert_eq!(server.offset(&path), 0);
}

#[test]
fn head_tells_the_metadata_as_the_client_has_told_it() {
    let server = TestServer::start();
    let metadata = "filename YS5qcGc=,empty,type aW1hZ2UvanBlZw==";
    let told = format!("Upload-Metadata: {metadata}");
    let reply = server.ask("POST", "/files", &["Upload-Length: 5", &told], b"");
    assert_eq!(server.head(reply.field("location")).field("upload-metadata"), metadata);
}

/// The page that lists the rules names a test for each.
#[test]
fn every_test_that_the_page_of_rules_names_exists() {
    let own = env!("CARGO_MANIFEST_DIR");
    let page =
        std::fs::read_to_string(format!("{own}/../../../docs/reference/serve-http.md")).unwrap();
    let spans = page.split('`').skip(1).step_by(2);
    let named = spans.filter_map(|code| code.split_once("::"));
    let named: Vec<_> = named.filter(|(file, _)| !file.is_empty()).collect();
    assert!(named.len() > 50, "{named:?}");
    for (file, name) in named {
        let source = std::fs::read_to_string(format!("{own}/tests/serve/{file}.rs")).unwrap();
        assert!(source.contains(&format!("fn {name}()")), "{file}::{name}");
    }
}
