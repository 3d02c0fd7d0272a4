//! The controlling command's side of one helper: the connection over ssh, adb or a local process, questions and answers,
//! and the difference of the clocks.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};

use wakeai_host::since_boot;
use wakeai_units::{Duration, Instant};

use crate::machines::{Machine, Place};
use crate::protocol::{Answer, Ask, Facts, PROTOCOL, Question, Reply, Welcome};

/// The time between two attempts to reach a machine again.
const AGAIN: Duration = Duration::from_secs(2);
/// The longest wait for a machine's first answer; ssh itself gives up after 10 s.
pub(crate) const CONNECT_PATIENCE: Duration = Duration::from_secs(30);
/// The longest silence on a connection after a question, before it is given up and made anew. A helper that prepares or ends
/// a run has its own patience.
const SILENCE: Duration = Duration::from_secs(10);
/// The slice in which a wait looks whether the user has interrupted the command.
const SLICE: std::time::Duration = std::time::Duration::from_millis(50);
/// The bytes of ssh's messages that are kept.
const TAIL: usize = 2_000;
/// The longest wait for the last of these messages when a connection has ended. A program that ssh has left behind (the
/// master of shared connections) may hold their pipe open.
const LAST_WORDS: std::time::Duration = std::time::Duration::from_secs(1);

/// A helper could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HelperError {
    /// The machine cannot be reached, and why.
    #[error("{0}")]
    Unreachable(String),
    /// The helper says why not.
    #[error("{0}")]
    Refused(String),
    /// The machine has booted since the session began.
    #[error("it has been started again (it has booted)")]
    Rebooted,
    /// The user has interrupted the command.
    #[error("interrupted")]
    Interrupted,
}

/// The clocks of a machine and of this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockOffset {
    /// What is added to this machine's time since boot to have the other's, nanoseconds.
    pub(crate) nanos: i128,
    /// The most by which that may be wrong: half of the fastest exchange's time.
    pub(crate) error: Duration,
}

impl ClockOffset {
    /// The other machine's clock at this machine's time `at`.
    pub(crate) fn there(&self, at: Instant) -> Instant {
        let nanos = i128::from(at.as_nanos()) + self.nanos;
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(0))
    }
}

/// The connection to a helper.
struct Connection {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    /// What the program says beside the answers.
    said: Said,
    /// When bytes last arrived, by this machine's clock since boot, nanoseconds.
    heard: Arc<AtomicU64>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A relay ends with its connection; the helper goes on.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One machine and its helper.
pub(crate) struct Helper<'a> {
    pub(crate) machine: &'a Machine,
    session: &'a str,
    program: &'a Path,
    grace: Duration,
    /// The path of the program that was brought along, and its directory.
    brought: Option<String>,
    connection: Option<Connection>,
    next: u64,
    pub(crate) welcome: Option<Welcome>,
    pub(crate) facts: Option<Facts>,
    pub(crate) offset: ClockOffset,
    /// Bytes that went over the connection, both ways.
    pub(crate) carried: u64,
}

impl<'a> Helper<'a> {
    /// The helper of `machine`. `program` is this program, for the local machine.
    pub(crate) fn new(
        machine: &'a Machine,
        session: &'a str,
        program: &'a Path,
        grace: Duration,
    ) -> Self {
        Self {
            machine,
            session,
            program,
            grace,
            brought: None,
            connection: None,
            next: 0,
            welcome: None,
            facts: None,
            offset: ClockOffset::default(),
            carried: 0,
        }
    }

    /// Uses this program on the machine, which was brought along.
    pub(crate) fn use_program(&mut self, path: String) {
        self.brought = Some(path);
    }

    /// The path of the program that was brought along.
    pub(crate) fn brought(&self) -> Option<&str> {
        self.brought.as_deref()
    }

    /// The name of the machine for messages: its station, and where it is.
    pub(crate) fn name(&self) -> String {
        format!("{} ({})", self.machine.station, self.machine.place)
    }

    /// The time that the helper waits for the next question, before it undoes everything.
    pub(crate) fn grace(&self) -> Duration {
        self.grace
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Keeps the helper from its deadline for another grace period. It gives up when `enough` says so, and leaves a lost
    /// connection to the next question.
    pub(crate) fn keep(&mut self, enough: &dyn Fn() -> bool) {
        if self.is_connected() {
            let line = self.line(Ask::Ping);
            let _ = self.exchange(&line, (SILENCE, SILENCE), enough);
        }
    }

    fn command(&self) -> Command {
        let program = self.brought.as_deref().unwrap_or(&self.machine.program);
        // A device without /run has its state elsewhere; docs/guides/android.md.
        let brought = if self.brought.is_some() { " --brought" } else { "" };
        let there = format!(
            "[ -d /run ] || export WAKEAI_RUN=/dev/wakeai; exec {} field-station{brought}",
            quoted(program)
        );
        match &self.machine.place {
            Place::Local => {
                let mut command = Command::new(self.program);
                command.arg("field-station");
                command
            }
            place => remote(place, &there),
        }
    }

    /// Connects, where it is not connected.
    fn connect(&mut self, interrupted: &dyn Fn() -> bool) -> Result<(), HelperError> {
        if self.connection.is_some() {
            return Ok(());
        }
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C at the terminal reaches this command alone, which then ends its helpers in order.
        command.process_group(0);
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().map_err(|error| {
            HelperError::Unreachable(format!("{name} cannot be started: {error}"))
        })?;
        let input = child.stdin.take().expect("it is piped");
        let heard = Arc::new(AtomicU64::new(0));
        let lines = lines(child.stdout.take().expect("it is piped"), Arc::clone(&heard));
        let said = Said::of(child.stderr.take().expect("it is piped"));
        self.connection = Some(Connection { child, input, lines, said, heard });
        let hello = Ask::Hello {
            protocol: PROTOCOL,
            session: self.session.to_owned(),
            grace_ns: self.grace.as_nanos(),
        };
        let line = self.line(hello);
        match self.exchange(&line, (CONNECT_PATIENCE, CONNECT_PATIENCE), interrupted) {
            Ok(Answer::Welcome(welcome)) => {
                let before = self.welcome.replace(welcome.clone());
                if welcome.version != wakeai_world::VERSION {
                    return Err(HelperError::Refused(format!(
                        "it has wakeai {}, and this is {}; install the same version, or use --programs",
                        welcome.version,
                        wakeai_world::VERSION
                    )));
                }
                match before {
                    Some(before) if before.boot != welcome.boot => Err(HelperError::Rebooted),
                    _ => Ok(()),
                }
            }
            Ok(_) => Err(HelperError::Refused("it did not answer as a helper does".to_owned())),
            Err(error) => Err(error),
        }
    }

    fn line(&mut self, ask: Ask) -> (u64, String) {
        self.next += 1;
        let question = Question { id: self.next, ask };
        let line = serde_json::to_string(&question).expect("strings and numbers");
        (self.next, line + "\n")
    }

    /// Sends a line, and waits for its answer.
    fn exchange(
        &mut self,
        (id, line): &(u64, String),
        (patience, silence): (Duration, Duration),
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Answer, HelperError> {
        let asked = since_boot();
        let give_up = asked + patience;
        if interrupted() {
            return Err(HelperError::Interrupted);
        }
        let Some(connection) = &mut self.connection else {
            return Err(HelperError::Unreachable("it is not connected".to_owned()));
        };
        let written =
            connection.input.write_all(line.as_bytes()).and_then(|()| connection.input.flush());
        self.carried += line.len() as u64;
        if written.is_err() {
            return Err(self.lost("the connection has ended"));
        }
        loop {
            if interrupted() {
                return Err(HelperError::Interrupted);
            }
            let Some(connection) = &mut self.connection else {
                return Err(self.lost("it has ended"));
            };
            match connection.lines.recv_timeout(SLICE) {
                Ok(line) => {
                    self.carried += line.len() as u64;
                    match serde_json::from_str::<Reply>(&line) {
                        Ok(Reply { id: found, answer: Answer::Refused(reason) })
                            if found == *id =>
                        {
                            return Err(HelperError::Refused(reason));
                        }
                        Ok(reply) if reply.id == *id => return Ok(reply.answer),
                        Ok(_) => {} // the answer to a question that was given up
                        Err(_) => return Err(self.lost("it did not answer as a helper does")),
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.lost("the connection has ended"));
                }
                Err(RecvTimeoutError::Timeout) => {
                    // A long answer may take its time, as long as it goes on.
                    let heard = Instant::from_nanos(connection.heard.load(Ordering::Relaxed));
                    let silent = since_boot().saturating_since(heard.max(asked));
                    if silent >= silence || (since_boot() >= give_up && heard < asked) {
                        let silent = silent.as_secs_f64();
                        return Err(self.lost(&format!("it did not answer for {silent:.0} s")));
                    }
                }
            }
        }
    }

    /// Gives the connection up.
    fn lost(&mut self, why: &str) -> HelperError {
        let last = self.connection.take().and_then(|connection| connection.said.last_line());
        HelperError::Unreachable(match last {
            Some(line) => format!("{why}: {line}"),
            None => why.to_owned(),
        })
    }

    /// Asks the helper. A lost connection is made again, for as long as `patience`, and the question repeated.
    pub(crate) fn ask(
        &mut self,
        ask: Ask,
        patience: Duration,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Answer, HelperError> {
        let silence = match ask {
            Ask::Prepare(_) | Ask::Stop | Ask::Forget | Ask::End => patience,
            _ => SILENCE.min(patience),
        };
        let line = self.line(ask);
        let give_up = since_boot() + patience;
        loop {
            let result = self
                .connect(interrupted)
                .and_then(|()| self.exchange(&line, (patience, silence), interrupted));
            match result {
                Err(HelperError::Unreachable(_)) if since_boot() + AGAIN < give_up => {
                    pause(AGAIN, interrupted)?;
                }
                other => return other,
            }
        }
    }

    /// Measures the difference of the clocks by `count` exchanges; the fastest counts.
    pub(crate) fn measure_clock(
        &mut self,
        count: u32,
        patience: Duration,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<ClockOffset, HelperError> {
        let mut best: Option<ClockOffset> = None;
        for _ in 0..count {
            let before = since_boot();
            let answer = self.ask(Ask::Ping, patience, interrupted)?;
            let after = since_boot();
            let Answer::Pong { boot_ns } = answer else {
                return Err(HelperError::Refused("it did not tell its time".to_owned()));
            };
            let error = Duration::from_nanos(after.saturating_since(before).as_nanos() / 2);
            let middle = before + error;
            let nanos = i128::from(boot_ns) - i128::from(middle.as_nanos());
            if best.is_none_or(|best| error < best.error) {
                best = Some(ClockOffset { nanos, error });
            }
        }
        Ok(best.unwrap_or_default())
    }

    /// Tells the helper to undo everything and to end, where it can be reached at once.
    pub(crate) fn end(&mut self) {
        if self.connection.is_none() {
            return;
        }
        let line = self.line(Ask::End);
        let patience = Duration::from_secs(2);
        let _ = self.exchange(&line, (patience, patience), &|| false);
        // The helper closes the connection when it has undone everything.
        let give_up = since_boot() + Duration::from_secs(20);
        while let Some(connection) = &mut self.connection
            && since_boot() < give_up
        {
            match connection.lines.recv_timeout(SLICE) {
                Err(RecvTimeoutError::Disconnected) => break,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
        self.connection = None;
    }

    /// Gives the connection up, as a network that fails does; for tests of what follows.
    #[cfg(test)]
    pub(crate) fn cut(&mut self) {
        self.connection = None;
    }
}

/// Sleeps, and returns early where the user has interrupted the command.
pub(crate) fn pause(span: Duration, interrupted: &dyn Fn() -> bool) -> Result<(), HelperError> {
    let end = since_boot() + span;
    while since_boot() < end {
        if interrupted() {
            return Err(HelperError::Interrupted);
        }
        let left = end.saturating_since(since_boot());
        std::thread::sleep(std::time::Duration::from(left).min(SLICE));
    }
    Ok(())
}

/// A command that has the shell of a remote machine run `script`.
pub(crate) fn remote(place: &Place, script: &str) -> Command {
    match place {
        Place::Local => {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        }
        Place::Ssh(name) => {
            let mut command = Command::new("ssh");
            command.args(["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]);
            // A dead connection is noticed within a minute, for less than 50 bit/s.
            command.args(["-o", "ServerAliveInterval=20", "-o", "ServerAliveCountMax=3"]);
            command.arg("--").arg(name).arg(script);
            command
        }
        Place::Adb(serial) => {
            let mut command = Command::new("adb");
            command.args(["-s", serial, "shell", "-T", script]);
            command
        }
    }
}

/// The text as one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The lines that the helper writes. The channel ends with them.
fn lines(output: impl Read + Send + 'static, heard: Arc<AtomicU64>) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::with_capacity(256 * 1024, Heard { output, heard });
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(1..) if line.ends_with('\n') && sender.send(line).is_ok() => {}
                _ => return,
            }
        }
    });
    receiver
}

/// Notes when bytes arrive.
struct Heard<R> {
    output: R,
    heard: Arc<AtomicU64>,
}

impl<R: Read> Read for Heard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.output.read(buffer)?;
        self.heard.store(since_boot().as_nanos(), Ordering::Relaxed);
        Ok(count)
    }
}

/// What a program says on its standard error.
struct Said {
    /// The end of it, so far.
    tail: Arc<Mutex<String>>,
    /// This channel ends when the program will say no more.
    end: Receiver<()>,
}

impl Said {
    fn of(mut output: impl Read + Send + 'static) -> Self {
        let tail = Arc::<Mutex<String>>::default();
        let (speaks, end) = channel();
        let written = Arc::clone(&tail);
        std::thread::spawn(move || {
            let _speaks = speaks;
            let mut buffer = [0; 1_024];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                let mut said = written.lock().unwrap_or_else(PoisonError::into_inner);
                said.push_str(&String::from_utf8_lossy(&buffer[..count]));
                if said.len() > 2 * TAIL {
                    let from = said.ceil_char_boundary(said.len() - TAIL);
                    *said = said.split_off(from);
                }
            }
        });
        Self { tail, end }
    }

    /// The last line. A program that ends says why a moment after it has closed the connection.
    fn last_line(&self) -> Option<String> {
        let _ = self.end.recv_timeout(LAST_WORDS);
        let said = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        last.map(|line| line.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_shell_is_one_word_whatever_it_has() {
        for text in ["/usr/bin/wakeai", "a b", "it's", "$(reboot)", "\"`\\"] {
            let output =
                remote(&Place::Local, &format!("printf %s {}", quoted(text))).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }

    #[test]
    fn the_clock_of_the_other_machine_is_found_back() {
        let offset = ClockOffset { nanos: -3_600_000_000_000, error: Duration::ZERO };
        let here = Instant::from_nanos(4_000_000_000_000);
        assert_eq!(offset.there(here), Instant::from_nanos(400_000_000_000));
        assert_eq!(offset.there(Instant::ZERO), Instant::ZERO, "before that machine has booted");
    }

    #[test]
    fn an_unreachable_machine_says_what_its_program_said() {
        let machine = Machine::local();
        let mut helper =
            Helper::new(&machine, "0123456789abcdef", Path::new("/bin/false"), Duration::ZERO);
        let error = helper.ask(Ask::Ping, Duration::ZERO, &|| false).unwrap_err();
        assert_eq!(error, HelperError::Unreachable("the connection has ended".to_owned()));
        let mut helper =
            Helper::new(&machine, "0123456789abcdef", Path::new("/bin/ls"), Duration::ZERO);
        let HelperError::Unreachable(said) =
            helper.ask(Ask::Ping, Duration::ZERO, &|| false).unwrap_err()
        else {
            panic!("it is not reachable")
        };
        assert!(said.contains("field-station"), "what ls says: {said}");
        helper.cut();
        assert_eq!(helper.ask(Ask::Ping, Duration::ZERO, &|| true), Err(HelperError::Interrupted));
    }
}
