//! `wakeai put` to a `wakeai serve` whose disk is full: a small file system in the server's own mount namespace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::{Server, content, put, report};
use wakeai_tests::{Machine, must, stderr};

const SIZE: u64 = 3_000_000;
/// The pieces of the upload. Each has a checksum, so the server keeps it whole or not at all.
const PIECE: u64 = 200_000;

/// A server on a disk of 2 MiB, which no other process sees.
struct Small {
    server: Server,
}

impl Small {
    fn start(directory: &Path) -> Self {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c"])
            .arg("mount -t tmpfs -o size=2m,mode=700 none \"$1\" && shift && exec \"$@\"");
        command.arg("sh").arg(directory).arg(wakeai_tests::program());
        Self { server: Server::spawn(command, directory, &[]) }
    }

    /// Where this process finds the server's directory.
    fn served(&self) -> PathBuf {
        let root = format!("/proc/{}/root", self.server.child.id());
        Path::new(&root).join(self.server.directory.strip_prefix("/").unwrap())
    }

    fn grow(&self) {
        let (pid, directory) = (self.server.child.id(), self.server.directory.display());
        must(
            "nsenter",
            &format!("--mount=/proc/{pid}/ns/mnt mount -o remount,size=8m {directory}"),
        );
    }

    /// The acknowledged bytes of the one unfinished upload.
    fn acknowledged(&self) -> Vec<u8> {
        let uploads = fs::read_dir(self.served().join(".wakeai-uploads")).unwrap().flatten();
        let mut parts = uploads.filter(|file| file.file_name() != "journal");
        let part = parts.next().unwrap();
        assert!(parts.next().is_none(), "one upload");
        fs::read(part.path()).unwrap()
    }
}

/// Runs `wakeai put` to its end, which is soon: a full disk is not waited for.
fn run(home: &Path, arguments: &[&str]) -> Output {
    let mut command = put(home, arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed().as_secs() > 60 {
            let _ = child.kill();
            panic!("it goes on: {}", stderr(&child.wait_with_output().unwrap()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn a_full_disk_ends_an_upload_at_once_and_the_same_command_completes_it_after_room_was_made() {
    let Some(_machine) = Machine::share() else { return };
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("served");
    fs::create_dir(&directory).unwrap();
    let small = Small::start(&directory);
    let earlier = home.path().join("earlier.bin");
    fs::write(&earlier, content(100_000)).unwrap();
    let url = small.server.url.clone();
    report(&run(home.path(), &[earlier.to_str().unwrap(), &url]));

    let file = home.path().join("photo.bin");
    fs::write(&file, content(SIZE)).unwrap();
    let piece = PIECE.to_string() + "B";
    // It would be repeated for an hour if a full disk passed by itself.
    let arguments = [file.to_str().unwrap(), &url, "--chunk-size", &piece, "--retry-for", "1h"];
    for round in 0..2 {
        let refused = run(home.path(), &arguments);
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(said.contains("507") && said.contains("disk or quota is full"), "{said}");
        let kept = small.acknowledged();
        assert!(kept.len() as u64 > SIZE / 2, "{} bytes in round {round}", kept.len());
        assert_eq!(kept.len() as u64 % PIECE, 0, "whole pieces");
        assert_eq!(kept, content(SIZE)[..kept.len()], "what was acknowledged is kept");
    }
    let kept = small.acknowledged().len() as u64;
    small.grow();
    let done = report(&run(home.path(), &arguments));
    assert_eq!((&done["verified"], &done["bytes_again"]), (&"digest".into(), &0.into()), "{done}");
    assert_eq!(done["pieces"].as_u64().unwrap(), (SIZE - kept) / PIECE, "{done}");
    let served = small.served();
    assert!(fs::read(served.join("photo.bin")).unwrap() == content(SIZE));
    assert!(fs::read(served.join("earlier.bin")).unwrap() == content(100_000));
}
