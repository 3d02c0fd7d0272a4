//! Names of any octets, and servers that take different names for the same.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use wakeai_put::PutError;

use crate::fake::{Fake, FakeAnswer, FakeRequest, Files, Tus};
use crate::peers::{PeerKind, PeerServer};
use crate::{Home, put};

/// Names that some client has dropped octets of, and their encoded forms.
const NAMES: [&[u8]; 9] =
    [b"a\tb", b"a\nb", b"a\rb", b"ab", b"a\xffb", b"a%09b", b"a b", b"a\\b", b"a?b#c"];

#[test]
fn files_whose_names_differ_in_control_characters_stay_different_at_nginx_and_apache() {
    for kind in [PeerKind::Nginx, PeerKind::Apache] {
        let Some(peer) = PeerServer::start(kind) else { return };
        let home = Home::new();
        for name in NAMES {
            let file = home.write(OsString::from_vec(name.to_vec()), name);
            let report = put(&home.config(&file, &peer.url("/"))).unwrap();
            assert_eq!(report.verified, Some("read back"));
        }
        for name in NAMES {
            let found = std::fs::read(peer.served.join(OsString::from_vec(name.to_vec())));
            assert_eq!(found.unwrap(), name, "{kind:?}");
        }
        assert_eq!(peer.files(), NAMES.len(), "{kind:?}: nothing is left over");
    }
}

#[test]
fn tus_gets_the_very_octets_of_the_name() {
    let home = Home::new();
    let tus = Tus { extensions: "creation", ..Tus::default() };
    let fake = Fake::start(move |request| tus.answer(request));
    let file = home.write(OsString::from_vec(b"a\xff\n".to_vec()), b"x");
    put(&home.config(&file, &fake.url("/files"))).unwrap();
    let created = fake.requests().into_iter().find(|request| request.method == "POST").unwrap();
    assert_eq!(created.get("upload-metadata"), Some("filename Yf8K"));
}

#[test]
fn a_name_that_no_file_of_a_url_can_have_is_refused() {
    let home = Home::new();
    let file = home.write("f", b"x");
    let fake = Fake::start(move |request| Files::default().answer(request));
    for bad in ["", ".", "..", "a/b", "a\0b"] {
        let mut config = home.config(&file, &fake.url("/d/"));
        config.name = Some(bad.into());
        let error = put(&config).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("--name"), "{error}");
    }
    assert_eq!(fake.count("PUT"), 0);
}

/// Answers as a server whose file system ignores case.
fn folding(files: &Files, request: &FakeRequest) -> FakeAnswer {
    let request = FakeRequest { target: request.target.to_lowercase(), ..request.clone() };
    files.answer(&request)
}

#[test]
fn a_file_that_a_server_takes_for_the_same_is_not_overwritten() {
    let home = Home::new();
    let (upper, lower) = (home.write("Photo.JPG", b"one"), home.write("photo.jpg", b"two"));
    let files = Files::default();
    let kept = files.clone();
    let fake = Fake::start(move |request| folding(&files, request));
    put(&home.config(&upper, &fake.url("/d/"))).unwrap();
    let error = put(&home.config(&lower, &fake.url("/d/"))).unwrap_err();
    assert!(matches!(error, PutError::Folded { .. }), "{error}");
    assert!(error.to_string().contains("--overwrite"), "{error}");
    assert_eq!(kept.get("/d/photo.jpg").unwrap(), b"one");
    let mut config = home.config(&lower, &fake.url("/d/"));
    config.overwrite = true;
    put(&config).unwrap();
    assert_eq!(kept.get("/d/photo.jpg").unwrap(), b"two");
}

#[test]
fn a_file_of_the_same_name_is_replaced_where_case_counts() {
    let home = Home::new();
    let file = home.write("photo.jpg", b"new");
    let files = Files::default();
    files.set("/d/photo.jpg", b"old");
    files.set("/d/PHOTO.JPG", b"not"); // another file of the same length
    let kept = files.clone();
    let fake = Fake::start(move |request| {
        let tag = format!("\"{}\"", request.target);
        files.answer(request).with("ETag", tag)
    });
    put(&home.config(&file, &fake.url("/d/"))).unwrap();
    assert_eq!(kept.get("/d/photo.jpg").unwrap(), b"new");
    assert_eq!(kept.get("/d/PHOTO.JPG").unwrap(), b"not");
}

#[test]
fn webdav_on_a_file_system_that_ignores_case_loses_no_file() {
    let Some(peer) = PeerServer::start(PeerKind::RcloneFolding) else { return };
    let home = Home::new();
    let (upper, lower) = (home.write("Photo.JPG", b"one"), home.write("photo.jpg", b"two"));
    put(&home.config(&upper, &peer.url("/"))).unwrap();
    let error = put(&home.config(&lower, &peer.url("/"))).unwrap_err();
    assert!(matches!(&error, PutError::Folded { found, .. } if found == "Photo.JPG"), "{error}");
    assert_eq!(std::fs::read(peer.served.join("Photo.JPG")).unwrap(), b"one");
    // The very name is replaced.
    std::fs::write(&upper, b"three").unwrap();
    put(&home.config(&upper, &peer.url("/"))).unwrap();
    assert_eq!(std::fs::read(peer.served.join("Photo.JPG")).unwrap(), b"three");
    assert_eq!(peer.files(), 1);
}

#[test]
fn a_directory_is_not_replaced_by_a_file() {
    for kind in [PeerKind::Apache, PeerKind::Rclone] {
        let Some(peer) = PeerServer::start(kind) else { return };
        let inner = peer.served.join("d");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(inner.join("kept"), b"x").unwrap();
        let home = Home::new();
        let file = home.write("f", b"new");
        let mut config = home.config(&file, &peer.url("/d"));
        config.overwrite = true;
        let error = put(&config).unwrap_err();
        assert!(matches!(error, PutError::Directory(_)), "{kind:?}: {error}");
        assert!(inner.join("kept").exists());
    }
}
