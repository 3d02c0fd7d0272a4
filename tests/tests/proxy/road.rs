//! A client, a router and a server, each in a namespace of its own, and a proxy on the router.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use wakeai_host::Namespace;

use wakeai_tests::{must, wait_for, wakeai};

pub(crate) const CLIENT: [&str; 2] = ["10.71.0.2", "fd71::2"];
pub(crate) const SERVER: [&str; 2] = ["10.72.0.2", "fd72::2"];

/// The namespaces: `client` ([`CLIENT`]), `router` (with host number 1 in both networks), and
/// `server` ([`SERVER`]).
pub(crate) struct Road {
    prefix: String,
}

impl Road {
    pub(crate) fn new() -> Self {
        let road = Self { prefix: format!("wkt-{}", std::process::id()) };
        for name in ["client", "router", "server"] {
            must("ip", &format!("netns add {}", road.name(name)));
            road.ip(name, "link set lo up");
        }
        let router = road.name("router");
        for (name, net) in [("client", "71"), ("server", "72")] {
            road.ip(name, &format!("link add eth0 type veth peer name {name} netns {router}"));
            for (end, device, host) in [(name, "eth0", 2), ("router", name, 1)] {
                road.ip(end, &format!("addr add 10.{net}.0.{host}/24 dev {device}"));
                road.ip(end, &format!("addr add fd{net}::{host}/64 dev {device} nodad"));
                road.ip(end, &format!("link set {device} up"));
            }
            road.ip(name, &format!("route add default via 10.{net}.0.1"));
            road.ip(name, &format!("-6 route add default via fd{net}::1"));
        }
        road.inside("router", || {
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
            std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").unwrap();
        });
        road
    }

    pub(crate) fn name(&self, end: &str) -> String {
        format!("{}-{end}", self.prefix)
    }

    pub(crate) fn namespace(&self, end: &str) -> Namespace {
        Namespace::open(&self.name(end)).unwrap()
    }

    pub(crate) fn inside<T: Send>(&self, end: &str, work: impl FnOnce() -> T + Send) -> T {
        self.namespace(end).run(work).unwrap()
    }

    pub(crate) fn ip(&self, end: &str, arguments: &str) {
        must("ip", &format!("-n {} {arguments}", self.name(end)));
    }

    /// A program in the namespace.
    pub(crate) fn command(&self, end: &str, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.name(end))).arg(program);
        command.stdin(Stdio::null());
        command
    }

    /// Every rule and route of the router.
    pub(crate) fn rules(&self) -> Vec<String> {
        // `ip` reports a missing routing table as an error, which is then part of the result.
        let shown = |program: &str, arguments: &str| {
            let output = self.command("router", program).args(arguments.split(' ')).output();
            String::from_utf8(output.unwrap().stdout).unwrap()
        };
        vec![
            shown("nft", "list ruleset"),
            shown("ip", "-4 rule"),
            shown("ip", "-6 rule"),
            shown("ip", "-4 route show table all"),
            shown("ip", "-6 route show table 30571"),
        ]
    }

    /// Starts a proxy on the router, and waits until it is ready.
    pub(crate) fn proxy(&self, arguments: &[&str]) -> Proxy {
        let mut command = self.command("router", wakeai_tests::program());
        Proxy::start(command.args(["proxy", "--json"]).args(arguments))
    }
}

impl Drop for Road {
    fn drop(&mut self) {
        wakeai(&["sweep"]);
        for end in ["client", "router", "server"] {
            let _ = Namespace::remove(&self.name(end));
        }
    }
}

/// A running `wakeai proxy`; killed when dropped.
pub(crate) struct Proxy {
    child: Child,
    lines: BufReader<ChildStdout>,
    /// The addresses at which it listens.
    pub(crate) addresses: Vec<SocketAddr>,
}

impl Proxy {
    /// Starts a proxy in this network namespace.
    pub(crate) fn local(arguments: &[&str]) -> Self {
        let mut command = Command::new(wakeai_tests::program());
        let command = command.args(["proxy", "--json", "--listen", "127.0.0.1:0"]);
        Self::start(command.args(arguments))
    }

    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut proxy = Self { child, lines, addresses: Vec::new() };
        let ready = proxy.line();
        assert_eq!(ready["type"], "listening");
        let addresses = ready["addresses"].as_array().unwrap().iter();
        proxy.addresses =
            addresses.map(|address| address.as_str().unwrap().parse().unwrap()).collect();
        proxy
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no line of JSON: {line:?}"))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.pid()).unwrap()), signal).unwrap();
    }

    /// Asks for the counters.
    pub(crate) fn counters(&mut self) -> Value {
        self.signal(Signal::SIGUSR1);
        self.line()
    }

    /// Ends the proxy. Returns its status and its last counters.
    pub(crate) fn end(mut self) -> (ExitStatus, Value) {
        self.signal(Signal::SIGTERM);
        let counters = self.line();
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "the counts are the last line");
        (self.child.wait().unwrap(), counters)
    }

    /// Waits until it ends by itself.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        wait_for("the proxy ends", || self.child.try_wait().unwrap())
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}
