//! The structs of `bpf/intf.h`, and their conversion into the types of this crate.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use wakeai_connection::{CongestionState, Figures, Receiving};
use wakeai_units::{Bytes, Duration, Rate, Segments};

use crate::error::Error;
pub(crate) use crate::skeleton::algorithms::types::{
    bounds_value as BoundsValue, interface_key as InterfaceKey,
};
pub(crate) use crate::skeleton::assign::types::{
    assign_outcome as AssignOutcomeValue, assignment as AssignmentValue,
};
pub(crate) use crate::skeleton::connections::types::move_request as MoveRequest;
pub(crate) use crate::skeleton::egress::types::{
    egress_config as EgressConfig, flow_rate as FlowRate, flow_value as FlowValue,
};
pub(crate) use crate::skeleton::monitor::types::{
    figures_value as FiguresValue, receiving_value as ReceivingValue, record_value as RecordValue,
    snapshot_value as SnapshotValue, socket_value as SocketValue,
};
pub(crate) use crate::skeleton::snapshot::types::snapshot_request as SnapshotRequest;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// `TCP_CA_NAME_MAX`
pub(crate) const NAME_BYTES: usize = 16;

/// The identity of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Socket {
    /// The kernel's number of the connection, which is never reused (`SO_COOKIE`).
    pub cookie: u64,
    /// The cookie of its network namespace, see [`crate::netns_cookie`].
    pub netns_cookie: u64,
    /// The inode of its network namespace, as `/proc/PID/ns/net` shows it.
    pub netns_inode: u32,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
}

impl SocketValue {
    pub(crate) fn to_socket(self) -> Socket {
        let address = |bytes: [u8; 16], port| {
            SocketAddr::new(IpAddr::from(Ipv6Addr::from(bytes)).to_canonical(), port)
        };
        Socket {
            cookie: self.cookie,
            netns_cookie: self.netns_cookie,
            netns_inode: self.netns_inode,
            local: address(self.local, self.local_port),
            remote: address(self.remote, self.remote_port),
        }
    }
}

impl FiguresValue {
    pub(crate) fn to_figures(self, interface: u32) -> Figures {
        let microseconds = |us| Duration::from_micros(u64::from(us));
        // Before the first sample `rtt_min` is ~0, the others are 0.
        let rtt = |us| (us != 0 && us != u32::MAX).then(|| microseconds(us));
        let delivered = Segments::new(self.rate_delivered).bytes(Bytes::new(u64::from(self.mss)));
        let delivery_rate = (self.rate_interval_us != 0)
            .then(|| Rate::of(delivered, microseconds(self.rate_interval_us)));
        let pacing_rate = (self.pacing_rate != u64::MAX && self.pacing_rate != 0)
            .then(|| Rate::from_bps(self.pacing_rate.saturating_mul(8)));
        let k = (self.k_q10 != u32::MAX)
            .then(|| Duration::from_nanos(u64::from(self.k_q10) * NANOS_PER_SECOND / 1024));
        Figures {
            cwnd: Segments::new(self.cwnd),
            ssthresh: Segments::new(self.ssthresh),
            smoothed_rtt: rtt(self.srtt_us),
            latest_rtt: rtt(self.latest_rtt_us),
            min_rtt: rtt(self.min_rtt_us),
            congestion_state: CongestionState::from_number(self.ca_state),
            packets_out: Segments::new(self.packets_out),
            sacked_out: Segments::new(self.sacked_out),
            lost_out: Segments::new(self.lost_out),
            retrans_out: Segments::new(self.retrans_out),
            send_queue: Bytes::new(u64::from(self.send_queue)),
            delivered: u64::from(self.delivered),
            delivery_rate,
            application_limited: self.app_limited != 0,
            pacing_rate,
            k,
            mss: Bytes::new(u64::from(self.mss)),
            interface,
        }
    }
}

impl ReceivingValue {
    pub(crate) fn to_receiving(self) -> Receiving {
        Receiving {
            received: self.received,
            rtt: (self.rtt_us != 0).then(|| Duration::from_micros(u64::from(self.rtt_us))),
            window: Bytes::new(u64::from(self.window)),
            mss: Bytes::new(u64::from(self.mss)),
        }
    }
}

/// A name in the kernel's format: NUL-terminated in a field of fixed size. Fails where it is empty or too long.
pub(crate) fn name_field(asked: &str, name: &str) -> Result<[i8; NAME_BYTES], Error> {
    let mut field = [0; NAME_BYTES];
    if name.len() >= NAME_BYTES || name.is_empty() {
        return Err(Error::refused(asked, format!("{name:?} is not a name of 1 to 15 bytes")));
    }
    for (to, from) in field.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    Ok(field)
}

pub(crate) fn name_of(field: [i8; NAME_BYTES]) -> String {
    let name = field.map(i8::cast_unsigned);
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
    String::from_utf8_lossy(&name[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros as _;

    #[test]
    fn a_mapped_ipv4_address_is_shown_as_ipv4() {
        let mut value = SocketValue { local_port: 80, ..SocketValue::new_zeroed() };
        value.local[10..].copy_from_slice(&[0xff, 0xff, 10, 1, 2, 3]);
        assert_eq!(value.to_socket().local, "10.1.2.3:80".parse().unwrap());
    }

    #[test]
    fn a_name_that_the_kernel_cannot_hold_is_refused() {
        assert!(name_field("test", "sixteen-letters-").is_err());
        assert_eq!(name_field("test", "cubic").unwrap()[..6], [99, 117, 98, 105, 99, 0]);
    }

    #[test]
    fn k_is_counted_in_1024ths_of_a_second() {
        let figures = FiguresValue { k_q10: 1536, ..FiguresValue::new_zeroed() }.to_figures(0);
        assert_eq!(figures.k, Some(Duration::from_millis(1500)));
    }

    #[test]
    fn figures_that_were_never_measured_are_none() {
        let figures = FiguresValue {
            min_rtt_us: u32::MAX,
            pacing_rate: u64::MAX,
            k_q10: u32::MAX,
            ..FiguresValue::new_zeroed()
        }
        .to_figures(0);
        assert_eq!((figures.smoothed_rtt, figures.min_rtt), (None, None));
        assert_eq!(figures.pacing_rate, None);
        assert_eq!(figures.delivery_rate, None);
        assert_eq!(figures.k, None);
    }
}
