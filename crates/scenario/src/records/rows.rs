//! The rows of the Parquet files; `docs/reference/records.md` describes every column.

use wakeai_connection::{EventKind, Figures};
use wakeai_units::Segments;

/// A row of one of the files to which a run adds rows while it lasts.
#[derive(Clone, Copy, Debug)]
pub enum Row {
    /// Of `samples.parquet`.
    Sample(SampleRow),
    /// Of `events.parquet`.
    Event(EventRow),
    /// Of `queues.parquet`.
    Queue(QueueRow),
    /// Of `airtime.parquet`.
    Airtime(AirtimeRow),
}

/// One sample of one TCP sender: a row of `samples.parquet`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleRow {
    /// Since the start of the run, nanoseconds.
    pub at_ns: u64,
    /// Index of the flow, as in the result's `flows`.
    pub flow: u32,
    /// Which connection of the flow, from 0.
    pub connection: u32,
    /// Its figures at that time.
    pub figures: Figures,
}

/// The event of an event row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowEvent {
    /// Something happened to the connection.
    Connection(EventKind),
    /// The flow's reservation changed: 0 no request, 1 admitted, 2 refused, 3 refused because its share of
    /// airtime is unknown.
    Reservation(u32),
}

impl RowEvent {
    /// The word in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connection(kind) => kind.name(),
            Self::Reservation(_) => "reservation",
        }
    }

    /// The number that goes with the word.
    pub fn value(self) -> u32 {
        match self {
            Self::Connection(kind) => u32::from(kind.value()),
            Self::Reservation(value) => value,
        }
    }
}

/// One event of one TCP sender: a row of `events.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// Since the start of the run, nanoseconds.
    pub at_ns: u64,
    /// Index of the flow, as in the result's `flows`.
    pub flow: u32,
    /// Which connection of the flow, from 0.
    pub connection: u32,
    /// What happened.
    pub event: RowEvent,
    /// The congestion window at that time.
    pub cwnd: Segments,
}

/// Where packets wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Queue {
    /// The word in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Station(_) => "station",
            Self::AccessPoint => "access_point",
            Self::WiredUp => "wired_up",
            Self::WiredDown => "wired_down",
        }
    }
}

/// The length of one queue at one moment: a row of `queues.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRow {
    /// Since the start of the run, nanoseconds.
    pub at_ns: u64,
    /// Which queue.
    pub queue: Queue,
    /// Packets in it.
    pub packets: u32,
}

/// The use of the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AirKind {
    /// Data frames with data.
    Data,
    /// Data frames with acknowledgements of TCP.
    TcpAck,
    /// Data frames and broadcasts with messages of agents.
    Presence,
    /// ACK and `BlockAck` frames.
    MacAck,
    /// RTS and CTS frames.
    Protection,
    /// Frames that collided.
    Collision,
    /// The air was idle.
    Idle,
}

impl AirKind {
    /// The word in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::TcpAck => "tcp_ack",
            Self::Presence => "presence",
            Self::MacAck => "mac_ack",
            Self::Protection => "protection",
            Self::Collision => "collision",
            Self::Idle => "idle",
        }
    }
}

/// The sender, and the receiver where it is one station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AirOf {
    /// The station with this index sent it.
    Up(u32),
    /// The access point sent it to the station with this index.
    Down(u32),
    /// The access point sent it, to one station or to all.
    AccessPoint,
    /// All senders.
    All,
}

impl AirOf {
    /// The word in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up(_) => "up",
            Self::Down(_) => "down",
            Self::AccessPoint => "access_point",
            Self::All => "all",
        }
    }
}

/// The airtime of one use within one step of time: a row of `airtime.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AirtimeRow {
    /// The end of the step, since the start of the run, nanoseconds.
    pub at_ns: u64,
    /// Whose airtime it is.
    pub of: AirOf,
    /// What it carried.
    pub kind: AirKind,
    /// The airtime, nanoseconds.
    pub air_ns: u64,
}
