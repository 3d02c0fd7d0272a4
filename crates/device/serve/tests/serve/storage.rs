//! File systems that refuse names, and a directory that goes away while the server runs.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{OCTETS, TestServer, pattern, wait_for};

/// A file system in a file, mounted through FUSE.
struct Mounted {
    at: PathBuf,
    _image: tempfile::TempDir,
}

impl Mounted {
    /// NTFS, or `None` where the machine cannot mount it: it needs root, /dev/fuse and the package ntfs-3g.
    fn ntfs(program: &str, options: &str) -> Option<Self> {
        let required = std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_some_and(|value| value == "1");
        let image = tempfile::tempdir().unwrap();
        let (file, at) = (image.path().join("image"), image.path().join("at"));
        std::fs::create_dir(&at).unwrap();
        std::fs::File::create(&file).unwrap().set_len(8 << 20).unwrap();
        let made =
            Command::new("mkntfs").args(["--force", "--quick", "--quiet"]).arg(&file).output();
        let mounted = made
            .and_then(|_| Command::new(program).args(["-o", options]).arg(&file).arg(&at).status());
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self { at, _image: image });
        }
        assert!(!required, "WAKEAI_REQUIRE_KERNEL=1, but {program} cannot mount a file as root");
        None
    }

    fn server(&self) -> TestServer {
        TestServer::on(tempfile::tempdir_in(&self.at).unwrap(), |_| ())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

/// Uploads a file under this name; returns the name that it got.
fn upload(server: &TestServer, name: &str, bytes: &[u8]) -> String {
    let path = server.create(bytes.len(), name);
    let told = server.head(&path).get("wakeai-name").map(str::to_owned);
    let told = told.unwrap_or_else(|| {
        let reply = server.patch(&path, 0, &[], bytes);
        assert_eq!(reply.status, 204, "{name:?}: {reply:?}");
        assert_eq!(server.head(&path).field("wakeai-name"), reply.field("wakeai-name"));
        reply.field("wakeai-name").to_owned()
    });
    let kept = percent_decoded(&told);
    assert_eq!(std::fs::read(server.file(&kept)).unwrap(), bytes, "{name:?} as {kept:?}");
    kept
}

fn percent_decoded(name: &str) -> String {
    let mut parts = name.split('%');
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_name_that_ntfs_refuses_gets_another_one_that_the_answer_tells() {
    let Some(disk) = Mounted::ntfs("ntfs-3g", "windows_names") else {
        println!("SKIPPED: no NTFS can be mounted here");
        return;
    };
    let server = disk.server();
    let body = pattern(10_000);
    for (name, kept) in [
        ("VID 12:30.mp4", "VID 12_30.mp4"),
        ("VID 12:30.mp4", "VID 12_30 (2).mp4"),
        ("what?.jpg", "what_.jpg"),
        ("CON", "_CON"),
        ("nul.txt", "_nul.txt"),
        ("ends with a dot.", "ends with a dot_"),
        ("usual.mp4", "usual.mp4"),
        ("写真.jpg", "写真.jpg"),
    ] {
        assert_eq!(upload(&server, name, &body), kept);
    }
    assert!(server.unfinished().is_empty());
    // An upload without bytes is complete at once.
    assert_eq!(upload(&server, "a<b", b""), "a_b");
}

#[test]
fn names_that_a_file_system_folds_together_do_not_replace_each_other() {
    let Some(disk) = Mounted::ntfs("lowntfs-3g", "ignore_case") else {
        println!("SKIPPED: no NTFS can be mounted here");
        return;
    };
    let server = disk.server();
    assert_eq!(upload(&server, "photo.jpg", b"one"), "photo.jpg");
    assert_eq!(upload(&server, "Photo.JPG", b"two"), "Photo (2).JPG");
    assert_eq!(upload(&server, "PHOTO.jpg", b"three"), "PHOTO (3).jpg");
    assert_eq!(std::fs::read(server.file("photo.jpg")).unwrap(), b"one");
}

fn all_refused(server: &TestServer, unfinished: &str, offset: usize) {
    let creation = server.ask("POST", "/files", &["Upload-Length: 5", OCTETS], b"12345");
    let further = server.patch(unfinished, offset, &[], b"56789");
    let empty = server.ask("POST", "/files", &["Upload-Length: 0"], b"");
    let asked = server.head(unfinished);
    let deleted = server.ask("DELETE", unfinished, &[], b"");
    for reply in [creation, further, empty, asked, deleted] {
        assert_eq!(reply.status, 503, "{reply:?}");
    }
}

#[test]
fn a_directory_that_was_removed_is_an_error_of_the_server() {
    for removed in ["", ".wakeai-uploads"] {
        let server = TestServer::start();
        let path = server.create(10, "a");
        assert_eq!(server.patch(&path, 0, &[], b"01234").status, 204);
        std::fs::remove_dir_all(server.file(removed)).unwrap();
        all_refused(&server, &path, 5);
        // A new directory of the same name is another one, which this server does not hold.
        std::fs::create_dir_all(server.file(".wakeai-uploads")).unwrap();
        all_refused(&server, &path, 5);
        assert!(server.names().is_empty());
    }
}

#[test]
fn bytes_that_arrive_after_the_directory_was_removed_are_not_acknowledged() {
    let server = TestServer::start();
    let body = pattern(3_000_000);
    let path = server.create(body.len(), "a");
    let mut stream = server.begin(&path, 0, body.len(), &body[..2_000_000]);
    wait_for("bytes are written", || (server.written(&path) > 0).then_some(()));
    std::fs::remove_dir_all(server.directory.path()).unwrap();
    std::io::Write::write_all(&mut stream, &body[2_000_000..]).unwrap();
    let reply = crate::support::read_reply(&mut stream);
    assert_eq!((reply.status, reply.field("upload-offset")), (503, "0"));
    assert_eq!(server.stop().0.bytes_acknowledged, 0);
}

#[test]
fn a_directory_that_was_moved_and_came_back_takes_uploads_again() {
    let server = TestServer::start();
    let path = server.create(10, "a");
    let (uploads, aside) = (server.file(".wakeai-uploads"), server.file("aside"));
    std::fs::rename(&uploads, &aside).unwrap();
    assert_eq!(server.patch(&path, 0, &[], b"01234").status, 503);
    std::fs::rename(&aside, &uploads).unwrap();
    let offset = server.offset(&path);
    assert_eq!(server.patch(&path, offset, &[], &b"0123456789"[offset..]).status, 204);
    assert_eq!(std::fs::read(server.file("a")).unwrap(), b"0123456789");
}

#[test]
fn an_upload_whose_bytes_were_removed_or_truncated_is_gone_and_others_are_not() {
    let server = TestServer::start();
    let remove = |path: &Path| std::fs::remove_file(path).unwrap();
    let truncate =
        |path: &Path| std::fs::File::options().write(true).open(path).unwrap().set_len(3).unwrap();
    for damage in [&remove as &dyn Fn(&Path), &truncate] {
        let (whole, damaged) = (server.create(10, "whole"), server.create(10, "damaged"));
        for path in [&whole, &damaged] {
            assert_eq!(server.patch(path, 0, &[], b"01234").status, 204);
        }
        damage(&server.file(".wakeai-uploads").join(damaged.rsplit('/').next().unwrap()));
        assert_eq!(server.head(&damaged).status, 410, "no offset is told that is not there");
        assert_eq!(server.patch(&damaged, 5, &[], b"56789").status, 410);
        assert_eq!(server.patch(&whole, 5, &[], b"56789").status, 204);
    }
    assert_eq!(server.names(), ["whole", "whole (2)"]);
}

#[test]
fn a_journal_that_was_removed_is_written_anew() {
    let server = TestServer::start();
    let path = server.create(10, "a");
    std::fs::remove_file(server.file(".wakeai-uploads/journal")).unwrap();
    assert_eq!(server.patch(&path, 0, &[], b"01234").status, 204);
    let (_, directory) = server.stop();
    let server = TestServer::on(directory, |_| ());
    assert_eq!(server.offset(&path), 5, "what was acknowledged is known after a restart");
}

#[test]
fn a_digest_is_of_the_file_as_it_is() {
    let server = TestServer::start();
    let path = server.create(3, "a");
    assert_eq!(server.patch(&path, 0, &[], b"one").status, 204);
    let first = server.digest(&path);
    std::fs::write(server.file("a"), b"two").unwrap();
    assert_ne!(server.digest(&path), first);
}
