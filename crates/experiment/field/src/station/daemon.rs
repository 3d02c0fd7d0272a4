//! The helper itself: answers the questions of one connection at a time, watches its run, and undoes everything at the
//! deadline.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use nix::poll::{PollFd, PollFlags};
use nix::unistd::geteuid;
use wakeai_host::{Lease, NetnsId, Role, since_boot};
use wakeai_units::{Duration, Instant};

use super::run::Run;
use super::{
    Origin, StationError, failed, inspect, interface, is_session, socket_path, unprivileged,
};
use crate::protocol::{Answer, Ask, PROTOCOL, Phase, Question, Reply, RunPlan, Welcome};

/// What a helper says on standard output when it listens.
pub(crate) const READY: &str = "ready";
/// The time between two looks at the run while nothing is asked.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);
/// The same without a run.
const IDLE: std::time::Duration = std::time::Duration::from_millis(500);
/// The time that a controlling command has for its first line, and the grace period until it has named one.
const FIRST_GRACE: Duration = Duration::from_secs(60);
/// The longest question.
const LONGEST: usize = 4 << 20;
/// The longest wait for a connection that takes nothing.
const WRITE_PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// The helper of a session. It never ends with a connection: it ends when it is told to, and at its deadline.
struct Daemon {
    program: PathBuf,
    ssh: Option<String>,
    /// The record of this process's changes.
    holds: Holds,
    /// The directory of its files.
    directory: PathBuf,
    grace: Duration,
    /// When it undoes everything, by `CLOCK_BOOTTIME`, which goes on while the machine is suspended.
    deadline: Instant,
    run: Option<Run>,
    reach: inspect::Reach,
    ends: bool,
}

/// What tells the next command what this process has made.
enum Holds {
    /// A lease, with root.
    Lease(Lease),
    /// Its own files without root, where nothing else is changed.
    Files(unprivileged::Files),
}

impl Holds {
    fn lease(&self) -> Option<&Lease> {
        match self {
            Self::Lease(lease) => Some(lease),
            Self::Files(_) => None,
        }
    }
}

/// One connection.
struct Client {
    stream: UnixStream,
    unread: Vec<u8>,
}

/// Serves as the helper of `session` until its deadline. It tells on standard output that it listens, or why it cannot.
///
/// # Errors
///
/// [`StationError`], which it has told, too.
pub fn serve(origin: &Origin<'_>, session: &str) -> Result<(), StationError> {
    let started = start(origin, session);
    let said = match &started {
        Ok(_) => READY.to_owned(),
        Err(error) => error.to_string().replace('\n', " "),
    };
    let mut output = io::stdout();
    let _ = writeln!(output, "{said}").and_then(|()| output.flush());
    let (mut daemon, listener) = started?;
    // The relay that has started the helper ends, and with it the other end of standard output.
    if let Ok(nothing) = File::options().write(true).open("/dev/null") {
        let _ = nix::unistd::dup2_stdout(&nothing);
    }
    // The connection stays until everything is undone: its end tells that.
    let client = daemon.serve(&listener);
    daemon.undo();
    match daemon.holds {
        Holds::Lease(lease) => drop(wakeai_kernel::release(lease)),
        Holds::Files(files) => files.remove(),
    }
    drop(client);
    Ok(())
}

fn start(origin: &Origin<'_>, session: &str) -> Result<(Daemon, UnixListener), StationError> {
    if !is_session(session) {
        return Err(StationError::Hello);
    }
    // A session of its own: the end of that of ssh does not end this process.
    nix::unistd::setsid().map_err(|errno| failed("leave the session of ssh")(errno.into()))?;
    let path = socket_path(session).map_err(failed("find the directory of the helper"))?;
    let directory = path.with_extension("run");
    let netns = NetnsId::current().map_err(failed("find the network namespace"))?;
    let (holds, listener) = if geteuid().is_root() {
        let lease = Lease::take(Role::Field { netns })?;
        let made = lease.create_directory(&directory).and_then(|()| {
            // The helper unloads the algorithms that its agents have registered: these have given up the privilege
            // to unmount the bpffs.
            lease.record(wakeai_kernel::parts())?;
            if let Some(brought) = origin.brought_directory() {
                lease.adopt_directory(brought)?;
            }
            lease.bind_socket(&path, 0o600)
        });
        match made {
            Ok(listener) => (Holds::Lease(lease), listener),
            Err(error) => {
                wakeai_kernel::release(lease);
                return Err(error.into());
            }
        }
    } else {
        let made = unprivileged::Files::make(directory.clone(), path, origin.brought_directory());
        let (files, listener) = made.map_err(failed("make the helper's files"))?;
        (Holds::Files(files), listener)
    };
    let daemon = Daemon {
        program: origin.program.to_owned(),
        ssh: origin.ssh.map(str::to_owned),
        holds,
        directory,
        grace: FIRST_GRACE,
        deadline: since_boot() + FIRST_GRACE,
        run: None,
        reach: inspect::Reach::default(),
        ends: false,
    };
    Ok((daemon, listener))
}

impl Daemon {
    /// Serves until it is told to end, or its deadline. Returns the last connection.
    fn serve(&mut self, listener: &UnixListener) -> Option<Client> {
        let mut client: Option<Client> = None;
        while !self.ends && since_boot() < self.deadline {
            if let Some(run) = &mut self.run
                && run.look(self.holds.lease())
            {
                // The time for fetching begins when everything has been collected.
                self.deadline = self.deadline.max(since_boot() + self.grace);
            }
            let longest = match self.run.as_ref().map(Run::phase) {
                Some(Phase::Running) => LOOK,
                _ => IDLE,
            };
            let mut ready = vec![PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
            ready.extend(
                client.as_ref().map(|one| PollFd::new(one.stream.as_fd(), PollFlags::POLLIN)),
            );
            if !wakeai_host::poll_for(&mut ready, longest).unwrap_or(false) {
                continue;
            }
            if let Ok((stream, _)) = listener.accept()
                && stream.set_nonblocking(true).is_ok()
            {
                // The newer connection counts: the other one is that of a lost one.
                client = Some(Client { stream, unread: Vec::new() });
            }
            if let Some(mut one) = client.take() {
                client = self.answer_all(&mut one).is_ok().then_some(one);
            }
        }
        client
    }

    /// Answers all questions that have arrived. An error means that the connection has ended.
    fn answer_all(&mut self, client: &mut Client) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match client.stream.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => client.unread.extend(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if client.unread.len() > LONGEST {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        while let Some(end) = client.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = client.unread.drain(..=end).collect();
            let question: Question = serde_json::from_slice(&line)?;
            let answer = self.answer(question.ask);
            self.deadline = self.deadline.max(since_boot() + self.grace);
            let mut line = serde_json::to_vec(&Reply { id: question.id, answer })?;
            line.push(b'\n');
            client.stream.set_nonblocking(false)?;
            client.stream.set_write_timeout(Some(WRITE_PATIENCE))?;
            client.stream.write_all(&line)?;
            client.stream.set_nonblocking(true)?;
        }
        Ok(())
    }

    fn answer(&mut self, ask: Ask) -> Answer {
        match ask {
            Ask::Hello { protocol, .. } if protocol != PROTOCOL => Answer::Refused(format!(
                "this machine has wakeai {}, whose messages have version {PROTOCOL}, not {protocol}; install the same \
                 version on all machines, or use --programs",
                wakeai_world::VERSION
            )),
            Ask::Hello { grace_ns, .. } => {
                self.grace = Duration::from_nanos(grace_ns);
                self.deadline = since_boot() + self.grace;
                if let Some(end) = self.run.as_ref().and_then(Run::end) {
                    self.deadline = self.deadline.max(end + self.grace);
                }
                Answer::Welcome(welcome())
            }
            Ask::Ping => Answer::Pong { boot_ns: since_boot().as_nanos() },
            Ask::Inspect(ask) => Answer::Facts(Box::new(inspect::facts(&ask, self.ssh.as_deref()))),
            Ask::Listen { port, token } => or_refused(self.reach.listen(port, &token)),
            Ask::Reach { way, to, token } => match inspect::reach(&way, to, &token) {
                Ok(took) => Answer::Reached { took_ns: took.as_nanos() },
                Err(error) => Answer::Refused(error.to_string()),
            },
            Ask::Shout { way, port, token, own, to } => {
                match inspect::shout(&interface::resolved(way), port, &token, (own, to)) {
                    Ok(from) => Answer::Heard { from },
                    Err(error) => Answer::Refused(error.to_string()),
                }
            }
            of_run => self.answer_of_run(of_run),
        }
    }

    /// Answers what concerns the run.
    fn answer_of_run(&mut self, ask: Ask) -> Answer {
        match ask {
            Ask::Prepare(plan) => self.prepare(&plan),
            Ask::Go { origin_ns } => match &mut self.run {
                Some(run) => {
                    run.go(Instant::from_nanos(origin_ns));
                    if let Some(end) = run.end() {
                        self.deadline = self.deadline.max(end + self.grace);
                    }
                    Answer::Done
                }
                None => nothing_prepared(),
            },
            Ask::Status => {
                let phase = self.run.as_ref().map_or(Phase::Idle, Run::phase);
                let complete = self.run.as_ref().map(Run::complete).unwrap_or_default();
                Answer::Status { phase, complete }
            }
            Ask::Stop => match &mut self.run {
                Some(run) => {
                    run.stop(self.holds.lease());
                    Answer::Done
                }
                None => nothing_prepared(),
            },
            Ask::Fetch => match self.run.as_mut().and_then(|run| run.fetch(self.holds.lease())) {
                Some(data) => Answer::Data(Box::new(data.clone())),
                None => Answer::Refused("this machine has no data of the run".to_owned()),
            },
            Ask::Forget => {
                self.undo();
                Answer::Done
            }
            Ask::End => {
                self.ends = true;
                Answer::Done
            }
            _ => Answer::Refused("this is not asked of a run".to_owned()),
        }
    }

    /// Makes a run ready, after the one before was undone.
    fn prepare(&mut self, plan: &RunPlan) -> Answer {
        if self.run.as_ref().is_some_and(|run| run.name() == plan.run) {
            return Answer::Done; // asked again, after the connection was lost
        }
        self.undo();
        let prepared =
            Run::prepare(plan.clone(), &self.program, &self.directory, self.holds.lease());
        match prepared {
            Ok(run) => {
                self.run = Some(run);
                Answer::Done
            }
            Err(reason) => Answer::Refused(reason),
        }
    }

    /// Undoes the run.
    fn undo(&mut self) {
        if let Some(run) = self.run.take() {
            run.undo(self.holds.lease());
        }
    }
}

fn nothing_prepared() -> Answer {
    Answer::Refused("this machine has no run: it may have been started again meanwhile".to_owned())
}

fn or_refused(result: io::Result<()>) -> Answer {
    result.map_or_else(|error| Answer::Refused(error.to_string()), |()| Answer::Done)
}

fn welcome() -> Welcome {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Welcome {
        version: wakeai_world::VERSION.to_owned(),
        boot: boot.trim().to_owned(),
        pid: std::process::id(),
        root: geteuid().is_root(),
    }
}
