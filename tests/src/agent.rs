//! A real agent in a station's namespace.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;
use wakeai_api::{Body, Request};

use crate::bss::{Bss, WIFI};
use crate::{program, wait_for};

/// The access point (BSSID) of agents whose test names no other one.
pub const BSSID: &str = "02:00:5e:10:00:01";

/// The key and the configurations of a fleet.
pub struct Fleet {
    directory: TempDir,
}

impl Fleet {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        wakeai_agent::key::GroupKeys::generate(&directory.path().join("group.key")).unwrap();
        Self { directory }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A copy of the program that every user may run.
    pub fn program(&self) -> PathBuf {
        let program = crate::program_in(self.directory.path());
        for path in [program.parent().unwrap(), &program] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        program
    }

    /// Writes the configuration of a station; `more` may contain tables.
    pub fn configure(&self, station: u64, bssid: &str, more: &str) -> PathBuf {
        let path = self.path(&format!("{station}.toml"));
        let key = self.path("group.key");
        let text = format!(
            "interface = {WIFI:?}\nkey_file = \"{}\"\nstation = {station}\nbssid = {bssid:?}\n\
             link_rate = \"54Mbit/s\"\n{more}",
            key.display()
        );
        fs::write(&path, text).unwrap();
        path
    }

    /// Starts the agent of a station and waits until it reports that it is ready.
    pub fn start(&self, bss: &Bss, name: &str, station: u64, more: &str) -> Agent {
        self.start_at(bss, name, station, BSSID, more)
    }

    /// As [`Self::start`], with a command that runs the program.
    pub fn start_by(
        &self,
        command: Command,
        bss: &Bss,
        name: &str,
        station: u64,
        more: &str,
    ) -> Agent {
        let config = self.configure(station, BSSID, more);
        self.start_with(command, &config, bss, name, station)
    }

    pub fn start_at(&self, bss: &Bss, name: &str, station: u64, bssid: &str, more: &str) -> Agent {
        let config = self.configure(station, bssid, more);
        self.start_with(in_namespace(bss, name), &config, bss, name, station)
    }

    /// Starts the agent with further options.
    pub fn start_as(&self, bss: &Bss, name: &str, station: u64, options: &[&str]) -> Agent {
        let mut command = in_namespace(bss, name);
        command.arg("agent").args(options);
        let config = self.configure(station, BSSID, "");
        self.start_command(command, &config, bss, name, station)
    }

    fn start_with(
        &self,
        mut command: Command,
        config: &Path,
        bss: &Bss,
        name: &str,
        station: u64,
    ) -> Agent {
        command.arg("agent");
        self.start_command(command, config, bss, name, station)
    }

    fn start_command(
        &self,
        mut command: Command,
        config: &Path,
        bss: &Bss,
        name: &str,
        station: u64,
    ) -> Agent {
        let notify = self.path(&format!("{station}.notify"));
        let _ = fs::remove_file(&notify);
        let ready = UnixDatagram::bind(&notify).unwrap();
        ready.set_nonblocking(true).unwrap();
        // The permissions are those of systemd's socket, so that an agent of another user can notify, too.
        for (path, mode) in [(self.directory.path(), 0o711), (&notify, 0o666)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let log = self.path(&format!("{station}.log"));
        let netns = bss.namespace(name).id().0;
        let child = command
            .arg("--config")
            .arg(config)
            .env("NOTIFY_SOCKET", &notify)
            .stderr(File::options().create(true).append(true).open(&log).unwrap())
            .spawn()
            .unwrap();
        let socket = PathBuf::from(format!("/run/wakeai/agent-{netns}.sock"));
        let log = File::open(log).unwrap();
        let mut agent = Agent { child, socket, log, ready };
        wait_for("the agent is ready", || {
            assert_eq!(agent.child.try_wait().unwrap(), None, "it ended: {}", agent.log());
            agent.notified("READY=1").then_some(())
        });
        agent
    }
}

/// The program under test, in the namespace of a station.
pub fn in_namespace(bss: &Bss, name: &str) -> Command {
    // `ip netns exec` is not used, because it gives its command a private /sys.
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{}", bss.name(name)));
    command.arg(program()).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// A running agent; killed when dropped.
pub struct Agent {
    child: Child,
    pub socket: PathBuf,
    log: File,
    ready: UnixDatagram,
}

impl Agent {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        // The log is read through the open file, because its directory may be gone.
        let mut text = String::new();
        (&self.log).seek(SeekFrom::Start(0)).unwrap();
        (&self.log).read_to_string(&mut text).unwrap();
        text
    }

    fn notified(&self, line: &str) -> bool {
        let mut message = [0; 4096];
        std::iter::from_fn(|| self.ready.recv(&mut message).ok().map(|n| message[..n].to_vec()))
            .any(|message| String::from_utf8(message).unwrap().lines().any(|found| found == line))
    }

    /// The answer of the local API, as JSON.
    pub fn ask(&self, request: Request) -> Value {
        ask(&self.socket, request)
    }

    pub fn metric(&self, name: &str) -> u64 {
        self.ask(Request::Metrics)[name].as_u64().unwrap_or_else(|| panic!("no metric {name}"))
    }

    pub fn state(&self) -> String {
        self.ask(Request::Status)["state"].as_str().unwrap().to_owned()
    }

    /// The numbers of the peers that it hears, sorted.
    pub fn peers(&self) -> Vec<u64> {
        let peers = self.ask(Request::Peers);
        let number = |peer: &Value| u64::from_str_radix(peer["station"].as_str().unwrap(), 16);
        let mut peers: Vec<_> =
            peers.as_array().unwrap().iter().map(|peer| number(peer).unwrap()).collect();
        peers.sort_unstable();
        peers
    }

    /// The PID of the process that serves. [`Self::pid`] is that of its parent, which keeps the lease.
    pub fn serving(&self) -> u32 {
        let pid = self.ask(Request::Status)["pid"].as_u64().unwrap();
        u32::try_from(pid).unwrap()
    }

    /// Sends the signal to the process that keeps the lease.
    pub fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Waits for the end.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Sends the signal and waits for the end.
    pub fn end(&mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        self.child.wait().unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("log of agent {}:\n{}", self.pid(), self.log());
        }
    }
}

/// Sends the signal to a process.
pub fn send(pid: u32, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal).unwrap();
}

pub fn ask(socket: &Path, request: Request) -> Value {
    // An agent has no answers before its first tick.
    wait_for("the agent answers", || {
        match wakeai_api::ask(socket, request, Duration::from_secs(10)) {
            Ok(Body::Status(body)) => Some(serde_json::to_value(body).unwrap()),
            Ok(Body::Peers(body)) => Some(serde_json::to_value(body).unwrap()),
            Ok(Body::Bounds(body)) => Some(serde_json::to_value(body).unwrap()),
            Ok(Body::Targets(body)) => Some(serde_json::to_value(body).unwrap()),
            Ok(Body::Metrics(body)) if body.is_empty() => None,
            Ok(Body::Metrics(body)) => Some(serde_json::to_value(body).unwrap()),
            Ok(Body::Reserve(body)) => Some(serde_json::to_value(body).unwrap()),
            Ok(Body::Transfer(body)) => Some(serde_json::to_value(body).unwrap()),
            Ok(Body::Fleet(body)) => Some(serde_json::to_value(body).unwrap()),
            Ok(Body::Error(_)) | Err(_) => None,
        }
    })
}
