//! Rules of HTTP, WebDAV and tus that bind a client; docs/reference/upload-rules.md names the tests.

use wakeai_put::{Credentials, Protocol};

use crate::fake::{Fake, FakeAnswer, FakeRequest, Files, Tus};
use crate::peers::{PeerKind, PeerServer};
use crate::{Home, content, put};

/// The requests of an upload of 10 bytes to a server without tus.
fn requests(length: usize) -> Vec<FakeRequest> {
    let home = Home::new();
    let file = home.write("f", &content(length));
    let files = Files::default();
    let fake = Fake::start(move |request| files.answer(request));
    put(&home.config(&file, &fake.url("/f"))).unwrap();
    fake.requests()
}

#[test]
fn every_request_names_its_host_and_its_program() {
    for request in requests(10) {
        assert!(request.get("host").unwrap().starts_with("127.0.0.1:"));
        assert!(request.get("user-agent").unwrap().starts_with("wakeai/"));
        let hosts = request.headers.iter().filter(|(name, _)| name == "host").count();
        assert_eq!((hosts, request.headers[0].0.as_str()), (1, "host"));
        assert!(request.target.starts_with('/'), "the origin form");
    }
}

#[test]
fn a_body_has_one_length_and_so_has_an_empty_one() {
    for length in [0, 10] {
        for request in requests(length) {
            let lengths: Vec<_> =
                request.headers.iter().filter(|(name, _)| name == "content-length").collect();
            assert_eq!(request.get("transfer-encoding"), None);
            match request.method.as_str() {
                "PUT" => assert_eq!(lengths[0].1, length.to_string()),
                _ => assert!(lengths.is_empty(), "{}: {lengths:?}", request.method),
            }
            assert!(lengths.len() <= 1);
        }
    }
    let home = Home::new();
    let file = home.write("f", b"");
    let tus = Tus { extensions: "creation", ..Tus::default() };
    let fake = Fake::start(move |request| tus.answer(request));
    put(&home.config(&file, &fake.url("/files"))).unwrap();
    let created = fake.requests().into_iter().find(|request| request.method == "POST").unwrap();
    assert_eq!(created.get("content-length"), Some("0"));
    assert_eq!(created.get("upload-length"), Some("0"));
}

#[test]
fn what_is_not_to_be_sent_is_not_sent() {
    for request in requests(10) {
        for field in ["expect", "connection", "te", "upgrade", "referer", "date", "range", "cookie"]
        {
            assert_eq!(request.get(field), None, "{field}");
        }
        if request.method != "PUT" {
            assert_eq!(request.get("content-range"), None);
        }
    }
}

#[test]
fn the_first_piece_has_no_content_range_and_the_others_say_where_they_belong() {
    let home = Home::new();
    let file = home.write("f", &content(10));
    let ranges = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = std::sync::Arc::clone(&ranges);
    let Some(peer) = PeerServer::start(PeerKind::Apache) else { return };
    let to = peer.url("");
    // A relay that only looks.
    let fake = Fake::raw(move |stream, request| {
        if request.method == "PUT" {
            let range = request.get("content-range").map(ToOwned::to_owned);
            seen.lock().unwrap().push(range);
        }
        relay(stream, request, &to);
    });
    let mut config = home.config(&file, &fake.url("/f"));
    (config.protocol, config.chunks) = (Protocol::PutRanges, wakeai_put::Chunks::Count(2));
    put(&config).unwrap();
    assert_eq!(*ranges.lock().unwrap(), [None, Some("bytes 5-9/10".to_owned())]);
    let moved = fake.requests().into_iter().find(|request| request.method == "MOVE").unwrap();
    assert_eq!(moved.get("destination"), Some(fake.url("/f").as_str()));
    assert_eq!(moved.get("overwrite"), Some("F"));
    let asked = fake.requests().into_iter().find(|request| request.method == "PROPFIND").unwrap();
    assert_eq!(asked.get("depth"), Some("0"));
    assert_eq!(asked.get("content-type"), Some("application/xml; charset=utf-8"));
}

/// Hands a request on, with the same `Host`, and its answer back.
fn relay(stream: &mut std::io::BufReader<std::net::TcpStream>, request: &FakeRequest, to: &str) {
    use std::io::{Read as _, Write as _};
    let mut body =
        vec![0; request.get("content-length").map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).unwrap();
    let mut other = std::net::TcpStream::connect(to.trim_start_matches("http://")).unwrap();
    let mut text =
        format!("{} {} HTTP/1.1\r\nConnection: close\r\n", request.method, request.target);
    for (name, value) in &request.headers {
        text += name;
        text += ": ";
        text += value;
        text += "\r\n";
    }
    text.push_str("\r\n");
    other.write_all(text.as_bytes()).unwrap();
    other.write_all(&body).unwrap();
    let mut answer = Vec::new();
    other.read_to_end(&mut answer).unwrap();
    let _ = stream.get_mut().write_all(&answer);
}

#[test]
fn credentials_go_only_to_the_server_of_the_url() {
    let home = Home::new();
    let file = home.write("f", b"x");
    let tus = Tus { extensions: "creation", ..Tus::default() };
    let there = tus.clone();
    let other = Fake::start(move |request| there.answer(request));
    let location = other.url("/files/1");
    let fake = Fake::start(move |request| {
        let answer = tus.answer(request);
        if request.method == "POST" {
            return FakeAnswer::new(201).with("Location", &location);
        }
        answer
    });
    let mut config = home.config(&file, &fake.url("/files"));
    config.credentials = Credentials::bearer("secret");
    let _ = put(&config); // the other server knows of no upload
    assert!(
        fake.requests().iter().all(|request| request.get("authorization") == Some("Bearer secret"))
    );
    assert!(!other.requests().is_empty());
    assert!(other.requests().iter().all(|request| request.get("authorization").is_none()));
}

#[test]
fn tus_has_its_version_its_offset_and_its_type_in_every_request_that_needs_them() {
    let home = Home::new();
    let file = home.write("f", &content(10));
    let tus = Tus { extensions: "creation,checksum", compares: true, ..Tus::default() };
    let fake = Fake::start(move |request| tus.answer(request));
    put(&home.config(&file, &fake.url("/files"))).unwrap();
    for request in fake.requests() {
        if request.method == "OPTIONS" {
            assert_eq!(request.get("tus-resumable"), None);
            continue;
        }
        assert_eq!(request.get("tus-resumable"), Some("1.0.0"), "{}", request.method);
        let is_patch = request.method == "PATCH";
        assert_eq!(request.get("upload-offset").is_some(), is_patch);
        let patch_type = request.get("content-type") == Some("application/offset+octet-stream");
        assert_eq!(patch_type, is_patch);
        assert_eq!(request.get("upload-checksum").is_some(), is_patch);
        assert_eq!(request.get("upload-length").is_some(), request.method == "POST");
    }
}

#[test]
fn a_server_without_this_version_of_tus_gets_no_upload() {
    let home = Home::new();
    let file = home.write("f", b"x");
    let fake = Fake::start(|_| {
        FakeAnswer::new(204).with("Tus-Version", "2.0.0").with("Tus-Extension", "creation")
    });
    let said = put(&home.config(&file, &fake.url("/files"))).unwrap_err().to_string();
    assert!(said.contains("1.0.0"), "{said}");
    assert_eq!(fake.count("POST"), 0);
}

#[test]
fn what_is_read_back_is_neither_from_a_cache_nor_in_another_coding() {
    let read = requests(10);
    let read: Vec<_> = read.iter().filter(|request| request.method == "GET").collect();
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].get("cache-control"), Some("no-cache"));
    assert_eq!(read[0].get("accept-encoding"), Some("identity"));
}

#[test]
fn the_reference_page_names_tests_that_exist() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page =
        std::fs::read_to_string(root.join("../../../docs/reference/upload-rules.md")).unwrap();
    let named = page.split('`').filter(|word| word.contains("::") && !word.contains(' '));
    let mut count = 0;
    for name in named {
        let (file, test) = name.rsplit_once("::").unwrap();
        let file = match file.strip_prefix("src/") {
            Some(file) => root.join("src").join(file).with_extension("rs"),
            None => root.join("tests/put").join(file).with_extension("rs"),
        };
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains(&format!("fn {test}()")), "{name}");
        count += 1;
    }
    assert!(count > 40, "{count}");
}

/// The requests of an upload, each over a connection of its own, in their order.
fn counted(kind: PeerKind, name: &str, exists: bool, pieces: u64) -> Option<String> {
    let home = Home::new();
    let file = home.write(name, &content(10));
    let peer = PeerServer::start(kind)?;
    if exists {
        std::fs::write(peer.served.join(name), "an older file").unwrap();
        // Apache and nginx serve as this user.
        let nobody = Some(65534);
        let _ = std::os::unix::fs::chown(peer.served.join(name), nobody, nobody);
    }
    let to = peer.url("");
    let fake = Fake::raw(move |stream, request| relay(stream, request, &to));
    let mut config = home.config(&file, &fake.url("/"));
    config.chunks = wakeai_put::Chunks::Count(pieces.try_into().unwrap());
    put(&config).unwrap();
    let mut runs: Vec<(String, u32)> = Vec::new();
    for request in fake.requests() {
        match runs.last_mut() {
            Some((method, count)) if *method == request.method => *count += 1,
            _ => runs.push((request.method, 1)),
        }
    }
    let word = |(method, count): (String, u32)| {
        if count == 1 { method } else { format!("{count} {method}") }
    };
    Some(runs.into_iter().map(word).collect::<Vec<_>>().join(", "))
}

#[test]
fn an_upload_takes_the_requests_that_decision_022_lists() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = root.join("../../../docs/decisions/022-uploads-under-another-name.md");
    let page = std::fs::read_to_string(page).unwrap();
    let cases = [
        ("nginx, a new name", PeerKind::Nginx, "f.bin", false, 1),
        ("nginx, a name that exists", PeerKind::Nginx, "f.bin", true, 1),
        ("nginx, a name that exists and is not ASCII", PeerKind::Nginx, "Übung.bin", true, 1),
        ("Apache, a new name, one piece", PeerKind::Apache, "f.bin", false, 1),
        ("Apache, a new name, two pieces", PeerKind::Apache, "f.bin", false, 2),
        ("Apache, a name that exists, two pieces", PeerKind::Apache, "f.bin", true, 2),
    ];
    let mut missing = Vec::new();
    for (case, kind, name, exists, pieces) in cases {
        let Some(found) = counted(kind, name, exists, pieces) else { return };
        let row = format!("| {case} | {found} |");
        if !page.contains(&row) {
            missing.push(row);
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
