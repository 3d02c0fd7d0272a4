//! Tests the bound on a connection's share of the host's queue over a real 802.11 stack. There are
//! two simulated radios of `mac80211_hwsim`, one of which is hostapd's access point. A simulated
//! radio sends at once, so no packet would ever wait. But frames for a station that announces power
//! saving wait at the access point (802.11-2020 section 11.2.3), in the memory that TCP small
//! queues count. So the sender is the access point's host. The station acknowledges what it has
//! received, and then enters power saving.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrIn, setsockopt, socket, sockopt,
};
use wakeai_host::Namespace;
use wakeai_kernel::{Bounds, Control, netns_cookie, snapshot};

/// The programs that this test needs in addition to busybox's.
pub(crate) const TOOLS: [&str; 5] = ["hostapd", "iw", "ip", "tc", "ss"];

const ACCESS_POINT: Ipv4Addr = Ipv4Addr::new(10, 80, 0, 1);
const STATION: Ipv4Addr = Ipv4Addr::new(10, 80, 0, 2);

/// The size of the largest aggregate (A-MPDU) of 802.11n in bytes, and the number of packets of
/// 1500 bytes that fit into it.
const AGGREGATE: u64 = 65_535;
const PACKETS: u64 = 43;
/// The number of bytes that `bpf/shim.h` counts for a copied packet.
const TRUESIZE: u64 = 4096 + 256;
/// mac80211's shift of the pacing rate: data for 7.8 ms (1/128 s) may wait in the host's queue.
const SHIFT: u32 = 7;

/// The delay that is added to the path of the acknowledgements.
const RTT: Duration = Duration::from_millis(400);

/// Bounds under which the kernel itself lets only two bursts of two packets wait.
const WINDOW: Bounds = Bounds::from_numbers(60, 60, 0, 0);
const BUDGET: Bounds = Bounds::from_numbers(60, 60, 0, AGGREGATE);

const HOSTAPD: &str = "interface=wlan0
driver=nl80211
ssid=budget
hw_mode=g
channel=1
ieee80211n=1
wmm_enabled=1
";

pub(crate) fn run() {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    println!("guest: Linux {}", release.trim());
    load_modules();
    let bss = Bss::start();
    let control = Control::open().unwrap();
    let mut download = Transfer::start(&bss);
    let mut found = [WINDOW, BUDGET].map(|bounds| {
        download.run(&control, bounds, 10 * RTT);
        bss.station_sleeps(true);
        // After a round trip all segments in flight are acknowledged. The retransmission timeout is
        // longer.
        download.run(&control, bounds, RTT + RTT / 4);
        let kept = download.kept();
        bss.station_sleeps(false);
        println!("guest: {kept:?}");
        kept
    });
    let [without, with] = &mut found;
    assert_eq!(with.pacing_rate, RAISED);
    assert!(without.pacing_rate < RAISED / 10);
    // The kernel lets bursts into the queue until the queue has more than is allowed. It first
    // checks this after two bursts.
    assert!(with.bytes >= PACKETS * TRUESIZE);
    assert!(with.packets >= PACKETS as u32);
    assert!(without.packets <= 4);
    drop(download);
    Control::unload().unwrap();
    println!("guest: all checks made");
}

/// The pacing rate, in bytes per second, to which the budget raises the connection.
const RAISED: u64 = (PACKETS * TRUESIZE - 1) << SHIFT;

fn load_modules() {
    for module in fs::read_to_string("/modules/wifi").unwrap().lines() {
        run_tool(&format!("insmod /modules/{module}.ko"));
    }
}

fn run_tool(command: &str) {
    let mut words = command.split(' ');
    let mut tool = Command::new(words.next().unwrap());
    let done = tool.args(words).output().unwrap();
    assert!(done.status.success(), "{command}: {done:?}");
}

/// The access point has the interface `wlan0` in this namespace. The station has `wlan1` in a
/// namespace of its own.
struct Bss {
    station: Namespace,
    phy: String,
}

impl Bss {
    fn start() -> Self {
        let station = Namespace::create("station").unwrap();
        let phy = fs::read_to_string("/sys/class/net/wlan1/phy80211/name").unwrap();
        let phy = phy.trim().to_owned();
        run_tool(&format!("iw phy {phy} set netns name station"));
        fs::write("/tmp/hostapd.conf", HOSTAPD).unwrap();
        run_tool("hostapd -B /tmp/hostapd.conf");
        run_tool(&format!("ip address add {ACCESS_POINT}/24 dev wlan0"));
        let bss = Self { station, phy };
        bss.inside("ip link set wlan1 up");
        bss.inside("iw dev wlan1 connect budget");
        bss.inside(&format!("ip address add {STATION}/24 dev wlan1"));
        bss.inside("tc qdisc add dev wlan1 root netem delay 400ms");
        let began = Instant::now();
        while !bss.is_connected() {
            assert!(began.elapsed() < Duration::from_mins(1), "the station does not associate");
            std::thread::sleep(Duration::from_millis(100));
        }
        bss
    }

    fn inside(&self, command: &str) {
        self.station.run(|| run_tool(command)).unwrap();
    }

    fn is_connected(&self) -> bool {
        let link = || Command::new("iw").args(["dev", "wlan1", "link"]).output().unwrap();
        String::from_utf8_lossy(&self.station.run(link).unwrap().stdout).contains("Connected to")
    }

    /// Makes every further frame of the station announce whether the station saves power.
    fn station_sleeps(&self, sleeps: bool) {
        let debug = Path::new("/sys/kernel/debug");
        if !debug.join("ieee80211").exists() {
            run_tool("mount -t debugfs debugfs /sys/kernel/debug");
        }
        let file = debug.join("ieee80211").join(&self.phy).join("hwsim/ps");
        fs::write(file, if sleeps { "1" } else { "0" }).unwrap();
    }
}

/// An endless transfer from the access point's host to the station.
struct Transfer {
    output: TcpStream,
    _reader: std::thread::JoinHandle<()>,
}

impl Transfer {
    fn start(bss: &Bss) -> Self {
        let listener = bss.station.run(|| TcpListener::bind((STATION, 0)).unwrap()).unwrap();
        // The receiver's window must not limit the sender.
        setsockopt(&listener, sockopt::RcvBufForce, &(1 << 23)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let reader = std::thread::spawn(move || {
            let mut input = listener.accept().unwrap().0;
            let mut buffer = vec![0; 1 << 16];
            while input.read(&mut buffer).is_ok_and(|length| length > 0) {}
        });
        let flags = SockFlag::SOCK_CLOEXEC;
        let output =
            socket(AddressFamily::Inet, SockType::Stream, flags, SockProtocol::Tcp).unwrap();
        setsockopt(&output, sockopt::TcpCongestion, &"wakeai_cubic".into()).unwrap();
        let to = SockaddrIn::from(std::net::SocketAddrV4::new(STATION, port));
        nix::sys::socket::connect(output.as_raw_fd(), &to).unwrap();
        let output = TcpStream::from(output);
        output.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
        Self { output, _reader: reader }
    }

    /// Sends under these bounds for this time.
    fn run(&mut self, control: &Control, bounds: Bounds, span: Duration) {
        let cookie = netns_cookie().unwrap();
        let interface = nix::net::if_::if_nametoindex("wlan0").unwrap();
        control.set_interface(cookie, interface, bounds).unwrap();
        let data = vec![0; 1 << 16];
        let began = Instant::now();
        while began.elapsed() < span {
            control.heartbeat(cookie, interface).unwrap();
            let _ = self.output.write(&data); // a timeout writes nothing
        }
    }

    /// The connection's share of the queue, measured while nothing else is in flight.
    fn kept(&self) -> Kept {
        let port = self.output.local_addr().unwrap().port();
        let all = snapshot(None).unwrap();
        let own = all.into_iter().find(|one| one.socket.local.port() == port).unwrap();
        Kept {
            pacing_rate: own.figures.pacing_rate.unwrap().bytes_per_second(),
            packets: own.figures.packets_out.get(),
            bytes: queued(),
        }
    }
}

/// A connection's share of the host's queue.
#[derive(Debug)]
struct Kept {
    /// The pacing rate in bytes per second.
    pacing_rate: u64,
    packets: u32,
    /// The bytes in the queue, as the kernel counts them.
    bytes: u64,
}

/// The bytes that the connection keeps in the host's queue, as the kernel counts them.
fn queued() -> u64 {
    let to = STATION.to_string();
    let shown = Command::new("ss").args(["-tmnH", "dst", &to]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let memory = shown.split("skmem:(").nth(1).unwrap_or_else(|| panic!("{shown}"));
    let figure = memory.split(',').find_map(|figure| figure.strip_prefix('t'));
    figure.unwrap().parse().unwrap()
}
