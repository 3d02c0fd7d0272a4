//! Proxies of the environment, several addresses of a name, and zones.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use wakeai_put::{Proxies, PutError, parse_url};

use crate::fake::{Fake, FakeAnswer, Files};
use crate::{Home, put};

fn all(fake: &Fake) -> Proxies {
    let proxy = format!("http://me:word@{}", fake.address);
    Proxies { http: Some(proxy.clone()), https: Some(proxy), ..Proxies::default() }
}

#[test]
fn a_proxy_relays_requests_for_http() {
    let home = Home::new();
    let file = home.write("f", b"hello");
    let files = Files::default();
    let kept = files.clone();
    // The proxy answers in the place of the server, whose name only the proxy knows.
    let fake = Fake::start(move |request| files.answer(request));
    let mut config = home.config(&file, "http://inside.invalid:81/f?q=1");
    config.proxies = all(&fake);
    assert_eq!(put(&config).unwrap().verified, Some("read back"));
    assert_eq!(kept.get("http://inside.invalid:81/f?q=1").unwrap(), b"hello");
    for request in fake.requests() {
        assert_eq!(request.get("host"), Some("inside.invalid:81"));
        assert_eq!(request.get("proxy-authorization"), Some("Basic bWU6d29yZA=="));
    }
    config.proxies.no = Some(".invalid".to_owned());
    let before = fake.requests().len();
    assert!(put(&config).is_err());
    assert_eq!(fake.requests().len(), before, "it goes past the proxy");
}

#[test]
fn a_proxy_opens_a_tunnel_for_https_and_sees_no_credentials() {
    let home = Home::new();
    let file = home.write("f", b"hello");
    // What is behind the tunnel speaks no TLS, so the first bytes show that TLS begins there.
    let behind = Fake::start(|_| FakeAnswer::new(404));
    let to = behind.address;
    let fake = Fake::raw(move |stream, request| {
        assert_eq!(
            (request.method.as_str(), request.target.as_str()),
            ("CONNECT", "inside.invalid:443")
        );
        let _ = stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        let mut other = TcpStream::connect(to).unwrap();
        let mut first = [0; 3];
        stream.read_exact(&mut first).unwrap();
        assert_eq!(first[0], 22, "a handshake of TLS");
        let _ = other.write_all(b"x\r\n\r\n");
        let _ = other.shutdown(Shutdown::Write);
        let _ = stream.get_mut().write_all(b"HTTP/1.1 400 no TLS here\r\n\r\n");
    });
    let mut config = home.config(&file, "https://inside.invalid/f");
    config.proxies = all(&fake);
    let said = put(&config).unwrap_err().to_string();
    assert!(said.contains("does not answer with TLS"), "{said}");
    let asked = &fake.requests()[0];
    assert_eq!(asked.get("proxy-authorization"), Some("Basic bWU6d29yZA=="));
    assert_eq!(asked.get("authorization"), None);
}

#[test]
fn a_proxy_that_refuses_says_what_to_do() {
    let home = Home::new();
    let file = home.write("f", b"hello");
    for (scheme, status, says) in
        [("http", 407, "http_proxy"), ("https", 407, "http_proxy"), ("https", 403, "tunnel")]
    {
        let fake = Fake::start(move |_| FakeAnswer::new(status));
        let mut config = home.config(&file, &format!("{scheme}://inside.invalid/f"));
        config.proxies = all(&fake);
        let error = put(&config).unwrap_err();
        assert!(
            matches!(error, PutError::Refused { .. }) && error.to_string().contains(says),
            "{error}"
        );
    }
}

#[test]
fn a_zone_is_for_the_socket_and_not_for_the_server() {
    let home = Home::new();
    let file = home.write("f", b"hello");
    for text in ["http://[fe80::1%25nothing0]:1/", "http://[fe80::1%nothing0]:1/"] {
        let (url, zone) = parse_url(text).unwrap();
        assert_eq!((url.as_str(), zone.unwrap().name()), ("http://[fe80::1]:1/", "nothing0"));
        let error = put(&home.config(&file, text)).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("no interface"), "{error}");
    }
    let error = put(&home.config(&file, "http://[fe80::1]:1/")).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("link-local"), "{error}");
}
