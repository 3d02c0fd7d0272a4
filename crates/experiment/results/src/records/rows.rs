//! The rows of the Parquet files. `docs/reference/records.md` describes every column.

use wakeai_connection::{EventKind, Figures};
use wakeai_units::{Bytes, Duration, Rate, Segments};

/// A row that a run adds to one of the files before it ends.
#[derive(Clone, Copy, Debug)]
pub enum Row {
    /// A row of `samples.parquet`.
    Sample(SampleRow),
    /// A row of `events.parquet`.
    Event(EventRow),
    /// A row of `goodput.parquet`.
    Goodput(GoodputRow),
    /// A row of `queues.parquet`.
    Queue(QueueRow),
    /// A row of `airtime.parquet`.
    Airtime(AirtimeRow),
}

/// One sample of one TCP sender: a row of `samples.parquet`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleRow {
    /// The time since the start of the run, nanoseconds.
    pub at_ns: u64,
    /// Index of the flow, as in the result's `flows`.
    pub flow: u32,
    /// The number of the connection in the flow, from 0.
    pub connection: u32,
    /// The connection's figures at that time.
    pub figures: Figures,
}

/// The event of an event row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowEvent {
    /// An event of the connection.
    Connection(EventKind),
    /// The flow's reservation changed. The value is 0 for no request, 1 for admitted, 2 for
    /// refused, and 3 for refused because its share of airtime is unknown.
    Reservation(u32),
}

impl RowEvent {
    /// The word in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connection(kind) => kind.name(),
            Self::Reservation(_) => "reservation",
        }
    }

    /// The value that belongs to the event; `None` for an event without one.
    pub fn value(self) -> Option<u32> {
        match self {
            Self::Connection(kind @ (EventKind::StateChange { .. } | EventKind::Error(_))) => {
                Some(u32::from(kind.value()))
            }
            Self::Connection(_) => None,
            Self::Reservation(value) => Some(value),
        }
    }
}

/// One event of one TCP sender: a row of `events.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// The time since the start of the run, nanoseconds.
    pub at_ns: u64,
    /// Index of the flow, as in the result's `flows`.
    pub flow: u32,
    /// The number of the connection in the flow, from 0.
    pub connection: u32,
    /// The event.
    pub event: RowEvent,
    /// The congestion window at that time.
    pub cwnd: Segments,
}

/// What one flow delivered in one interval: a row of `goodput.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoodputRow {
    /// The end of the interval: the time since the start of the run, nanoseconds.
    pub at_ns: u64,
    /// The length of the interval, nanoseconds.
    pub interval_ns: u64,
    /// Index of the flow, as in the result's `flows`.
    pub flow: u32,
    /// The bytes that the receiving application got.
    pub bytes: u64,
}

impl GoodputRow {
    /// The goodput, Mbit/s.
    pub fn mbps(&self) -> f64 {
        Rate::of(Bytes::new(self.bytes), Duration::from_nanos(self.interval_ns)).as_mbps_f64()
    }
}

/// A queue of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Queue {
    /// The host queue of the station with this index.
    Station(u32),
    /// The access point's queue for the air.
    AccessPoint,
    /// The queue of the wired leg, towards the server.
    WiredUp,
    /// The queue of the wired leg, from the server.
    WiredDown,
}

/// The length of one queue at one moment: a row of `queues.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRow {
    /// The time since the start of the run, nanoseconds.
    pub at_ns: u64,
    /// The queue.
    pub queue: Queue,
    /// The number of packets in the queue.
    pub packets: u32,
}

/// A use of the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum AirKind {
    /// Data frames that carry data of applications.
    Data,
    /// Data frames that carry acknowledgements of TCP.
    TcpAck,
    /// Data frames and broadcasts that carry messages of agents.
    Presence,
    /// ACK and `BlockAck` frames.
    MacAck,
    /// RTS and CTS frames.
    Protection,
    /// Frames that collided.
    Collision,
    /// None: the air was idle.
    Idle,
}

/// The sender and, for frames to one station, the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum AirOf {
    /// Frames that the station with this index sent.
    Up(u32),
    /// Frames that the access point sent to the station with this index.
    Down(u32),
    /// All frames that the access point sent.
    AccessPoint,
    /// The frames of all senders.
    All,
}

/// The airtime of one use within one step of time: a row of `airtime.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AirtimeRow {
    /// The end of the step: the time since the start of the run, nanoseconds.
    pub at_ns: u64,
    /// The sender of the frames.
    pub of: AirOf,
    /// The use of the air.
    pub kind: AirKind,
    /// The airtime, nanoseconds.
    pub air_ns: u64,
}
