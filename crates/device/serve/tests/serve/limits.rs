//! Quotas, rates, and a full disk.

use std::process::Command;
use std::time::Instant;

use crate::support::{OCTETS, TestServer, pattern};

fn create(server: &TestServer, length: u64) -> u16 {
    server.ask("POST", "/files", &[&format!("Upload-Length: {length}")], b"").status
}

#[test]
fn the_quota_counts_files_and_what_uploads_will_need() {
    let server = TestServer::configured(|config| {
        config.limits.quota = Some("1000kB".parse().unwrap());
        std::fs::write(config.directory.join("old"), vec![0; 300_000]).unwrap();
    });
    assert_eq!(create(&server, 500_000), 201);
    assert_eq!(create(&server, 200_001), 507);
    assert_eq!(create(&server, 200_000), 201);
    assert_eq!(create(&server, 1), 507);
    std::fs::remove_file(server.file("old")).unwrap();
    assert_eq!(create(&server, 300_000), 201, "the place of a removed file is free");
    let (_, directory) = server.stop();
    let server = TestServer::on(directory, |config| {
        config.limits.quota = Some("1000kB".parse().unwrap());
    });
    assert_eq!(create(&server, 1), 507, "uploads of before the restart count");
}

#[test]
fn an_upload_of_unknown_length_counts_as_it_grows() {
    let server = TestServer::limited(|limits| limits.quota = Some("100kB".parse().unwrap()));
    let reply = server.ask("POST", "/files", &["Upload-Defer-Length: 1"], b"");
    let path = reply.field("location").to_owned();
    assert_eq!(server.patch(&path, 0, &[], &pattern(60_000)).status, 204);
    assert_eq!(create(&server, 40_001), 507);
    assert_eq!(server.patch(&path, 60_000, &[], &pattern(40_001)).status, 507);
    assert_eq!(server.offset(&path), 60_000, "what was acknowledged is kept");
    assert_eq!(
        server.patch(&path, 60_000, &["Upload-Length: 100000"], &pattern(40_000)).status,
        204
    );
    assert_eq!(server.names().len(), 1);
}

#[test]
fn a_length_that_does_not_fit_is_not_kept() {
    let quota = |limits: &mut wakeai_serve::Limits| {
        limits.quota = Some("1000B".parse().unwrap());
    };
    let server = TestServer::limited(quota);
    let reply = server.ask("POST", "/files", &["Upload-Defer-Length: 1"], b"");
    let path = reply.field("location").to_owned();
    assert_eq!(server.patch(&path, 0, &["Upload-Length: 5000"], b"01234").status, 507);
    assert_eq!(server.head(&path).get("upload-length"), None);
    assert_eq!(server.patch(&path, 0, &["Upload-Length: 5"], b"01234").status, 204);
    let (_, directory) = server.stop();
    let server = TestServer::on(directory, |config| quota(&mut config.limits));
    assert_eq!(server.head(&path).field("upload-length"), "5", "it is on disk");
}

#[test]
fn one_client_has_limits_of_its_own() {
    let server = TestServer::limited(|limits| {
        limits.client_quota = Some("100kB".parse().unwrap());
        limits.client_uploads = 2;
    });
    assert_eq!(create(&server, 100_001), 507);
    assert_eq!(create(&server, 50_000), 201);
    let path = server.create(0, "empty");
    assert_eq!(create(&server, 1), 201);
    assert_eq!(create(&server, 1), 429, "two are unfinished");
    assert_eq!(server.head(&path).status, 200);
}

#[test]
fn the_rate_of_a_client_is_limited() {
    let server = TestServer::limited(|limits| limits.rate = Some("8Mbit/s".parse().unwrap()));
    let path = server.create(500_000, "slow");
    let start = Instant::now();
    assert_eq!(server.patch(&path, 0, &[], &pattern(500_000)).status, 204);
    // Half a second at this rate, less the burst and what is read at once: a bound from below holds on any machine.
    assert!(start.elapsed().as_millis() >= 200, "{:?}", start.elapsed());
}

#[test]
fn a_full_disk_fails_one_upload_and_loses_nothing() {
    if !nix::unistd::geteuid().is_root() {
        let required = std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_some_and(|value| value == "1");
        assert!(!required, "WAKEAI_REQUIRE_KERNEL=1, but not root");
        println!("SKIPPED: not root");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::mount(directory.path());
    let inner = tempfile::tempdir_in(directory.path()).unwrap();
    let server = TestServer::on(inner, |_| ());
    let body = pattern(3_000_000);
    let small = server.create(100_000, "small");
    assert_eq!(server.patch(&small, 0, &[], &body[..50_000]).status, 204);
    let gone = server.create(100_000, "gone");
    assert_eq!(server.patch(&gone, 0, &[], &body[..50_000]).status, 204);
    let large = server.create(body.len(), "large");
    let reply = server.patch(&large, 0, &[], &body);
    assert_eq!(reply.status, 507, "{reply:?}");
    let kept: usize = reply.field("upload-offset").parse().unwrap();
    assert!(kept > 1_000_000, "{kept}");
    assert_eq!(server.offset(&large), kept);
    assert_eq!(server.offset(&small), 50_000);
    assert_eq!(server.ask("POST", "/files", &["Upload-Length: 5", OCTETS], b"12345").status, 507);
    assert_eq!(server.ask("DELETE", &gone, &[], b"").status, 204, "room can be made");
    disk.grow();
    assert_eq!(server.patch(&small, 50_000, &[], &body[50_000..100_000]).status, 204);
    assert_eq!(server.patch(&large, kept, &[], &body[kept..]).status, 204);
    assert_eq!(std::fs::read(server.file("large")).unwrap(), body);
    assert_eq!(std::fs::read(server.file("small")).unwrap(), body[..100_000]);
    let (report, inner) = server.stop();
    assert_eq!(report.disk_full, 2, "each refusal counts once");
    drop(inner);
    drop(disk);
}

/// A small file system in memory.
struct Disk(std::path::PathBuf);

impl Disk {
    fn mount(on: &std::path::Path) -> Self {
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(on).status();
        assert!(mounted.unwrap().success());
        Self(on.to_owned())
    }

    fn grow(&self) {
        let status = Command::new("mount").args(["-o", "remount,size=8m"]).arg(&self.0).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
