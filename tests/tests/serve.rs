//! `wakeai serve`: what it acknowledged survives `kill -9`, and it stops in good order.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use wakeai_tests::program;

struct Server {
    child: Child,
    address: String,
    lines: BufReader<std::process::ChildStdout>,
}

impl Server {
    fn start(directory: &Path) -> Self {
        Self::limited(directory, None)
    }

    fn limited(directory: &Path, file_bytes: Option<u64>) -> Self {
        let command = match file_bytes {
            None => Command::new(program()),
            Some(bytes) => {
                let mut command = Command::new("prlimit");
                command.arg(format!("--fsize={bytes}")).arg(program());
                command
            }
        };
        Self::by(command, directory)
    }

    /// The server that `command` starts.
    fn by(mut command: Command, directory: &Path) -> Self {
        command.arg("serve").arg(directory).args(["--listen", "127.0.0.1:0", "--json"]);
        command.stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let line = next(&mut lines);
        assert_eq!(line["type"], "listening");
        Self { child, address: line["address"].as_str().unwrap().to_owned(), lines }
    }

    /// Sends a request of which the body may be shorter than `Content-Length` tells.
    fn send(
        &self,
        method: &str,
        path: &str,
        fields: &str,
        length: usize,
        body: &[u8],
    ) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let fixed = "Host: localhost\r\nTus-Resumable: 1.0.0\r\nConnection: close";
        let kind = "Content-Type: application/offset+octet-stream";
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\n{fixed}\r\n{kind}\r\n{fields}\r\nContent-Length: {length}\r\n\r\n"
        )
        .unwrap();
        stream.write_all(body).unwrap();
        stream
    }

    fn ask(&self, method: &str, path: &str, fields: &str, body: &[u8]) -> String {
        let mut answer = String::new();
        let mut stream = self.send(method, path, fields, body.len(), body);
        stream.read_to_string(&mut answer).unwrap();
        answer.to_lowercase()
    }

    fn create(&self, length: usize) -> String {
        let fields = format!("Upload-Length: {length}\r\nUpload-Metadata: filename ZmlsZQ==");
        field(&self.ask("POST", "/files", &fields, b""), "location")
    }

    fn offset(&self, path: &str) -> usize {
        field(&self.ask("HEAD", path, "Accept: */*", b""), "upload-offset").parse().unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn next(lines: &mut impl std::io::BufRead) -> Value {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

fn field(answer: &str, name: &str) -> String {
    let mut lines = answer.lines().filter_map(|line| line.split_once(": "));
    let found = lines.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned());
    found.unwrap_or_else(|| panic!("no {name} in {answer}"))
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect()
}

#[test]
fn acknowledged_bytes_survive_kill_minus_nine() {
    let directory = tempfile::tempdir().unwrap();
    let body = pattern(4_000_000);
    let mut server = Server::start(directory.path());
    let path = server.create(body.len());
    let mut acknowledged = 0;
    for round in 1.. {
        let piece = 50_000 + 70_000 * round;
        let end = (acknowledged + piece).min(body.len());
        let offset = format!("Upload-Offset: {acknowledged}");
        let answer = server.ask("PATCH", &path, &offset, &body[acknowledged..end]);
        assert!(answer.starts_with("http/1.1 204"), "{answer}");
        acknowledged = end;
        if end == body.len() {
            break;
        }
        // The server is killed while it receives the next piece.
        let offset = format!("Upload-Offset: {acknowledged}");
        let rest = &body[acknowledged..];
        let sent = rest.len().min(40_000 * round);
        let stream =
            server.send("PATCH", &path, &offset, rest.len(), &rest[..sent.min(rest.len() - 1)]);
        server.signal(Signal::SIGKILL);
        server.child.wait().unwrap();
        drop(stream);
        server = Server::start(directory.path());
        let offset = server.offset(&path);
        assert!(offset >= acknowledged, "{offset} after {acknowledged} were acknowledged");
        acknowledged = offset;
    }
    server.signal(Signal::SIGKILL);
    server.child.wait().unwrap();
    assert_eq!(std::fs::read(directory.path().join("file")).unwrap(), body);
    let server = Server::start(directory.path());
    assert_eq!(server.offset(&path), body.len(), "a client that lost the last answer learns it");
}

#[test]
fn a_stop_keeps_what_arrived_and_succeeds() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let directory = tempfile::tempdir().unwrap();
        let body = pattern(1_000_000);
        let mut server = Server::start(directory.path());
        let path = server.create(body.len());
        server.signal(Signal::SIGUSR1);
        let counters = next(&mut server.lines);
        assert_eq!((&counters["type"], &counters["created"]), (&"counters".into(), &1.into()));
        let mut stream =
            server.send("PATCH", &path, "Upload-Offset: 0", body.len(), &body[..700_000]);
        let idle = TcpStream::connect(&server.address).unwrap();
        loop {
            server.signal(Signal::SIGUSR1);
            if next(&mut server.lines)["bytes_received"].as_u64() > Some(600_000) {
                break;
            }
        }
        server.signal(signal);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(server.child.wait().unwrap().success());
        drop(idle);
        let kept: usize = field(&answer.to_lowercase(), "upload-offset").parse().unwrap();
        assert!(kept > 600_000, "{kept}");
        let counters = next(&mut server.lines);
        assert_eq!(counters["bytes_acknowledged"], kept);
        let server = Server::start(directory.path());
        assert_eq!(server.offset(&path), kept);
    }
}

#[test]
fn a_file_that_may_not_grow_fails_its_upload_alone() {
    let directory = tempfile::tempdir().unwrap();
    let body = pattern(2_000_000);
    let server = Server::limited(directory.path(), Some(1_000_000));
    let (small, large) = (server.create(100_000), server.create(body.len()));
    let answer = server.ask("PATCH", &large, "Upload-Offset: 0", &body);
    assert!(answer.starts_with("http/1.1 507"), "{answer}");
    assert_eq!(server.offset(&large), 1_000_000);
    let answer = server.ask("PATCH", &small, "Upload-Offset: 0", &body[..100_000]);
    assert!(answer.starts_with("http/1.1 204"), "{answer}");
    drop(server);
    let server = Server::start(directory.path());
    let answer = server.ask("PATCH", &large, "Upload-Offset: 1000000", &body[1_000_000..]);
    assert!(answer.starts_with("http/1.1 204"), "{answer}");
    assert_eq!(std::fs::read(directory.path().join("file (2)")).unwrap(), body);
}

fn refused(arguments: &[&str]) -> Output {
    let output = Command::new("timeout").args(["60", program(), "serve"]).args(arguments).output();
    output.unwrap()
}

#[test]
fn an_unsafe_start_is_refused_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display().to_string();
    for (arguments, code, expected) in [
        (&["--listen", "0.0.0.0:0"][..], 2, "--cert FILE"),
        (&["--cert", "x"], 2, "--key"),
        (&["--token-file", "/nonexistent"], 2, "cannot read /nonexistent"),
        (&["--rate", "0Mbit/s"], 2, "above zero"),
        (&["--base", "files"], 2, "a path that begins with '/'"),
        (&["--allow-origin", "app.example"], 2, "SCHEME://HOST"),
        (&["--listen", "[fe80::1]:0"], 2, "name the interface"),
        (&["--listen", "[fe80::1%none-such]:0"], 2, "none-such"),
        // A zone is read; without TLS the address is refused all the same.
        (&["--listen", "[fe80::1%lo]:0"], 2, "--cert FILE"),
    ] {
        let output = refused(&[&[path.as_str()], arguments].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
    let output = refused(&["/nonexistent/directory", "--listen", "127.0.0.1:0"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("cannot keep uploads in /nonexistent/directory"), "{text}");
}

/// The wall clock of one process, which libfaketime sets. Its other clocks are the machine's.
struct WallClock(tempfile::TempDir);

impl WallClock {
    fn new() -> Self {
        let clock = Self(tempfile::tempdir().unwrap());
        clock.set("+0s");
        clock
    }

    fn offset(&self) -> std::path::PathBuf {
        self.0.path().join("offset")
    }

    fn set(&self, offset: &str) {
        let new = self.0.path().join("new");
        std::fs::write(&new, offset).unwrap();
        std::fs::rename(new, self.offset()).unwrap();
    }

    fn server(&self, directory: &Path) -> Server {
        let machine = std::env::consts::ARCH;
        let library = format!("/usr/lib/{machine}-linux-gnu/faketime/libfaketimeMT.so.1");
        assert!(Path::new(&library).exists(), "install the package libfaketime: {library}");
        let mut command = Command::new(program());
        command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", self.offset());
        command.envs([("FAKETIME_NO_CACHE", "1"), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")]);
        Server::by(command, directory)
    }
}

#[test]
fn a_wall_clock_that_is_set_expires_no_upload_and_moves_only_what_people_read() {
    let directory = tempfile::tempdir().unwrap();
    let clock = WallClock::new();
    let mut server = clock.server(directory.path());
    let path = server.create(10);
    let answer = server.ask("PATCH", &path, "Upload-Offset: 0", b"01234");
    assert!(answer.starts_with("http/1.1 204"), "{answer}");
    let expires =
        |server: &Server| field(&server.ask("HEAD", &path, "Accept: */*", b""), "upload-expires");
    let before = expires(&server);
    for offset in ["+2d", "-2d", "+4000d"] {
        clock.set(offset);
        assert_ne!(expires(&server), before, "a person's clock shows another time");
        // The next look for expired uploads is at the start.
        server.signal(Signal::SIGTERM);
        server.child.wait().unwrap();
        server = clock.server(directory.path());
        assert_eq!(server.offset(&path), 5, "{offset}");
    }
    let answer = server.ask("PATCH", &path, "Upload-Offset: 5", b"56789");
    assert!(answer.starts_with("http/1.1 204"), "{answer}");
    assert_eq!(std::fs::read(directory.path().join("file")).unwrap(), b"0123456789");
}

#[test]
fn a_directory_that_is_removed_is_in_the_log_also_without_a_client() {
    let directory = tempfile::tempdir().unwrap();
    let uploads = directory.path().join("uploads");
    std::fs::create_dir(&uploads).unwrap();
    let mut command = Command::new(program());
    command.stderr(Stdio::piped());
    let mut server = Server::by(command, &uploads);
    let mut log = BufReader::new(server.child.stderr.take().unwrap());
    std::fs::remove_dir_all(&uploads).unwrap();
    let mut line = String::new();
    while !line.contains("was removed or replaced") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut log, &mut line).unwrap() > 0, "the log ended");
    }
    assert!(line.contains(&uploads.display().to_string()), "{line}");
    let answer = server.ask("POST", "/files", "Upload-Length: 5", b"01234");
    assert!(answer.starts_with("http/1.1 503"), "{answer}");
    assert!(answer.contains("the directory of the server's uploads is gone"), "{answer}");
}
