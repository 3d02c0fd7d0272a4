//! The rows of the Parquet files; `docs/reference/records.md` describes every column.

/// One sample of one TCP connection: a row of `samples.parquet`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleRow {
    /// Index of the condition in the scenario.
    pub condition: u32,
    /// Which repeat, from 0.
    pub repeat: u32,
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
    /// Segments in flight, as the stack counts them (`packets_out`).
    pub packets_out: u32,
    /// Segments selectively acknowledged.
    pub sacked: u32,
    /// Segments taken for lost.
    pub lost: u32,
    /// Segments sent again, in all.
    pub retransmitted: u32,
    /// Bytes in the send queue.
    pub send_queue: u32,
    /// Segments delivered, in all.
    pub delivered: u64,
    /// Pacing rate, bytes per second; 0 is none.
    pub pacing: u64,
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The congestion state changed; `value` is the new one.
    State,
    /// A segment was sent again; `value` is its sequence number.
    Retransmit,
    /// The retransmission timer fired.
    Timeout,
    /// An error of 000 table 2; `value` is its code, 1 to 4.
    Error,
}

/// One event of one TCP connection: a row of `events.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// Index of the condition in the scenario.
    pub condition: u32,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// Since the start of the run, nanoseconds.
    pub at_ns: u64,
    /// Index of the flow, as in the result's `flows`.
    pub flow: u32,
    /// Which connection of the flow, from 0.
    pub connection: u32,
    /// What happened.
    pub kind: EventKind,
    /// What it says depends on the kind.
    pub value: u64,
}

/// One flow: a row of `flows.parquet`.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRow {
    /// The condition's name.
    pub condition: String,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// Index of the flow, as in the result's `flows`.
    pub flow: u32,
    /// The same as in the result.
    pub result: crate::result::FlowResult,
}
