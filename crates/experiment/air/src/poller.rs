//! Edge-triggered epoll with nanosecond timeouts, which the driver thread waits with.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use wakeai_units::Duration;

/// The largest number of events that one call returns.
const EVENTS: usize = 64;

/// Waits for packets of TUN devices and for commands.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
}

impl Poller {
    /// A poller without descriptors.
    ///
    /// # Errors
    ///
    /// The kernel has no memory, or the process too many open files.
    pub fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(CreateFlags::CLOEXEC)? })
    }

    /// Adds `fd`: from now on [`Self::wait`] returns each time that `fd` has received new data.
    ///
    /// # Errors
    ///
    /// `fd` cannot be polled.
    pub fn add(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token), EventFlags::IN | EventFlags::ET)?)
    }

    /// Waits for at most `timeout` (`None`: without limit), and calls `ready` with the token of
    /// each descriptor that has received new data.
    ///
    /// # Errors
    ///
    /// None are to be expected; an interruption by a signal is not one.
    pub fn wait(&self, timeout: Option<Duration>, mut ready: impl FnMut(u64)) -> io::Result<()> {
        let timeout = timeout.map(|span| Timespec {
            tv_sec: (span.as_nanos() / 1_000_000_000).cast_signed(),
            tv_nsec: (span.as_nanos() % 1_000_000_000).cast_signed(),
        });
        let mut events = [MaybeUninit::uninit(); EVENTS];
        match epoll::wait(&self.epoll, &mut events, timeout.as_ref()) {
            Ok((events, _)) => events.iter().for_each(|event| ready(event.data.u64())),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn new_data_are_reported_once_with_their_token() {
        let poller = Poller::new().unwrap();
        let (read, mut write) = UnixStream::pair().unwrap();
        poller.add(&read, u64::MAX).unwrap();
        let ready = |timeout| {
            let mut tokens = Vec::new();
            poller.wait(timeout, |token| tokens.push(token)).unwrap();
            tokens
        };
        assert!(ready(Some(Duration::from_nanos(1))).is_empty());
        write.write_all(b"x").unwrap();
        assert_eq!(ready(None), [u64::MAX]);
        assert!(ready(Some(Duration::ZERO)).is_empty(), "the byte is still unread");
        write.write_all(b"y").unwrap();
        assert_eq!(ready(Some(Duration::from_secs(60))), [u64::MAX]);
    }
}
