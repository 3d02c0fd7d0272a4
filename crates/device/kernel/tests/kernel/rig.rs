//! Two namespaces that emulated paths or veth links connect, and TCP connections between them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrIn, setsockopt, socket, sockopt,
};
use wakeai_host::Namespace;
use wakeai_kernel::Control;

use crate::path::{EmulatedPath, PathConfig};

/// The machine has one registration of the algorithms and one set of pins. A test that makes,
/// removes or counts them runs alone. Tests that only bound connections in namespaces of their own
/// run at the same time.
static MACHINE: RwLock<()> = RwLock::new(());

/// The number of tests that share the registration now.
static SHARING: Mutex<u32> = Mutex::new(0);

/// The right to use the kernel alone. Where the kernel cannot be used, it prints the reason and
/// returns `None`; with `WAKEAI_REQUIRE_KERNEL` it fails.
pub(crate) fn kernel() -> Option<RwLockWriteGuard<'static, ()>> {
    is_usable().then(|| MACHINE.write().unwrap_or_else(PoisonError::into_inner))
}

fn is_usable() -> bool {
    let found = wakeai_kernel::features::detect();
    if found.to_bound().is_ok() && found.to_monitor().is_ok() && nix::unistd::geteuid().is_root() {
        return true;
    }
    let lacking: Vec<_> =
        found.features.iter().filter(|feature| feature.problem.is_some()).collect();
    assert!(std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_none(), "kernel lacks {lacking:?}");
    println!("skipped: not root, or the kernel lacks features: {lacking:?}");
    false
}

/// The registration. It is removed at the end of the last test that shares it, also if the test
/// fails.
pub(crate) struct Registration(pub(crate) Control, Option<RwLockReadGuard<'static, ()>>);

impl Registration {
    /// Opens the registration for a test that holds the result of [`kernel`].
    pub(crate) fn open() -> Self {
        Self(Control::open().unwrap(), None)
    }

    /// Opens the registration for a test that shares it with other tests; `None` where [`kernel`]
    /// returns `None`.
    pub(crate) fn share() -> Option<Self> {
        let machine =
            is_usable().then(|| MACHINE.read().unwrap_or_else(PoisonError::into_inner))?;
        let mut sharing = SHARING.lock().unwrap_or_else(PoisonError::into_inner);
        let control = Control::open().unwrap();
        *sharing += 1;
        Some(Self(control, Some(machine)))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut sharing = SHARING.lock().unwrap_or_else(PoisonError::into_inner);
        if self.1.is_some() {
            *sharing -= 1;
            if *sharing > 0 {
                return;
            }
        }
        let removed = Control::unload();
        assert!(std::thread::panicking() || removed.is_ok());
    }
}

/// Two namespaces. Interface `wire` has 10.77.0.1 in the first and 10.77.0.2 in the second;
/// interface `side` has 10.78.0.1 and 10.78.0.2.
pub(crate) struct Rig {
    pub(crate) sender: Namespace,
    pub(crate) receiver: Namespace,
    pub(crate) path: Option<EmulatedPath>,
}

impl Rig {
    /// A rig with an emulated path for `wire` and a veth link for `side`.
    pub(crate) fn with_path(config: PathConfig) -> Self {
        let mut rig = Self::namespaces();
        rig.path = Some(EmulatedPath::start("wire", &rig.sender, &rig.receiver, config));
        rig.veth("side");
        rig.addresses();
        rig
    }

    /// A rig with veth links for `wire` and `side`.
    pub(crate) fn with_veth() -> Self {
        let rig = Self::namespaces();
        rig.veth("wire");
        rig.veth("side");
        rig.addresses();
        rig
    }

    fn namespaces() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let make = |role: &str| {
            Namespace::create(&format!("wkt-{}-{number}{role}", std::process::id())).unwrap()
        };
        Self { sender: make("s"), receiver: make("r"), path: None }
    }

    fn veth(&self, name: &str) {
        let other = self.receiver.name().to_owned();
        let arguments = format!("link add {name} type veth peer name {name} netns {other}");
        ip(&self.sender, &arguments);
    }

    fn addresses(&self) {
        for (namespace, host) in [(&self.sender, 1), (&self.receiver, 2)] {
            ip(namespace, "link set lo up");
            for (interface, network) in [("wire", 77), ("side", 78)] {
                ip(namespace, &format!("address add 10.{network}.0.{host}/24 dev {interface}"));
                ip(namespace, &format!("link set {interface} up"));
            }
            for buffer in ["tcp_wmem", "tcp_rmem"] {
                set(namespace, buffer, "4096 131072 67108864");
            }
        }
    }

    /// The namespace's cookie and the interface's index, by which an agent in the sender's
    /// namespace identifies the interface.
    pub(crate) fn interface(&self, name: &str) -> (u64, u32) {
        let index = || nix::net::if_::if_nametoindex(name).unwrap();
        self.sender.run(|| (wakeai_kernel::netns_cookie().unwrap(), index())).unwrap()
    }

    /// Sets the sender's default algorithm.
    pub(crate) fn default(&self, algorithm: &str) {
        set(&self.sender, "tcp_congestion_control", algorithm);
    }

    /// Starts a flow that sends as fast as TCP allows, over the interface with the network
    /// 10.`network`.0.0.
    pub(crate) fn flow(&self, network: u8, algorithm: &str) -> Flow {
        self.paced_flow(network, algorithm, u64::MAX)
    }

    /// Starts a flow that sends at most `rate` bytes per second. It writes two segments at a time,
    /// because over veth all segments of one call get only one ACK.
    pub(crate) fn paced_flow(&self, network: u8, algorithm: &str, rate: u64) -> Flow {
        Flow::start(&self.sender, &self.receiver, network, algorithm, rate)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let removed = [&self.sender, &self.receiver].map(|one| Namespace::remove(one.name()));
        assert!(std::thread::panicking() || removed.iter().all(Result::is_ok));
    }
}

/// The `struct_ops` that `bpftool` lists, including those without an owner.
pub(crate) fn struct_ops() -> String {
    let listed = Command::new("bpftool").args(["struct_ops", "list"]).output().unwrap();
    String::from_utf8(listed.stdout).unwrap()
}

pub(crate) fn ip(namespace: &Namespace, arguments: &str) {
    let run = || Command::new("ip").args(arguments.split(' ')).status().unwrap();
    assert!(namespace.run(run).unwrap().success(), "ip {arguments}");
}

pub(crate) fn set(namespace: &Namespace, name: &str, value: &str) {
    let write = || std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value);
    namespace.run(write).unwrap().unwrap();
}

/// Connects with this algorithm from the first segment on. It sets the algorithm on the socket,
/// because as a namespace's default the kernel may refuse CUBIC.
pub(crate) fn connect(address: SocketAddr, algorithm: &str) -> TcpStream {
    let SocketAddr::V4(address) = address else { panic!("the rig has IPv4 only") };
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Inet, SockType::Stream, flags, SockProtocol::Tcp).unwrap();
    setsockopt(&socket, sockopt::TcpCongestion, &algorithm.into()).unwrap();
    nix::sys::socket::connect(socket.as_raw_fd(), &SockaddrIn::from(address)).unwrap();
    TcpStream::from(socket)
}

/// A running bulk transfer.
pub(crate) struct Flow {
    stop: Arc<AtomicBool>,
    abandon: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
    end: TcpStream,
    threads: Vec<JoinHandle<()>>,
}

impl Flow {
    fn start(
        sender: &Namespace,
        receiver: &Namespace,
        network: u8,
        algorithm: &str,
        rate: u64,
    ) -> Self {
        let listen = || TcpListener::bind((Ipv4Addr::new(10, network, 0, 2), 0)).unwrap();
        let listener = receiver.run(listen).unwrap();
        let address = listener.local_addr().unwrap();
        let mut output = sender.run(|| connect(address, algorithm)).unwrap();
        let (mut input, _) = listener.accept().unwrap();
        let end = input.try_clone().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let abandon = Arc::new(AtomicBool::new(false));
        let abandoned = Arc::clone(&abandon);
        let received = Arc::new(AtomicU64::new(0));
        let (counter, stopped) = (Arc::clone(&received), Arc::clone(&stop));
        let reader = std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 18];
            while let Ok(length) = input.read(&mut buffer) {
                if length == 0 {
                    break;
                }
                counter.fetch_add(length as u64, Ordering::Relaxed);
            }
        });
        let writer = std::thread::spawn(move || {
            output.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
            let data = vec![0; if rate == u64::MAX { 1 << 16 } else { 2 * 1448 }];
            let (began, mut written) = (Instant::now(), 0);
            while !stopped.load(Ordering::Relaxed) {
                // A timeout counts as nothing written, so that the loop checks whether the flow has
                // to stop.
                written += output.write(&data).unwrap_or(0) as u64;
                let due = Duration::from_secs_f64(written as f64 / rate as f64);
                let ahead = due.saturating_sub(began.elapsed());
                if ahead > Duration::from_micros(500) {
                    std::thread::sleep(ahead);
                }
            }
            // Unless the flow is abandoned, closing resets the connection, so that the kernel does
            // not keep it for queued data.
            let l_onoff = i32::from(!abandoned.load(Ordering::Relaxed));
            let reset = libc::linger { l_onoff, l_linger: 0 };
            setsockopt(&output, sockopt::Linger, &reset).unwrap();
        });
        Self { stop, abandon, received, end, threads: vec![reader, writer] }
    }

    /// Closes both ends of the flow, and leaves the kernel to deliver the data that was written.
    pub(crate) fn abandon(self) {
        self.abandon.store(true, Ordering::Relaxed);
    }

    /// Bytes that have arrived.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Waits until more bytes have arrived.
    pub(crate) fn goes_on(&self) {
        let (before, began) = (self.received(), Instant::now());
        while self.received() == before {
            assert!(began.elapsed() < Duration::from_secs(30), "nothing arrives any more");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Bytes per second that arrive during `span`.
    pub(crate) fn goodput(&self, span: Duration) -> u64 {
        let (before, from) = (self.received(), Instant::now());
        std::thread::sleep(span);
        let bytes = self.received() - before;
        (bytes as f64 / from.elapsed().as_secs_f64()) as u64
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // On a path that is cut, the reader would otherwise wait for ever.
        let _ = self.end.shutdown(std::net::Shutdown::Both);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
