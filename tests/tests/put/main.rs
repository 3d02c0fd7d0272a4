//! `wakeai put` to real servers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the harness shows it where a test fails or is skipped")]

mod addresses;
mod content;
mod full_disk;
mod guide;
mod interrupted;
mod receiver;
mod turn;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use content::content;
use serde_json::Value;
use wakeai_tests::must;

const SIZE: u64 = 5_000_000;

/// A running `wakeai serve`; killed when dropped.
struct Server {
    child: Child,
    directory: PathBuf,
    url: String,
}

impl Server {
    fn start(directory: &Path) -> Self {
        Self::with(directory, &[])
    }

    fn with(directory: &Path, options: &[&str]) -> Self {
        Self::spawn(Command::new(wakeai_tests::program()), directory, options)
    }

    /// Starts it by a command that `serve` and its arguments are added to.
    fn spawn(mut command: Command, directory: &Path, options: &[&str]) -> Self {
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--json"])
            .args(options)
            .arg(directory)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let listening: Value = serde_json::from_str(&line).unwrap();
        let directory = directory.to_owned();
        Self { child, directory, url: listening["url"].as_str().unwrap().to_owned() }
    }

    /// The bytes of the one unfinished upload.
    fn offset(&self) -> u64 {
        let uploads = std::fs::read_dir(self.directory.join(".wakeai-uploads"));
        let files = uploads.into_iter().flatten().flatten();
        let parts = files.filter(|file| file.file_name() != "journal");
        parts.filter_map(|part| part.metadata().ok()).map(|part| part.len()).max().unwrap_or(0)
    }

    /// The established connections.
    fn connections(&self) -> usize {
        let port = self.url.split([':', '/']).nth(4).unwrap();
        must("ss", &format!("-Htn state established sport = :{port}")).lines().count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn put(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(wakeai_tests::program());
    command.arg("put").args(arguments).arg("--json");
    command.env("XDG_STATE_HOME", directory.join("state")).env_remove("WAKEAI_TOKEN");
    command
}

fn report(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_file_and_standard_input_arrive_in_pieces() {
    let home = tempfile::tempdir().unwrap();
    let served = home.path().join("served");
    std::fs::create_dir(&served).unwrap();
    let server = Server::start(&served);
    let file = home.path().join("photo.bin");
    std::fs::write(&file, content(SIZE)).unwrap();
    let arguments = [file.to_str().unwrap(), &server.url, "--chunks", "5"];
    let found = report(&put(home.path(), &arguments).output().unwrap());
    assert_eq!((&found["protocol"], &found["verified"]), (&"tus".into(), &"digest".into()));
    assert_eq!((&found["pieces"], &found["bytes_again"]), (&5.into(), &0.into()));
    assert_eq!(std::fs::read(served.join("photo.bin")).unwrap(), content(SIZE));

    let arguments = ["-", &server.url, "--name", "from-stdin.bin"];
    let mut command = put(home.path(), &arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&content(SIZE)).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(std::fs::read(served.join("from-stdin.bin")).unwrap(), content(SIZE));
}

#[test]
fn after_kill_9_the_same_command_sends_only_the_rest() {
    let home = tempfile::tempdir().unwrap();
    let served = home.path().join("served");
    std::fs::create_dir(&served).unwrap();
    let mut server = Server::start(&served);
    let file = home.path().join("photo.bin");
    std::fs::write(&file, content(SIZE)).unwrap();
    let arguments = [file.to_str().unwrap(), &server.url, "--chunk-size", "4kB"];
    let mut child = put(home.path(), &arguments).stdout(Stdio::null()).spawn().unwrap();
    while server.offset() < 40_000 {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it could be killed");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // The server is killed too, and comes back at the same place.
    let address = server.url.trim_start_matches("http://").trim_end_matches("/files").to_owned();
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    server.child = Command::new(wakeai_tests::program())
        .args(["serve", "--listen", &address])
        .arg(&served)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let arguments = [file.to_str().unwrap(), &server.url, "--chunk-size", "1MB"];
    let found = report(&put(home.path(), &arguments).output().unwrap());
    assert!(found["resumes"].as_u64().unwrap() >= 1, "{found}");
    assert!(found["pieces"].as_u64().unwrap() <= 5, "it began anew: {found}");
    assert_eq!(std::fs::read(served.join("photo.bin")).unwrap(), content(SIZE));
}

#[test]
fn a_server_that_asks_for_a_long_wait_gets_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/files", listener.local_addr().unwrap());
    let answers = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(&stream).lines();
        while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
        let answer = b"HTTP/1.1 503 Busy\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n";
        (&stream).write_all(answer).unwrap();
    });
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("f");
    std::fs::write(&file, b"x").unwrap();
    let output = put(home.path(), &[file.to_str().unwrap(), &url]).output().unwrap();
    answers.join().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("3600") && text.contains("503"), "{text}");
}

#[test]
fn bad_usage_and_a_server_that_is_not_there_are_told_apart() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("f");
    std::fs::write(&file, b"x").unwrap();
    let file = file.to_str().unwrap();
    for (arguments, status, says) in [
        (&[file, "ftp://127.0.0.1/"][..], 2, "http://"),
        (&[file, "http://me:secret@127.0.0.1/"], 2, "--user-file"),
        (&["/nowhere", "http://127.0.0.1:1/"], 1, "/nowhere"),
        (&[file, "http://127.0.0.1:1/", "--retry-for", "1s"], 1, "gave up"),
    ] {
        let output = put(home.path(), arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{text}");
        assert!(text.contains(says) && !text.contains("secret"), "{text}");
    }
}
