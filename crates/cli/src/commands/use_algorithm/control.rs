//! The socket at which one that is in force is asked, and told another rate: one line of JSON each
//! way.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wakeai_host::{Lease, MakeError};

/// A process answers at once, unless it is stopped.
const PATIENCE: Duration = Duration::from_secs(5);
/// No line is longer, on either side.
const LONGEST: u64 = 1 << 16;

/// What is asked.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// What is in force?
    Show,
    /// Another target for its connections, in bits per second.
    SetRate(u64),
}

/// What is answered: it as it is now, or why not.
pub(super) type Answer = Result<InForce, String>;

/// One that is in force, as `--json` shows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct InForce {
    /// Its process.
    pub(super) id: u32,
    pub(super) algorithm: String,
    /// `namespace`, `route`, `cgroup`, `connections`.
    pub(super) scope: String,
    /// Which of these.
    pub(super) name: String,
    /// The inode of the network namespace that its process is in.
    pub(super) netns: u64,
    pub(super) to: Option<String>,
    pub(super) rate_mbps: Option<f64>,
    /// Connections that it rules now.
    pub(super) connections: u32,
    pub(super) running_s: f64,
    pub(super) left_s: Option<f64>,
}

impl InForce {
    /// What it rules, in words.
    pub(super) fn words(&self) -> String {
        let to = self.to.as_ref().map_or(String::new(), |to| format!(" to {to}"));
        match self.scope.as_str() {
            "namespace" => format!("new connections of network namespace {}", self.name),
            "route" => format!("new connections over the route to {}", self.name),
            "cgroup" => format!("new connections of {}{to}", self.name),
            _ => format!("{} connections{to}", self.connections),
        }
    }
}

/// Where the process `id` listens.
pub(super) fn path(id: u32) -> PathBuf {
    PathBuf::from(format!("/run/wakeai/use-{id}.control"))
}

/// The listening end.
pub(super) struct Listener(UnixListener);

impl Listener {
    /// Listens where this process is expected; the lease removes the socket.
    pub(super) fn bind(lease: &Lease) -> Result<Self, MakeError> {
        let path = path(std::process::id());
        let listener = lease.bind_socket(&path, 0o600)?;
        listener.set_nonblocking(true).map_err(|source| MakeError::Io { path, source })?;
        Ok(Self(listener))
    }

    /// Answers whoever waits. A client that misbehaves is dropped.
    pub(super) fn serve(&self, mut answer: impl FnMut(Request) -> Answer) {
        while let Ok((client, _)) = self.0.accept() {
            let served = read(&client).and_then(|request| write(&client, &answer(request)));
            if let Err(error) = served {
                tracing::debug!(%error, "client dropped");
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Asks the process `id`.
pub(super) fn ask(id: u32, request: Request) -> io::Result<Answer> {
    let server = UnixStream::connect(path(id))?;
    write(&server, &request)?;
    read(&server)
}

fn write(stream: &UnixStream, value: &impl Serialize) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    (&mut &*stream).write_all(&line)
}

fn read<T: for<'a> Deserialize<'a>>(stream: &UnixStream) -> io::Result<T> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream).take(LONGEST).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}
