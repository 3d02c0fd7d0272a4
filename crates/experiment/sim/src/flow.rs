//! A flow: its source of data, and its state.

use std::rc::Rc;

use wakeai_control::Permission;
use wakeai_medium::Node;
use wakeai_tcp::{Knobs, Sender, TcpConfig, by_name_with};
use wakeai_units::{Bytes, Duration, Instant, Rate, Serializer};
use wakeai_world::ReceiverMeter;
use wakeai_world::flows::{DATAGRAM, Division, Writing};
use wakeai_world::reservations::ReservationLog;

use crate::connection::Connection;
use crate::policer::Policer;
use crate::quic::QuicConnection;

/// A flow of the run.
#[allow(clippy::struct_excessive_bools, reason = "they are independent properties of a flow")]
#[derive(Debug)]
pub(crate) struct FlowState {
    pub(crate) from: Node,
    pub(crate) to: Node,
    pub(crate) start: Instant,
    /// The timer of its start, and of its next datagram or write.
    pub(crate) timer: u32,
    pub(crate) source: Source,
    /// The rate that the agent of the flow's sender reserves while the flow runs.
    pub(crate) reserves: Option<Rate>,
    pub(crate) meter: ReceiverMeter,
    pub(crate) totals: Totals,
    /// The limit of the flow's datagrams, where the station's agent limits their rate.
    pub(crate) policer: Option<Box<Policer>>,
    /// Whether the flow's application opens a new connection where one fails.
    pub(crate) resumes: bool,
    /// Whether the flow's transfers wait for turns.
    pub(crate) turns: bool,
    /// Whether its next connection waits for the station's turn.
    pub(crate) waits: bool,
    /// Whether a connection has given up, so that the flow never completes.
    pub(crate) broken: bool,
}

/// The source of a flow's data.
#[derive(Debug)]
pub(crate) enum Source {
    Tcp(Stream),
    Udp(Datagrams),
    Quic(Box<QuicConnection>),
}

/// TCP connections, one after another.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) config: Rc<TcpConfig>,
    /// The name of an algorithm that the simulator has.
    pub(crate) algorithm: String,
    pub(crate) knobs: Knobs,
    /// The target of `wakeai_av` in payload bytes per second; 0 is none.
    pub(crate) target: u64,
    /// Whether the algorithm obeys an agent's bounds.
    pub(crate) boundable: bool,
    pub(crate) hears_overflow: bool,
    pub(crate) division: Division,
    /// The id of the last opened connection, and the time at which it was opened.
    pub(crate) current: u32,
    pub(crate) opened: Instant,
    /// The times at which the application writes; `None` where it writes all data at once.
    pub(crate) writing: Option<Writing>,
}

impl Stream {
    /// The sender of the next connection, which has the id `id` and is not opened yet; `None` where
    /// there is no further connection.
    pub(crate) fn next_sender(
        &mut self,
        now: Instant,
        id: u32,
        permission: Permission,
    ) -> Option<Sender> {
        self.division.begin(permission)?;
        (self.current, self.opened) = (id, now);
        let algorithm = by_name_with(&self.algorithm, &self.config, self.knobs);
        let algorithm = algorithm.expect("checked when the run was set up");
        let mut sender = Sender::new(&self.config, algorithm);
        sender.set_target_rate(self.target);
        Some(sender)
    }

    /// Hands the last opened connection the data that the application has written by `since_start`,
    /// counted from the start of the flow. Returns the time of the next write.
    pub(crate) fn write(&self, since_start: Duration, sender: &mut Sender) -> Option<Duration> {
        let share = self.division.share();
        let size = share.size.map(Bytes::get);
        let Some(writing) = &self.writing else {
            sender.supply(size);
            if size.is_some() {
                sender.close();
            }
            return None;
        };
        let written = writing.written(share, since_start);
        sender.supply(Some(written.get()));
        if share.size == Some(written) {
            sender.close();
        }
        writing.next_write(share, written)
    }
}

/// UDP datagrams.
#[derive(Debug)]
pub(crate) struct Datagrams {
    /// The times of the datagrams of a flow with a rate; `None` where the flow keeps its station's
    /// queue full.
    pub(crate) line: Option<Serializer>,
    /// The bytes that are still to be sent; `None` where the flow has no end.
    pub(crate) left: Option<u64>,
}

impl Datagrams {
    /// The payload of the next datagram in bytes; `None` where all is sent.
    pub(crate) fn next(&mut self) -> Option<u16> {
        let most = DATAGRAM.get();
        let Some(left) = &mut self.left else { return Some(most as u16) };
        let len = most.min(*left);
        *left -= len;
        (len > 0).then_some(len as u16)
    }

    /// The payload of the next datagram of a flow with a rate, and the time of the one after it.
    pub(crate) fn next_at(&mut self, now: Instant) -> Option<(u16, Instant)> {
        let len = self.next()?;
        let next = self.line.as_mut()?.send(now, Bytes::new(u64::from(len)));
        Some((len, next))
    }
}

/// Sums over the flow's connections that have ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) syn_timeouts: u64,
    pub(crate) syn_wait: Duration,
    /// The time from the start of the flow until its first connection was established.
    pub(crate) opened: Option<Duration>,
}

impl FlowState {
    /// Whether the flow has completed or never will.
    pub(crate) fn is_over(&self) -> bool {
        self.broken || self.meter.completed().is_some()
    }

    /// Adds the counters of a connection that has ended.
    pub(crate) fn take_account(&mut self, connection: &Connection) {
        let counters = connection.sender.counters();
        let totals = &mut self.totals;
        totals.syn_timeouts += u64::from(counters.syn_timeouts);
        totals.syn_wait += counters.syn_wait;
        if connection.number == 0 {
            totals.opened = connection.established.map(|at| at.saturating_since(self.start));
        }
    }
}

/// The reservation of one station.
#[derive(Debug, Default)]
pub(crate) struct Reserving {
    /// The flows whose rates are reserved.
    pub(crate) flows: Vec<u32>,
    pub(crate) log: ReservationLog,
}

impl Reserving {
    /// The sum of the rates that the running flows reserve; `None` where none of them reserves.
    pub(crate) fn wanted(&self, now: Instant, flows: &[FlowState]) -> Option<Rate> {
        let flows = self.flows.iter().map(|flow| &flows[*flow as usize]);
        let running = flows.filter(|flow| flow.start <= now && !flow.is_over());
        let sum: Rate = running.filter_map(|flow| flow.reserves).sum();
        (sum > Rate::ZERO).then_some(sum)
    }
}
