//! The senders' figures: the kernel's monitor, read while a run lasts.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use wakeai_connection::EventKind;
use wakeai_kernel::{Event, Filter, Monitor, MonitorConfig, Record, Sample, Socket};
use wakeai_scenario::figures::RttHistogram;
use wakeai_scenario::result::ErrorCounts;
use wakeai_units::{Duration, Instant};
use wakeai_world::Span;

use crate::error::LabError;
use crate::host::Host;
use crate::traffic::{FlowPlan, Kind};

/// Between two reads of the kernel's buffer (DESIGN §7: 2 % of a core at 0.9 Gbit/s).
const POLL: std::time::Duration = std::time::Duration::from_millis(10);

/// What the monitor saw of one run.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// Latest RTT, one sample per millisecond and socket, inside the run's window; for each group
    /// of stations.
    pub(crate) rtt: Vec<RttHistogram>,
    /// Error events inside the run's window.
    pub(crate) errors: ErrorCounts,
    /// Per flow.
    pub(crate) flows: Vec<FlowCounts>,
    /// Records that did not fit into the kernel's buffer.
    pub(crate) lost: u64,
}

/// What was counted of one flow's connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowCounts {
    /// Segments sent again.
    pub(crate) retransmits: u64,
    /// Retransmission timeouts.
    pub(crate) timeouts: u64,
}

/// A row for the records: which flow, which of its connections, when from the run's origin, and
/// what.
pub(crate) type Sink = Box<dyn FnMut(usize, u32, Duration, &Record) + Send>;

enum Command {
    Begin(Span),
    Stop,
}

/// A running monitor.
#[derive(Debug)]
pub(crate) struct Watch {
    commands: Sender<Command>,
    thread: JoinHandle<Result<Watched, wakeai_kernel::Error>>,
}

impl Watch {
    /// Starts the monitor on the namespaces of `hosts`; returns when it is attached.
    pub(crate) fn start(
        hosts: &[Host],
        plans: &[FlowPlan],
        sink: Option<Sink>,
    ) -> Result<Self, LabError> {
        let config = MonitorConfig {
            filter: Filter {
                netns_inodes: hosts.iter().map(|host| host.netns().0 as u32).collect(),
                ..Filter::default()
            },
            ..MonitorConfig::default()
        };
        let (commands, inbox) = channel();
        let (ready, attached) = channel();
        let mut reader = Reader::new(plans.to_vec(), sink);
        let thread = std::thread::spawn(move || {
            let mut monitor = Monitor::open(&config)?;
            let _ = ready.send(());
            reader.read(&mut monitor, &inbox)?;
            reader.watched.lost = monitor.lost();
            Ok(reader.watched)
        });
        if attached.recv().is_ok() {
            return Ok(Self { commands, thread });
        }
        // The thread gave up before it was ready: its result is the reason.
        match Self::join(thread) {
            Err(error) => Err(error),
            Ok(_) => Err(LabError::Monitor("it ended at once".to_owned())),
        }
    }

    /// Says when the run is, before its first packet; nothing is counted without it.
    pub(crate) fn begin(&self, span: Span) {
        let _ = self.commands.send(Command::Begin(span));
    }

    /// Ends the monitor.
    pub(crate) fn stop(self) -> Result<Watched, LabError> {
        let _ = self.commands.send(Command::Stop);
        Self::join(self.thread)
    }

    fn join(
        thread: JoinHandle<Result<Watched, wakeai_kernel::Error>>,
    ) -> Result<Watched, LabError> {
        match thread.join() {
            Ok(watched) => watched.map_err(|error| {
                if error.is_missing() {
                    LabError::Kernel(error)
                } else {
                    LabError::Monitor(error.to_string())
                }
            }),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

struct Reader {
    plans: Vec<FlowPlan>,
    /// By the kernel's socket cookie: flow and connection, or neither (iperf3's control
    /// connections, receivers, agents).
    sockets: HashMap<u64, Option<(usize, u32)>>,
    connections: Vec<u32>,
    span: Option<Span>,
    sink: Option<Sink>,
    watched: Watched,
}

impl Reader {
    fn new(plans: Vec<FlowPlan>, sink: Option<Sink>) -> Self {
        let groups = plans.iter().map(|plan| plan.group + 1).max().unwrap_or(0);
        let watched = Watched {
            rtt: vec![RttHistogram::new(); groups],
            flows: vec![FlowCounts::default(); plans.len()],
            ..Watched::default()
        };
        let connections = vec![0; plans.len()];
        Self { plans, sockets: HashMap::new(), connections, span: None, sink, watched }
    }

    fn read(
        &mut self,
        monitor: &mut Monitor,
        inbox: &Receiver<Command>,
    ) -> Result<(), wakeai_kernel::Error> {
        loop {
            let stop = match inbox.try_recv() {
                Ok(Command::Begin(span)) => {
                    self.span = Some(span);
                    false
                }
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => true,
                Err(TryRecvError::Empty) => false,
            };
            monitor.poll(POLL, &mut |record| self.record(&record))?;
            if stop {
                return Ok(());
            }
        }
    }

    fn record(&mut self, record: &Record) {
        let (socket, at) = match record {
            Record::Sample(sample) => (sample.socket, sample.at),
            Record::Event(event) => (event.socket, event.at),
        };
        let Some((flow, connection)) = self.flow_of(&socket) else { return };
        match record {
            Record::Sample(sample) => self.sample(flow, sample),
            Record::Event(event) => self.event(flow, event),
        }
        // A connection is set up before the run's time zero; that counts as zero.
        if let (Some(sink), Some(span)) = (&mut self.sink, self.span) {
            sink(flow, connection, at.saturating_since(span.origin), record);
        }
    }

    fn sample(&mut self, flow: usize, sample: &Sample) {
        if let Some(rtt) = sample.figures.latest_rtt.filter(|_| self.in_window(sample.at)) {
            self.watched.rtt[self.plans[flow].group].record(rtt);
        }
    }

    fn event(&mut self, flow: usize, event: &Event) {
        match event.kind {
            EventKind::Retransmit => self.watched.flows[flow].retransmits += 1,
            EventKind::Timeout => self.watched.flows[flow].timeouts += 1,
            EventKind::Error(code) if self.in_window(event.at) => self.watched.errors.add(code),
            _ => {}
        }
    }

    fn in_window(&self, at: Instant) -> bool {
        self.span.is_some_and(|span| span.counts(at))
    }

    /// Which flow's data the socket sends, and over which of its connections.
    fn flow_of(&mut self, socket: &Socket) -> Option<(usize, u32)> {
        if let Some(known) = self.sockets.get(&socket.cookie) {
            return *known;
        }
        let plan = self.plans.iter().find(|plan| sends(plan, socket));
        let found = plan.map(|plan| {
            let connection = &mut self.connections[plan.index];
            *connection += 1;
            (plan.index, *connection - 1)
        });
        // A socket whose addresses are not set yet may be a sender later.
        if found.is_some() || socket.remote.port() != 0 {
            self.sockets.insert(socket.cookie, found);
        }
        found
    }
}

/// Whether `socket` is the sending end of one of the flow's data connections.
fn sends(plan: &FlowPlan, socket: &Socket) -> bool {
    let ends = (address(socket.local), address(socket.remote));
    if ends != (IpAddr::V4(plan.from), IpAddr::V4(plan.to)) {
        return false;
    }
    match plan.kind {
        Kind::Tcp => (socket.local.port(), socket.remote.port()) == (plan.port, plan.data_port),
        Kind::Own(_) => socket.remote.port() == plan.port,
        Kind::Udp(_) => false,
    }
}

/// An IPv4 address, also where an IPv6 socket (iperf3's listener) carries it.
fn address(address: SocketAddr) -> IpAddr {
    address.ip().to_canonical()
}

#[cfg(test)]
mod tests;
