//! TLS and tokens.

use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use wakeai_serve::{Tls, run};

use crate::support::{OCTETS, TestServer, config, read_reply, send_head};

pub(crate) const CAMERA: &str = "Authorization: Bearer 0123456789abcdef0123";
const PHONE: &str = "Authorization: Bearer fedcba9876543210fedc";

fn secret(path: PathBuf, text: &str) -> PathBuf {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(&path).unwrap().write_all(text.as_bytes()).unwrap();
    path
}

pub(crate) fn tokens(directory: &Path) -> PathBuf {
    let text = "# clients\ncamera 0123456789abcdef0123\n\nphone  fedcba9876543210fedc\n";
    secret(directory.join("tokens"), text)
}

fn identity(directory: &Path) -> (Tls, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = secret(directory.join("cert.pem"), &made.cert.pem());
    let key = secret(directory.join("key.pem"), &made.signing_key.serialize_pem());
    (Tls { certificate, key }, made.cert.der().clone())
}

#[test]
fn clients_need_tokens_and_see_their_own_uploads_only() {
    let files = tempfile::tempdir().unwrap();
    let server = TestServer::configured(|config| config.tokens = Some(tokens(files.path())));
    let fields = ["Upload-Length: 5"];
    let reply = server.ask("POST", "/files", &fields, b"");
    assert_eq!((reply.status, reply.field("www-authenticate")), (401, "Bearer"));
    for wrong in [
        "Authorization: Bearer 0123456789abcdef0124",
        "Authorization: Bearer 0123456789abcdef012",
        "Authorization: Bearer ",
        "Authorization: Basic 0123456789abcdef0123",
        "Authorization: camera 0123456789abcdef0123",
    ] {
        let reply = server.ask("POST", "/files", &["Upload-Length: 5", wrong], b"");
        assert_eq!(reply.status, 401, "{wrong}");
    }
    let reply = server.ask("POST", "/files", &["Upload-Length: 5", CAMERA], b"");
    let path = reply.field("location").to_owned();
    for method in ["HEAD", "PATCH", "DELETE"] {
        let reply = server.ask(method, &path, &[PHONE, OCTETS, "Upload-Offset: 0"], b"");
        assert_eq!(reply.status, 404, "{method}");
    }
    assert_eq!(server.patch(&path, 0, &[CAMERA], b"12345").status, 204);
    let (report, _directory) = server.stop();
    assert_eq!((report.denied, report.completed), (6, 1));
}

#[test]
fn uploads_go_over_tls() {
    let files = tempfile::tempdir().unwrap();
    let (tls, certificate) = identity(files.path());
    let server = TestServer::configured(|config| {
        config.tls = Some(tls);
        config.tokens = Some(tokens(files.path()));
        config.limits.head_timeout = "2s".parse().unwrap();
    });
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = Arc::new(client);
    let dial = || {
        let name = ServerName::try_from("localhost").unwrap();
        let session = ClientConnection::new(Arc::clone(&client), name).unwrap();
        StreamOwned::new(session, server.dial())
    };
    let mut stream: StreamOwned<_, TcpStream> = dial();
    let version = "Tus-Resumable: 1.0.0";
    send_head(
        &mut stream,
        "POST",
        "/files",
        &[version, CAMERA, "Upload-Length: 5", OCTETS, "Content-Length: 5"],
    );
    stream.write_all(b"12345").unwrap();
    let reply = read_reply(&mut stream);
    assert_eq!((reply.status, reply.field("upload-offset")), (201, "5"));
    assert_eq!(server.names().len(), 1);
    // A client that never ends its handshake, and one that does not speak TLS.
    let mut silent = server.dial();
    let mut plain = server.dial();
    let _ = plain.write_all(b"OPTIONS /files HTTP/1.1\r\nHost: localhost\r\n\r\n");
    while !crate::support::is_closed(&mut plain) {}
    assert!(crate::support::is_closed(&mut silent));
    let (report, _directory) = server.stop();
    assert_eq!(report.failed_handshakes, 2);
}

#[test]
fn other_machines_are_served_with_tls_and_tokens_only() {
    let directory = tempfile::tempdir().unwrap();
    let files = tempfile::tempdir().unwrap();
    let (tls, _) = identity(files.path());
    let refused = |change: &dyn Fn(&mut wakeai_serve::ServeConfig)| {
        let mut config = config(directory.path());
        change(&mut config);
        let error = run(config, std::future::pending(), |_| ()).unwrap_err();
        assert!(error.is_usage(), "{error}");
        error.to_string()
    };
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", "[::ffff:192.0.2.1]:80"] {
        let listen = address.parse().unwrap();
        assert!(refused(&|config| config.listen = listen).contains("--cert FILE"), "{address}");
        let error = refused(&|config| (config.listen, config.tls) = (listen, Some(tls.clone())));
        assert!(error.contains("--token-file"), "{error}");
    }
    let open = tokens(files.path());
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o640)).unwrap();
    let error = refused(&|config| config.tokens = Some(open.clone()));
    assert!(error.contains("chmod 600"), "{error}");
    for (text, expected) in [
        ("", "has no token"),
        ("camera\n", "line 1"),
        ("camera short\n", "line 1"),
        ("# ok\ncam/era 0123456789abcdef\n", "line 2"),
    ] {
        let path = secret(files.path().join("wrong"), text);
        let error = refused(&|config| config.tokens = Some(path.clone()));
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    let swapped = Tls { certificate: tls.key.clone(), key: tls.certificate.clone() };
    assert!(refused(&|config| config.tls = Some(swapped.clone())).contains("no certificate"));
}

#[test]
fn an_identity_that_cannot_be_used_is_explained_in_words() {
    let files = tempfile::tempdir().unwrap();
    let (good, _) = identity(files.path());
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other = secret(files.path().join("other"), &other.signing_key.serialize_pem());
    let section =
        |kind: &str, text: &str| format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n");
    let file = |name: &str, text: &str| secret(files.path().join(name), text);
    let empty = file("empty", "");
    let damaged = file("damaged", &section("CERTIFICATE", "AAAA"));
    let letters = file("letters", &section("CERTIFICATE", "!!!"));
    let cut = file("cut", "-----BEGIN CERTIFICATE-----\nAAAA\n");
    let odd = file("odd", &section("PRIVATE KEY", "AAAA"));
    for (certificate, key, blamed, expected) in [
        (&good.certificate, &other, &other, "not the private key of the first certificate"),
        (&good.certificate, &empty, &empty, "found no private key in PEM"),
        (&good.certificate, &odd, &odd, "the private key cannot be used: expected"),
        (&damaged, &good.key, &damaged, "the first certificate cannot be read"),
        (&letters, &good.key, &letters, "not in Base64"),
        (&cut, &good.key, &cut, "has no END line"),
        (&empty, &good.key, &empty, "found no certificate in PEM"),
    ] {
        let mut config = config(files.path());
        config.tls = Some(Tls { certificate: certificate.clone(), key: key.clone() });
        let error = run(config, std::future::pending(), |_| ()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}: ", blamed.display())), "{error}");
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn a_byte_order_mark_before_the_tokens_is_skipped() {
    let files = tempfile::tempdir().unwrap();
    let marked = secret(files.path().join("marked"), "\u{feff}camera 0123456789abcdef0123\n");
    let server = TestServer::configured(|config| config.tokens = Some(marked));
    assert_eq!(server.ask("POST", "/files", &["Upload-Length: 5", CAMERA], b"").status, 201);
}
