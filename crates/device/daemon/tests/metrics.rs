//! The endpoint with clients that ask well, and with others.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::{LocalSet, spawn_local};
use wakeai_daemon::metrics::{Endpoint, Page, Unit};
use wakeai_net::Local;

fn page() -> Page {
    let mut page = Page::new();
    page.counter("x_events", Unit::None, "Events.").is(3);
    page
}

/// An endpoint on a free port.
fn endpoint() -> (Endpoint, SocketAddr) {
    loop {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        // Another process may have taken the port meanwhile.
        if let Ok(endpoint) = Endpoint::bind(Local::try_from(free).unwrap()) {
            return (endpoint, free);
        }
    }
}

/// Runs `clients` beside an endpoint, on one thread.
fn with_endpoint<F: Future<Output = ()>>(clients: impl FnOnce(SocketAddr) -> F) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    let (endpoint, address) = endpoint();
    LocalSet::new().block_on(&runtime, async {
        let serving = spawn_local(endpoint.serve(page));
        clients(address).await;
        assert!(!serving.is_finished());
    });
}

async fn say(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The endpoint may answer and close before it has read everything.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn figures_come_as_plain_text_and_as_openmetrics_where_that_is_accepted() {
    with_endpoint(|address| async move {
        let plain = say(address, b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await;
        assert!(plain.starts_with("HTTP/1.1 200 OK\r\n"), "{plain}");
        assert!(plain.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"));
        assert!(plain.contains("connection: close\r\n"), "{plain}");
        assert!(plain.ends_with("# TYPE x_events_total counter\nx_events_total 3\n"), "{plain}");
        let request = b"GET /metrics?x=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/openmetrics-text\r\n\r\n";
        let open = say(address, request).await;
        assert!(
            open.contains("content-type: application/openmetrics-text; version=1.0.0"),
            "{open}"
        );
        assert!(open.ends_with("x_events_total 3\n# EOF\n"), "{open}");
        let head = say(address, b"HEAD /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    });
}

#[test]
fn other_paths_and_methods_are_refused() {
    with_endpoint(|address| async move {
        for (request, expected) in [
            ("GET / HTTP/1.1", "404"),
            ("GET /metrics/ HTTP/1.1", "404"),
            ("POST / HTTP/1.1", "404"),
            ("POST /metrics HTTP/1.1", "405"),
            ("DELETE /metrics HTTP/1.1", "405"),
            ("GET /metrics HTTP/7", "400"),
            ("GET", "400"),
        ] {
            let answer =
                say(address, format!("{request}\r\nHost: 127.0.0.1\r\n\r\n").as_bytes()).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{request}: {answer}");
        }
        let foreign = say(address, b"GET /metrics HTTP/1.1\r\nHost: example.net\r\n\r\n").await;
        assert!(foreign.starts_with("HTTP/1.1 421 "), "{foreign}");
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(20_000));
        assert!(say(address, long.as_bytes()).await.starts_with("HTTP/1.1 4"));
        let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(100));
        assert!(say(address, many.as_bytes()).await.starts_with("HTTP/1.1 431 "));
    });
}

#[test]
fn the_rules_of_http_for_targets_hosts_and_methods_are_kept() {
    with_endpoint(|address| async move {
        for (request, expected) in [
            // RFC 9112 section 3.2: one Host, which HTTP/1.0 may leave out.
            ("GET /metrics HTTP/1.1", "400"),
            ("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1", "400"),
            ("GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1", "400"),
            ("GET /metrics HTTP/1.0", "200"),
            // RFC 9112 section 3.2.2: the host of the target counts, and not the field.
            ("GET http://127.0.0.1:9719/metrics HTTP/1.1\r\nHost: example.net", "200"),
            ("GET http://example.net/metrics HTTP/1.1\r\nHost: 127.0.0.1", "421"),
            // RFC 9110 section 9.1.
            ("BREW /metrics HTTP/1.1\r\nHost: 127.0.0.1", "501"),
            ("get /metrics HTTP/1.1\r\nHost: 127.0.0.1", "501"),
            ("OPTIONS /metrics HTTP/1.1\r\nHost: 127.0.0.1", "405"),
            ("HEAD /nothing HTTP/1.1\r\nHost: 127.0.0.1", "404"),
        ] {
            let answer = say(address, format!("{request}\r\n\r\n").as_bytes()).await;
            let status = answer.split(' ').nth(1);
            assert_eq!(status, Some(expected), "{request}: {answer}");
            // RFC 9110 sections 15.5.6 and 9.3.2.
            assert_eq!(answer.contains("\r\nallow: GET, HEAD\r\n"), expected == "405", "{answer}");
            assert!(answer.contains("\r\ncontent-length: "), "{answer}");
            assert!(!request.starts_with("HEAD") || answer.ends_with("\r\n\r\n"), "{answer}");
        }
    });
}

#[test]
fn a_client_that_sends_more_than_is_read_gets_its_answer_without_a_reset() {
    with_endpoint(|address| async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = "POST /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 500000\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&vec![b'x'; 500_000]).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
        assert!(stream.take_error().unwrap().is_none());
    });
}

#[test]
fn silent_clients_give_their_places_to_others() {
    with_endpoint(|address| async move {
        let mut silent = Vec::new();
        for _ in 0..4 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        silent[0].write_all(b"GET /met").await.unwrap();
        // They hold all places until their time is over.
        let answer = say(address, b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        let answer = tokio::time::timeout(Duration::from_mins(1), answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    });
}

#[test]
fn the_endpoint_does_not_hold_up_its_thread() {
    with_endpoint(|address| async move {
        // A client that reads nothing, while a timer of the same thread goes on.
        let mut idle = TcpStream::connect(address).await.unwrap();
        idle.write_all(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await.unwrap();
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let answer = say(address, b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await;
        assert!(answer.contains("x_events_total 3"), "{answer}");
    });
}

#[test]
fn an_address_where_another_program_listens_is_refused() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Local::try_from(holder.local_addr().unwrap()).unwrap();
    let refused = Endpoint::bind(address).unwrap_err().to_string();
    assert!(refused.contains(&format!("{address}: another program listens there")), "{refused}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_bytes_are_survived(requests in proptest::collection::vec(request(), 1..4)) {
        with_endpoint(|address| async move {
            for request in &requests {
                let _ = say(address, request).await;
            }
            let answer = say(address, b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await;
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        });
    }
}

/// Bytes, some of which begin as a request does.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let heads = prop_oneof![
        Just(""),
        Just("GET /metrics HTTP/1.1\r\n"),
        Just("GET /metrics HTTP/1.1\r\nAccept: "),
        Just("POST /metrics HTTP/1.1\r\nContent-Length: "),
        Just("GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        Just("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ];
    let tail = proptest::collection::vec(any::<u8>(), 0..300);
    (heads, tail, any::<bool>()).prop_map(|(head, tail, ends)| {
        let end: &[u8] = if ends { b"\r\n\r\n" } else { b"" };
        [head.as_bytes(), &tail, end].concat()
    })
}
