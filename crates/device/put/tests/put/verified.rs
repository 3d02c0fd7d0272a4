//! What "verified" says, and when it is not said.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use wakeai_put::PutError;

use crate::fake::{Fake, FakeAnswer, Files, Tus};
use crate::{Home, content, put};

#[test]
fn checksums_count_only_at_a_server_that_compares_them() {
    let home = Home::new();
    let file = home.write("f", &content(10_000));
    for (compares, gives_back, expected) in
        [(true, false, Some("checksums")), (false, true, Some("read back")), (false, false, None)]
    {
        let tus = Tus { extensions: "creation,checksum", compares, gives_back, ..Tus::default() };
        let fake = Fake::start(move |request| tus.answer(request));
        let report = put(&home.config(&file, &fake.url("/files"))).unwrap();
        assert_eq!(report.verified, expected);
        assert_eq!(report.unverified.is_some(), expected.is_none(), "{report:?}");
    }
}

#[test]
fn a_server_that_damages_the_file_is_found_out() {
    let home = Home::new();
    let file = home.write("f", &content(10_000));
    let files = Files::default();
    let fake = Fake::start(move |request| {
        let answer = files.answer(request);
        if request.method == "PUT" {
            let mut damaged = request.body.clone();
            damaged[5_000] ^= 1;
            files.set(&request.target, &damaged);
        }
        answer
    });
    let error = put(&home.config(&file, &fake.url("/f"))).unwrap_err();
    assert!(matches!(error, PutError::Differs), "{error}");
    let wrong = "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:";
    let tus = Tus { extensions: "creation", ..Tus::default() };
    let fake = Fake::start(move |request| tus.answer(request).with("Repr-Digest", wrong));
    let error = put(&home.config(&file, &fake.url("/files"))).unwrap_err();
    assert!(matches!(error, PutError::Differs), "{error}");
}

#[test]
fn a_file_that_the_server_took_and_does_not_have_is_missing() {
    let home = Home::new();
    let file = home.write("f", b"x");
    for gone in [404, 410] {
        let fake = Fake::start(move |request| match request.method.as_str() {
            "PUT" => FakeAnswer::new(201),
            "OPTIONS" => FakeAnswer::new(200),
            _ => FakeAnswer::new(gone),
        });
        let error = put(&home.config(&file, &fake.url("/f"))).unwrap_err();
        assert!(matches!(error, PutError::Missing(_)), "{error}");
    }
}

#[test]
fn a_server_that_gives_nothing_back_leaves_the_file_unverified_with_its_reason() {
    let home = Home::new();
    let file = home.write("f", b"x");
    let fake = Fake::start(|request| match request.method.as_str() {
        "PUT" => FakeAnswer::new(201),
        "OPTIONS" => FakeAnswer::new(200),
        "HEAD" => FakeAnswer::new(404),
        _ => FakeAnswer::new(403).body("write only"),
    });
    let report = put(&home.config(&file, &fake.url("/f"))).unwrap();
    let reason = report.unverified.unwrap();
    assert_eq!(report.verified, None);
    assert!(reason.contains("write only") && reason.contains("403"), "{reason}");
}

#[test]
fn a_server_that_is_busy_while_the_file_is_read_back_is_asked_again() {
    let home = Home::new();
    let file = home.write("f", b"x");
    let files = Files::default();
    let mut first = true;
    let fake = Fake::start(move |request| match request.method.as_str() {
        "GET" if std::mem::take(&mut first) => FakeAnswer::new(503),
        _ => files.answer(request),
    });
    assert_eq!(put(&home.config(&file, &fake.url("/f"))).unwrap().verified, Some("read back"));
}

#[test]
fn a_file_that_is_not_stored_yet_is_not_called_done() {
    let home = Home::new();
    let file = home.write("f", b"x");
    for status in [202, 207] {
        let fake = Fake::start(move |request| match request.method.as_str() {
            "PUT" => FakeAnswer::new(status),
            "OPTIONS" => FakeAnswer::new(200),
            _ => FakeAnswer::new(404),
        });
        let error = put(&home.config(&file, &fake.url("/f"))).unwrap_err();
        assert!(error.to_string().contains(&status.to_string()), "{error}");
    }
}

#[test]
fn an_answer_of_success_before_the_whole_file_was_sent_is_no_success() {
    let home = Home::new();
    let file = home.write("f", &content(8_000_000));
    let fake = Fake::raw(|stream, request| {
        let status = if request.method == "HEAD" { 404 } else { 201 };
        FakeAnswer::new(status).send(stream.get_mut(), request.method == "HEAD");
    });
    let error = put(&home.config(&file, &fake.url("/f"))).unwrap_err();
    assert!(matches!(error, PutError::Answer(_)), "{error}");
}

#[test]
fn a_file_in_another_coding_is_not_compared() {
    let home = Home::new();
    let file = home.write("f", b"x");
    let files = Files::default();
    let fake = Fake::start(move |request| {
        let answer = files.answer(request);
        if request.method == "GET" {
            answer.with("Content-Encoding", "gzip").body("?")
        } else {
            answer
        }
    });
    let report = put(&home.config(&file, &fake.url("/f"))).unwrap();
    assert_eq!(report.verified, None);
    assert!(report.unverified.unwrap().contains("coding"));
}

#[test]
fn a_digest_among_others_is_compared() {
    let home = Home::new();
    let file = home.write("f", b"hello world");
    let digest = "sha-512=:AAAA:, sha-256=:uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=:";
    let tus = Tus { extensions: "creation", ..Tus::default() };
    let bytes = Arc::clone(&tus.bytes);
    let fake = Fake::start(move |request| tus.answer(request).with("Repr-Digest", digest));
    assert_eq!(put(&home.config(&file, &fake.url("/files"))).unwrap().verified, Some("digest"));
    assert_eq!(*bytes.lock().unwrap(), b"hello world");
}

#[test]
fn a_file_that_is_cut_off_while_it_is_read_back_is_read_again() {
    let home = Home::new();
    let file = home.write("f", &content(1_000));
    for with_length in [true, false] {
        let files = Files::default();
        let mut first = true;
        let fake = Fake::raw(move |stream, request| {
            let length = request.get("content-length").map_or(0, |length| length.parse().unwrap());
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            request.body = body;
            if request.method == "GET" && std::mem::take(&mut first) {
                let length = if with_length { "Content-Length: 1000\r\n" } else { "" };
                let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{length}\r\n");
                stream.get_mut().write_all(head.as_bytes()).unwrap();
                stream.get_mut().write_all(&content(1_000)[..500]).unwrap();
                return;
            }
            files.answer(request).send(stream.get_mut(), request.method == "HEAD");
        });
        let report = put(&home.config(&file, &fake.url("/f"))).unwrap();
        assert_eq!((report.verified, report.resumes), (Some("read back"), 1), "{with_length}");
        assert_eq!(fake.count("PUT"), 1);
    }
}
