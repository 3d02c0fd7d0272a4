//! Tests of requests that clients send whole, in pieces, or mangled.

#![allow(clippy::unwrap_used, reason = "a test that fails, fails")]

mod talk;

use std::net::SocketAddr;

use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use talk::talk;
use wakeai_proxy::{Host, Negotiation, Outcome, REQUEST_LIMIT, Rejection, Target};

const GREETING: &[u8] = b"\x05\x01\x00";

fn socks(rest: &[u8]) -> Vec<u8> {
    [GREETING, b"\x05\x01\x00", rest].concat()
}

fn address(text: &str) -> Target {
    let address: SocketAddr = text.parse().unwrap();
    Target { host: Host::Address(address.ip()), port: address.port() }
}

fn name(name: &str, port: u16) -> Target {
    Target { host: Host::Name(name.to_owned()), port }
}

#[test]
fn socks5_asks_for_addresses_of_both_families_and_for_names() {
    let v4 = socks(b"\x01\xc0\x00\x02\x07\x01\xbb");
    let v6 = socks(b"\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x50");
    let named = socks(b"\x03\x0bexample.org\x00\x50");
    let literal = socks(b"\x03\x09127.0.0.1\x00\x50");
    for (input, target) in [
        (v4, address("192.0.2.7:443")),
        (v6, address("[2001:db8::1]:80")),
        (named, name("example.org", 80)),
        (literal, address("127.0.0.1:80")),
    ] {
        let talk = talk(&input, input.len());
        assert_eq!(talk.result, Ok(Some(target)));
        assert_eq!(talk.said, b"\x05\x00\x05\x00\x00\x01\x0a\x00\x00\x09\x12\x34");
        assert_eq!(talk.early, b"");
    }
}

#[test]
fn what_socks5_does_not_serve_is_answered_with_its_reply() {
    let told = |input: &[u8]| {
        let talk = talk(input, input.len());
        (talk.result.unwrap_err(), talk.said)
    };
    assert_eq!(told(b"\x05\x01\x02"), (Rejection::Authentication, b"\x05\xff".to_vec()));
    let reply = |code| [&[5, 0, 5, code, 0, 1][..], &[0; 6]].concat();
    let bind = [GREETING, b"\x05\x02"].concat();
    assert_eq!(told(&bind), (Rejection::Command, reply(7)));
    assert_eq!(told(&socks(b"\x02")), (Rejection::AddressType, reply(8)));
    assert_eq!(told(&socks(b"\x01\x7f\0\0\x01\0\0")), (Rejection::Malformed, reply(1)));
    assert_eq!(told(&socks(b"\x03\x03a b\x00\x50")), (Rejection::Malformed, reply(1)));
    assert_eq!(told(&socks(b"\x03\x00\x00\x50")), (Rejection::Malformed, reply(1)));
}

#[test]
fn connect_asks_for_addresses_of_both_families_and_for_names() {
    for (authority, target) in [
        ("192.0.2.7:443", address("192.0.2.7:443")),
        ("[2001:db8::1]:443", address("[2001:db8::1]:443")),
        ("example.org:8443", name("example.org", 8443)),
    ] {
        let head = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n\x16\x03");
        let talk = talk(head.as_bytes(), head.len());
        assert_eq!(talk.result, Ok(Some(target)), "{authority}");
        assert_eq!(talk.said, b"HTTP/1.1 200 Connection established\r\n\r\n");
        assert_eq!(talk.early, b"\x16\x03", "the bytes after the request are for the destination");
    }
}

/// A CONNECT to `authority` with these further lines.
fn asked(authority: &str, lines: &str) -> String {
    format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{lines}\r\n")
}

#[test]
fn what_connect_does_not_serve_is_answered_with_its_status() {
    let to = "example.org:443";
    let with_host = |line: &str| format!("{line}\r\nHost: example.org\r\n\r\n");
    let fields = |fields: &str| asked(to, fields);
    let many = "A: b\r\n".repeat(100);
    for (head, rejection, status) in [
        // RFC 9110 sections 15.5.6 and 15.6.2.
        (with_host("GET http://example.org/ HTTP/1.1"), Rejection::Command, "405"),
        (with_host("POST http://example.org/ HTTP/1.1"), Rejection::Command, "405"),
        (with_host("OPTIONS * HTTP/1.1"), Rejection::Command, "405"),
        (with_host("BREW example.org:443 HTTP/1.1"), Rejection::Command, "501"),
        (with_host("Connect example.org:443 HTTP/1.1"), Rejection::Command, "501"),
        // RFC 9110 section 9.3.6, RFC 9112 section 3.2.3.
        (asked("example.org", ""), Rejection::Malformed, "400"),
        (asked("example.org:", ""), Rejection::Malformed, "400"),
        (asked("example.org:0", ""), Rejection::Malformed, "400"),
        (asked("example.org:+80", ""), Rejection::Malformed, "400"),
        (asked("example.org:65536", ""), Rejection::Malformed, "400"),
        (asked("2001:db8::1:443", ""), Rejection::Malformed, "400"),
        (asked("[example.org]:443", ""), Rejection::Malformed, "400"),
        (asked("[192.0.2.1]:443", ""), Rejection::Malformed, "400"),
        (asked("user@example.org:443", ""), Rejection::Malformed, "400"),
        (asked("http://example.org:443", ""), Rejection::Malformed, "400"),
        (asked("/", ""), Rejection::Malformed, "400"),
        // RFC 9110 section 15.6.6, RFC 9112 section 2.3.
        (with_host("CONNECT example.org:443 HTTP/2"), Rejection::Malformed, "400"),
        (with_host("CONNECT example.org:443 HTTP/2.0"), Rejection::Malformed, "505"),
        (with_host("CONNECT example.org:443 http/1.1"), Rejection::Malformed, "400"),
        (with_host("CONNECT  example.org:443 HTTP/1.1"), Rejection::Malformed, "400"),
        (with_host("CONNECT example.org:443"), Rejection::Malformed, "400"),
        // RFC 9112 section 3.2: one Host.
        ("CONNECT example.org:443 HTTP/1.1\r\n\r\n".to_owned(), Rejection::Malformed, "400"),
        (fields("Host: example.org:443\r\n"), Rejection::Malformed, "400"),
        (with_host("CONNECT a:1 HTTP/1.1\r\nHost: a, b"), Rejection::Malformed, "400"),
        // RFC 9112 sections 2.2, 5.1 and 5.2.
        (fields("A: b\nC: d\r\n"), Rejection::Malformed, "400"),
        (fields("A: b\rC: d\r\n"), Rejection::Malformed, "400"),
        (fields("A: b\0\r\n"), Rejection::Malformed, "400"),
        (fields("A : b\r\n"), Rejection::Malformed, "400"),
        (fields("A: b\r\n folded\r\n"), Rejection::Malformed, "400"),
        (fields("no colon\r\n"), Rejection::Malformed, "400"),
        // RFC 9110 section 9.3.6: no content. Two readings of what follows must not exist.
        (fields("Transfer-Encoding: chunked\r\n"), Rejection::Malformed, "400"),
        (fields("content-length: 5\r\n"), Rejection::Malformed, "400"),
        // RFC 6585 section 5.
        (fields(&many), Rejection::TooLong, "431"),
    ] {
        let talk = talk(head.as_bytes(), head.len());
        assert_eq!(talk.result, Err(rejection), "{head}");
        let said = String::from_utf8(talk.said).unwrap();
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {said}");
        is_one_answer(&said, true);
        assert_eq!(said.contains("\r\nAllow: CONNECT\r\n"), status == "405", "{said}");
    }
    let head = talk(b"HEAD http://a.example/ HTTP/1.0\r\n\r\n", 99);
    is_one_answer(&String::from_utf8(head.said).unwrap(), false);
}

/// Checks that an answer has the content that it announces (RFC 9112 section 6.3) and ends the
/// connection.
fn is_one_answer(said: &str, has_content: bool) {
    let (head, content) = said.split_once("\r\n\r\n").unwrap();
    let length = head.split("\r\n").find_map(|line| line.strip_prefix("Content-Length: "));
    let length: usize = length.unwrap().parse().unwrap();
    assert_eq!(content.len(), if has_content { length } else { 0 }, "{said}");
    assert!(head.contains("\r\nConnection: close"), "{said}");
}

#[test]
fn what_connect_has_to_accept_is_served() {
    for head in [
        "CONNECT a.example:1 HTTP/1.0\r\n\r\n".to_owned(),
        "\r\nCONNECT a.example:1 HTTP/1.0\r\n\r\n".to_owned(),
        asked("a.example:1", "Content-Length: 0\r\n"),
        asked("a.example:1", "Proxy-Connection: Keep-Alive\r\nExpect: 100-continue\r\n"),
        "CONNECT a.example:1 HTTP/1.1\r\nHOST:\r\n\r\n".to_owned(),
        "CONNECT a.example:1 HTTP/1.1\r\nhost: other.example\r\n\r\n".to_owned(),
    ] {
        let talk = talk(head.as_bytes(), head.len());
        assert_eq!(talk.result, Ok(Some(name("a.example", 1))), "{head}");
        // RFC 9110 section 9.3.6: neither Transfer-Encoding nor Content-Length.
        assert_eq!(talk.said, b"HTTP/1.1 200 Connection established\r\n\r\n");
    }
    // RFC 9110 section 5.5: octets above 127 are opaque.
    let latin = [&b"CONNECT a.example:1 HTTP/1.0\r\nUser-Agent: M\xfcller\r\n\r\n"[..]].concat();
    assert_eq!(talk(&latin, 99).result, Ok(Some(name("a.example", 1))));
}

#[test]
fn a_head_without_end_is_refused_at_the_limit() {
    let head = format!("CONNECT a.example:1 HTTP/1.1\r\nX: {}", "x".repeat(2 * REQUEST_LIMIT));
    for piece in [1, 100, head.len()] {
        let talk = talk(head.as_bytes(), piece);
        assert_eq!(talk.result, Err(Rejection::TooLong));
        assert!(talk.said.starts_with(b"HTTP/1.1 431 "));
    }
    let line = format!("CONNECT {}", "x".repeat(2 * REQUEST_LIMIT));
    assert!(talk(line.as_bytes(), 100).said.starts_with(b"HTTP/1.1 414 "), "RFC 9112 section 3");
}

#[test]
fn what_is_neither_gets_no_answer() {
    for input in [&b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00"[..], b"\x16\x03\x01", b"get /", b"\x00"]
    {
        let talk = talk(input, input.len());
        assert_eq!((talk.result, &talk.said[..]), (Err(Rejection::Protocol), &b""[..]));
    }
}

#[test]
fn every_outcome_has_an_answer_of_its_protocol() {
    let requests = [socks(b"\x01\x7f\0\0\x01\0\x50"), b"CONNECT a:1 HTTP/1.0\r\n\r\n".to_vec()];
    // RFC 1928 section 6; RFC 9209 section 2.3.
    let outcomes = [
        (Outcome::Denied, 2, "403", "destination_ip_prohibited"),
        (Outcome::NoSuchName, 4, "502", "dns_error"),
        (Outcome::LookupFailed, 4, "504", "dns_timeout"),
        (Outcome::Refused, 5, "502", "connection_refused"),
        (Outcome::NetworkUnreachable, 3, "502", "destination_ip_unroutable"),
        (Outcome::HostUnreachable, 4, "502", "destination_ip_unroutable"),
        (Outcome::TimedOut, 6, "504", "connection_timeout"),
        (Outcome::Failed, 1, "500", "proxy_internal_error"),
    ];
    for (outcome, reply, status, error) in outcomes {
        let said = requests.each_ref().map(|request| {
            let mut negotiation = Negotiation::default();
            assert!(negotiation.handle_input(request).unwrap().is_some());
            let _ = negotiation.poll_transmit();
            negotiation.answer(outcome);
            negotiation.poll_transmit().unwrap()
        });
        assert_eq!(said[0], [5, reply, 0, 1, 0, 0, 0, 0, 0, 0], "{outcome}");
        let said = std::str::from_utf8(&said[1]).unwrap();
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{outcome}");
        assert!(said.contains(&format!("\r\nProxy-Status: wakeai; error={error}\r\n")), "{said}");
        is_one_answer(said, true);
    }
}

/// Mangled requests never cause a panic, never exceed the limit on held bytes, and have the same
/// meaning however they are divided into pieces.
#[test]
fn a_million_mangled_requests_mean_the_same_in_pieces() {
    let corpus: Vec<Vec<u8>> = vec![
        socks(b"\x01\xc0\x00\x02\x07\x01\xbb"),
        socks(b"\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x50"),
        socks(b"\x03\x0bexample.org\x00\x50early"),
        b"\x05\xff\x00".to_vec(),
        b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n\x16\x03".to_vec(),
        b"CONNECT [2001:db8::1]:443 HTTP/1.0\r\n\r\n".to_vec(),
        b"CONNECT 1.2.3.4:1 HTTP/1.1\r\nA: b\r\nC: d\r\n\r\n".to_vec(),
    ];
    for seed in 0..1_000_000_u64 {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut input = corpus[below(&mut rng, corpus.len())].clone();
        for _ in 0..=below(&mut rng, 3) {
            mangle(&mut rng, &corpus, &mut input);
        }
        let piece = 1 + below(&mut rng, 4);
        let checked = std::panic::catch_unwind(|| talk::check(&input, piece));
        assert!(checked.is_ok(), "seed {seed}: {input:?}");
    }
}

fn below(rng: &mut Pcg64Mcg, end: usize) -> usize {
    usize::try_from(rng.next_u64() % end as u64).unwrap()
}

fn mangle(rng: &mut Pcg64Mcg, corpus: &[Vec<u8>], input: &mut Vec<u8>) {
    let at = below(rng, input.len() + 1);
    match below(rng, 6) {
        0 if at < input.len() => input[at] ^= 1 << below(rng, 8),
        1 if at < input.len() => input[at] = rng.next_u64() as u8,
        2 => input.insert(at, b"\r\n:[]. \x00\x05"[below(rng, 9)]),
        3 if at < input.len() => drop(input.remove(at)),
        4 => input.truncate(at),
        _ => {
            let other = &corpus[below(rng, corpus.len())];
            input.truncate(at);
            input.extend(&other[below(rng, other.len())..]);
        }
    }
}
