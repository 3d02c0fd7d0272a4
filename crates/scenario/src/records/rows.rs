//! The rows of the Parquet files; `docs/reference/records.md` describes every column.

/// One sample of one TCP sender: a row of `samples.parquet`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleRow {
    /// Since the start of the run, nanoseconds.
    pub at_ns: u64,
    /// Index of the flow, as in the result's `flows`.
    pub flow: u32,
    /// Which connection of the flow, from 0.
    pub connection: u32,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow-start threshold, segments.
    pub ssthresh: u32,
    /// Smoothed RTT, microseconds.
    pub srtt_us: u32,
    /// Latest RTT, microseconds.
    pub rtt_us: u32,
    /// Minimum RTT, microseconds.
    pub min_rtt_us: u32,
    /// Congestion state: 0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss.
    pub state: u8,
    /// Segments sent and not yet acknowledged.
    pub packets_out: u32,
    /// Of these, selectively acknowledged.
    pub sacked: u32,
    /// Of these, taken for lost.
    pub lost: u32,
    /// Of these, sent again.
    pub retransmitted: u32,
    /// Bytes in the send queue, sent or not.
    pub send_queue: u32,
    /// Segments delivered, in all.
    pub delivered: u64,
    /// Pacing rate, bytes per second; 0 is none.
    pub pacing: u64,
    /// CUBIC's K, microseconds, to 1/1024 s; `None` where it is not known or there is none.
    pub k_us: Option<u32>,
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It was established.
    Opened,
    /// It was closed.
    Closed,
    /// The congestion state changed; the value is the new one, as in [`SampleRow::state`].
    State,
    /// A segment was sent again.
    Retransmit,
    /// The retransmission timer fired.
    Timeout,
    /// An error of 000 table 2; the value is its code, 1 to 4.
    Error,
    /// Something has become of the flow's reservation; the value is 0 nothing is asked for, 1
    /// admitted, 2 refused, 3 refused because its part of the air is unknown.
    Reservation,
}

impl EventKind {
    /// The word in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Closed => "closed",
            Self::State => "state",
            Self::Retransmit => "retransmit",
            Self::Timeout => "timeout",
            Self::Error => "error",
            Self::Reservation => "reservation",
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
    pub kind: EventKind,
    /// What more there is to say, by kind; 0 where nothing.
    pub value: u32,
    /// The congestion window then, segments.
    pub cwnd: u32,
}

/// Where packets wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// The host's queue of a station, by its index.
    Station(u32),
    /// The access point's, for the air.
    AccessPoint,
    /// The wired leg's, towards the server.
    WiredUp,
    /// The wired leg's, from the server.
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

/// What the air carried, or did not.
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
    /// What collided.
    Collision,
    /// Nothing.
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

/// Whose air it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AirOf {
    /// What a station sent, by its index.
    Up(u32),
    /// What the access point sent to a station.
    Down(u32),
    /// All that the access point sent.
    AccessPoint,
    /// The air as a whole.
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

/// Air of one kind within one step of time: a row of `airtime.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AirtimeRow {
    /// The end of the step, since the start of the run, nanoseconds.
    pub at_ns: u64,
    /// Whose.
    pub of: AirOf,
    /// What it carried.
    pub kind: AirKind,
    /// How much, nanoseconds.
    pub air_ns: u64,
}
