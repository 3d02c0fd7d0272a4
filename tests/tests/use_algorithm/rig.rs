//! Two hosts, connections between them that select no algorithm, and a running `wakeai use`.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use socket2::SockRef;
use wakeai_kernel::{TcpSnapshot, snapshot};

use wakeai_tests::bss::Bss;
use wakeai_tests::{host_state, leftovers, must, wait_for};

/// The address of the server on the common link, and an address behind the server.
pub(crate) const SERVER: [u8; 4] = [10, 77, 0, 2];
pub(crate) const BEHIND: [u8; 4] = [192, 0, 2, 1];

/// The hosts `a` and `server`, with a route from the first to [`BEHIND`].
pub(crate) fn hosts() -> Bss {
    let bss = Bss::new(&["a", "server"]);
    bss.ip("server", "addr add 192.0.2.1/32 dev lo");
    bss.ip("a", "route add 192.0.2.0/24 via 10.77.0.2 mtu 1400 initcwnd 12");
    bss
}

/// The state of everything that `wakeai use` may change, as the kernel's tools show it.
pub(crate) fn state(bss: &Bss) -> Vec<String> {
    let mut state = host_state();
    let a = bss.name("a");
    state.push(must("ip", &format!("-n {a} -4 route show table all")));
    // The kernel adds the routes of link-local addresses only after duplicate address detection.
    let v6 = must("ip", &format!("-n {a} -6 route show table main"));
    state.extend(v6.lines().filter(|line| !line.starts_with("fe80")).map(str::to_owned));
    state.push(bss.default("a"));
    state.push(must("bpftool", "cgroup tree"));
    state.push(must("ls", "-R /sys/fs/bpf"));
    state.extend(leftovers());
    state
}

/// A connection from `a` to the server.
pub(crate) struct Talk {
    pub(crate) near: TcpStream,
    #[allow(dead_code, reason = "the stream keeps the connection open")]
    pub(crate) far: TcpStream,
}

impl Talk {
    /// Opens a connection that selects no algorithm.
    pub(crate) fn open(bss: &Bss, to: impl Into<IpAddr>) -> Self {
        Self::asking(bss, to, None)
    }

    pub(crate) fn asking(bss: &Bss, to: impl Into<IpAddr>, algorithm: Option<&str>) -> Self {
        let to = SocketAddr::new(to.into(), 0);
        let listener = bss.namespace("server").run(|| TcpListener::bind(to).unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let near = bss.namespace("a").run(|| connect(address, algorithm)).unwrap();
        Self { near, far: listener.accept().unwrap().0 }
    }

    /// The algorithm of the near end, by its socket.
    pub(crate) fn algorithm(&self) -> String {
        let name = SockRef::from(&self.near).tcp_congestion().unwrap();
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        String::from_utf8(name[..end].to_vec()).unwrap()
    }

    /// The cookie of the near end.
    pub(crate) fn cookie(&self, bss: &Bss) -> u64 {
        let (local, remote) = (self.near.local_addr().unwrap(), self.near.peer_addr().unwrap());
        find(bss, "a", local, remote).unwrap().socket.cookie
    }

    /// Its destination, in the form that `--to` takes.
    pub(crate) fn to(&self) -> String {
        self.near.peer_addr().unwrap().to_string()
    }
}

fn connect(address: SocketAddr, algorithm: Option<&str>) -> TcpStream {
    use socket2::{Domain, Protocol, Socket, Type};
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP)).unwrap();
    if let Some(algorithm) = algorithm {
        socket.set_tcp_congestion(algorithm.as_bytes()).unwrap();
    }
    socket.connect(&address.into()).unwrap();
    socket.into()
}

/// This namespace's end of a connection. Both addresses are needed, because two connections may have the same local
/// one.
pub(crate) fn find(
    bss: &Bss,
    station: &str,
    local: SocketAddr,
    remote: SocketAddr,
) -> Option<TcpSnapshot> {
    let all = bss.namespace(station).run(|| snapshot(None).unwrap()).unwrap();
    all.into_iter().find(|one| (one.socket.local, one.socket.remote) == (local, remote))
}

/// A running `wakeai use`; killed when dropped.
pub(crate) struct Use {
    child: Child,
    _output: BufReader<ChildStdout>,
    /// The line that the command printed when the assignment was in force.
    pub(crate) shown: Value,
}

impl Use {
    /// Starts an assignment for host `a`, and waits until it is in force.
    pub(crate) fn start(bss: &Bss, arguments: &str) -> Self {
        Self::run(arguments, &["--namespace", &bss.name("a")])
    }

    pub(crate) fn run(arguments: &str, more: &[&str]) -> Self {
        Self::spawn(arguments, more, Stdio::inherit())
    }

    /// Starts a command whose warnings go into the file.
    pub(crate) fn logged(arguments: &str, log: &Path) -> Self {
        Self::spawn(arguments, &[], File::create(log).unwrap().into())
    }

    fn spawn(arguments: &str, more: &[&str], warnings: Stdio) -> Self {
        let mut child = Command::new(wakeai_tests::program())
            .args(["use", "--json"])
            .args(arguments.split(' '))
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(warnings)
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "it ended with {:?}", child.wait());
        Self { child, _output: output, shown: serde_json::from_str(&line).unwrap() }
    }

    pub(crate) fn id(&self) -> String {
        self.child.id().to_string()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// Sends the signal and waits for the end.
    pub(crate) fn end(&mut self, signal: Signal) -> ExitStatus {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
        self.wait()
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        wait_for("the assignment ends", || self.child.try_wait().unwrap())
    }

    pub(crate) fn ends_well(&mut self) {
        assert!(self.end(Signal::SIGTERM).success());
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until the state is as before. The kernel frees a registration a moment after its last reference is gone.
pub(crate) fn is_as_before(bss: &Bss, before: &[String]) {
    wait_for("nothing is left", || leftovers().is_empty().then_some(()));
    let now = state(bss);
    assert_eq!(now.len(), before.len());
    for (now, before) in now.iter().zip(before) {
        assert_eq!(now, before);
    }
}
