//! Behind a reverse proxy. `make test-peers` has nginx.

use std::io::Write as _;

use crate::support::{TestServer, read_reply};

fn location(server: &TestServer, path: &str, fields: &[&str]) -> String {
    let reply = server.ask("POST", path, &[&["Upload-Length: 5"], fields].concat(), b"");
    assert_eq!(reply.status, 201, "{reply:?}");
    reply.field("location").to_owned()
}

#[test]
fn a_location_is_relative_to_what_the_client_has_asked_behind_a_proxy() {
    let server = TestServer::start();
    assert!(location(&server, "/files", &[]).starts_with("/files/"));
    for field in ["Via: 1.1 proxy", "X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.1"] {
        assert!(location(&server, "/files", &[field]).starts_with("files/"), "{field}");
        let below = location(&server, "/files/", &[field]);
        assert!(!below.contains('/'), "{field}: {below}");
    }
    // nginx asks by HTTP/1.0 unless it is told otherwise.
    let mut stream = server.dial();
    let fields = "Tus-Resumable: 1.0.0\r\nUpload-Length: 5\r\n";
    write!(stream, "POST /files HTTP/1.0\r\nHost: 127.0.0.1:80\r\n{fields}\r\n").unwrap();
    assert!(read_reply(&mut stream).field("location").starts_with("files/"));
}

#[test]
fn no_field_of_a_request_decides_where_a_location_leads() {
    let server = TestServer::start();
    let fields = [
        "X-Forwarded-Host: attacker.example",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Prefix: /attack",
        "Forwarded: host=attacker.example",
    ];
    let found = location(&server, "/files", &fields);
    assert!(found.starts_with("files/") && !found.contains("attack"), "{found}");
}

#[test]
fn a_base_that_is_configured_is_in_locations_and_may_be_in_paths() {
    let server = TestServer::configured(|config| {
        config.base = Some("https://example.net/up".parse().unwrap());
    });
    for path in ["/up", "/up/", "/files"] {
        let found = location(&server, path, &[]);
        let own = found.strip_prefix("https://example.net").unwrap_or_else(|| panic!("{found}"));
        assert_eq!(server.patch(own, 0, &[], b"012").status, 204);
        assert_eq!(
            server.offset(&own.replace("/up/", "/files/")),
            3,
            "the proxy may take the base off"
        );
    }
    let mut stream = server.dial();
    write!(stream, "OPTIONS /up HTTP/1.1\r\nHost: example.net\r\n\r\n").unwrap();
    assert_eq!(read_reply(&mut stream).status, 204, "the proxy may keep the host");
    let mut stream = server.dial();
    write!(stream, "OPTIONS /up HTTP/1.1\r\nHost: attacker.example\r\n\r\n").unwrap();
    assert_eq!(read_reply(&mut stream).status, 421);
}
