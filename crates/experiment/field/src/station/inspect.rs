//! What a machine says of itself before an experiment, and the tests of its network.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use nix::time::ClockId;
use nix::unistd::geteuid;
use socket2::{Domain, Protocol, Socket, Type};
use wakeai_host::{NetnsId, Role, read_clock, read_sysctl, since_boot};
use wakeai_kernel::features;
use wakeai_units::Duration;

use super::{air, interface, sockets};
use crate::protocol::{Facts, InspectAsk, Token, Way};

/// The time for which broadcasts are sent and heard.
const SHOUTS: Duration = Duration::from_millis(1_200);
/// The time between two broadcasts.
const BETWEEN_SHOUTS: Duration = Duration::from_millis(150);
/// The longest wait for the server's port.
const REACH_PATIENCE: Duration = Duration::from_secs(5);

/// What is known of this machine. `ssh` is its address through which ssh came.
pub(super) fn facts(ask: &InspectAsk, ssh: Option<&str>) -> Facts {
    let found = features::detect();
    let way = interface::towards(ask.way.clone(), ask.server);
    let of = way.interface.as_deref().map(interface::find).unwrap_or_default();
    let sysctl = |name: &str| read_sysctl(name).unwrap_or_default().trim().to_owned();
    let algorithms = sysctl("net.ipv4.tcp_available_congestion_control");
    let read = air::read(&way);
    let ssh_address: Option<IpAddr> = ssh.and_then(|text| text.parse().ok());
    let named = way.interface.as_deref();
    Facts {
        hostname: nix::unistd::gethostname()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        kernel: found.kernel_release.clone(),
        root: geteuid().is_root(),
        no_agent: found.to_bound().err().map(|error| error.to_string()),
        no_monitor: found.to_monitor().err().map(|error| error.to_string()),
        default_algorithm: sysctl("net.ipv4.tcp_congestion_control"),
        algorithms: algorithms.split_whitespace().map(str::to_owned).collect(),
        agent: agent(),
        iperf3: is_installed("iperf3"),
        wall_ns: read_clock(ClockId::CLOCK_REALTIME).as_nanos(),
        boot_ns: since_boot().as_nanos(),
        up: of.runs,
        addresses: of.addresses,
        wire_mbps: named.and_then(wire_mbps),
        no_air: read.as_ref().err().cloned(),
        air: read.ok(),
        power_saving: named.and_then(power_saving),
        roams: roams(),
        ssh_interface: ssh_address.and_then(interface::with_address),
        ssh_address,
        free_mb: free_mb(),
        way,
    }
}

/// The agent of this network namespace.
fn agent() -> Option<i32> {
    let here = NetnsId::current().ok()?;
    let holders = wakeai_host::holders().unwrap_or_default();
    let agent =
        holders.iter().find(|one| matches!(one.role, Role::Agent { netns, .. } if netns == here));
    agent.map(|one| one.process.pid)
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// The speed of a wired interface.
fn wire_mbps(name: &str) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/sys/class/net/{name}/speed")).ok()?;
    text.trim().parse().ok().filter(|speed| *speed > 0)
}

/// Whether the radio saves power, by iw(8) where that is installed.
fn power_saving(name: &str) -> Option<bool> {
    let mut command = Command::new("iw");
    command.args(["dev", name, "get", "power_save"]).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text.trim_end().ends_with("on"))
}

/// A program that may scan and roam while an experiment runs.
fn roams() -> Option<String> {
    let entries = std::fs::read_dir("/proc").ok()?.flatten();
    let names = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("comm")).ok());
    let mut names = names.map(|name| name.trim().to_owned());
    names.find(|name| ["NetworkManager", "iwd", "connmand"].contains(&name.as_str()))
}

fn free_mb() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok().map(|kb| kb / 1_000)
}

/// The listening end of the test whether the server is reached.
#[derive(Debug, Default)]
pub(super) struct Reach {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reach {
    /// Answers connections at the port; `None` ends that.
    pub(super) fn listen(&mut self, port: Option<u16>, token: &Token) -> io::Result<()> {
        self.end();
        let Some(port) = port else { return Ok(()) };
        let listener = sockets::listen(&Way::default(), port)?;
        let (stop, token) = (Arc::new(AtomicBool::new(false)), token.bytes());
        self.stop = Arc::clone(&stop);
        self.thread = Some(std::thread::spawn(move || answer(&listener, token, &stop)));
        Ok(())
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Reach {
    fn drop(&mut self) {
        self.end();
    }
}

fn answer(listener: &TcpListener, token: [u8; 16], stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let Ok((mut stream, _)) = listener.accept() else {
            std::thread::sleep(std::time::Duration::from_millis(10));
            continue;
        };
        let mut exchange = || -> io::Result<()> {
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(std::time::Duration::from_secs(1)))?;
            let mut asked = [0; 16];
            stream.read_exact(&mut asked)?;
            if asked == token { stream.write_all(&token) } else { Ok(()) }
        };
        let _ = exchange(); // a stranger's connection gets no answer
    }
}

/// Connects to the server's port, and returns how long an exchange took.
pub(super) fn reach(way: &Way, to: SocketAddr, token: &Token) -> io::Result<Duration> {
    let stop = AtomicBool::new(false);
    let began = since_boot();
    std::thread::scope(|scope| {
        let (ends, ended) = std::sync::mpsc::channel::<()>();
        let stops = &stop;
        scope.spawn(move || {
            if ended.recv_timeout(REACH_PATIENCE.into()).is_err() {
                stops.store(true, Ordering::Relaxed);
            }
        });
        let exchange = || {
            let mut stream =
                sockets::connect(way, to, None, &stop)?.ok_or(io::ErrorKind::TimedOut)?;
            stream.set_read_timeout(Some(REACH_PATIENCE.into()))?;
            stream.write_all(&token.bytes())?;
            let mut answer = [0; 16];
            stream.read_exact(&mut answer)?;
            Ok(since_boot().saturating_since(began))
        };
        let result = exchange();
        let _ = ends.send(());
        result
    })
}

/// Sends broadcasts with the number `own`, to the address `to` where the interface has none of its own, and returns the
/// numbers that were heard from others.
pub(super) fn shout(
    way: &Way,
    port: u16,
    token: &Token,
    (own, to): (u32, Option<Ipv4Addr>),
) -> io::Result<Vec<u32>> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    socket.set_broadcast(true)?;
    if let Some(interface) = &way.interface {
        socket.bind_device(Some(interface.as_bytes()))?;
    }
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into())?;
    let socket = std::net::UdpSocket::from(socket);
    socket.set_read_timeout(Some(std::time::Duration::from_millis(20)))?;
    let of_interface = || way.interface.as_deref().and_then(interface::broadcast);
    let to = to.map(IpAddr::V4).or_else(of_interface);
    let to = SocketAddr::new(to.unwrap_or(Ipv4Addr::BROADCAST.into()), port);
    let mut message = token.bytes().to_vec();
    message.extend(own.to_le_bytes());
    let (mut heard, mut next) = (Vec::new(), since_boot());
    let end = since_boot() + SHOUTS;
    let mut buffer = [0; 64];
    while since_boot() < end {
        if since_boot() >= next {
            next += BETWEEN_SHOUTS;
            let _ = socket.send_to(&message, to); // the next one may get through
        }
        let Ok((20, _)) = socket.recv_from(&mut buffer) else { continue };
        let from = u32::from_le_bytes([buffer[16], buffer[17], buffer[18], buffer[19]]);
        if buffer[..16] == token.bytes() && from != own && !heard.contains(&from) {
            heard.push(from);
        }
    }
    heard.sort_unstable();
    Ok(heard)
}
