//! The guest's first program: it makes one run of the lab, sends what it measured, and powers off.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, finit_module, reboot};
use wakeai_lab::{LabError, LabOptions, Lapse};
use wakeai_units::Duration;
use wakeai_world::{Options, Outcome, Progress, RunSink, Task};

use crate::rows;
use crate::task::{self, Order};
use crate::wire::{End, Failed, Measured, Message};

/// The argument with which the guest's kernel starts this program.
pub const COMMAND: &str = "inside-guest";

/// The path of this program in the guest.
pub(crate) const PROGRAM: &str = "/usr/bin/wakeai";
/// The directory of the modules in the guest.
pub(crate) const MODULES: &str = "/modules";

/// The port over which the guest answers.
const PORT: &str = "/dev/vport0p1";
/// The longest wait for the port, which the kernel makes when it has found the device.
const PORT_PATIENCE: StdDuration = StdDuration::from_secs(10);
/// The directory of the agents' files.
const AGENTS: &str = "/agents";
/// The bytes of rows that are sent together.
const BATCH: usize = 32_000;
/// The time between two messages that say how far the run is.
const BETWEEN: Duration = Duration::from_millis(500);

/// The file systems that the lab and its programs use.
const MOUNTS: [(&str, &str); 7] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("tmpfs", "/dev/shm"),
    ("tmpfs", "/run"),
    ("tmpfs", "/tmp"),
    ("cgroup2", "/sys/fs/cgroup"),
];

/// Whether this process is the first of a guest.
fn is_first() -> bool {
    std::process::id() == 1 && std::env::args().nth(1).is_some_and(|argument| argument == COMMAND)
}

/// Does what the first program of a guest has to do, and powers the guest off. In any other process this returns at
/// once.
pub fn inside() {
    if !is_first() {
        return;
    }
    if let Err(error) = serve() {
        // The console is all that is left to tell it.
        let _ = writeln!(io::stderr(), "wakeai in the guest: {error}");
    }
    let _ = reboot(RebootCommand::PowerOff);
}

fn serve() -> io::Result<()> {
    for (kind, place) in MOUNTS {
        fs::create_dir_all(place)?;
        mount(kind, place, kind, MountFlags::empty(), None)
            .map_err(|error| io::Error::other(format!("cannot mount {place}: {error}")))?;
    }
    let order: Order = serde_json::from_slice(&fs::read(task::PATH)?)?;
    for module in &order.modules {
        if let Err(error) = load(module) {
            // It may be built in. Where it is not, the lab says what is missing.
            let _ = writeln!(io::stderr(), "wakeai in the guest: the module {module}: {error}");
        }
    }
    let port = Arc::new(Mutex::new(Port { file: open_port()?, rows: Vec::new() }));
    let run = made(&order, &port)
        .map_err(|error| Failed { message: error.to_string(), status: error.exit_status() });
    let mut port = lock(&port);
    port.flush();
    if order.records {
        port.send_agents_files()?;
    }
    let run = run.map(|(outcome, lapse)| Measured::of(outcome, lapse));
    let end = End { uptime_ns: uptime_ns()?, run };
    Message::End(Box::new(end)).write(&mut port.file)
}

fn made(order: &Order, port: &Arc<Mutex<Port>>) -> Result<(Outcome, Option<Lapse>), LabError> {
    let unreadable = |message: String| LabError::System {
        action: "read the task".to_owned(),
        source: io::Error::other(message),
    };
    let condition = order.resolved().map_err(unreadable)?;
    let [lateness_p99, lateness_max, waits_p99] = order.bounds.map(Duration::from_nanos);
    let options = LabOptions {
        run: Options::default(),
        lateness_p99,
        lateness_max,
        waits_p99,
        wakeai: PROGRAM.into(),
        metrics: None,
        in_guest: true,
    };
    let sink = order.records.then(|| {
        let port = Arc::clone(port);
        RunSink::to(move |row| {
            let mut port = lock(&port);
            rows::add(&row, &mut port.rows);
            if port.rows.len() >= BATCH {
                port.flush();
            }
        })
    });
    let task = Task {
        number: 0,
        name: order.name.clone(),
        condition: &condition,
        place: order.solo.is_none().then_some((0, 0)),
        seed: order.seed,
        facts: order.facts(),
        sink,
    };
    let progress = Sent { port: Arc::clone(port), next: Mutex::new(BETWEEN) };
    wakeai_lab::run_one(&options, task, Some(AGENTS.into()), &progress)
}

/// The port, and the rows that are not sent yet.
struct Port {
    file: File,
    rows: Vec<u8>,
}

impl Port {
    /// Sends the rows. What cannot be sent is lost, and the end of the task with it.
    fn flush(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        if !rows.is_empty() {
            self.send(&Message::Rows(rows));
        }
    }

    fn send(&mut self, message: &Message) {
        let _ = message.write(&mut self.file);
    }

    fn send_agents_files(&mut self) -> io::Result<()> {
        for directory in sorted(Path::new(AGENTS))? {
            for path in sorted(&directory)? {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                self.send(&Message::File(name, fs::read(&path)?));
            }
        }
        Ok(())
    }
}

/// What the lab tells its user, for the user outside.
struct Sent {
    port: Arc<Mutex<Port>>,
    /// The time of the run at which the next message says how far it is.
    next: Mutex<Duration>,
}

impl Progress for Sent {
    fn reached(&self, _run: usize, elapsed: Duration) {
        let mut next = lock(&self.next);
        if elapsed >= *next {
            *next = elapsed.saturating_add(BETWEEN);
            lock(&self.port).send(&Message::Reached(elapsed));
        }
    }

    fn note(&self, text: &str) {
        lock(&self.port).send(&Message::Note(text.to_owned()));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The entries of a directory by name; none where it does not exist.
fn sorted(directory: &Path) -> io::Result<Vec<PathBuf>> {
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let entries: io::Result<Vec<_>> =
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut entries = entries?;
    entries.sort();
    Ok(entries)
}

/// Loads a module, given by its name and its parameters after a space.
fn load(module: &str) -> io::Result<()> {
    let (name, parameters) = module.split_once(' ').unwrap_or((module, ""));
    let file = File::open(Path::new(MODULES).join(format!("{name}.ko")))?;
    Ok(finit_module(&file, &CString::new(parameters)?, 0)?)
}

fn open_port() -> io::Result<File> {
    let began = StdInstant::now();
    loop {
        match fs::OpenOptions::new().write(true).open(PORT) {
            Ok(file) => return Ok(file),
            Err(error) if began.elapsed() > PORT_PATIENCE => {
                return Err(io::Error::new(error.kind(), format!("no port {PORT}: {error}")));
            }
            Err(_) => std::thread::sleep(StdDuration::from_millis(5)),
        }
    }
}

/// The guest's clock since its start (`proc_uptime(5)`).
fn uptime_ns() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/uptime")?;
    let seconds = text.split(' ').next().and_then(|text| text.parse::<f64>().ok());
    let seconds = seconds.ok_or_else(|| io::Error::other("/proc/uptime has no number"))?;
    Ok((seconds * 1e9) as u64)
}
