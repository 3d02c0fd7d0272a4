//! The socket to the driver `mac80211_hwsim`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

use super::error::MediumError;
use super::message::{Purpose, Received, Writer, messages};

/// The memory for frames that the medium has not read yet. A frame that finds it full is lost.
const RECEIVE_BYTES: usize = 16 << 20;
/// The longest message: a frame of 2304 bytes and what is told about it, several of which a call never gives.
const LONGEST: usize = 1 << 16;
/// The time to wait for the answer to a request.
const ANSWERED_WITHIN: std::time::Duration = std::time::Duration::from_secs(5);

/// A registered socket.
#[derive(Debug)]
pub(crate) struct HwsimSocket {
    socket: Socket,
    writer: Writer,
    buffer: Vec<u8>,
}

impl HwsimSocket {
    /// Makes this process the medium of all radios that were made in the calling thread's network namespace.
    ///
    /// # Errors
    ///
    /// Each reason for which the kernel refuses has its own message.
    pub(crate) fn register() -> Result<Self, MediumError> {
        let system = |what: &'static str| move |source| MediumError::System { what, source };
        let socket = Socket::new(
            Domain::from(libc::AF_NETLINK),
            Type::RAW,
            Some(Protocol::from(libc::NETLINK_GENERIC)),
        );
        let socket = socket.map_err(system("open a netlink socket"))?;
        if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BYTES).is_err() {
            let _ = setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BYTES); // without the privilege
        }
        socket.set_read_timeout(Some(ANSWERED_WITHIN)).map_err(system("set a time limit"))?;
        let mut own = Self { socket, writer: Writer::new(), buffer: vec![0; LONGEST] };
        own.writer.family = own.family()?;
        let request = own.writer.register().to_vec();
        own.socket.send(&request).map_err(system("ask to be the medium"))?;
        match own.answer(|message| match message {
            Received::Answer(sequence, code) if *sequence == Purpose::Register.sequence() => {
                Some(*code)
            }
            _ => None,
        })? {
            0 => {}
            code => return Err(refused(Errno::from_raw(-code))),
        }
        own.socket.set_nonblocking(true).map_err(system("open a netlink socket"))?;
        Ok(own)
    }

    fn family(&mut self) -> Result<u16, MediumError> {
        let request = self.writer.get_family().to_vec();
        let system = |source| MediumError::System { what: "ask for the family of hwsim", source };
        self.socket.send(&request).map_err(system)?;
        let found = self.answer(|message| match message {
            Received::Family(number) => Some(Ok(*number)),
            Received::Answer(_, code) if *code != 0 => Some(Err(Errno::from_raw(-code))),
            _ => None,
        })?;
        found.map_err(|errno| match errno {
            Errno::ENOENT => MediumError::NoDriver,
            errno => system(errno.into()),
        })
    }

    /// The first message in which `find` finds something.
    fn answer<T>(
        &mut self,
        mut find: impl FnMut(&Received<'_>) -> Option<T>,
    ) -> Result<T, MediumError> {
        loop {
            let what = "wait for the driver's answer";
            let system = |source| MediumError::System { what, source };
            let length = io::Read::read(&mut &self.socket, &mut self.buffer).map_err(system)?;
            let all = messages(&self.buffer[..length], self.writer.family);
            if let Some(found) = all.flatten().find_map(|message| find(&message)) {
                return Ok(found);
            }
        }
    }

    /// Reads what is there into `buffer`, which then holds messages; `None` where nothing is there.
    ///
    /// # Errors
    ///
    /// `ENOBUFS`: frames were lost because the socket was full. Others are not to be expected.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match io::Read::read(&mut &self.socket, buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A buffer for [`Self::read`].
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    /// The number of the driver's family.
    pub(crate) fn family_number(&self) -> u16 {
        self.writer.family
    }

    /// Sends what `write` writes.
    pub(crate) fn send(&mut self, write: impl FnOnce(&mut Writer) -> &[u8]) -> io::Result<()> {
        self.socket.send(write(&mut self.writer)).map(|_| ())
    }
}

/// The reason for which the driver refuses a medium.
fn refused(errno: Errno) -> MediumError {
    match errno {
        Errno::EPERM => MediumError::NoPrivilege,
        Errno::EBUSY => MediumError::Busy,
        Errno::EOPNOTSUPP => MediumError::SeveralChannels,
        errno => MediumError::System { what: "become the medium", source: errno.into() },
    }
}

impl AsFd for HwsimSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_of_the_driver_has_its_own_words_and_status() {
        let cases = [
            (Errno::EPERM, 77, "CAP_NET_ADMIN"),
            (Errno::EBUSY, 1, "another program is the medium"),
            (Errno::EOPNOTSUPP, 1, "several channels"),
            (Errno::EINVAL, 1, "become the medium"),
        ];
        for (errno, status, words) in cases {
            let error = refused(errno);
            assert_eq!(error.exit_status(), status, "{errno}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
