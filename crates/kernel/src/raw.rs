//! Mirrors of the structs in `bpf/intf.h`, and how they become ours.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use wakeai_connection::{CongestionState, Figures};
use wakeai_units::{Bytes, Duration, Rate, Segments};

use crate::snapshot::Socket;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// `TCP_CA_NAME_MAX`
pub(crate) const NAME_BYTES: usize = 16;

/// A struct of `intf.h` that any bytes of its size are a valid value of.
///
/// # Safety
///
/// `repr(C)`, no padding that is read, and only integer members.
#[allow(unsafe_code, reason = "the promise that makes `read` safe")]
pub(crate) unsafe trait Plain: Copy {
    /// The value at the start of `bytes`; `None` if they are too few.
    fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < size_of::<Self>() {
            return None;
        }
        #[allow(unsafe_code, reason = "bytes that the kernel wrote become a struct")]
        // SAFETY: there are enough bytes, any bytes are a valid value, alignment does not matter.
        Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }

    /// The value's bytes.
    fn as_bytes(&self) -> &[u8] {
        #[allow(unsafe_code, reason = "a struct goes to the kernel as bytes")]
        // SAFETY: the value is `size_of::<Self>()` initialised bytes without padding.
        unsafe {
            std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Self>())
        }
    }
}

macro_rules! plain {
    ($name:ident, $size:expr) => {
        const _: () = assert!(size_of::<$name>() == $size, "mirrors intf.h");
        #[allow(unsafe_code, reason = "repr(C), integers only, no padding: see intf.h")]
        // SAFETY: as the reason says; the size assertion leaves no room for padding.
        unsafe impl Plain for $name {}
    };
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InterfaceKey {
    pub(crate) netns_cookie: u64,
    pub(crate) ifindex: u32,
    pub(crate) zero: u32,
}
plain!(InterfaceKey, 16);

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BoundsValue {
    pub(crate) floor: u32,
    pub(crate) ceiling: u32,
    pub(crate) pacing: u64,
    pub(crate) small_queue: u64,
}
plain!(BoundsValue, 24);

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SocketValue {
    cookie: u64,
    netns_cookie: u64,
    local: [u8; 16],
    remote: [u8; 16],
    netns_inode: u32,
    ifindex: u32,
    local_port: u16,
    remote_port: u16,
    zero: u32,
}
plain!(SocketValue, 64);

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FiguresValue {
    pacing_rate: u64,
    cwnd: u32,
    ssthresh: u32,
    srtt_us: u32,
    latest_rtt_us: u32,
    min_rtt_us: u32,
    packets_out: u32,
    sacked_out: u32,
    lost_out: u32,
    retrans_out: u32,
    send_queue: u32,
    delivered: u32,
    rate_delivered: u32,
    rate_interval_us: u32,
    mss: u32,
    ca_state: u8,
    app_limited: u8,
    zero: u16,
    k_q10: u32,
}
plain!(FiguresValue, 72);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordValue {
    pub(crate) at_ns: u64,
    pub(crate) kind: u32,
    pub(crate) detail: u32,
    pub(crate) socket: SocketValue,
    pub(crate) figures: FiguresValue,
}
plain!(RecordValue, 152);

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapshotValue {
    pub(crate) socket: SocketValue,
    pub(crate) figures: FiguresValue,
    pub(crate) algorithm: [u8; NAME_BYTES],
}
plain!(SnapshotValue, 152);

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AssignmentValue {
    pub(crate) netns_cookie: u64,
    pub(crate) cookie: u64,
    pub(crate) rate: u64,
    pub(crate) to: [u8; 16],
    pub(crate) to_mask: [u8; 16],
    pub(crate) owner: u32,
    pub(crate) to_port: u16,
    pub(crate) by_default: u8,
    pub(crate) listeners: u8,
    pub(crate) algorithm: [i8; NAME_BYTES],
    pub(crate) otherwise: [i8; NAME_BYTES],
}
plain!(AssignmentValue, 96);

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AssignOutcomeValue {
    pub(crate) done: u32,
    pub(crate) failed: u32,
}
plain!(AssignOutcomeValue, 8);

impl SocketValue {
    pub(crate) fn ifindex(&self) -> u32 {
        self.ifindex
    }

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

/// A name as the kernel keeps it: NUL-terminated in a field of fixed size.
pub(crate) fn name_field(name: &str) -> Option<[i8; NAME_BYTES]> {
    let mut field = [0; NAME_BYTES];
    if name.len() >= NAME_BYTES || name.is_empty() {
        return None;
    }
    for (to, from) in field.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    Some(field)
}

pub(crate) fn name_of(field: &[u8]) -> String {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_ipv4_address_is_shown_as_ipv4() {
        let mut value = SocketValue { local_port: 80, ..SocketValue::default() };
        value.local[10..].copy_from_slice(&[0xff, 0xff, 10, 1, 2, 3]);
        assert_eq!(value.to_socket().local, "10.1.2.3:80".parse().unwrap());
    }

    #[test]
    fn a_record_that_is_cut_short_is_none() {
        assert!(RecordValue::read(&[0; 151]).is_none());
        assert!(RecordValue::read(&[0; 152]).is_some());
    }

    #[test]
    fn a_name_that_the_kernel_cannot_hold_is_refused() {
        assert!(name_field("sixteen-letters-").is_none());
        assert_eq!(name_field("cubic").unwrap()[..6], [99, 117, 98, 105, 99, 0]);
    }

    #[test]
    fn k_is_counted_in_1024ths_of_a_second() {
        let figures = FiguresValue { k_q10: 1536, ..FiguresValue::default() }.to_figures(0);
        assert_eq!(figures.k, Some(Duration::from_millis(1500)));
    }

    #[test]
    fn what_was_never_measured_is_none() {
        let figures = FiguresValue {
            min_rtt_us: u32::MAX,
            pacing_rate: u64::MAX,
            k_q10: u32::MAX,
            ..FiguresValue::default()
        }
        .to_figures(0);
        assert_eq!((figures.smoothed_rtt, figures.min_rtt), (None, None));
        assert_eq!(figures.pacing_rate, None);
        assert_eq!(figures.delivery_rate, None);
        assert_eq!(figures.k, None);
    }
}
