//! TCP flows over connections of the lab's own.
//!
//! The lab's sender writes as many bytes as the flow has and closes the connection, and its
//! receiver reads to the end. iperf3 does not do this. With `-R -n` its sender continues past the
//! size until the receiver stops it a round trip later, and the additional packets in the host's
//! queue take air from other stations. With the sender as the client, iperf3's receiver closes
//! before it has read everything. A flow with a `limit` is written at the same times as in the
//! simulator.

use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use nix::errno::Errno;
use nix::sys::socket::{SockaddrIn, connect};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use wakeai_api::TransferClient;
use wakeai_control::Permission;
use wakeai_kernel::Control;
use wakeai_units::{Bytes, Duration, Instant, Rate};
use wakeai_world::ReceiverMeter;
use wakeai_world::flows::{Share, Writing};

use super::{FlowPlan, TrafficKind};
use crate::clock;
use crate::error::LabError;
use crate::host::Host;

/// The time after which a blocked system call returns, so that its thread can check whether the run
/// is over.
const PATIENCE: Duration = Duration::from_millis(100);
/// Bytes per system call.
pub(super) const BLOCK_BYTES: usize = 128 * 1024;
/// The size of an endless flow: more than any run carries.
pub(super) const ENDLESS: Bytes = Bytes::new(u64::MAX);
/// The payload of a full segment: 1500 bytes (the MTU) less the headers of IPv4 and TCP, with TCP's
/// timestamps.
const SEGMENT: Bytes = Bytes::new(1_448);

/// One flow, with a thread at each end.
#[derive(Debug)]
pub(crate) struct OwnTransfer {
    station: String,
    stop: Arc<AtomicBool>,
    /// When the sender began.
    begun: Arc<OnceLock<Instant>>,
    sender: JoinHandle<io::Result<()>>,
    receiver: JoinHandle<(ReceiverMeter, io::Result<()>)>,
}

impl OwnTransfer {
    /// Prepares both ends. The first connection is opened at the flow's start. `meter` counts the
    /// received bytes.
    pub(crate) fn start(
        plan: &FlowPlan,
        mut meter: ReceiverMeter,
        from: &Host,
        to: &Host,
        targets: Option<Arc<Control>>,
        agent: Option<PathBuf>,
    ) -> Result<Self, LabError> {
        let TrafficKind::Own(mut division) = plan.kind.clone() else {
            unreachable!("the others are iperf3's")
        };
        let start = meter.start();
        let stop = Arc::new(AtomicBool::new(false));
        let address = SocketAddrV4::new(plan.to, plan.port);
        let failed = |action: &str| LabError::system(format!("{action} for {}", from.name));
        // The listener must exist before the sender opens a connection.
        let listener = to.namespace.run(|| listen(address))?.map_err(failed("listen"))?;
        let (expected, stopped) = (division.size(), Arc::clone(&stop));
        let arrived = Arc::new(AtomicU64::new(0));
        let turn = FlowTurn::new(agent, expected, Arc::clone(&arrived));
        let receive = move || {
            let result = receive_all(&listener, expected, &stopped, &arrived, &mut meter);
            (meter, result)
        };
        let receiver = small_thread().spawn(receive).map_err(failed("start a thread"))?;
        // A socket belongs to the namespace of the thread that creates it.
        let namespace = from.namespace_file().map_err(failed("open the namespace"))?;
        let way = Way {
            to: address,
            algorithm: plan.requested.clone(),
            // The proxy sets the target of its own connection.
            target: targets.zip(plan.target.filter(|_| !plan.proxied)),
            writing: plan.limit.map(|limit| (Writing::new(limit, SEGMENT), start)),
        };
        let (stopped, begun) = (Arc::clone(&stop), Arc::new(OnceLock::new()));
        let begins = Arc::clone(&begun);
        let send_all = move || {
            nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNET)?;
            clock::sleep_until(start);
            let _ = begins.set(clock::now()); // it is set only here
            while !division.is_over() {
                let Some(permission) = turn.wait(&stopped) else { return Ok(()) };
                let Some(share) = division.begin(permission) else { break };
                let begun = clock::now();
                send(&way, share, &turn, &stopped)?;
                division.sent(clock::now().saturating_since(begun));
            }
            Ok(())
        };
        let sender = small_thread().spawn(send_all).map_err(failed("start a thread"))?;
        Ok(Self { station: from.name.clone(), stop, begun, sender, receiver })
    }

    /// When the sender began: when it opened its first connection, or began to wait for its station's turn.
    pub(crate) fn begun(&self) -> Option<Instant> {
        self.begun.get().copied()
    }

    /// Whether the receiver has received everything, or has failed.
    pub(crate) fn is_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// Ends the flow if it still runs.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Ends the flow if it still runs, and returns the meter.
    pub(crate) fn collect(self) -> Result<ReceiverMeter, LabError> {
        self.stop();
        let failed = |reason: &str| LabError::child("the transfer", &self.station, reason);
        let (meter, arrived) = self.receiver.join().map_err(|_| failed("its receiver panicked"))?;
        let sent = self.sender.join().map_err(|_| failed("its sender panicked"))?;
        for error in [sent.err(), arrived.err()].into_iter().flatten() {
            if !broke_off(&error) {
                return Err(failed(&error.to_string()));
            }
            tracing::warn!(station = self.station, %error, "a flow broke off");
        }
        Ok(meter)
    }
}

/// A thread with a small stack: the lab locks its memory, so all of a stack takes real memory.
fn small_thread() -> std::thread::Builder {
    std::thread::Builder::new().name("flow".to_owned()).stack_size(256 * 1024)
}

/// Whether a connection was given up. On air with many losses this is a result of the run, not a
/// failure of the lab.
pub(super) fn broke_off(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::TimedOut
            | ErrorKind::ConnectionReset
            | ErrorKind::BrokenPipe
            | ErrorKind::UnexpectedEof
    )
}

fn listen(address: SocketAddrV4) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    SockRef::from(&listener).set_read_timeout(Some(PATIENCE.into()))?;
    Ok(listener)
}

/// Receives `size` bytes, over as many connections as the sender opens one after another.
fn receive_all(
    listener: &TcpListener,
    size: Option<Bytes>,
    stop: &AtomicBool,
    arrived: &AtomicU64,
    meter: &mut ReceiverMeter,
) -> io::Result<()> {
    let mut buffer = vec![0; BLOCK_BYTES];
    let mut left = size.unwrap_or(ENDLESS).get();
    while left > 0 {
        let Some((mut stream, _)) = until(stop, || listener.accept())? else { return Ok(()) };
        stream.set_read_timeout(Some(PATIENCE.into()))?;
        loop {
            match until(stop, || stream.read(&mut buffer))? {
                None => return Ok(()),
                Some(0) => break,
                Some(count) => {
                    meter.on_received(clock::now(), count as u64);
                    arrived.fetch_add(count as u64, Ordering::Relaxed);
                    left = left.saturating_sub(count as u64);
                }
            }
        }
    }
    Ok(())
}

/// How the connections of a flow are opened and written.
struct Way {
    to: SocketAddrV4,
    algorithm: Option<String>,
    /// The target rate, and the handle that sets it.
    target: Option<(Arc<Control>, Rate)>,
    /// The times at which the application writes, and the start of its flow. `None` means that it
    /// writes everything at once.
    writing: Option<(Writing, Instant)>,
}

impl Way {
    /// Waits until the application has produced more than `written` bytes for a connection. Returns
    /// the number of bytes produced so far, or `None` if the run is over.
    fn wait_for_more(&self, share: Share, written: Bytes, stop: &AtomicBool) -> Option<Bytes> {
        let Some((writing, start)) = &self.writing else {
            return Some(share.size.unwrap_or(ENDLESS));
        };
        while !stop.load(Ordering::Relaxed) {
            let now = clock::now();
            let offered = writing.written(share, now.saturating_since(*start));
            if offered > written {
                return Some(offered);
            }
            let patience = now + PATIENCE;
            let next = writing.next_write(share, written).map(|after| *start + after);
            clock::sleep_until(next.map_or(patience, |next| next.min(patience)));
        }
        None
    }

    fn socket(&self) -> io::Result<Socket> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        if let Some(algorithm) = &self.algorithm {
            socket.set_tcp_congestion(algorithm.as_bytes())?;
        }
        if let Some((control, rate)) = &self.target {
            let cookie = socket.cookie()?;
            control.set_target(cookie, rate.bytes_per_second()).map_err(io::Error::other)?;
        }
        socket.set_write_timeout(Some(PATIENCE.into()))?;
        socket.set_read_timeout(Some(PATIENCE.into()))?;
        Ok(socket)
    }
}

/// Sends one chunk over a new connection, and waits until the receiver has received all of it.
fn send(way: &Way, share: Share, turn: &FlowTurn, stop: &AtomicBool) -> io::Result<()> {
    let Some(mut stream) = open(way.socket()?, way.to, stop)? else { return Ok(()) };
    let block = vec![0; BLOCK_BYTES];
    let size = share.size.unwrap_or(ENDLESS);
    let mut written = Bytes::ZERO;
    while written < size {
        let Some(offered) = way.wait_for_more(share, written, stop) else { return abort(&stream) };
        while written < offered {
            let left = offered.saturating_sub(written).get();
            let length = left.min(block.len() as u64) as usize;
            turn.tell();
            match until(stop, || stream.write(&block[..length]))? {
                Some(count) => written += Bytes::new(count as u64),
                None => return abort(&stream),
            }
        }
    }
    stream.shutdown(Shutdown::Write)?;
    let read = || {
        turn.tell();
        stream.read(&mut [0; 1])
    };
    match until(stop, read)? {
        Some(_) => Ok(()), // the receiver has closed, because it has everything
        None => abort(&stream),
    }
}

fn open(socket: Socket, to: SocketAddrV4, stop: &AtomicBool) -> io::Result<Option<TcpStream>> {
    let address = SockaddrIn::from(to);
    loop {
        // The kernel continues to connect after the send timeout has expired.
        match connect(std::os::fd::AsRawFd::as_raw_fd(&socket), &address) {
            Ok(()) | Err(Errno::EISCONN) => return Ok(Some(TcpStream::from(socket))),
            Err(Errno::EINPROGRESS | Errno::EALREADY | Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
}

/// Discards the unsent data, at the end of the run.
fn abort(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO))
}

/// Makes the call again after each timeout, until it succeeds. Returns `None` if the run is over.
/// It checks whether the run is over before every call, because the calls of an endless flow may
/// never time out.
fn until<T>(stop: &AtomicBool, mut call: impl FnMut() -> io::Result<T>) -> io::Result<Option<T>> {
    while !stop.load(Ordering::Relaxed) {
        match call() {
            Ok(value) => return Ok(Some(value)),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            // The run has ended during the call. The other end may then have aborted the connection.
            Err(_) if stop.load(Ordering::Relaxed) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The time between two requests while the flow waits.
const WAITS: Duration = Duration::from_millis(50);
/// The time between two requests while the flow sends.
const SENDS: Duration = Duration::from_millis(250);
/// The longest wait for an answer.
const ANSWER_PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// Asks the agent of a flow's station whether the flow may send, as `wakeai put` does.
#[derive(Debug)]
struct FlowTurn {
    agent: Option<PathBuf>,
    client: RefCell<Option<TransferClient>>,
    size: Bytes,
    /// The bytes that the receiver has.
    arrived: Arc<AtomicU64>,
    next: Cell<Instant>,
}

impl FlowTurn {
    /// The turn of a flow of `size` bytes; a flow without `agent` or size always sends.
    fn new(agent: Option<PathBuf>, size: Option<Bytes>, arrived: Arc<AtomicU64>) -> Self {
        Self {
            agent: agent.filter(|_| size.is_some()),
            client: RefCell::new(None),
            size: size.unwrap_or(Bytes::ZERO),
            arrived,
            next: Cell::new(Instant::ZERO),
        }
    }

    /// Waits until the flow may send; `None` where the run is over.
    fn wait(&self, stop: &AtomicBool) -> Option<Permission> {
        while !stop.load(Ordering::Relaxed) {
            match self.ask() {
                Permission::Wait => clock::sleep_until(clock::now() + WAITS),
                may_send => return Some(may_send),
            }
        }
        None
    }

    /// Tells the agent at intervals what is left, while the flow sends.
    fn tell(&self) {
        if self.agent.is_some() && clock::now() >= self.next.get() {
            self.ask();
        }
    }

    /// Asks the agent whether the flow may send, and says how many bytes are left. Where there is
    /// no agent, or the agent does not answer, the flow sends.
    fn ask(&self) -> Permission {
        let Some(agent) = &self.agent else { return Permission::Send };
        self.next.set(clock::now() + SENDS);
        let mut client = self.client.borrow_mut();
        let left = self.size.get().saturating_sub(self.arrived.load(Ordering::Relaxed));
        let asked = match client.take() {
            Some(client) => Ok(client),
            None => TransferClient::connect(agent, ANSWER_PATIENCE),
        };
        match asked.and_then(|asked| asked.ask(Some(left)).map(|answer| (asked, answer))) {
            Ok((asked, answer)) => {
                *client = Some(asked);
                answer.permission
            }
            Err(error) => {
                tracing::warn!(%error, "a flow sends without waiting for its turn");
                Permission::Send
            }
        }
    }
}
