//! What the client does after each kind of answer.

use std::io::{Read as _, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use wakeai_put::{Chunks, Protocol, PutError};
use wakeai_units::Bytes;

use crate::fake::{Fake, FakeAnswer, Files, Tus};
use crate::{Home, content, put};

fn status(error: &PutError) -> u16 {
    match error {
        PutError::Refused { status, .. } => *status,
        error => panic!("{error}"),
    }
}

#[test]
fn an_answer_that_comes_before_the_body_is_read_each_time() {
    let home = Home::new();
    let file = home.write("f", &content(4_000_000));
    for refused in [413, 507, 403] {
        // The server closes the connection with unread bytes, so the kernel sends a reset.
        let fake = Fake::raw(move |stream, request| {
            let answer = match request.method.as_str() {
                "PUT" => FakeAnswer::new(refused).body("no room"),
                "OPTIONS" => FakeAnswer::new(200),
                _ => FakeAnswer::new(404),
            };
            answer.send(stream.get_mut(), request.method == "HEAD");
        });
        for _ in 0..20 {
            let error = put(&home.config(&file, &fake.url("/f"))).unwrap_err();
            assert_eq!(status(&error), refused, "{error}");
            assert!(error.to_string().contains("no room"), "{error}");
        }
        assert_eq!(fake.count("PUT"), 20, "none was sent again");
    }
}

#[test]
fn an_answer_that_comes_before_the_body_is_read_over_tls_too() {
    let home = Home::new();
    let file = home.write("f", &content(4_000_000));
    let (url, pem) = crate::messages::secured("127.0.0.1", 2000, 2999);
    let mut config = home.config(&file, &url);
    config.ca = Some(home.write("ca.pem", pem.as_bytes()));
    for _ in 0..20 {
        let error = put(&config).unwrap_err();
        assert_eq!(status(&error), 413, "{error}");
    }
}

#[test]
fn an_early_answer_ends_the_sending_although_the_connection_stays_open() {
    let home = Home::new();
    let file = home.write("f", &content(8_000_000));
    let read = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&read);
    let fake = Fake::raw(move |stream, request| {
        if request.method != "PUT" {
            return FakeAnswer::new(404).send(stream.get_mut(), true);
        }
        FakeAnswer::new(507).send(stream.get_mut(), false);
        // A server that lingers reads on, until the client closes.
        let mut body = Vec::new();
        let _ = stream.read_to_end(&mut body); // a reset ends it, too
        *seen.lock().unwrap() = Some(body.len());
    });
    let error = put(&home.config(&file, &fake.url("/f"))).unwrap_err();
    assert_eq!(status(&error), 507);
    let began = Instant::now();
    while read.lock().unwrap().is_none() {
        assert!(began.elapsed().as_secs() < 60, "the client does not close");
        std::thread::yield_now();
    }
    assert!(read.lock().unwrap().unwrap() < 8_000_000, "all of it was sent");
}

#[test]
fn a_missing_directory_and_a_full_disk_end_the_upload_at_once() {
    let home = Home::new();
    let file = home.write("f", b"x");
    for refused in [400, 401, 403, 405, 409, 411, 413, 414, 415, 417, 422, 451, 501, 505, 507, 508]
    {
        let fake = Fake::start(move |request| match request.method.as_str() {
            "PUT" => FakeAnswer::new(refused).body("in the server's words\n"),
            "OPTIONS" => FakeAnswer::new(200),
            _ => FakeAnswer::new(404),
        });
        let error = put(&home.config(&file, &fake.url("/d/"))).unwrap_err();
        assert_eq!((status(&error), fake.count("PUT")), (refused, 1), "{error}");
        assert!(error.to_string().contains("in the server's words"), "{error}");
    }
}

#[test]
fn a_passing_refusal_is_followed_by_another_attempt() {
    let home = Home::new();
    let file = home.write("f", b"x");
    for refused in [408, 421, 423, 425, 429, 500, 502, 503, 504, 511, 599] {
        let files = Files::default();
        let mut first = true;
        let fake = Fake::start(move |request| match request.method.as_str() {
            "PUT" if std::mem::take(&mut first) => FakeAnswer::new(refused),
            "OPTIONS" => FakeAnswer::new(200),
            _ => files.answer(request),
        });
        let report = put(&home.config(&file, &fake.url("/f"))).unwrap();
        assert_eq!((report.verified, fake.count("PUT")), (Some("read back"), 2), "{refused}");
    }
}

#[test]
fn a_piece_that_is_too_large_is_sent_in_smaller_ones() {
    let home = Home::new();
    let file = home.write("f", &content(100_000));
    let tus = Tus { extensions: "creation", gives_back: true, ..Tus::default() };
    let bytes = Arc::clone(&tus.bytes);
    let fake = Fake::start(move |request| {
        // As nginx with client_max_body_size in front of a server.
        if request.body.len() > 10_000 { FakeAnswer::new(413) } else { tus.answer(request) }
    });
    for chunks in [Chunks::Auto, Chunks::Count(2), Chunks::Size(Bytes::new(50_000))] {
        let mut config = home.config(&file, &fake.url("/files"));
        config.chunks = chunks;
        let report = put(&config).unwrap();
        assert_eq!(report.verified, Some("read back"));
        assert_eq!(*bytes.lock().unwrap(), content(100_000));
        assert!(report.pieces >= 10, "{report:?}");
    }
}

#[test]
fn a_server_that_refuses_every_size_ends_the_upload() {
    let home = Home::new();
    let file = home.write("f", &content(100_000));
    let tus = Tus { extensions: "creation", ..Tus::default() };
    let fake = Fake::start(move |request| {
        if request.method == "PATCH" { FakeAnswer::new(413) } else { tus.answer(request) }
    });
    let error = put(&home.config(&file, &fake.url("/files"))).unwrap_err();
    assert_eq!(status(&error), 413);
    assert!(fake.count("PATCH") < 10);
}

#[test]
fn a_wrong_offset_and_a_damaged_piece_are_followed_by_a_question() {
    let home = Home::new();
    let file = home.write("f", &content(10_000));
    for refused in [409, 460] {
        let tus = Tus { extensions: "creation,checksum", compares: true, ..Tus::default() };
        let bytes = Arc::clone(&tus.bytes);
        let mut first = true;
        let fake = Fake::start(move |request| {
            if request.method == "PATCH" && std::mem::take(&mut first) {
                return FakeAnswer::new(refused);
            }
            tus.answer(request)
        });
        let report = put(&home.config(&file, &fake.url("/files"))).unwrap();
        assert_eq!((report.verified, report.resumes), (Some("checksums"), 1), "{refused}");
        assert_eq!(fake.count("HEAD"), 2, "one for the offset, one for a digest");
        assert_eq!(*bytes.lock().unwrap(), content(10_000));
    }
}

#[test]
fn an_upload_that_the_server_forgot_begins_anew_once() {
    let home = Home::new();
    let file = home.write("f", &content(10_000));
    for gone in [403, 404, 410] {
        let tus = Tus { extensions: "creation", gives_back: true, ..Tus::default() };
        let mut first = true;
        let fake = Fake::start(move |request| {
            if request.method == "PATCH" && std::mem::take(&mut first) {
                return FakeAnswer::new(gone);
            }
            tus.answer(request)
        });
        put(&home.config(&file, &fake.url("/files"))).unwrap();
        assert_eq!(fake.count("POST"), 2);
        let fake = Fake::start(move |request| match request.method.as_str() {
            "PATCH" => FakeAnswer::new(gone),
            _ => Tus { extensions: "creation", ..Tus::default() }.answer(request),
        });
        let error = put(&home.config(&file, &fake.url("/files"))).unwrap_err();
        assert_eq!((status(&error), fake.count("POST")), (gone, 2));
    }
}

#[test]
fn a_server_whose_offset_stays_is_not_asked_without_a_pause() {
    let home = Home::new();
    let file = home.write("f", &content(10_000));
    let tus = Tus { extensions: "creation", ..Tus::default() };
    let fake = Fake::start(move |request| {
        if request.method == "PATCH" {
            return FakeAnswer::new(204).with("Upload-Offset", 0);
        }
        tus.answer(request)
    });
    let mut config = home.config(&file, &fake.url("/files"));
    config.retry_for = wakeai_units::Duration::from_millis(500);
    let error = put(&config).unwrap_err();
    assert!(matches!(error, PutError::GaveUp { .. }), "{error}");
    assert!(fake.count("PATCH") < 5);
}

#[test]
fn an_upload_larger_than_the_server_takes_is_not_begun() {
    let home = Home::new();
    let file = home.write("f", &content(10_000));
    let tus = Tus { extensions: "creation", most: Some(9_999), ..Tus::default() };
    let fake = Fake::start(move |request| tus.answer(request));
    let error = put(&home.config(&file, &fake.url("/files"))).unwrap_err();
    assert!(matches!(error, PutError::TooLarge { most: 9_999, bytes: 10_000 }), "{error}");
    assert_eq!(fake.count("POST"), 0);
}

#[test]
fn a_server_that_takes_no_parts_gets_the_whole_file() {
    let home = Home::new();
    let file = home.write("f", &content(50_000));
    for refused in [400, 405, 411, 415, 416, 501] {
        let files = Files::default();
        let kept = files.clone();
        let fake = Fake::start(move |request| {
            if request.get("content-range").is_some() {
                FakeAnswer::new(refused)
            } else {
                files.answer(request)
            }
        });
        let mut config = home.config(&file, &fake.url("/f"));
        (config.protocol, config.chunks) = (Protocol::PutRanges, Chunks::Count(5));
        let report = put(&config).unwrap();
        assert_eq!((report.protocol, report.verified), (Protocol::Put, Some("read back")));
        assert_eq!(kept.get("/f").unwrap(), content(50_000));
    }
}

#[test]
fn a_server_that_takes_a_part_for_the_whole_file_is_noticed() {
    let home = Home::new();
    let file = home.write("f", &content(50_000));
    let files = Files::default();
    let kept = files.clone();
    let fake = Fake::start(move |request| files.answer(request)); // ignores Content-Range
    for verify in [true, false] {
        let mut config = home.config(&file, &fake.url("/f"));
        (config.protocol, config.chunks, config.verify) =
            (Protocol::PutRanges, Chunks::Count(5), verify);
        assert_eq!(put(&config).unwrap().protocol, Protocol::Put);
        assert_eq!(kept.get("/f").unwrap(), content(50_000));
    }
}

#[test]
fn a_connection_that_breaks_is_followed_by_another_attempt() {
    let home = Home::new();
    let file = home.write("f", &content(100_000));
    let files = Files::default();
    let mut first = true;
    let fake = Fake::raw(move |stream, request| {
        if request.method == "PUT" && std::mem::take(&mut first) {
            let _ = stream.get_mut().write_all(b"HTTP/1.1 20"); // and a reset, with unread bytes
            return;
        }
        let mut body =
            vec![0; request.get("content-length").map_or(0, |length| length.parse().unwrap())];
        stream.read_exact(&mut body).unwrap();
        request.body = body;
        files.answer(request).send(stream.get_mut(), request.method == "HEAD");
    });
    let report = put(&home.config(&file, &fake.url("/f"))).unwrap();
    assert_eq!((report.resumes, report.verified), (1, Some("read back")));
}

#[test]
fn interim_answers_are_skipped() {
    let home = Home::new();
    let file = home.write("f", b"x");
    let files = Files::default();
    let fake = Fake::raw(move |stream, request| {
        let length = request.get("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        for interim in ["100 Continue", "102 Processing", "103 Early Hints"] {
            let _ = write!(stream.get_mut(), "HTTP/1.1 {interim}\r\nLink: </x>\r\n\r\n");
        }
        stream.read_exact(&mut body).unwrap();
        request.body = body;
        files.answer(request).send(stream.get_mut(), request.method == "HEAD");
    });
    assert_eq!(put(&home.config(&file, &fake.url("/f"))).unwrap().verified, Some("read back"));
}
