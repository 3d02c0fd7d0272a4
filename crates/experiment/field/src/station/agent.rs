//! The agent of a run: `wakeai agent` with a configuration and a key of its own.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use wakeai_api::config::Config;
use wakeai_api::{Body, Request};
use wakeai_host::{Change, Lease, NetnsId, ProcessId, since_boot};
use wakeai_units::Duration;

use crate::protocol::AgentPlan;

/// The most time that an agent may take to start, or to undo its changes.
const PATIENCE: Duration = Duration::from_secs(20);
const POLL: std::time::Duration = std::time::Duration::from_millis(5);
/// The longest wait for an agent's answer: the run is over then, and a busy machine may take its time.
const ANSWER_PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
/// The bytes of an agent's log that an error shows.
const TAIL: usize = 600;

/// A running agent. Dropping this value kills it; [`RunningAgent::stop`] lets it undo its changes.
#[derive(Debug)]
pub(super) struct RunningAgent {
    child: Child,
    registered: Change,
    api: PathBuf,
    log: PathBuf,
}

impl RunningAgent {
    /// Starts an agent in this network namespace, and waits until it is ready. Its files go into `directory`.
    pub(super) fn start(
        plan: &AgentPlan,
        program: &Path,
        directory: &Path,
        lease: &Lease,
    ) -> Result<Self, String> {
        let written = |error: io::Error| format!("the agent's files cannot be written: {error}");
        let key_file = directory.join("group.key");
        let _ = fs::remove_file(&key_file);
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&key_file)
            .map_err(written)?;
        writeln!(file, "{}", plan.key).map_err(written)?;
        let mut config = Config::parse(&plan.config).map_err(|error| error.to_string())?;
        config.key_file = key_file;
        let text = config.to_toml().map_err(|error| error.to_string())?;
        let path = directory.join("agent.toml");
        fs::write(&path, text).map_err(written)?;
        let notify_path = directory.join("notify");
        let _ = fs::remove_file(&notify_path);
        let notify = UnixDatagram::bind(&notify_path).map_err(written)?;
        notify.set_nonblocking(true).map_err(written)?;
        let log = directory.join("agent.log");
        let output = File::create(&log).map_err(written)?;
        let mut command = Command::new(program);
        command.arg("agent").arg("--config").arg(&path).env("NOTIFY_SOCKET", &notify_path);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output).process_group(0);
        end_with_this_process(&mut command);
        let mut child =
            command.spawn().map_err(|error| format!("the agent cannot be started: {error}"))?;
        let recorded = ProcessId::of(child.id()).map(Change::Process).and_then(|change| {
            lease.record(change.clone()).map_err(io::Error::other)?;
            Ok(change)
        });
        let registered = match recorded {
            Ok(change) => change,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(written(error));
            }
        };
        let netns = NetnsId::current().map_err(written)?;
        let api = wakeai_host::state().join(format!("agent-{}.sock", netns.0));
        let mut agent = Self { child, registered, api, log };
        match agent.wait_until_ready(&notify) {
            Ok(()) => Ok(agent),
            Err(reason) => {
                let said = agent.tail();
                let _ = agent.stop(lease);
                Err(format!("the agent {reason}{said}"))
            }
        }
    }

    fn wait_until_ready(&mut self, notify: &UnixDatagram) -> Result<(), String> {
        let give_up = since_boot() + PATIENCE;
        let mut message = [0; 4096];
        loop {
            while let Ok(length) = notify.recv(&mut message) {
                if message[..length].split(|byte| *byte == b'\n').any(|line| line == b"READY=1") {
                    return Ok(());
                }
            }
            if let Some(status) = self.ended() {
                return Err(format!("ended before it was ready ({status})"));
            }
            if since_boot() >= give_up {
                return Err(format!("was not ready within {PATIENCE}"));
            }
            std::thread::sleep(POLL);
        }
    }

    /// How the agent has ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// The number of peers that the agent knows.
    pub(super) fn peers(&self) -> Option<usize> {
        match wakeai_api::ask(&self.api, Request::Status, ANSWER_PATIENCE) {
            Ok(Body::Status(status)) => Some(status.peers),
            _ => None,
        }
    }

    /// The end of the log, for an error.
    pub(super) fn tail(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let tail = String::from_utf8_lossy(&log[log.len().saturating_sub(TAIL)..]);
        if tail.trim().is_empty() { String::new() } else { format!("; it wrote: {}", tail.trim()) }
    }

    /// Ends the agent, which undoes its changes. An error says how it ended otherwise.
    pub(super) fn stop(mut self, lease: &Lease) -> Result<(), String> {
        let _ = kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM);
        let give_up = since_boot() + PATIENCE;
        let ended = loop {
            match self.ended() {
                Some(status) if status.success() => break Ok(()),
                Some(status) => break Err(format!("the agent ended with {status}{}", self.tail())),
                None if since_boot() >= give_up => {
                    break Err(format!("the agent did not end within {PATIENCE}"));
                }
                None => std::thread::sleep(POLL),
            }
        };
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = lease.forget(&self.registered); // the lease ends soon, too
        ended
    }
}

impl Drop for RunningAgent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Has the kernel end the agent in order when the helper dies: with SIGTERM the agent undoes its changes.
#[allow(unsafe_code, reason = "the parent-death signal is set between fork and exec")]
fn end_with_this_process(command: &mut Command) {
    let parent = Pid::this();
    let set = move || {
        nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?;
        if nix::unistd::getppid() == parent { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    };
    // SAFETY: the closure makes two system calls, and allocates nothing.
    unsafe { command.pre_exec(set) };
}
