//! Plain single-queue TUN devices: makes one, reads and writes its packets.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// The largest length of a device's queue, in packets. Newer kernels refuse a longer queue with
/// ERANGE, and so do updates of older kernels (Debian's 6.1.192 and 6.12.117).
pub(crate) const MAX_QUEUE_PACKETS: u32 = 32_767;

/// A TUN device, with non-blocking reads and writes of whole IP packets.
///
/// The device lives as long as this value. It has no `IFF_VNET_HDR`, so the kernel splits buffers
/// into segments and computes checksums before packets arrive here.
#[derive(Debug)]
pub(crate) struct Tun {
    file: File,
    /// The interface's index in its namespace.
    pub(crate) index: u32,
}

impl Tun {
    /// Makes the device `name` in the calling thread's network namespace. With `napi` the kernel may handle what
    /// is written to it outside the write call ([`super::Steering::Threads`]), packet by packet as otherwise.
    pub(crate) fn create(name: &str, napi: bool) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")?;
        attach(&file, name, napi)?;
        if napi {
            // With generic receive offload the kernel would merge the packets of an aggregate, and TCP would acknowledge
            // them together.
            ethtool(name, SET_GRO, 0)?;
        }
        let index = nix::net::if_::if_nametoindex(name)?;
        Ok(Self { file, index })
    }

    /// The next packet that the host sends; `None` if there is none.
    pub(crate) fn read<'a>(&self, buffer: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
        match (&self.file).read(buffer) {
            Ok(length) => Ok(Some(&buffer[..length])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands a packet to the host.
    pub(crate) fn write(&self, packet: &[u8]) -> io::Result<()> {
        (&self.file).write(packet).map(|_| ())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The kernel's `ifreq`: a name of 16 bytes and a union.
type Request = [u8; size_of::<libc::ifreq>()];

fn request(name: &str, union: &[u8]) -> io::Result<Request> {
    let mut request = [0; size_of::<libc::ifreq>()];
    if name.is_empty() || name.len() >= libc::IFNAMSIZ {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a name of 1 to 15 bytes"));
    }
    request[..name.len()].copy_from_slice(name.as_bytes());
    request[libc::IFNAMSIZ..libc::IFNAMSIZ + union.len()].copy_from_slice(union);
    Ok(request)
}

#[allow(unsafe_code, reason = "TUNSETIFF has no safe wrapper")]
fn attach(file: &File, name: &str, napi: bool) -> io::Result<()> {
    let napi = if napi { libc::IFF_NAPI } else { 0 };
    let flags = (libc::IFF_TUN | libc::IFF_NO_PI | napi) as u16;
    let mut request = request(name, &flags.to_ne_bytes())?;
    // SAFETY: TUNSETIFF reads and writes one ifreq, and the buffer has that size and is alive
    // for the whole call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, request.as_mut_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// `ETHTOOL_SGRO` of `linux/ethtool.h`.
const SET_GRO: u32 = 0x2c;

/// Sends a command of ethtool with a number, and returns the number that the kernel leaves in its place.
#[allow(unsafe_code, reason = "SIOCETHTOOL has no safe wrapper")]
fn ethtool(name: &str, command: u32, number: u32) -> io::Result<u32> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // The kernel's ethtool_value.
    let mut value = [command, number];
    let mut request = request(name, &value.as_mut_ptr().expose_provenance().to_ne_bytes())?;
    // SAFETY: SIOCETHTOOL reads one ifreq, and reads and writes the eight bytes to which it points. Both are alive for the
    // whole call.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, request.as_mut_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(value[1]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ETHTOOL_GGRO` of `linux/ethtool.h`.
    const GET_GRO: u32 = 0x2b;

    #[test]
    fn a_device_for_threads_merges_no_packets() {
        if !nix::unistd::geteuid().is_root() {
            assert!(std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_none(), "this test needs root");
            println!("SKIPPED: needs root");
            return;
        }
        let apart = std::thread::spawn(|| {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            [false, true].map(|napi| {
                let _tun = Tun::create("tun0", napi).unwrap();
                ethtool("tun0", GET_GRO, 0).unwrap()
            })
        });
        assert_eq!(apart.join().unwrap(), [1, 0], "without and with threads");
    }
}
