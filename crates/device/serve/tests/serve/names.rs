//! The names of files: they stay in the directory, and no file is overwritten.

use std::os::unix::fs::symlink;

use crate::support::TestServer;

fn finish(server: &TestServer, name: &str) -> String {
    let path = server.create(3, name);
    let reply = server.patch(&path, 0, &[], b"new");
    assert_eq!(reply.status, 204, "{reply:?}");
    reply.field("wakeai-name").to_owned()
}

#[test]
fn no_name_leaves_the_directory() {
    let outer = tempfile::tempdir().unwrap();
    let inner = tempfile::tempdir_in(outer.path()).unwrap();
    let server = TestServer::on(inner, |_| ());
    for (told, expected) in [
        ("../../outside", "outside"),
        ("/etc/passwd", "passwd"),
        ("a/../../b", "b"),
        ("..\\windows", "windows"),
        (".hidden", "hidden"),
        (".wakeai-uploads", "wakeai-uploads"),
        ("line\nfeed\0", "line_feed_"),
    ] {
        finish(&server, told);
        assert_eq!(std::fs::read(server.file(expected)).unwrap(), b"new", "{told:?}");
    }
    for told in ["..", ".", "", "/", "..."] {
        let name = finish(&server, told);
        assert!(name.starts_with("upload-"), "{told:?}: {name}");
    }
    let long = "x".repeat(1000) + ".jpg";
    assert_eq!(finish(&server, &long).len(), 255);
    assert_eq!(std::fs::read_dir(outer.path()).unwrap().count(), 1, "nothing outside");
}

#[test]
fn a_taken_name_gets_a_number() {
    let server = TestServer::start();
    std::fs::write(server.file("a.tar"), "old").unwrap();
    std::fs::create_dir(server.file("d")).unwrap();
    assert_eq!(finish(&server, "a.tar"), "a%20%282%29.tar");
    assert_eq!(finish(&server, "a.tar"), "a%20%283%29.tar");
    assert_eq!(finish(&server, "d"), "d%20%282%29");
    assert_eq!(server.names(), ["a (2).tar", "a (3).tar", "a.tar", "d", "d (2)"]);
    assert_eq!(std::fs::read(server.file("a.tar")).unwrap(), b"old");
}

#[test]
fn no_symbolic_link_is_followed() {
    let outside = tempfile::tempdir().unwrap();
    let victim = outside.path().join("victim");
    std::fs::write(&victim, "victim").unwrap();
    let server = TestServer::start();
    symlink(&victim, server.file("link")).unwrap();
    symlink(outside.path().join("absent"), server.file("dangling")).unwrap();
    assert_eq!(finish(&server, "link"), "link%20%282%29");
    assert_eq!(finish(&server, "dangling"), "dangling%20%282%29");
    // A link is where the file of an upload will be.
    let path = server.create(6, "x");
    let id = path.rsplit('/').next().unwrap();
    let data = server.file(".wakeai-uploads").join(id);
    symlink(&victim, &data).unwrap();
    assert_eq!(server.patch(&path, 0, &[], b"attack").status, 500);
    assert_eq!(std::fs::read(&victim).unwrap(), b"victim");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn a_link_in_place_of_the_directory_of_uploads_is_refused() {
    let outside = tempfile::tempdir().unwrap();
    let directory = tempfile::tempdir().unwrap();
    symlink(outside.path(), directory.path().join(".wakeai-uploads")).unwrap();
    let config = crate::support::config(directory.path());
    let error = wakeai_serve::run(config, std::future::pending(), |_| ()).unwrap_err();
    assert!(error.to_string().contains("cannot keep uploads"), "{error}");
}

#[test]
fn two_servers_do_not_share_a_directory() {
    let server = TestServer::start();
    let config = crate::support::config(server.directory.path());
    let error = wakeai_serve::run(config, std::future::pending(), |_| ()).unwrap_err();
    assert!(error.to_string().contains("another wakeai serve"), "{error}");
}
