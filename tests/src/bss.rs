//! Stations on one link, which stands for an access point: each is a namespace, and a bridge joins them.

use std::sync::atomic::{AtomicU32, Ordering};

use wakeai_host::Namespace;

use crate::{must, wakeai};

/// The interface of a station that stands for its Wi-Fi interface.
pub const WIFI: &str = "wlan0";

/// The number of access points that this process has made.
static MADE: AtomicU32 = AtomicU32::new(0);

/// A bridge in a namespace of its own, and the stations on it.
pub struct Bss {
    prefix: String,
    stations: Vec<&'static str>,
}

impl Bss {
    /// Station `n` (from 1) has the address 10.77.0.n.
    pub fn new(stations: &[&'static str]) -> Self {
        let bss = Self::without_addresses(stations);
        for (index, station) in stations.iter().enumerate() {
            bss.ip(station, &format!("addr add 10.77.0.{}/24 brd + dev {WIFI}", index + 1));
        }
        bss
    }

    /// Stations without addresses.
    pub fn without_addresses(stations: &[&'static str]) -> Self {
        let bss = Self::without_interfaces(stations);
        bss.ip("air", "link add br0 type bridge");
        bss.ip("air", "link set br0 up");
        for station in stations {
            bss.plug(station, WIFI);
        }
        bss
    }

    /// Stations whose only interface is `lo`. The test moves radios into their namespaces.
    pub fn without_interfaces(stations: &[&'static str]) -> Self {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("wkt-{}-{number}", std::process::id());
        let bss = Self { prefix, stations: stations.to_vec() };
        must("ip", &format!("netns add {}", bss.name("air")));
        for station in stations {
            must("ip", &format!("netns add {}", bss.name(station)));
            bss.set_default(station, "reno");
            bss.ip(station, "link set lo up");
        }
        bss
    }

    /// Plugs a new interface of a station into the bridge.
    pub fn plug(&self, station: &str, interface: &str) {
        let air = self.name("air");
        let port = format!("{station}-{interface}");
        self.ip(station, &format!("link add {interface} type veth peer name {port} netns {air}"));
        self.ip("air", &format!("link set {port} master br0 up"));
        self.ip(station, &format!("link set {interface} up"));
    }

    /// A cable between two stations in addition to the bridge, from 10.88.0.1 to 10.88.0.2. Each end is `eth0`.
    pub fn wire(&self, first: &str, second: &str) {
        let there = self.name(second);
        self.ip(first, &format!("link add eth0 type veth peer name eth0 netns {there}"));
        for (station, address) in [(first, "10.88.0.1/24"), (second, "10.88.0.2/24")] {
            self.ip(station, "link set eth0 up");
            self.ip(station, &format!("addr add {address} brd + dev eth0"));
        }
    }

    /// The namespace's name.
    pub fn name(&self, station: &str) -> String {
        format!("{}-{station}", self.prefix)
    }

    pub fn namespace(&self, station: &str) -> Namespace {
        Namespace::open(&self.name(station)).unwrap()
    }

    pub fn ip(&self, station: &str, arguments: &str) {
        must("ip", &format!("-n {} {arguments}", self.name(station)));
    }

    /// Runs a command that must succeed in the namespace, and returns its output.
    pub fn inside(&self, station: &str, command: &str) -> String {
        let (program, arguments) = command.split_once(' ').unwrap();
        self.namespace(station).run(|| must(program, arguments)).unwrap()
    }

    /// Sets the algorithm of connections that select none. Returns whether the kernel allows it: outside the
    /// initial namespace it allows only what `tcp_allowed_congestion_control` lists.
    pub fn set_default(&self, station: &str, algorithm: &str) -> bool {
        let write = || std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", algorithm);
        self.namespace(station).run(write).unwrap().is_ok()
    }

    pub fn default(&self, station: &str) -> String {
        let read = || wakeai_host::read_sysctl("net.ipv4.tcp_congestion_control");
        self.namespace(station).run(read).unwrap().unwrap()
    }
}

impl Drop for Bss {
    fn drop(&mut self) {
        // The sweep has to run while the names of the namespaces exist. A socket that outlives its namespace's name
        // keeps its algorithm, because nothing can reach it any more.
        wakeai(&["sweep"]);
        for station in self.stations.iter().chain([&"air"]) {
            let _ = Namespace::remove(&self.name(station));
        }
    }
}
