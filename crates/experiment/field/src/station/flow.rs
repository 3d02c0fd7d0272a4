//! The flows of a run at one machine: TCP connections that the helper itself opens, writes and reads.
//!
//! A connection begins with 36 bytes that say which flow it belongs to. So one open port is enough for all flows, and nobody
//! else's connection counts.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use socket2::SockRef;
use wakeai_host::since_boot;
use wakeai_units::{Bytes, Duration, Instant, Rate};
use wakeai_world::flows::{Share, Writing};

use super::sockets::{PATIENCE, Senders, connect, info, patient, set_algorithm};
use crate::protocol::{FlowData, FlowRole, RunPlan};

/// Bytes per system call.
const BLOCK_BYTES: usize = 128 * 1024;
/// What arrives within this time after the first of it counts as one arrival, at the time of the last.
const TOGETHER_NS: i64 = 10_000_000;
/// The payload of a full segment, by which a limited application writes: 1500 bytes less the headers with timestamps.
const SEGMENT: Bytes = Bytes::new(1_448);
/// The beginning of a connection: mark, token, flow, connection and the bytes that follow (0: until the end).
pub(super) const HEADER: usize = 36;
const MARK: &[u8; 4] = b"WKF1";
/// The longest wait for the beginning of a connection.
const HEADER_PATIENCE: Duration = Duration::from_secs(10);

/// What the threads of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) plan: RunPlan,
    /// The run's time zero, by this machine's clock since boot.
    pub(super) origin: OnceLock<Instant>,
    pub(super) stop: AtomicBool,
    pub(super) senders: Senders,
    pub(super) flows: BTreeMap<u32, FlowState>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// One end of a flow.
#[derive(Debug)]
pub(super) struct FlowState {
    pub(super) role: FlowRole,
    opened: OnceLock<i64>,
    arrivals: Mutex<Vec<(i64, i64, u64)>>,
    received: AtomicU64,
    connections: AtomicU32,
    retransmits: AtomicU64,
    algorithm: OnceLock<String>,
    pub(super) trouble: Mutex<Option<String>>,
}

impl FlowState {
    fn new(role: FlowRole) -> Self {
        Self {
            role,
            opened: OnceLock::new(),
            arrivals: Mutex::default(),
            received: AtomicU64::new(0),
            connections: AtomicU32::new(0),
            retransmits: AtomicU64::new(0),
            algorithm: OnceLock::new(),
            trouble: Mutex::default(),
        }
    }

    /// Counts what the application got, at a time since the run's time zero.
    pub(super) fn arrived(&self, at_ns: i64, bytes: u64) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
        let mut arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        match arrivals.last_mut() {
            Some((first, last, sum)) if at_ns - *first < TOGETHER_NS => {
                (*last, *sum) = (at_ns, *sum + bytes);
            }
            _ => arrivals.push((at_ns, at_ns, bytes)),
        }
    }

    pub(super) fn opened(&self, at_ns: i64) {
        let _ = self.opened.set(at_ns); // only the first connection counts
    }

    /// Whether the receiver has got all bytes of a flow with a size.
    pub(super) fn is_complete(&self) -> bool {
        let size = self.role.size.filter(|_| !self.role.sends);
        size.is_some_and(|size| self.received.load(Ordering::Relaxed) >= size)
    }

    pub(super) fn fails(&self, reason: impl Into<String>) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.get_or_insert(reason.into());
    }

    pub(super) fn data(&self) -> FlowData {
        let arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        FlowData {
            flow: self.role.flow,
            opened_ns: self.opened.get().copied(),
            arrivals: arrivals.iter().map(|(_, last, bytes)| (*last, *bytes)).collect(),
            algorithm: self.algorithm.get().cloned(),
            retransmits: self.retransmits.load(Ordering::Relaxed),
            connections: self.connections.load(Ordering::Relaxed),
        }
    }
}

impl Shared {
    pub(super) fn new(plan: RunPlan) -> Arc<Self> {
        let flows =
            plan.flows.iter().map(|role| (role.flow, FlowState::new(role.clone()))).collect();
        Arc::new(Self {
            plan,
            origin: OnceLock::new(),
            stop: AtomicBool::new(false),
            senders: Senders::default(),
            flows,
            threads: Mutex::default(),
        })
    }

    /// The time since the run's time zero, negative before it.
    pub(super) fn since_origin(&self, at: Instant) -> i64 {
        let origin = self.origin.get().map_or(0, |origin| origin.as_nanos());
        let since = i128::from(at.as_nanos()) - i128::from(origin);
        i64::try_from(since).unwrap_or(i64::MAX)
    }

    /// Whether the run's duration is over.
    fn is_past_its_end(&self) -> bool {
        let length = i64::try_from(self.plan.duration_ns).unwrap_or(i64::MAX);
        self.since_origin(since_boot()) >= length
    }

    pub(super) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sleeps until this time of the run. Returns `false` where the run is over before.
    pub(super) fn sleep_until(&self, at: Instant) -> bool {
        while !self.is_over() {
            let left = at.saturating_since(since_boot());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(std::time::Duration::from(left).min(PATIENCE));
        }
        false
    }

    /// Starts a thread of the run, which ends when the run is over.
    pub(super) fn spawn(self: &Arc<Self>, work: impl FnOnce(&Arc<Self>) + Send + 'static) {
        let shared = Arc::clone(self);
        let thread = std::thread::Builder::new().name("flow".to_owned()).stack_size(256 * 1024);
        match thread.spawn(move || work(&shared)) {
            Ok(thread) => self.threads().push(thread),
            Err(error) => self.flows.values().for_each(|flow| {
                flow.fails(format!("a thread could not be started: {error}"));
            }),
        }
    }

    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all threads.
    pub(super) fn join(&self) {
        self.stop.store(true, Ordering::Relaxed);
        loop {
            // A thread may have started another one.
            let Some(thread) = self.threads().pop() else { return };
            let _ = thread.join();
        }
    }
}

/// Accepts the connections of the run until it is over.
pub(super) fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    use nix::poll::{PollFd, PollFlags};
    use std::os::fd::AsFd as _;
    while !shared.is_over() {
        let mut ready = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        if !wakeai_host::poll_for(&mut ready, PATIENCE).unwrap_or(false) {
            continue;
        }
        let Ok((stream, _)) = listener.accept() else { continue };
        shared.spawn(move |shared| {
            if let Err(error) = accepted(shared, stream) {
                tracing::debug!(%error, "a connection has ended");
            }
        });
    }
}

fn accepted(shared: &Shared, mut stream: TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    patient(&stream)?;
    let (mut header, mut length) = ([0; HEADER], 0);
    let give_up = since_boot() + HEADER_PATIENCE;
    while length < HEADER {
        match stream.read(&mut header[length..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => length += count,
            Err(error) if is_again(&error) && since_boot() < give_up && !shared.is_over() => {}
            Err(error) => return Err(error),
        }
    }
    let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let size = u64::from_le_bytes(header[28..36].try_into().expect("eight bytes"));
    if &header[..4] != MARK || header[4..20] != shared.plan.token.bytes() {
        return Err(io::Error::new(ErrorKind::InvalidData, "it is not a connection of this run"));
    }
    let (flow, connection) = (number(20), number(24));
    let flow = shared.flows.get(&flow).filter(|flow| flow.role.to.is_none());
    let Some(flow) = flow else { return Err(ErrorKind::InvalidData.into()) };
    let share = Share { before: Bytes::ZERO, size: (size > 0).then_some(Bytes::new(size)) };
    flow.connections.fetch_add(1, Ordering::Relaxed);
    if flow.role.sends {
        set_algorithm(&SockRef::from(&stream), flow.role.algorithm.as_deref())?;
        send(shared, flow, connection, share, &mut stream)
    } else {
        receive(shared, flow, &mut stream)
    }
}

/// Opens the connections of a flow, one after another, and carries its data.
pub(super) fn carry(shared: &Shared, flow: &FlowState) {
    let Some(origin) = shared.origin.get() else { return };
    let start = *origin + Duration::from_nanos(flow.role.start_ns);
    if !shared.sleep_until(start) {
        return;
    }
    let (chunks, size) = (u64::from(flow.role.chunks.max(1)), flow.role.size.unwrap_or(0));
    let mut before = 0;
    for number in 0..chunks {
        let own = size / chunks + u64::from(number < size % chunks);
        let share =
            Share { before: Bytes::new(before), size: flow.role.size.map(|_| Bytes::new(own)) };
        before += own;
        let carried = connection(shared, flow, number as u32, share);
        // The other machine ends its flows at the same time, and may be a moment earlier.
        if shared.is_past_its_end() {
            return;
        }
        if let Err(error) = carried {
            flow.fails(format!(
                "connection {} of flow {} failed: {error}",
                number + 1,
                flow.role.flow + 1
            ));
            return;
        }
        if shared.is_over() {
            return;
        }
    }
}

fn connection(shared: &Shared, flow: &FlowState, number: u32, share: Share) -> io::Result<()> {
    let Some(to) = flow.role.to else { return Ok(()) };
    let algorithm = flow.role.algorithm.as_deref().filter(|_| flow.role.sends);
    flow.opened(shared.since_origin(since_boot()));
    let Some(mut stream) = connect(&shared.plan.way, to, algorithm, &shared.stop)? else {
        return Ok(());
    };
    flow.connections.fetch_add(1, Ordering::Relaxed);
    let mut header = MARK.to_vec();
    header.extend(shared.plan.token.bytes());
    header.extend(flow.role.flow.to_le_bytes());
    header.extend(number.to_le_bytes());
    header.extend(share.size.map_or(0, Bytes::get).to_le_bytes());
    stream.write_all(&header)?;
    if flow.role.sends {
        send(shared, flow, number, share, &mut stream)
    } else {
        receive(shared, flow, &mut stream)
    }
}

fn is_again(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Reads until the other end closes, or the run is over.
fn receive(shared: &Shared, flow: &FlowState, stream: &mut TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; BLOCK_BYTES];
    while !shared.is_over() {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => flow.arrived(shared.since_origin(since_boot()), count as u64),
            Err(error) if is_again(&error) => {}
            Err(error) => return Err(error),
        }
    }
    abort(stream)
}

/// Writes what the connection carries, and waits until the receiver has read it.
fn send(
    shared: &Shared,
    flow: &FlowState,
    connection: u32,
    share: Share,
    stream: &mut TcpStream,
) -> io::Result<()> {
    let place = (flow.role.flow, connection);
    shared.senders.add(place, stream)?;
    if let Ok(name) = SockRef::from(&*stream).tcp_congestion() {
        let name = String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned();
        let _ = flow.algorithm.set(name); // that of the first connection
    }
    let result = write(shared, flow, share, stream);
    let again = info(stream).map_or(0, |info| u64::from(info.retransmits()));
    flow.retransmits.fetch_add(again, Ordering::Relaxed);
    shared.senders.close(place);
    result
}

fn write(
    shared: &Shared,
    flow: &FlowState,
    share: Share,
    stream: &mut TcpStream,
) -> io::Result<()> {
    let block = vec![0; BLOCK_BYTES];
    let size = share.size.map_or(u64::MAX, Bytes::get);
    let start = shared.origin.get().copied().unwrap_or(Instant::ZERO);
    let start = start + Duration::from_nanos(flow.role.start_ns);
    let writing = flow.role.limit_bps.map(|bps| Writing::new(Rate::from_bps(bps), SEGMENT));
    let mut written = 0;
    while written < size {
        if shared.is_over() {
            return abort(stream);
        }
        let now = since_boot();
        let offered = match &writing {
            None => size,
            Some(writing) => writing.written(share, now.saturating_since(start)).get(),
        };
        if offered <= written {
            let next = writing.as_ref().and_then(|one| one.next_write(share, Bytes::new(written)));
            let next = next.map_or(now + Duration::from_millis(100), |after| start + after);
            shared.sleep_until(next);
            continue;
        }
        let length = (offered - written).min(block.len() as u64) as usize;
        match stream.write(&block[..length]) {
            Ok(count) => written += count as u64,
            Err(error) if is_again(&error) => {}
            Err(error) => return Err(error),
        }
    }
    stream.shutdown(Shutdown::Write)?;
    while !shared.is_over() {
        match stream.read(&mut [0; 64]) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if is_again(&error) => {}
            Err(error) => return Err(error),
        }
    }
    abort(stream)
}

/// Closes a connection at once, whatever its queue holds.
fn abort(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO))
}
