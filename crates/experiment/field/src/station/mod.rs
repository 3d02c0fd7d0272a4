//! The helper of a machine: `wakeai field-station`.
//!
//! The process that ssh starts is a relay ([`run`]): it starts the helper of the session, or finds it where it runs, and
//! copies lines between its own standard input and output and the helper's socket. So a lost connection ends the relay and
//! nothing else. The helper ([`serve`]) holds the lease, that is the record of all its changes, and ends by itself at its deadline.

mod agent;
mod air;
mod daemon;
mod flow;
mod inspect;
mod interface;
mod run;
mod sockets;
mod udp;
mod unprivileged;
mod watch;

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::unistd::geteuid;
use wakeai_host::NetnsId;

use crate::protocol::{Answer, Ask, Question, Reply};

pub use daemon::serve;

/// The longest wait for a helper that starts.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// The beginning of the name of the directory of a program that was brought along.
pub(crate) const BROUGHT: &str = "wakeai-field.";
/// The longest first line.
const LONGEST_HELLO: u64 = 4_096;

/// A helper cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum StationError {
    /// The first line is not what a controlling command of this version sends.
    #[error(
        "the first line is not that of `wakeai field`: this command is started by `wakeai field`, and not by hand"
    )]
    Hello,
    /// The helper did not start.
    #[error("the helper did not start: {0}")]
    Start(String),
    /// The lease could not be taken.
    #[error(transparent)]
    Lease(#[from] wakeai_host::LeaseError),
    /// A directory or a socket could not be made.
    #[error(transparent)]
    Make(#[from] wakeai_host::MakeError),
    /// The kernel refused.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

pub(crate) fn failed(action: &'static str) -> impl FnOnce(io::Error) -> StationError {
    move |source| StationError::Io { action, source }
}

/// Where a helper comes from.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// This program.
    pub program: &'a Path,
    /// The address of this machine through which ssh came.
    pub ssh: Option<&'a str>,
    /// Whether the program was brought along for this experiment, so that the helper removes it at its end.
    pub brought: bool,
}

impl Origin<'_> {
    /// The arguments that hand it on.
    fn arguments(&self) -> impl Iterator<Item = &str> {
        let ssh = self.ssh.into_iter().flat_map(|address| ["--ssh-address", address]);
        ssh.chain(self.brought.then_some("--brought"))
    }

    /// The directory of the program that was brought along.
    fn brought_directory(&self) -> Option<&Path> {
        self.program.parent().filter(|directory| self.brought && is_brought(directory))
    }
}

/// Whether the directory is one of a program that was brought along, by its name.
fn is_brought(directory: &Path) -> bool {
    let name = directory.file_name().and_then(std::ffi::OsStr::to_str);
    name.is_some_and(|name| name.starts_with(BROUGHT))
}

/// Relays between standard input and output and the helper of the session that the first line names, and starts that
/// helper where it does not run.
///
/// Without root it becomes root first where `sudo -n` allows that.
///
/// # Errors
///
/// [`StationError`]. The reason is also the answer to the first line.
pub fn run(origin: &Origin<'_>) -> Result<(), StationError> {
    if let Some(mut elevated) = elevated(origin) {
        // The program takes this one's place, with its standard input and output.
        let error = std::os::unix::process::CommandExt::exec(&mut elevated);
        return Err(failed("become root by sudo")(error));
    }
    let mut input = BufReader::new(io::stdin().lock());
    let mut first = String::new();
    (&mut input).take(LONGEST_HELLO).read_line(&mut first).map_err(failed("read a line"))?;
    let question: Question = serde_json::from_str(&first).map_err(|_| StationError::Hello)?;
    let Ask::Hello { session, .. } = &question.ask else { return Err(StationError::Hello) };
    if !is_session(session) {
        return Err(StationError::Hello);
    }
    let stream = match helper(origin, session) {
        Ok(stream) => stream,
        Err(error) => {
            if !geteuid().is_root() {
                unprivileged::leave();
            }
            let answer = Answer::Refused(error.to_string());
            let reply = Reply { id: question.id, answer };
            let line = serde_json::to_string(&reply).expect("strings and numbers");
            let _ = writeln!(io::stdout(), "{line}");
            return Err(error);
        }
    };
    relay(input, &first, stream).map_err(failed("relay"))
}

/// The command that runs this program as root; `None` where it is root already, and where that is not allowed.
fn elevated(origin: &Origin<'_>) -> Option<Command> {
    if geteuid().is_root() {
        return None;
    }
    let allows = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let mut command = if allows("sudo", &["-n", "true"]) {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "--"]);
        sudo
    } else if Path::new("/system/bin/app_process").exists() && allows("su", &["0", "true"]) {
        let mut su = Command::new("su"); // of Android
        su.arg("0");
        su
    } else {
        return None;
    };
    command.arg(origin.program).arg("field-station").args(origin.arguments());
    Some(command)
}

/// Whether the text can be the name of a session, and so a part of a file's name.
pub(crate) fn is_session(text: &str) -> bool {
    (8..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The directory of a helper's socket.
pub(crate) fn directory() -> io::Result<PathBuf> {
    if geteuid().is_root() {
        return Ok(wakeai_host::state_directory().map(|()| wakeai_host::state().to_owned())?);
    }
    unprivileged::directory()
}

/// The path of the socket of a session's helper in this network namespace.
pub(crate) fn socket_path(session: &str) -> io::Result<PathBuf> {
    let netns = NetnsId::current().map_or(0, |id| id.0);
    Ok(directory()?.join(format!("field-{netns}-{session}.sock")))
}

/// A connection to the helper of the session, which is started where it does not run.
fn helper(origin: &Origin<'_>, session: &str) -> Result<UnixStream, StationError> {
    let path = socket_path(session).map_err(failed("find the directory of the helper"))?;
    if let Ok(stream) = UnixStream::connect(&path) {
        return Ok(stream);
    }
    let mut command = Command::new(origin.program);
    command.args(["field-station", "--serve", session]).args(origin.arguments()).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed("start the helper"))?;
    let said = first_line(&mut child)?;
    if said.trim_end() != daemon::READY {
        let said = if said.trim().is_empty() { "it said nothing" } else { said.trim() };
        return Err(StationError::Start(said.to_owned()));
    }
    UnixStream::connect(&path).map_err(failed("reach the helper"))
}

/// What the helper says when it has started, or why it has not.
fn first_line(child: &mut Child) -> Result<String, StationError> {
    let mut output = child.stdout.take().expect("it is piped");
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(&mut output).read_line(&mut line);
        let _ = sender.send(line);
    });
    let give_up = Instant::now() + START_PATIENCE;
    receiver
        .recv_timeout(give_up.saturating_duration_since(Instant::now()))
        .map_err(|_| StationError::Start("it did not answer in time".to_owned()))
}

/// Copies the first line and all that follows to the helper, and what it says to standard output, until either ends.
fn relay(mut input: impl Read, first: &str, stream: UnixStream) -> io::Result<()> {
    let mut to = stream.try_clone()?;
    to.write_all(first.as_bytes())?;
    let answers = std::thread::spawn(move || {
        let mut from = stream;
        let mut output = io::stdout();
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if output.write_all(&buffer[..count]).and_then(|()| output.flush()).is_err() {
                break;
            }
        }
        // The helper is gone, or nobody reads: a read of standard input may wait for ever.
        std::process::exit(0);
    });
    io::copy(&mut input, &mut to)?;
    let _ = to.shutdown(Shutdown::Write);
    let _ = answers.join();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_directory_of_a_program_that_was_brought_along_is_removed() {
        let directory = |program: &str, brought| {
            let origin = Origin { program: Path::new(program), ssh: None, brought };
            origin.brought_directory().map(Path::to_owned)
        };
        let own = "/tmp/wakeai-field.a1B2c3/wakeai";
        assert_eq!(directory(own, true), Some(PathBuf::from("/tmp/wakeai-field.a1B2c3")));
        assert_eq!(directory(own, false), None);
        assert_eq!(directory("/usr/bin/wakeai", true), None);
    }

    #[test]
    fn a_session_is_hexadecimal_and_so_no_path() {
        assert!(is_session("0123456789abcdef"));
        for wrong in ["", "0123", "../../etc/passwd", "0123456789abcdeg", &"a".repeat(65)] {
            assert!(!is_session(wrong), "{wrong}");
        }
    }
}
