//! What the user reads: what was asked, what was found, what to do.

use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use wakeai_put::PutError;
use wakeai_units::Duration;

use crate::fake::{Fake, FakeAnswer, Files};
use crate::{Home, put};

/// A server that refuses uploads over TLS before it reads them, with a certificate that is valid from `from` until `to`.
pub(crate) fn secured(name: &str, from: i32, to: i32) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(to, 1, 1));
    let certificate = params.self_signed(&key).unwrap();
    let (der, pem) = (certificate.der().clone(), certificate.pem());
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.unwrap().with_no_client_auth().with_single_cert(vec![der], key).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/f", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (tls, stream) =
                (ServerConnection::new(Arc::clone(&config)).unwrap(), stream.unwrap());
            // Otherwise Nagle's algorithm keeps the answer back while TLS's tickets are not acknowledged, and the reset at
            // the end drops it.
            stream.set_nodelay(true).unwrap();
            let mut stream = BufReader::new(StreamOwned::new(tls, stream));
            let mut block = [0; 1024];
            if stream.read(&mut block).is_ok() {
                let status = if block.starts_with(b"PUT") { "413 Too Large" } else { "404 No" };
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                let _ = stream.get_mut().write_all(answer.as_bytes()); // the client may have gone
            }
        }
    });
    (url, pem)
}

#[test]
fn a_certificate_that_is_refused_is_explained() {
    let home = Home::new();
    let file = home.write("f", b"x");
    for (name, from, to, gives_ca, says) in [
        ("127.0.0.1", 2000, 2999, false, &["--ca"][..]),
        (
            "127.0.0.1",
            2000,
            2001,
            true,
            &["ended on", "2001", "this machine's clock says", "clock"],
        ),
        (
            "127.0.0.1",
            2998,
            2999,
            true,
            &["begins on", "2998", "this machine's clock says", "clock"],
        ),
        ("other.example", 2000, 2999, true, &["other.example", "name in the URL"]),
    ] {
        let (url, pem) = secured(name, from, to);
        let mut config = home.config(&file, &url);
        if gives_ca {
            config.ca = Some(home.write("ca.pem", pem.as_bytes()));
        }
        let error = put(&config).unwrap_err();
        assert!(matches!(error, PutError::Certificates { .. }) && error.is_usage(), "{error}");
        let said = error.to_string();
        for says in says {
            assert!(said.contains(says), "{says}: {said}");
        }
        assert!(!said.contains(['{', '"']) && !said.contains("Context"), "{said}");
    }
}

#[test]
fn http_and_tls_that_are_mixed_up_are_explained_at_once() {
    let home = Home::new();
    let file = home.write("f", b"x");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let https = format!("https://{}/f", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut block = [0; 4096];
        let _ = stream.read(&mut block).unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    let said = put(&home.config(&file, &https)).unwrap_err().to_string();
    assert!(said.contains("need http://"), "{said}");
    let (url, _) = secured("127.0.0.1", 2000, 2999);
    let said =
        put(&home.config(&file, &url.replace("https://", "http://"))).unwrap_err().to_string();
    assert!(said.contains("need https://"), "{said}");
}

#[test]
fn a_redirect_names_the_url_to_give() {
    let home = Home::new();
    let file = home.write("f", b"x");
    for status in [301, 302, 303, 307, 308] {
        let fake = Fake::start(move |_| {
            FakeAnswer::new(status).with("Location", "/new/place/?key=secret")
        });
        let error = put(&home.config(&file, &fake.url("/f"))).unwrap_err();
        let said = error.to_string();
        assert!(said.contains(&fake.url("/new/place/")), "{said}");
        assert!(said.contains("give the URL") && !said.contains("secret"), "{said}");
        assert_eq!(fake.requests().len(), 1);
    }
}

#[test]
fn a_wait_that_is_too_long_is_not_called_time_without_progress() {
    let home = Home::new();
    let file = home.write("f", b"x");
    let (now, later) = ("Thu, 01 Jan 1970 00:00:00 GMT", "Thu, 01 Jan 1970 01:00:00 GMT");
    for wait in ["3600", later] {
        let fake =
            Fake::start(move |_| FakeAnswer::new(503).with("Date", now).with("Retry-After", wait));
        let error = put(&home.config(&file, &fake.url("/f"))).unwrap_err();
        assert!(matches!(error, PutError::AskedToWait { .. }), "{error}");
        let said = error.to_string();
        assert!(said.contains("1h") || said.contains("3600"), "{said}");
        assert!(said.contains("--retry-for 20s") && !said.contains("gave up"), "{said}");
    }
}

#[test]
fn the_time_without_progress_is_the_time_that_passed() {
    let home = Home::new();
    let file = home.write("f", b"x");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/f", listener.local_addr().unwrap());
    drop(listener);
    let mut config = home.config(&file, &url);
    config.retry_for = Duration::from_millis(100);
    match put(&config).unwrap_err() {
        PutError::GaveUp { elapsed, limit, error } => {
            assert!(elapsed <= limit, "{elapsed}");
            assert!(error.contains("connection refused") && !error.contains("os error"), "{error}");
        }
        error => panic!("{error}"),
    }
}

#[test]
fn a_name_that_does_not_exist_and_an_algorithm_that_is_missing_end_the_upload_at_once() {
    let home = Home::new();
    let file = home.write("f", b"x");
    // The resolver refuses a label of 64 characters by itself (RFC 1035, section 2.3.4).
    let name = format!("{}.invalid", "a".repeat(64));
    let said = put(&home.config(&file, &format!("http://{name}/f"))).unwrap_err().to_string();
    assert!(said.contains(&name) && !said.contains("gave up"), "{said}");
    let fake = Fake::start(|_| FakeAnswer::new(404));
    let mut config = home.config(&file, &fake.url("/f"));
    config.algorithm = Some("no-such".to_owned());
    let error = put(&config).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("no-such"), "{error}");
}

#[test]
fn a_directory_and_a_file_that_is_missing_are_named() {
    let home = Home::new();
    for path in [PathBuf::from("/nowhere/f"), home.path("")] {
        let error = put(&home.config(&path, "http://127.0.0.1:1/")).unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()) && !error.contains("os error"), "{error}");
    }
}

#[test]
fn an_agent_that_is_stopped_delays_the_upload_and_does_not_end_it() {
    let home = Home::new();
    let file = home.write("f", b"x");
    let files = Files::default();
    let fake = Fake::start(move |request| files.answer(request));
    let socket = home.path("agent.sock");
    let _agent = UnixListener::bind(&socket).unwrap(); // it never accepts
    let mut config = home.config(&file, &fake.url("/f"));
    config.agent = Some(socket);
    assert_eq!(put(&config).unwrap().verified, Some("read back"));
}
