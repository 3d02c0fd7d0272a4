//! A server that runs on a thread of its own, and a small client.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tempfile::TempDir;
use tokio::sync::oneshot;
use wakeai_serve::{Limits, Report, ServeConfig, ServeEvent, run};

/// The time after which a test counts as hanging. It is long, because the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) fn config(directory: &Path) -> ServeConfig {
    ServeConfig {
        directory: directory.to_owned(),
        listen: "127.0.0.1:0".parse().unwrap(),
        tls: None,
        tokens: None,
        metrics: None,
        base: None,
        origins: Vec::new(),
        limits: Limits::default(),
    }
}

pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) directory: TempDir,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Report>,
}

impl TestServer {
    pub(crate) fn start() -> Self {
        Self::limited(|_| ())
    }

    pub(crate) fn limited(change: impl FnOnce(&mut Limits)) -> Self {
        Self::configured(|config| change(&mut config.limits))
    }

    pub(crate) fn configured(change: impl FnOnce(&mut ServeConfig)) -> Self {
        Self::on(tempfile::tempdir().unwrap(), change)
    }

    /// A server of a directory that may have uploads already.
    pub(crate) fn on(directory: TempDir, change: impl FnOnce(&mut ServeConfig)) -> Self {
        let mut config = config(directory.path());
        change(&mut config);
        let (stop, stopped) = oneshot::channel();
        let (ready, listening) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut last = Report::default();
            let shutdown = async { drop(stopped.await) };
            run(config, shutdown, |event| match event {
                ServeEvent::Listening(address) => ready.send(address).unwrap(),
                ServeEvent::Report(report) => last = report,
            })
            .unwrap();
            last
        });
        let address = listening.recv_timeout(PATIENCE).unwrap();
        Self { address, directory, stop, thread }
    }

    /// Stops the server; returns its counts and the directory.
    pub(crate) fn stop(self) -> (Report, TempDir) {
        drop(self.stop);
        (self.thread.join().unwrap(), self.directory)
    }

    pub(crate) fn dial(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request over a connection of its own; `body` has its length in the head.
    pub(crate) fn ask(&self, method: &str, path: &str, fields: &[&str], body: &[u8]) -> Reply {
        self.try_ask(method, path, fields, body).expect("an answer")
    }

    /// The same; `None` if the connection is closed without an answer.
    pub(crate) fn try_ask(
        &self,
        method: &str,
        path: &str,
        fields: &[&str],
        body: &[u8],
    ) -> Option<Reply> {
        let mut stream = self.dial();
        let length = format!("Content-Length: {}", body.len());
        let fields = [fields, &["Tus-Resumable: 1.0.0", "Connection: close", &length]].concat();
        stream.write_all(head(method, path, &fields).as_bytes()).ok()?;
        let _ = stream.write_all(body); // a refused body need not be taken
        try_reply(&mut stream)
    }

    /// Creates an upload; returns its path.
    pub(crate) fn create(&self, length: usize, name: &str) -> String {
        let metadata = format!("Upload-Metadata: filename {}", BASE64.encode(name));
        let length = format!("Upload-Length: {length}");
        let reply = self.ask("POST", "/files", &[&length, &metadata], b"");
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.field("location").to_owned()
    }

    pub(crate) fn patch(&self, path: &str, offset: usize, more: &[&str], body: &[u8]) -> Reply {
        let offset = format!("Upload-Offset: {offset}");
        self.ask("PATCH", path, &[&[&offset, OCTETS], more].concat(), body)
    }

    pub(crate) fn head(&self, path: &str) -> Reply {
        self.ask("HEAD", path, &[], b"")
    }

    /// The digest that HEAD tells where it is wanted.
    pub(crate) fn digest(&self, path: &str) -> String {
        let reply = self.ask("HEAD", path, &["Want-Repr-Digest: sha-512=3, sha-256=10"], b"");
        reply.field("repr-digest").to_owned()
    }

    /// The offset that HEAD tells.
    pub(crate) fn offset(&self, path: &str) -> usize {
        let reply = self.head(path);
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.field("upload-offset").parse().unwrap()
    }

    /// The bytes of an upload's file, acknowledged or not.
    pub(crate) fn written(&self, path: &str) -> usize {
        let id = path.rsplit('/').next().unwrap();
        let file = std::fs::metadata(self.file(".wakeai-uploads").join(id));
        file.map_or(0, |file| file.len() as usize)
    }

    /// The names of the files of unfinished uploads.
    pub(crate) fn unfinished(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.file(".wakeai-uploads")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "journal").collect()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The names in the directory, without those of uploads.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name != ".wakeai-uploads").collect();
        names.sort();
        names
    }

    /// Begins a PATCH of `size` bytes, of which only `body` is sent. The connection stays open.
    pub(crate) fn begin(&self, path: &str, offset: usize, size: usize, body: &[u8]) -> TcpStream {
        let mut stream = self.dial();
        let offset = format!("Upload-Offset: {offset}");
        let size = format!("Content-Length: {size}");
        send_head(&mut stream, "PATCH", path, &[&offset, &size, OCTETS, "Tus-Resumable: 1.0.0"]);
        stream.write_all(body).unwrap();
        stream
    }
}

pub(crate) const OCTETS: &str = "Content-Type: application/offset+octet-stream";

pub(crate) fn send_head(stream: &mut impl Write, method: &str, path: &str, fields: &[&str]) {
    stream.write_all(head(method, path, fields).as_bytes()).unwrap();
}

fn head(method: &str, path: &str, fields: &[&str]) -> String {
    let lines = fields.join("\r\n");
    let end = if fields.is_empty() { "" } else { "\r\n" };
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{lines}{end}\r\n")
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    fields: HashMap<String, String>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn field(&self, name: &str) -> &str {
        self.get(name).unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

/// Reads an answer.
pub(crate) fn read_reply(stream: &mut impl Read) -> Reply {
    try_reply(stream).expect("an answer")
}

fn try_reply(stream: &mut impl Read) -> Option<Reply> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let status = line.split(' ').nth(1)?.parse().unwrap();
    let mut fields = HashMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        fields.insert(name.to_lowercase(), value.to_owned());
    }
    let mut body = String::new();
    let length = fields.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let _ = reader.take(length).read_to_string(&mut body); // HEAD has none
    Some(Reply { status, fields, body })
}

/// Whether the other end has closed the connection, without an answer.
pub(crate) fn is_closed(stream: &mut TcpStream) -> bool {
    matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_))
}

/// Repeats `found` until it gives a value.
pub(crate) fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < give_up, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Bytes whose values show their positions.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect()
}

pub(crate) fn checksum(algorithm: wakeai_tus::Algorithm, bytes: &[u8]) -> String {
    let mut hasher = wakeai_tus::Hasher::new(algorithm);
    hasher.update(bytes);
    format!("Upload-Checksum: {}", hasher.finish())
}
