//! rtnetlink(7), as far as routes need it. Attributes are kept as bytes, so that a route that is
//! written back has all that it had, known here or not.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

// <linux/netlink.h>
const REQUEST: u16 = 0x1;
const ACKNOWLEDGE: u16 = 0x4;
const DUMP: u16 = 0x300;
const REPLACE: u16 = 0x100;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const HEADER_BYTES: usize = 16;
/// The upper two bits of an attribute's type say how its value is written, not what it is.
const TYPE_MASK: u16 = 0x3fff;

/// More than the kernel puts into one datagram of a dump.
const DATAGRAM_BYTES: usize = 1 << 16;

/// A socket to the calling thread's network namespace.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Self> {
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkRoute,
        )?;
        Ok(Self { socket })
    }

    /// The bodies of all messages that the kernel answers a dump of `kind` with.
    pub(crate) fn dump(&self, kind: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        self.ask(kind, REQUEST | DUMP, body)?;
        let mut bodies = Vec::new();
        loop {
            for (kind, body) in messages(&self.receive()?) {
                match kind {
                    DONE => return Ok(bodies),
                    ERROR => refused(body)?,
                    _ => bodies.push(body.to_vec()),
                }
            }
        }
    }

    /// Replaces what exists by `body`, a message of `kind`.
    pub(crate) fn replace(&self, kind: u16, body: &[u8]) -> io::Result<()> {
        self.ask(kind, REQUEST | ACKNOWLEDGE | REPLACE, body)?;
        for (kind, body) in messages(&self.receive()?) {
            if kind == ERROR {
                return refused(body);
            }
        }
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, "no answer"))
    }

    fn ask(&self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        let mut message = Vec::with_capacity(HEADER_BYTES + body.len());
        let length = (HEADER_BYTES + body.len()) as u32;
        message.extend(length.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend([0; 8]); // no sequence: one question at a time
        message.extend(body);
        send(self.socket.as_raw_fd(), &message, MsgFlags::empty())?;
        Ok(())
    }

    fn receive(&self) -> io::Result<Vec<u8>> {
        let mut datagram = vec![0; DATAGRAM_BYTES];
        let length = recv(self.socket.as_raw_fd(), &mut datagram, MsgFlags::empty())?;
        datagram.truncate(length);
        Ok(datagram)
    }
}

/// What an error message says; 0 is an acknowledgement.
fn refused(body: &[u8]) -> io::Result<()> {
    match body.first_chunk().copied().map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(errno) => Err(Errno::from_raw(-errno).into()),
        None => Err(io::Error::new(io::ErrorKind::InvalidData, "an error without number")),
    }
}

/// The messages of a datagram: type and body.
fn messages(mut datagram: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*datagram.first_chunk()?) as usize;
        let kind = u16_at(datagram, 4)?;
        let body = datagram.get(HEADER_BYTES..length)?;
        datagram = datagram.get(aligned(length)..).unwrap_or_default();
        Some((kind, body))
    })
}

/// The attributes in `bytes`: type and value.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & TYPE_MASK;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Appends an attribute.
pub(crate) fn put_attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = 4 + value.len();
    to.extend((length as u16).to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len() + aligned(length) - length, 0);
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Messages and attributes begin at multiples of 4.
fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_they_were_written() {
        let mut bytes = Vec::new();
        put_attribute(&mut bytes, 16, b"bbr\0");
        put_attribute(&mut bytes, 7 | 0x8000, b"abcde");
        put_attribute(&mut bytes, 1, &[]);
        assert_eq!(bytes.len() % 4, 0);
        let read: Vec<_> = attributes(&bytes).collect();
        assert_eq!(read, [(16, &b"bbr\0"[..]), (7, b"abcde"), (1, b"")]);
    }

    #[test]
    fn what_is_cut_short_ends_the_reading() {
        let mut bytes = Vec::new();
        put_attribute(&mut bytes, 1, b"1234");
        put_attribute(&mut bytes, 2, b"5678");
        for length in 0..bytes.len() {
            assert!(attributes(&bytes[..length]).count() < 2);
        }
        assert_eq!(attributes(&[0; 8]).count(), 0, "a length below that of its own header");
        assert_eq!(messages(&[0; 32]).count(), 0);
    }
}
