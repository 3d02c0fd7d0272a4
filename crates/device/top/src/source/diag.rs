//! The TCP connections of a network namespace, as `sock_diag(7)` gives them to any user.

use std::io;
use std::net::SocketAddr;

use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::{Nla, TcpInfo};
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags,
};
use wakeai_connection::{CongestionState, Figures};
use wakeai_host::Netlink;
use wakeai_units::{Bytes, Duration, Rate, Segments};

/// A connection as the kernel describes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DiagSocket {
    pub(crate) cookie: u64,
    /// The inode of its socket; 0 if no process holds it.
    pub(crate) inode: u32,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) algorithm: String,
    pub(crate) figures: Figures,
    pub(crate) totals: Totals,
}

/// What a connection has done since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Bytes that the other end has acknowledged.
    pub(crate) acknowledged: u64,
    /// Bytes received.
    pub(crate) received: u64,
    /// Segments retransmitted.
    pub(crate) retransmits: u64,
    /// Microseconds with data to send or in flight.
    pub(crate) busy_us: u64,
    /// The part of `busy_us` in which the receiver's window was the limit.
    pub(crate) receiver_us: u64,
    /// The part of `busy_us` in which the send buffer was the limit.
    pub(crate) send_buffer_us: u64,
}

/// All connections of the namespace in which `socket` was opened that are established, or still send after one end has
/// closed.
pub(crate) fn connections(socket: &Netlink) -> io::Result<Vec<DiagSocket>> {
    let mut found = Vec::new();
    for (family, socket_id) in [(AF_INET, SocketId::new_v4()), (AF_INET6, SocketId::new_v6())] {
        let request = InetRequest {
            family,
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::INFO | ExtensionFlags::CONG,
            states: StateFlags::ESTABLISHED
                | StateFlags::FIN_WAIT1
                | StateFlags::CLOSE_WAIT
                | StateFlags::LAST_ACK
                | StateFlags::CLOSING,
            socket_id,
        };
        let answers = socket.dump(SockDiagMessage::InetRequest(request))?;
        found.extend(answers.into_iter().filter_map(|answer| match answer {
            SockDiagMessage::InetResponse(response) => to_found(&response),
            _ => None,
        }));
    }
    Ok(found)
}

/// `None` where the kernel gives no `tcp_info`, because the socket is closing.
fn to_found(response: &InetResponse) -> Option<DiagSocket> {
    let (mut info, mut algorithm) = (None, String::new());
    for attribute in &response.nlas {
        match attribute {
            Nla::TcpInfo(found) => info = Some(found),
            Nla::Congestion(name) => algorithm.clone_from(name),
            _ => {}
        }
    }
    let (info, header) = (info?, &response.header);
    let id = &header.socket_id;
    Some(DiagSocket {
        cookie: u64::from_ne_bytes(id.cookie),
        inode: header.inode,
        local: SocketAddr::new(id.source_address.to_canonical(), id.source_port),
        remote: SocketAddr::new(id.destination_address.to_canonical(), id.destination_port),
        algorithm,
        figures: to_figures(info, header.send_queue),
        totals: Totals {
            acknowledged: info.bytes_acked,
            received: info.bytes_received,
            retransmits: info.total_retrans.into(),
            busy_us: info.busy_time,
            receiver_us: info.rwnd_limited,
            send_buffer_us: info.sndbuf_limited,
        },
    })
}

fn to_figures(info: &TcpInfo, send_queue: u32) -> Figures {
    // Before the first sample `tcpi_min_rtt` is `u32::MAX`, and the other times are 0.
    let time = |us: u32| (us != 0 && us != u32::MAX).then(|| Duration::from_micros(us.into()));
    let rate = |bytes: u64| {
        (bytes != 0 && bytes != u64::MAX).then(|| Rate::from_bps(bytes.saturating_mul(8)))
    };
    Figures {
        cwnd: Segments::new(info.snd_cwnd),
        ssthresh: Segments::new(info.snd_ssthresh),
        smoothed_rtt: time(info.rtt),
        latest_rtt: None, // not in `tcp_info`
        min_rtt: time(info.min_rtt),
        congestion_state: CongestionState::from_number(info.ca_state),
        packets_out: Segments::new(info.unacked),
        sacked_out: Segments::new(info.sacked),
        lost_out: Segments::new(info.lost),
        retrans_out: Segments::new(info.retrans),
        send_queue: Bytes::new(send_queue.into()),
        delivered: info.delivered.into(),
        delivery_rate: rate(info.delivery_rate),
        application_limited: info.delivery_rate_app_limited & 1 == 1,
        pacing_rate: rate(info.pacing_rate),
        k: None,
        mss: Bytes::new(info.snd_mss.into()),
        interface: 0,
    }
}
