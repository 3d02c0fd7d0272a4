//! Web pages of other origins. `make test-peers` has Uppy in Chromium.

use crate::secured::{CAMERA, tokens};
use crate::support::{OCTETS, Reply, TestServer};

fn preflight(server: &TestServer, origin: &str, path: &str) -> Reply {
    let origin = format!("Origin: {origin}");
    let fields = [
        origin.as_str(),
        "Access-Control-Request-Method: PATCH",
        "Access-Control-Request-Headers: authorization,content-type,tus-resumable,upload-offset,x-own",
        "Access-Control-Request-Private-Network: true",
    ];
    server.ask("OPTIONS", path, &fields, b"")
}

#[test]
fn a_page_of_this_machine_may_upload_and_read_the_answers() {
    let server = TestServer::start();
    let origin = "http://localhost:3000";
    let reply = preflight(&server, origin, "/files");
    assert_eq!(reply.status, 204);
    assert_eq!(reply.field("access-control-allow-origin"), origin);
    assert_eq!(reply.field("access-control-allow-methods"), "OPTIONS, POST, HEAD, PATCH, DELETE");
    let allowed = reply.field("access-control-allow-headers");
    for field in ["authorization", "tus-resumable", "upload-offset", "x-own"] {
        assert!(allowed.contains(field), "{field}");
    }
    assert_eq!(reply.field("access-control-allow-private-network"), "true");
    assert_eq!(reply.field("vary"), "Origin");
    let from = "Origin: http://localhost:3000";
    let created = server.ask("POST", "/files", &["Upload-Length: 5", from], b"");
    let path = created.field("location").to_owned();
    let sent = server.patch(&path, 0, &[from], b"01234");
    let refused = server.patch(&path, 0, &[from], b"01234");
    assert_eq!((created.status, sent.status, refused.status), (201, 204, 409));
    for reply in [created, sent, refused] {
        assert_eq!(reply.field("access-control-allow-origin"), origin);
        let exposed = reply.field("access-control-expose-headers");
        for field in ["Location", "Upload-Offset", "Upload-Length", "Tus-Resumable", "Wakeai-Name"]
        {
            assert!(exposed.split(", ").any(|known| known == field), "{field}");
        }
        assert_eq!(reply.get("access-control-allow-credentials"), None);
    }
}

#[test]
fn a_page_of_another_site_gets_no_permission_from_a_server_without_tokens() {
    let server = TestServer::start();
    for origin in ["https://attacker.example", "null", "http://localhost.attacker.example"] {
        let reply = preflight(&server, origin, "/files");
        assert_eq!(reply.get("access-control-allow-origin"), None, "{origin}");
        let from = format!("Origin: {origin}");
        let reply = server.ask("POST", "/files", &["Upload-Length: 5", &from, OCTETS], b"");
        assert_eq!(reply.get("access-control-allow-origin"), None, "{origin}");
    }
}

#[test]
fn a_preflight_needs_no_token_and_gives_nothing_else() {
    let files = tempfile::tempdir().unwrap();
    let server = TestServer::configured(|config| config.tokens = Some(tokens(files.path())));
    let origin = "https://app.example";
    let reply = preflight(&server, origin, "/files");
    assert_eq!((reply.status, reply.field("access-control-allow-origin")), (204, origin));
    assert_eq!(reply.get("tus-extension"), None);
    let reply = server.ask("POST", "/files", &["Upload-Length: 5", CAMERA], b"");
    let path = reply.field("location").to_owned();
    // A method that is hidden in a preflight is not carried out.
    let fields = [
        "Origin: https://app.example",
        "Access-Control-Request-Method: DELETE",
        "X-HTTP-Method-Override: DELETE",
    ];
    assert_eq!(server.ask("OPTIONS", &path, &fields, b"").status, 204);
    assert_eq!(server.ask("HEAD", &path, &[CAMERA], b"").status, 200);
    let reply = server.ask("HEAD", &path, &["Origin: https://app.example"], b"");
    assert_eq!((reply.status, reply.field("access-control-allow-origin")), (401, origin));
}

#[test]
fn origins_that_are_configured_replace_the_rule() {
    let server = TestServer::configured(|config| {
        config.origins = vec!["https://app.example".parse().unwrap()];
    });
    for (origin, allowed) in [("https://app.example", true), ("http://localhost:3000", false)] {
        let reply = preflight(&server, origin, "/files");
        assert_eq!(reply.get("access-control-allow-origin").is_some(), allowed, "{origin}");
    }
}
