//! Plain single-queue TUN devices: makes one, reads and writes its packets.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
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
    /// Makes the device `name` in the calling thread's network namespace.
    pub(crate) fn create(name: &str) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")?;
        attach(&file, name)?;
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

#[allow(unsafe_code, reason = "TUNSETIFF has no safe wrapper")]
fn attach(file: &File, name: &str) -> io::Result<()> {
    // The kernel's ifreq is a name of 16 bytes and a union, in which TUNSETIFF reads the flags.
    let mut request = [0_u8; size_of::<libc::ifreq>()];
    if name.is_empty() || name.len() >= libc::IFNAMSIZ {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a name of 1 to 15 bytes"));
    }
    request[..name.len()].copy_from_slice(name.as_bytes());
    let flags = (libc::IFF_TUN | libc::IFF_NO_PI) as u16;
    request[libc::IFNAMSIZ..libc::IFNAMSIZ + 2].copy_from_slice(&flags.to_ne_bytes());
    // SAFETY: TUNSETIFF reads and writes one ifreq, and the buffer has that size and is alive
    // for the whole call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, request.as_mut_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
