//! A peer that the test itself plays for a connection of this kernel. It reads the kernel's
//! segments from a TUN, and answers with the segments that the test names. Data is counted in
//! segments of [`MSS`] bytes.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::ops::Range;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrIn, setsockopt, socket, sockopt,
};
use wakeai_host::Namespace;

use crate::path::open_tun;
use crate::rig::{ip, set};

pub(crate) const MSS: u32 = 1000;

const HERE: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 2);
const PORT: u16 = 8080;

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// A connection from a namespace of its own to the test, which is its peer.
pub(crate) struct Peer {
    namespace: Namespace,
    tun: File,
    stream: TcpStream,
    port: u16,
    /// The sequence number of the kernel's first byte of data.
    begin: u32,
}

impl Peer {
    /// A connection under `algorithm`, whose handshake took `rtt`.
    pub(crate) fn connect(algorithm: &str, rtt: Duration) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("wkt-{}-{number}p", std::process::id());
        let namespace = Namespace::create(&name).unwrap();
        let tun = namespace.run(|| open_tun("peer")).unwrap().unwrap();
        ip(&namespace, &format!("address add {HERE}/24 dev peer"));
        ip(&namespace, "link set peer up");
        let stream = namespace.run(|| begin_to_connect(algorithm)).unwrap();
        let port = stream.local_addr().unwrap().port();
        let mut peer = Self { namespace, tun, stream, port, begin: 0 };
        let syn = peer.receive(Duration::from_secs(5)).expect("a SYN");
        assert_eq!(syn.flags, SYN);
        peer.begin = syn.seq.wrapping_add(1);
        std::thread::sleep(rtt);
        // The options are MSS, SACK permitted and window scale 7.
        let options = [2, 4, (MSS >> 8) as u8, MSS as u8, 1, 1, 4, 2, 1, 3, 3, 7];
        peer.send(0, SYN | ACK, 0, &options);
        let ack = peer.receive(Duration::from_secs(5)).expect("the handshake's last ACK");
        assert_eq!(ack.flags, ACK);
        peer
    }

    /// Sets the smallest number of segments in the kernel's bursts.
    pub(crate) fn burst(&self, segments: u32) {
        set(&self.namespace, "tcp_min_tso_segs", &segments.to_string());
    }

    /// The application writes this number of segments.
    pub(crate) fn write(&mut self, segments: u32) {
        let data = vec![0; (segments * MSS) as usize];
        assert_eq!(self.stream.write(&data).unwrap(), data.len(), "the send buffer has room");
    }

    /// The segments that arrive within `span`, in the order of arrival.
    pub(crate) fn listen(&mut self, span: Duration) -> Vec<u32> {
        let end = Instant::now() + span;
        let mut arrived = Vec::new();
        while let Some(segment) = self.receive(end.saturating_duration_since(Instant::now())) {
            let first = segment.seq.wrapping_sub(self.begin) / MSS;
            arrived.extend(first..first + segment.data.div_ceil(MSS));
        }
        arrived
    }

    /// Acknowledges all segments before `segment`, and selectively those in `blocks`.
    pub(crate) fn ack(&mut self, segment: u32, blocks: &[Range<u32>]) {
        let mut options = Vec::new();
        if !blocks.is_empty() {
            options.extend([1, 1, 5, (2 + 8 * blocks.len()) as u8]);
            for edge in blocks.iter().flat_map(|block| [block.start, block.end]) {
                options.extend(self.begin.wrapping_add(edge * MSS).to_be_bytes());
            }
        }
        self.send(1, ACK, segment, &options);
    }

    /// The window in segments, and the number of the congestion state. They come from `TCP_INFO`,
    /// because a snapshot would take longer than some tests may wait.
    pub(crate) fn window(&self) -> (u32, u8) {
        #[allow(unsafe_code, reason = "no crate at hand wraps TCP_INFO")]
        // SAFETY: the kernel writes at most `length` bytes of plain integers.
        let info = unsafe {
            let mut info: libc::tcp_info = std::mem::zeroed();
            let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
            let (fd, to) = (self.stream.as_raw_fd(), (&raw mut info).cast());
            let status =
                libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut length);
            assert_eq!(status, 0);
            info
        };
        (info.tcpi_snd_cwnd, info.tcpi_ca_state)
    }

    fn receive(&mut self, patience: Duration) -> Option<Received> {
        let end = Instant::now() + patience;
        let mut packet = [0; 2048];
        loop {
            while let Ok(length) = self.tun.read(&mut packet) {
                if let Some(received) = Received::parse(&packet[..length], self.port) {
                    return Some(received);
                }
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let mut polled = [PollFd::new(self.tun.as_fd(), PollFlags::POLLIN)];
            ppoll(&mut polled, Some(left.into()), None).unwrap();
        }
    }

    fn send(&mut self, seq: u32, flags: u8, segment: u32, options: &[u8]) {
        let length = 20 + options.len();
        let mut tcp = Vec::with_capacity(length);
        tcp.extend(PORT.to_be_bytes());
        tcp.extend(self.port.to_be_bytes());
        tcp.extend(seq.to_be_bytes());
        tcp.extend(self.begin.wrapping_add(segment * MSS).to_be_bytes());
        tcp.extend([(length as u8 / 4) << 4, flags]);
        tcp.extend(u16::MAX.to_be_bytes()); // the window
        tcp.extend([0; 4]); // checksum, urgent pointer
        tcp.extend(options);
        let mut pseudo = Vec::new();
        pseudo.extend(PEER.octets());
        pseudo.extend(HERE.octets());
        pseudo.extend([0, 6, 0, length as u8]);
        let sum = checksum(&[&pseudo[..], &tcp].concat());
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());

        let mut ip = vec![0x45, 0, 0, 20 + length as u8, 0, 0, 0, 0, 64, 6, 0, 0];
        ip.extend(PEER.octets());
        ip.extend(HERE.octets());
        let sum = checksum(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        ip.extend(tcp);
        self.tun.write_all(&ip).unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Closing resets the connection, so that the kernel does not keep it for queued data.
        let reset = libc::linger { l_onoff: 1, l_linger: 0 };
        setsockopt(&self.stream, sockopt::Linger, &reset).unwrap();
        let removed = Namespace::remove(self.namespace.name());
        assert!(std::thread::panicking() || removed.is_ok());
    }
}

fn begin_to_connect(algorithm: &str) -> TcpStream {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Inet, SockType::Stream, flags, SockProtocol::Tcp).unwrap();
    setsockopt(&socket, sockopt::TcpCongestion, &algorithm.into()).unwrap();
    setsockopt(&socket, sockopt::SndBufForce, &(1 << 22)).unwrap();
    setsockopt(&socket, sockopt::TcpNoDelay, &true).unwrap();
    let to = SockaddrIn::from(SocketAddrV4::new(PEER, PORT));
    assert_eq!(nix::sys::socket::connect(socket.as_raw_fd(), &to), Err(Errno::EINPROGRESS));
    TcpStream::from(socket)
}

/// The fields that a test needs of one of the kernel's segments.
struct Received {
    seq: u32,
    flags: u8,
    data: u32,
}

impl Received {
    /// Reads a segment; `None` for packets of other kinds, such as IPv6's solicitations.
    fn parse(packet: &[u8], port: u16) -> Option<Self> {
        if packet.first() != Some(&0x45) || packet.get(9) != Some(&6) {
            return None;
        }
        let tcp = packet.get(20..)?;
        let word = |at: usize| Some(u16::from_be_bytes([*tcp.get(at)?, *tcp.get(at + 1)?]));
        if word(0)? != port {
            return None;
        }
        let seq = u32::from(word(4)?) << 16 | u32::from(word(6)?);
        let header = usize::from(tcp[12] >> 4) * 4;
        // The PSH flag is left out, because no test needs it.
        Some(Self { seq, flags: tcp[13] & !0x08, data: (tcp.len() - header) as u32 })
    }
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&second| u32::from(second)));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}
