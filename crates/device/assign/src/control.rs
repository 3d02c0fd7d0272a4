//! Lists, changes and ends the assignments of other processes, over one socket per assignment.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use wakeai_api::json_line::ExchangeError;
use wakeai_api::{Drift, json_line};
use wakeai_host::{Holder, LOOK_EVERY, Lease, MakeError, Role, Watch, poll_for, since_boot};
use wakeai_units::Rate;

use crate::AssignError;

/// The limit of each read and write on a control socket. A process answers at once, unless it is
/// stopped.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest wait for a process to end after SIGTERM. Restoring the algorithms of thousands of
/// connections takes a second. Unloading algorithms takes a few seconds.
const END_PATIENCE: Duration = Duration::from_secs(30);
/// The shortest time between two looks at what other programs have changed.
const PAUSE: Duration = Duration::from_millis(100);
/// The interval at which an assignment to a cgroup checks whether its cgroup was removed and made
/// again under the same name.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(100);

/// A request to an assignment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Asks for its state.
    Show,
    /// Sets the target rate of the assignment's connections, in bits per second.
    SetRate(u64),
}

/// The state after the request, or why it was refused.
pub(crate) type Answer = Result<InForce, String>;

/// An assignment that is in force, as `--json` shows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InForce {
    /// The process of the assignment.
    pub id: u32,
    /// The algorithm's name.
    pub algorithm: String,
    /// `namespace`, `route`, `cgroup` or `connections`.
    pub scope: String,
    /// The name of the object within that scope.
    pub name: String,
    /// The inode of the network namespace of the process.
    pub netns: u64,
    /// The only network and port to which the connections may lead; `None` where there is no such
    /// limit.
    pub to: Option<String>,
    /// The target rate of each connection.
    pub rate_mbps: Option<f64>,
    /// The number of connections that the assignment covers now.
    pub connections: u32,
    /// The time for which the assignment has been in force.
    pub running_s: f64,
    /// The time until the assignment ends by itself; `None` where it has no end.
    pub left_s: Option<f64>,
    /// What other programs have changed of what the assignment holds on the host, the last first.
    #[serde(default)]
    pub drifts: Vec<Drift>,
}

impl InForce {
    /// The connections that the assignment covers, in words.
    pub fn words(&self) -> String {
        let to = self.to.as_ref().map_or(String::new(), |to| format!(" to {to}"));
        match self.scope.as_str() {
            "namespace" => format!("new connections of network namespace {}", self.name),
            "route" => format!("new connections over the route to {}", self.name),
            "cgroup" => format!("new connections of {}{to}", self.name),
            _ => format!("{} connections{to}", self.connections),
        }
    }
}

fn socket_path(id: u32) -> PathBuf {
    wakeai_host::state().join(format!("use-{id}.control"))
}

/// The socket at which an assignment answers.
pub(crate) struct Listener(UnixListener);

impl Listener {
    /// Listens at the path that other processes expect. The lease (the record of changes) removes
    /// the socket at the end.
    pub(crate) fn bind(lease: &Lease) -> Result<Self, MakeError> {
        lease.bind_socket(&socket_path(std::process::id()), 0o600).map(Self)
    }

    /// Answers all waiting clients. A client that misbehaves is dropped.
    pub(crate) fn serve(&self, mut answer: impl FnMut(Request) -> Answer) {
        let mut serve = |client: UnixStream| {
            client.set_nonblocking(false)?;
            client.set_read_timeout(Some(PATIENCE))?;
            client.set_write_timeout(Some(PATIENCE))?;
            let request = json_line::read(&client)?;
            if has_gone(&client) {
                return Ok(()); // it was not answered in time, and has said that nothing changes
            }
            json_line::write(&client, &answer(request))
        };
        while let Ok((client, _)) = self.0.accept() {
            if let Err(error) = serve(client) {
                tracing::debug!(%error, "client dropped");
            }
        }
    }

    /// Waits. Returns `true` when `shutdown` is readable or the deadline has come. Returns `false`
    /// when a client waits, when the kernel has reported a change to `watch`, and at the latest when a
    /// look is due, or, where the assignment `follows` a cgroup, after an interval.
    pub(crate) fn wait(
        &self,
        shutdown: BorrowedFd<'_>,
        deadline: Option<wakeai_units::Instant>,
        follows: bool,
        watch: &Watch,
    ) -> io::Result<bool> {
        let left = deadline.map(|end| Duration::from(end.saturating_since(since_boot())));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(true);
        }
        // After a report the kernel may make many more, so a pause is between two looks.
        let asked = || {
            [
                PollFd::new(shutdown, PollFlags::POLLIN),
                PollFd::new(self.0.as_fd(), PollFlags::POLLIN),
            ]
        };
        let mut ready = asked();
        let pause = if follows { FOLLOW_INTERVAL } else { PAUSE };
        if !poll_for(&mut ready, left.unwrap_or(pause).min(pause))? && !follows {
            let mut all = asked().to_vec();
            all.extend(watch.sockets().map(|socket| PollFd::new(socket, PollFlags::POLLIN)));
            poll_for(&mut all, left.unwrap_or(LOOK_EVERY).min(LOOK_EVERY))?;
            ready = [all[0].clone(), all[1].clone()];
        }
        Ok(ready[0].any().unwrap_or(false))
    }
}

/// Whether the client has shut the connection down, and reads no answer.
fn has_gone(client: &UnixStream) -> bool {
    let mut ends = [PollFd::new(client.as_fd(), PollFlags::empty())];
    poll(&mut ends, PollTimeout::ZERO).is_ok()
        && ends[0].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP))
}

/// The assignments of this machine, the oldest first. An assignment that does not answer gives an
/// error text.
///
/// # Errors
/// Fails where the leases (the records of changes) cannot be read.
pub fn in_force() -> Result<Vec<Answer>, AssignError> {
    let ask = |holder: &Holder| match exchange(id(holder), Request::Show) {
        Ok(answer) => answer.map_err(|reason| format!("{}: {reason}", holder.process)),
        Err(error) => Err(format!("{} does not answer: {error}", holder.process)),
    };
    Ok(holders()?.iter().map(ask).collect())
}

/// Sets another target rate for the connections of the assignment `wanted`, and for its new
/// connections.
///
/// # Errors
/// Fails where there is no such assignment, where it has no target rate, or where it does not
/// answer.
pub fn set_rate(wanted: u32, rate: Rate) -> Result<InForce, AssignError> {
    one(wanted)?;
    let answer = exchange(wanted, Request::SetRate(rate.bits_per_second()));
    let silent = |error| AssignError::Unresponsive(format!("{wanted} does not answer: {error}"));
    answer.map_err(silent)?.map_err(|reason| AssignError::Usage(format!("{wanted}: {reason}")))
}

/// Ends the assignment `wanted`, or all assignments where it is `None`. Waits until their changes
/// are undone. Returns the number of ended assignments.
///
/// # Errors
/// Fails where there is no such assignment, or where it does not end.
pub fn end(wanted: Option<u32>) -> Result<usize, AssignError> {
    let ending = match wanted {
        None => holders()?,
        Some(id) => vec![one(id)?],
    };
    // The newest assignment ends first, so that each restores the state that it found at its start.
    ending.iter().rev().try_for_each(end_one)?;
    Ok(ending.len())
}

fn end_one(holder: &Holder) -> Result<(), AssignError> {
    let process = holder.process;
    // It is no error where the process has ended meanwhile.
    process
        .signal(Signal::SIGTERM)
        .and_then(|is_there| {
            // A process that is stopped takes a signal only when it goes on.
            if is_there { process.signal(Signal::SIGCONT) } else { Ok(false) }
        })
        .map_err(|error| AssignError::Unresponsive(format!("cannot end {process}: {error}")))?;
    let give_up = Instant::now() + END_PATIENCE;
    while process.is_alive() {
        if Instant::now() > give_up {
            return Err(AssignError::Unresponsive(format!(
                "{process} has not ended within {} s after SIGTERM, and still may; `kill -9 {process}` and `wakeai \
                 sweep` end it at once",
                END_PATIENCE.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The processes with an assignment, the oldest first.
fn holders() -> Result<Vec<Holder>, AssignError> {
    let mut all = wakeai_host::holders()?;
    all.retain(|holder| matches!(holder.role, Role::Use { .. }));
    all.sort_by_key(|holder| (holder.process.start_time, holder.process.pid));
    Ok(all)
}

fn one(wanted: u32) -> Result<Holder, AssignError> {
    holders()?.into_iter().find(|holder| id(holder) == wanted).ok_or_else(|| {
        let problem = format!("found ID {wanted}, expected one that `wakeai use --list` shows");
        AssignError::Usage(problem)
    })
}

fn id(holder: &Holder) -> u32 {
    holder.process.pid.cast_unsigned()
}

fn exchange(id: u32, request: Request) -> Result<Answer, ExchangeError> {
    json_line::exchange(&socket_path(id), &request, PATIENCE)
}
