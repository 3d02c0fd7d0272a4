//! The messages between the controlling command and a machine's helper: one JSON object per line, a question or its
//! answer. Times are nanoseconds. Those of a helper are of its own clock (`CLOCK_BOOTTIME`), which nobody can set.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};
use wakeai_connection::{CongestionState, ErrorCode, EventKind, Figures};
use wakeai_units::{Bytes, Duration, Rate, Segments};

/// The version of these messages. Both ends have the same.
pub(crate) const PROTOCOL: u32 = 2;

/// A line to a helper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Question {
    /// The number that the answer repeats.
    pub(crate) id: u64,
    pub(crate) ask: Ask,
}

/// A line from a helper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reply {
    pub(crate) id: u64,
    pub(crate) answer: Answer,
}

/// What a helper is asked to do. Each may be asked again, after a connection was lost.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ask {
    /// The first line of each connection. The helper of this session is started, or found where it runs.
    Hello {
        protocol: u32,
        session: String,
        /// The time after the last question, and after the end of a run, at which the helper undoes everything and ends.
        grace_ns: u64,
    },
    /// The time of the helper's clock.
    Ping,
    /// What is known of the machine.
    Inspect(InspectAsk),
    /// Listens for [`Ask::Reach`], or ends that.
    Listen { port: Option<u16>, token: Token },
    /// Connects to the server's port, and tells how long that took.
    Reach { way: Way, to: SocketAddr, token: Token },
    /// Sends broadcasts and listens for those of the others, for a second.
    Shout { way: Way, port: u16, token: Token, own: u32, to: Option<Ipv4Addr> },
    /// Makes everything ready for a run: agent, monitor and listening sockets.
    Prepare(Box<RunPlan>),
    /// The run begins at this time of the helper's clock.
    Go { origin_ns: u64 },
    /// How far the run is.
    Status,
    /// The run ends now.
    Stop,
    /// What was measured.
    Fetch,
    /// Undoes the run, and forgets what was measured.
    Forget,
    /// Undoes everything; the helper ends.
    End,
}

/// A helper's answer.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    Welcome(Welcome),
    Pong {
        boot_ns: u64,
    },
    Facts(Box<Facts>),
    Reached {
        took_ns: u64,
    },
    Heard {
        from: Vec<u32>,
    },
    Status {
        phase: Phase,
        complete: Vec<u32>,
    },
    Data(Box<StationData>),
    Done,
    /// The helper could not do it, and why.
    Refused(String),
}

/// What a helper says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Welcome {
    /// The version of Wakeai.
    pub(crate) version: String,
    /// The kernel's identity of the time since the machine has booted.
    pub(crate) boot: String,
    pub(crate) pid: u32,
    /// Whether the helper runs as root.
    pub(crate) root: bool,
}

/// How far a helper is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Phase {
    Idle,
    Prepared,
    Running,
    Ended,
}

/// A secret of a run, by which its sockets know each other: 16 random bytes in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Token(pub(crate) String);

impl Token {
    /// The first 16 bytes of the text, by which connections and datagrams begin.
    pub(crate) fn bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        let text = self.0.as_bytes();
        let length = text.len().min(16);
        bytes[..length].copy_from_slice(&text[..length]);
        bytes
    }
}

/// The interface and the address that a machine uses in the experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Way {
    pub(crate) interface: Option<String>,
    pub(crate) address: Option<IpAddr>,
}

/// What is asked of a machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct InspectAsk {
    pub(crate) way: Way,
    /// The server's address, towards which the interface is sought where none is named.
    pub(crate) server: Option<IpAddr>,
}

/// What is known of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) hostname: String,
    pub(crate) kernel: String,
    pub(crate) root: bool,
    /// Why the kernel cannot run an agent; `None` where it can.
    pub(crate) no_agent: Option<String>,
    /// Why the kernel cannot be monitored; `None` where it can.
    pub(crate) no_monitor: Option<String>,
    /// The default congestion control, and all that there are.
    pub(crate) default_algorithm: String,
    pub(crate) algorithms: Vec<String>,
    /// Whether an agent runs, and its process.
    pub(crate) agent: Option<i32>,
    pub(crate) iperf3: bool,
    /// The wall clock, nanoseconds since 1970, and the helper's clock at that moment.
    pub(crate) wall_ns: u64,
    pub(crate) boot_ns: u64,
    pub(crate) way: Way,
    /// Whether the interface is up and has a carrier.
    pub(crate) up: bool,
    /// The addresses that the interface has.
    pub(crate) addresses: Vec<IpAddr>,
    /// The speed of a wired interface, Mbit/s.
    pub(crate) wire_mbps: Option<u32>,
    pub(crate) air: Option<Air>,
    /// Why there are no readings of the air.
    pub(crate) no_air: Option<String>,
    pub(crate) power_saving: Option<bool>,
    /// A program that may roam or scan meanwhile.
    pub(crate) roams: Option<String>,
    /// The address of this machine through which ssh came.
    pub(crate) ssh_address: Option<IpAddr>,
    /// The interface of that address.
    pub(crate) ssh_interface: Option<String>,
    /// The memory that is free, MB.
    pub(crate) free_mb: Option<u64>,
}

/// A reading of the air by the driver. What it does not tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Air {
    pub(crate) ssid: Option<String>,
    pub(crate) bssid: Option<String>,
    pub(crate) frequency_mhz: Option<u32>,
    pub(crate) width_mhz: Option<u32>,
    pub(crate) signal_dbm: Option<i8>,
    pub(crate) tx_mbps: Option<f64>,
    pub(crate) rx_mbps: Option<f64>,
    pub(crate) retries: Option<u32>,
    pub(crate) failed: Option<u32>,
    /// Seconds since the association.
    pub(crate) connected_s: Option<u32>,
    /// Of the radio on its channel, milliseconds: all, sensed as busy, and of that received and sent.
    pub(crate) active_ms: Option<u64>,
    pub(crate) busy_ms: Option<u64>,
    pub(crate) rx_ms: Option<u64>,
    pub(crate) tx_ms: Option<u64>,
}

/// The readings of a run, one every second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AirDuring {
    pub(crate) readings: u32,
    /// Means over those readings that have the figure.
    pub(crate) signal_dbm: Option<f64>,
    pub(crate) tx_mbps: Option<f64>,
    pub(crate) rx_mbps: Option<f64>,
    /// The access points, one after another.
    pub(crate) bssids: Vec<String>,
}

/// What a helper has to do in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunPlan {
    /// The name of the run, which is unique in its session.
    pub(crate) run: String,
    pub(crate) token: Token,
    pub(crate) duration_ns: u64,
    pub(crate) way: Way,
    /// The port at which connections and datagrams are accepted.
    pub(crate) port: u16,
    pub(crate) flows: Vec<FlowRole>,
    pub(crate) agent: Option<AgentPlan>,
    /// Whether congestion controls of Wakeai are needed beside those of the agent.
    pub(crate) registers: bool,
}

/// The agent of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgentPlan {
    /// Its configuration; the helper replaces the file of the key.
    pub(crate) config: String,
    /// The key of the run, 64 digits in hexadecimal.
    pub(crate) key: String,
}

/// One end of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FlowRole {
    pub(crate) flow: u32,
    /// The rate of datagrams; `None` for a flow of TCP.
    pub(crate) udp_bps: Option<u64>,
    pub(crate) sends: bool,
    /// Where this end connects to; the other end accepts.
    pub(crate) to: Option<SocketAddr>,
    pub(crate) size: Option<u64>,
    pub(crate) chunks: u32,
    /// The start, from the run's time zero.
    pub(crate) start_ns: u64,
    /// The congestion control that the sending socket sets; `None` leaves the default.
    pub(crate) algorithm: Option<String>,
    /// The rate at which the sending application writes.
    pub(crate) limit_bps: Option<u64>,
}

/// What a helper has measured in a run. Times count from the run's time zero by the helper's clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StationData {
    pub(crate) run: String,
    pub(crate) flows: Vec<FlowData>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) events: Vec<Event>,
    /// Records of the monitor that were lost.
    pub(crate) lost: u64,
    /// Whether the kernel was monitored. Otherwise the samples are those of `tcp_info`.
    pub(crate) monitored: bool,
    /// The peers that the agent knew at the end.
    pub(crate) peers: Option<usize>,
    pub(crate) air_before: Option<Air>,
    /// The reading right before the time zero. Since the one before nothing of the experiment was sent.
    #[serde(default)]
    pub(crate) air_at_start: Option<Air>,
    pub(crate) air_after: Option<Air>,
    #[serde(default)]
    pub(crate) air_during: Option<AirDuring>,
    /// The time for which the interface was down or had no carrier.
    pub(crate) down_ns: u64,
    /// The busy share of the busiest processor.
    pub(crate) busiest_cpu: Option<f64>,
    /// What went wrong on this machine, in words.
    pub(crate) trouble: Vec<String>,
}

/// What one end of a flow has measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FlowData {
    pub(crate) flow: u32,
    /// When the connecting end began to connect its first connection.
    pub(crate) opened_ns: Option<i64>,
    /// At the receiver: times and bytes.
    pub(crate) arrivals: Vec<(i64, u64)>,
    /// At the sender: the congestion control of the connection.
    pub(crate) algorithm: Option<String>,
    /// At the sender: segments that were sent again, by `tcp_info`.
    pub(crate) retransmits: u64,
    pub(crate) connections: u32,
}

/// A sample of a sender: time, flow, connection, and the numbers of its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sample(i64, u32, u32, [Option<u64>; 18]);

/// An event of a sender: time, flow, connection, window, kind, and two numbers of the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Event(i64, u32, u32, u32, u8, u8, u8);

impl Sample {
    pub(crate) fn new(at_ns: i64, (flow, connection): (u32, u32), of: &Figures) -> Self {
        let segments = |count: Segments| Some(u64::from(count.get()));
        let time = |time: Option<Duration>| time.map(Duration::as_nanos);
        let rate = |rate: Option<Rate>| rate.map(Rate::bits_per_second);
        Self(
            at_ns,
            flow,
            connection,
            [
                segments(of.cwnd),
                segments(of.ssthresh),
                time(of.smoothed_rtt),
                time(of.latest_rtt),
                time(of.min_rtt),
                Some(u64::from(of.congestion_state.number())),
                segments(of.packets_out),
                segments(of.sacked_out),
                segments(of.lost_out),
                segments(of.retrans_out),
                Some(of.send_queue.get()),
                Some(of.delivered),
                rate(of.delivery_rate),
                Some(of.application_limited.into()),
                rate(of.pacing_rate),
                time(of.k),
                Some(of.mss.get()),
                Some(of.interface.into()),
            ],
        )
    }

    /// The time, the flow and its connection, and the figures.
    pub(crate) fn parts(&self) -> (i64, (u32, u32), Figures) {
        let Self(at, flow, connection, of) = self;
        let number = |index: usize| of[index].unwrap_or(0);
        let segments = |index| Segments::new(u32::try_from(number(index)).unwrap_or(u32::MAX));
        let time = |index: usize| of[index].map(Duration::from_nanos);
        let rate = |index: usize| of[index].map(Rate::from_bps);
        let figures = Figures {
            cwnd: segments(0),
            ssthresh: segments(1),
            smoothed_rtt: time(2),
            latest_rtt: time(3),
            min_rtt: time(4),
            congestion_state: CongestionState::from_number(number(5) as u8),
            packets_out: segments(6),
            sacked_out: segments(7),
            lost_out: segments(8),
            retrans_out: segments(9),
            send_queue: Bytes::new(number(10)),
            delivered: number(11),
            delivery_rate: rate(12),
            application_limited: number(13) != 0,
            pacing_rate: rate(14),
            k: time(15),
            mss: Bytes::new(number(16)),
            interface: number(17) as u32,
        };
        (*at, (*flow, *connection), figures)
    }
}

impl Event {
    pub(crate) fn new(
        at_ns: i64,
        (flow, connection): (u32, u32),
        kind: EventKind,
        cwnd: Segments,
    ) -> Self {
        let (kind, a, b) = match kind {
            EventKind::Opened => (0, 0, 0),
            EventKind::Closed => (1, 0, 0),
            EventKind::StateChange { from, to, .. } => (2, from.number(), to.number()),
            EventKind::Retransmit => (3, 0, 0),
            EventKind::Timeout => (4, 0, 0),
            EventKind::Error(code) => (5, code.number(), 0),
        };
        Self(at_ns, flow, connection, cwnd.get(), kind, a, b)
    }

    /// The time, the flow and its connection, the kind and the window; `None` for an unknown kind.
    pub(crate) fn parts(&self) -> Option<(i64, (u32, u32), EventKind, Segments)> {
        let Self(at, flow, connection, cwnd, kind, a, b) = *self;
        let kind = match kind {
            0 => EventKind::Opened,
            1 => EventKind::Closed,
            2 => EventKind::StateChange {
                from: CongestionState::from_number(a),
                to: CongestionState::from_number(b),
                signal: None,
            },
            3 => EventKind::Retransmit,
            4 => EventKind::Timeout,
            5 => EventKind::Error(match a {
                1 => ErrorCode::Reordering,
                2 => ErrorCode::LocalOverflow,
                3 => ErrorCode::DuplicateAck,
                4 => ErrorCode::Timeout,
                _ => return None,
            }),
            _ => return None,
        };
        Some((at, (flow, connection), kind, Segments::new(cwnd)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_and_events_are_the_same_after_the_wire() {
        let figures = Figures {
            cwnd: Segments::new(10),
            smoothed_rtt: Some(Duration::from_millis(7)),
            congestion_state: CongestionState::Recovery,
            delivery_rate: Some(Rate::from_mbps(5)),
            application_limited: true,
            mss: Bytes::new(1448),
            interface: 3,
            ..Figures::default()
        };
        let sample = Sample::new(-5, (2, 1), &figures);
        let text = serde_json::to_string(&sample).unwrap();
        let read: Sample = serde_json::from_str(&text).unwrap();
        assert_eq!(read.parts(), (-5, (2, 1), figures));
        let state = EventKind::StateChange {
            from: CongestionState::Open,
            to: CongestionState::Loss,
            signal: None,
        };
        let codes = [1, 2, 3, 4].map(|number| {
            let event = Event(0, 0, 0, 0, 5, number, 0);
            event.parts().unwrap().2
        });
        for kind in
            [EventKind::Opened, EventKind::Closed, state, EventKind::Retransmit, EventKind::Timeout]
                .into_iter()
                .chain(codes)
        {
            let event = Event::new(9, (1, 0), kind, Segments::new(4));
            assert_eq!(event.parts(), Some((9, (1, 0), kind, Segments::new(4))));
        }
        assert_eq!(Event(0, 0, 0, 0, 9, 0, 0).parts(), None, "of a later version");
    }
}
