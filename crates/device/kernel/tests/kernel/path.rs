//! An emulated path between two namespaces. Each has a TUN, and a thread carries packets between
//! the two, with delay, rate, queue and loss. A veth link alone has no delay, and this kernel may
//! lack netem.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use wakeai_host::Namespace;

/// The treatment of packets from the first namespace to the second. Packets in the other direction
/// are only delayed.
#[derive(Clone, Copy)]
pub(crate) struct PathConfig {
    pub(crate) one_way_delay: Duration,
    pub(crate) bits_per_second: u64,
    pub(crate) queue_packets: usize,
    /// The number of random losses per million packets.
    pub(crate) loss_ppm: u64,
    /// The number of the one packet that is lost; 0 for none.
    pub(crate) lose_nth: u64,
    /// Each packet whose number is a multiple of this changes places with the next packet; 0 for
    /// none.
    pub(crate) swap_every: u64,
}

impl PathConfig {
    /// 20 ms of RTT, 40 Mbit/s, a queue of one and a half bandwidth-delay products, and no loss.
    pub(crate) const CALM: Self = Self {
        one_way_delay: Duration::from_millis(10),
        bits_per_second: 40_000_000,
        queue_packets: 100,
        loss_ppm: 0,
        lose_nth: 0,
        swap_every: 0,
    };

    /// A path with so many losses that a connection enters the state Recovery about every second.
    pub(crate) const LOSSY: Self = Self { loss_ppm: 1000, ..Self::CALM };
}

pub(crate) struct EmulatedPath {
    stop: Arc<AtomicBool>,
    cut: Arc<AtomicBool>,
    carrier: Option<JoinHandle<()>>,
}

impl EmulatedPath {
    /// Makes the TUN `name` in both namespaces, and starts to carry packets.
    pub(crate) fn start(name: &str, a: &Namespace, b: &Namespace, config: PathConfig) -> Self {
        let open = |namespace: &Namespace| namespace.run(|| open_tun(name)).unwrap().unwrap();
        let ends = [open(a), open(b)];
        let stop = Arc::new(AtomicBool::new(false));
        let cut = Arc::new(AtomicBool::new(false));
        let (stopped, is_cut) = (Arc::clone(&stop), Arc::clone(&cut));
        let carrier = std::thread::spawn(move || carry(ends, config, &stopped, &is_cut));
        Self { stop, cut, carrier: Some(carrier) }
    }

    /// Cuts the path: no packet arrives from now on.
    pub(crate) fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
    }
}

impl Drop for EmulatedPath {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let carrier = self.carrier.take().into_iter();
        carrier.for_each(|thread| thread.join().unwrap());
    }
}

pub(crate) fn open_tun(name: &str) -> io::Result<File> {
    const IFF_TUN: libc::c_short = 0x0001;
    const IFF_NO_PI: libc::c_short = 0x1000;
    let tun = File::options().read(true).write(true).open("/dev/net/tun")?;
    let mut request = [0_u8; 40]; // struct ifreq: the name, then the flags
    request[..name.len()].copy_from_slice(name.as_bytes());
    request[16..18].copy_from_slice(&(IFF_TUN | IFF_NO_PI).to_ne_bytes());
    #[allow(unsafe_code, reason = "no crate at hand wraps TUNSETIFF")]
    // SAFETY: the kernel reads and writes a struct ifreq, which is 40 bytes, within `request`.
    let status = unsafe { libc::ioctl(tun.as_raw_fd(), 0x4004_54ca, request.as_mut_ptr()) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    nix::fcntl::fcntl(&tun, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK))?;
    Ok(tun)
}

/// One direction of the path: its packets in the order in which they are due.
struct Lane {
    due: VecDeque<(Instant, Vec<u8>)>,
    free_at: Instant,
    queued: VecDeque<Instant>,
    random: u64,
    count: u64,
    held: Option<Vec<u8>>,
}

impl Lane {
    fn accept(&mut self, packet: &[u8], config: &PathConfig, now: Instant, is_forward: bool) {
        let mut leaves = now;
        if is_forward {
            // A linear congruential generator (Knuth's MMIX) gives the same losses in every run.
            self.random =
                self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
            while self.queued.front().is_some_and(|&left| left <= now) {
                self.queued.pop_front();
            }
            self.count += 1;
            if (self.random >> 33) % 1_000_000 < config.loss_ppm
                || self.count == config.lose_nth
                || self.queued.len() >= config.queue_packets
            {
                return;
            }
            let nanos = packet.len() as u64 * 8_000_000_000 / config.bits_per_second;
            self.free_at = self.free_at.max(now) + Duration::from_nanos(nanos);
            self.queued.push_back(self.free_at);
            leaves = self.free_at;
        }
        let due = leaves + config.one_way_delay;
        if is_forward && config.swap_every != 0 && self.count.is_multiple_of(config.swap_every) {
            self.held = Some(packet.to_vec());
            return;
        }
        self.due.push_back((due, packet.to_vec()));
        self.due.extend(self.held.take().map(|held| (due, held)));
    }
}

fn carry(mut ends: [File; 2], config: PathConfig, stop: &AtomicBool, cut: &AtomicBool) {
    let lane = || Lane {
        due: VecDeque::new(),
        free_at: Instant::now(),
        queued: VecDeque::new(),
        random: 1,
        count: 0,
        held: None,
    };
    let mut lanes = [lane(), lane()];
    let mut packet = vec![0; 65536];
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        for side in 0..2 {
            while let Ok(length) = ends[side].read(&mut packet) {
                if !cut.load(Ordering::Relaxed) {
                    lanes[side].accept(&packet[..length], &config, now, side == 0);
                }
            }
            while lanes[side].due.front().is_some_and(|(due, _)| *due <= now) {
                if let Some((_, packet)) = lanes[side].due.pop_front() {
                    let _ = ends[1 - side].write(&packet); // the interface may still be down
                }
            }
        }
        let next = lanes.iter().filter_map(|lane| Some(lane.due.front()?.0)).min();
        let wait = next.map_or(Duration::from_millis(20), |due| due.saturating_duration_since(now));
        let wait = wait.min(Duration::from_millis(20));
        let mut polled =
            [&ends[0], &ends[1]].map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN));
        let _ = ppoll(&mut polled, Some(wait.into()), None);
    }
}
