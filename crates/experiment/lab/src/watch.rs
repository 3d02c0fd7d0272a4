//! Measures the senders of a run: reads the records that the monitor's BPF programs make at each
//! ACK and event of a TCP connection.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use wakeai_kernel::{Filter, Monitor, MonitorConfig, Record, Socket};
use wakeai_world::{MeterPlace, SenderMeter};

use crate::error::LabError;
use crate::host::Host;
use crate::traffic::{FlowPlan, TrafficKind};

/// The time between two reads of the kernel's buffer. Reads every 10 ms take 2 % of a core at
/// 0.9 Gbit/s.
const POLL: std::time::Duration = std::time::Duration::from_millis(10);

/// The meter, if the run has begun, and the number of records that were lost because the kernel's
/// buffer was full.
pub(crate) type Watched = (Option<SenderMeter>, u64);

/// A running monitor.
#[derive(Debug)]
pub(crate) struct Watch {
    /// It hands the meter over. The thread ends where it is dropped.
    meters: Sender<SenderMeter>,
    thread: JoinHandle<Result<Watched, wakeai_kernel::Error>>,
}

impl Watch {
    /// Starts the monitor on the namespaces of `hosts`; returns when it is attached.
    pub(crate) fn start(hosts: &[Host], plans: &[FlowPlan]) -> Result<Self, LabError> {
        let config = MonitorConfig {
            filter: Filter {
                netns_inodes: hosts.iter().map(|host| host.netns().0 as u32).collect(),
                ..Filter::default()
            },
            ..MonitorConfig::default()
        };
        let (meters, inbox) = channel();
        let (ready, attached) = channel();
        let mut reader = Reader::new(plans.to_vec());
        let thread = std::thread::spawn(move || {
            let mut monitor = Monitor::open(&config)?;
            let _ = ready.send(());
            reader.read(&mut monitor, &inbox)?;
            Ok((reader.meter, monitor.lost()))
        });
        if attached.recv().is_ok() {
            return Ok(Self { meters, thread });
        }
        // The thread failed before it was ready; its result is the reason.
        match Self::join(thread) {
            Err(error) => Err(error),
            Ok(_) => Err(LabError::Monitor("it ended at once".to_owned())),
        }
    }

    /// Counts in `meter` from now on. It must be called before the run's first packet.
    pub(crate) fn begin(&self, meter: SenderMeter) {
        let _ = self.meters.send(meter);
    }

    /// Ends the monitor.
    pub(crate) fn stop(self) -> Result<Watched, LabError> {
        drop(self.meters);
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
    /// The known sockets, by the kernel's socket cookie. The value is the flow's connection that
    /// the socket sends, or `None` for all other sockets (iperf3's control connections, receivers,
    /// agents).
    sockets: HashMap<u64, Option<MeterPlace>>,
    connections: Vec<u32>,
    meter: Option<SenderMeter>,
}

impl Reader {
    fn new(plans: Vec<FlowPlan>) -> Self {
        let connections = vec![0; plans.len()];
        Self { plans, sockets: HashMap::new(), connections, meter: None }
    }

    fn read(
        &mut self,
        monitor: &mut Monitor,
        inbox: &Receiver<SenderMeter>,
    ) -> Result<(), wakeai_kernel::Error> {
        loop {
            let received = inbox.try_recv();
            let stop = matches!(received, Err(TryRecvError::Disconnected));
            self.meter = received.ok().or(self.meter.take());
            monitor.poll(POLL, &mut |record| self.record(&record))?;
            if stop {
                return Ok(());
            }
        }
    }

    fn record(&mut self, record: &Record) {
        let &Record { at, socket, figures, event } = record;
        let (Some(place), Some(meter)) = (self.place_of(&socket), &mut self.meter) else { return };
        match event {
            None => meter.sample(at, place, figures),
            Some(kind) => meter.event(at, place, kind, figures.cwnd),
        }
    }

    /// The flow's connection whose data the socket sends; `None` for any other socket.
    fn place_of(&mut self, socket: &Socket) -> Option<MeterPlace> {
        if let Some(known) = self.sockets.get(&socket.cookie) {
            return *known;
        }
        let plan = self.plans.iter().find(|plan| sends(plan, socket));
        let found = plan.map(|plan| {
            let connection = &mut self.connections[plan.index];
            *connection += 1;
            (plan.index as u32, *connection - 1)
        });
        // A socket whose addresses are not set yet is not remembered, because it may become a
        // sender.
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
        TrafficKind::Tcp => {
            (socket.local.port(), socket.remote.port()) == (plan.port, plan.data_port)
        }
        TrafficKind::Own(_) => socket.remote.port() == plan.port,
        TrafficKind::Udp(_) | TrafficKind::Quic(_) => false,
    }
}

/// The IP address. An IPv4-mapped address, which an IPv6 socket such as iperf3's listener has, is
/// converted to IPv4.
fn address(address: SocketAddr) -> IpAddr {
    address.ip().to_canonical()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use wakeai_units::{Bytes, Duration};

    use super::*;
    use wakeai_scenario::Chunks;
    use wakeai_world::flows::Division;
    use wakeai_world::{SERVER_ADDRESS, station_address};

    fn plan(index: usize, kind: TrafficKind) -> FlowPlan {
        FlowPlan {
            index,
            sender: 1,
            receiver: 0,
            from: station_address(wakeai_medium::StationId(0)),
            to: SERVER_ADDRESS,
            port: 5_201 + index as u16,
            data_port: 20_001 + index as u16,
            start: Duration::ZERO,
            round_trip: Duration::ZERO,
            kind,
            algorithm: None,
            requested: None,
            target: None,
            limit: None,
            turns: false,
            proxied: false,
        }
    }

    /// A reader for two flows.
    fn reader() -> Reader {
        let plans = vec![
            plan(0, TrafficKind::Tcp),
            plan(1, TrafficKind::Own(Division::of(Some(Bytes::new(2)), Chunks::Count(2), false))),
        ];
        Reader::new(plans)
    }

    /// A socket of the station towards the server.
    fn socket(cookie: u64, local_port: u16, remote_port: u16) -> Socket {
        let local = station_address(wakeai_medium::StationId(0));
        Socket {
            cookie,
            netns_cookie: 1,
            netns_inode: 1,
            local: SocketAddr::from((local, local_port)),
            remote: SocketAddr::from((SERVER_ADDRESS, remote_port)),
        }
    }

    #[test]
    fn only_the_sending_ends_of_data_connections_are_counted() {
        let mut reader = reader();
        let data = socket(1, 5_201, 20_001);
        let control = socket(2, 5_201, 41_234);
        let receiver = Socket { local: data.remote, remote: data.local, ..socket(3, 0, 0) };
        let elsewhere = Socket {
            remote: SocketAddr::from((Ipv4Addr::new(10, 74, 0, 9), 20_001)),
            ..socket(4, 5_201, 0)
        };
        let found = [data, control, receiver, elsewhere].map(|socket| reader.place_of(&socket));
        assert_eq!(found, [Some((0, 0)), None, None, None]);
    }

    #[test]
    fn the_connections_of_a_flow_are_numbered() {
        let mut reader = reader();
        assert_eq!(reader.place_of(&socket(7, 40_000, 5_202)), Some((1, 0)));
        assert_eq!(reader.place_of(&socket(8, 40_001, 5_202)), Some((1, 1)));
        assert_eq!(reader.place_of(&socket(7, 40_000, 5_202)), Some((1, 0)), "known by its cookie");
    }

    #[test]
    fn an_address_carried_by_an_ipv6_socket_is_the_same_address() {
        let mut reader = reader();
        let mapped = |address: SocketAddr| match address {
            SocketAddr::V4(v4) => SocketAddr::from((v4.ip().to_ipv6_mapped(), v4.port())),
            v6 @ SocketAddr::V6(_) => v6,
        };
        let plain = socket(1, 5_201, 20_001);
        let carried = Socket { local: mapped(plain.local), remote: mapped(plain.remote), ..plain };
        assert_eq!(reader.place_of(&carried), Some((0, 0)));
    }
}
