//! The sockets of flows: opened over the machine's way, known to the monitor, and read by `tcp_info`.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use socket2::{Domain, Protocol, Socket, Type};
use wakeai_connection::{CongestionState, Figures};
use wakeai_units::{Bytes, Duration, Rate, Segments};

use crate::protocol::Way;

/// The time after which a blocked call returns, so that its thread can look whether the run is over.
pub(super) const PATIENCE: std::time::Duration = std::time::Duration::from_millis(100);

/// A flow and one of its connections, from 0.
pub(super) type Place = (u32, u32);

/// The sending sockets of the running flows.
#[derive(Debug, Default)]
pub(super) struct Senders {
    places: Mutex<HashMap<(SocketAddr, SocketAddr), Place>>,
    open: Mutex<Vec<(Place, TcpStream)>>,
}

impl Senders {
    pub(super) fn add(&self, place: Place, stream: &TcpStream) -> io::Result<()> {
        let ends = (canonical(stream.local_addr()?), canonical(stream.peer_addr()?));
        self.places.lock().unwrap_or_else(PoisonError::into_inner).insert(ends, place);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.push((place, stream.try_clone()?));
        Ok(())
    }

    /// The connection ends; its records may still come.
    pub(super) fn close(&self, place: Place) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(other, _)| *other != place);
    }

    pub(super) fn place(&self, local: SocketAddr, remote: SocketAddr) -> Option<Place> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.get(&(canonical(local), canonical(remote))).copied()
    }

    /// The figures of all open connections.
    pub(super) fn figures(&self) -> Vec<(Place, Figures)> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let read =
            open.iter().filter_map(|(place, stream)| Some((*place, info(stream)?.figures())));
        read.collect()
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn any(of: &IpAddr) -> IpAddr {
    match of {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Binds a socket to the machine's way.
pub(super) fn bind(socket: &Socket, way: &Way, to: &IpAddr, port: u16) -> io::Result<()> {
    if let Some(interface) = &way.interface {
        socket.bind_device(Some(interface.as_bytes()))?;
    }
    let own = way.address.filter(|own| own.is_ipv4() == to.is_ipv4());
    socket.bind(&SocketAddr::new(own.unwrap_or_else(|| any(to)), port).into())
}

/// Opens a connection. `None`: the run was over before.
pub(super) fn connect(
    way: &Way,
    to: SocketAddr,
    algorithm: Option<&str>,
    stop: &AtomicBool,
) -> io::Result<Option<TcpStream>> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    bind(&socket, way, &to.ip(), 0)?;
    set_algorithm(&socket, algorithm)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&to.into()) {
        Err(error) if error.raw_os_error() == Some(Errno::EINPROGRESS as i32) => {}
        other => other?,
    }
    loop {
        let mut ready = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
        if wakeai_host::poll_for(&mut ready, PATIENCE)? {
            break;
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
    if let Some(error) = socket.take_error()? {
        return Err(error);
    }
    socket.set_nonblocking(false)?;
    let stream = TcpStream::from(socket);
    patient(&stream)?;
    Ok(Some(stream))
}

pub(super) fn set_algorithm(socket: &Socket, algorithm: Option<&str>) -> io::Result<()> {
    let Some(name) = algorithm else { return Ok(()) };
    socket.set_tcp_congestion(name.as_bytes()).map_err(|error| {
        io::Error::new(error.kind(), format!("choose the congestion control {name}: {error}"))
    })
}

/// Lets blocked calls of the stream return after [`PATIENCE`].
pub(super) fn patient(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// Listens at the port, without blocking.
pub(super) fn listen(way: &Way, port: u16) -> io::Result<TcpListener> {
    let own = way.address.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
    let to = SocketAddr::new(own, port);
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    bind(&socket, way, &own, port)
        .and_then(|()| socket.listen(1_024))
        .map_err(|error| io::Error::new(error.kind(), format!("listen at TCP {to}: {error}")))?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// The kernel's `tcp_info` of a connection (tcp(7), `linux/tcp.h`).
pub(super) struct TcpInfo([u8; LENGTH]);

/// Up to `tcpi_delivery_rate`, which kernels have from 4.9 on.
const LENGTH: usize = 168;

/// Reads `tcp_info`; `None` where the kernel gives none.
#[allow(unsafe_code, reason = "no crate at hand wraps getsockopt(TCP_INFO)")]
pub(super) fn info(stream: &TcpStream) -> Option<TcpInfo> {
    let mut info = [0_u8; LENGTH];
    let mut length = LENGTH as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, which is the length of `info`.
    let status = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    (status == 0 && length as usize == LENGTH).then_some(TcpInfo(info))
}

impl TcpInfo {
    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    /// Segments that were sent again (`tcpi_total_retrans`).
    pub(super) fn retransmits(&self) -> u32 {
        self.u32(100)
    }

    /// What `tcp_info` has of the figures. It has the smoothed round-trip time alone, which stands for the latest, too.
    fn figures(&self) -> Figures {
        let segments = |at| Segments::new(self.u32(at));
        let micros = |at| Some(u64::from(self.u32(at))).filter(|us| !matches!(us, 0 | 0xffff_ffff));
        let time = |at| micros(at).map(Duration::from_micros);
        let rate = |at| Some(self.u64(at)).filter(|rate| !matches!(*rate, 0 | u64::MAX));
        let rate = |at| rate(at).map(|bytes| Rate::from_bps(bytes.saturating_mul(8)));
        Figures {
            cwnd: segments(80),
            ssthresh: segments(76),
            smoothed_rtt: time(68),
            latest_rtt: time(68),
            min_rtt: time(148),
            congestion_state: CongestionState::from_number(self.0[1]),
            packets_out: segments(24),
            sacked_out: segments(28),
            lost_out: segments(32),
            retrans_out: segments(36),
            send_queue: Bytes::new(self.u32(144).into()),
            delivered: 0,
            delivery_rate: rate(160),
            application_limited: self.0[7] & 1 != 0,
            pacing_rate: rate(104),
            k: None,
            mss: Bytes::new(self.u32(16).into()),
            interface: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn a_connection_is_opened_over_the_way_and_its_figures_are_read() {
        let way = Way { interface: None, address: Some(Ipv4Addr::LOCALHOST.into()) };
        let listener = listen(&way, 0).unwrap();
        let to = listener.local_addr().unwrap();
        let (stop, senders) = (AtomicBool::new(false), Senders::default());
        let mut stream = connect(&way, to, Some("reno"), &stop).unwrap().unwrap();
        senders.add((3, 1), &stream).unwrap();
        let mut accepted = loop {
            if let Ok((stream, _)) = listener.accept() {
                break stream;
            }
        };
        accepted.set_nonblocking(false).unwrap();
        stream.write_all(&vec![7; 100_000]).unwrap();
        accepted.read_exact(&mut vec![0; 100_000]).unwrap();
        let local = stream.local_addr().unwrap();
        assert_eq!(senders.place(local, to), Some((3, 1)));
        assert_eq!(senders.place(to, local), None, "the receiver's end");
        let [(place, figures)] = senders.figures().try_into().unwrap();
        assert_eq!(place, (3, 1));
        assert!(figures.cwnd >= Segments::new(10) && figures.mss > Bytes::new(500), "{figures:?}");
        let rtt = figures.smoothed_rtt.unwrap();
        assert!(rtt < Duration::from_secs(10) && figures.min_rtt.unwrap() <= rtt, "{figures:?}");
        assert_eq!(info(&stream).unwrap().retransmits(), 0);
        senders.close((3, 1));
        assert!(senders.figures().is_empty());
    }

    #[test]
    fn an_unknown_congestion_control_is_named() {
        let way = Way::default();
        let stop = AtomicBool::new(false);
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        let error = connect(&way, to, Some("nosuch"), &stop).unwrap_err().to_string();
        assert!(error.starts_with("choose the congestion control nosuch: "), "{error}");
    }
}
