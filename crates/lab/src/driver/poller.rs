//! Edge-triggered epoll with nanosecond timeouts.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use wakeai_units::Duration;

const EVENTS: libc::c_int = 64;

/// Waits for packets of TUN devices and for commands.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
}

#[allow(unsafe_code, reason = "epoll_pwait2 has no safe wrapper")]
impl Poller {
    /// A poller without descriptors.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: a plain system call; its result is checked and owned by nobody else.
        let epoll = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Self { epoll })
    }

    /// Adds `fd`: from now on [`Self::wait`] returns each time that new data can be read from it.
    pub(crate) fn add(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        let mut event =
            libc::epoll_event { events: (libc::EPOLLIN | libc::EPOLLET) as u32, u64: token };
        // SAFETY: both descriptors are open and the event outlives the call.
        let result = unsafe {
            libc::epoll_ctl(
                self.epoll.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                fd.as_fd().as_raw_fd(),
                &raw mut event,
            )
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits for at most `timeout` (`None`: without limit), and calls `ready` with the token of each descriptor
    /// that became readable.
    pub(crate) fn wait(
        &self,
        timeout: Option<Duration>,
        mut ready: impl FnMut(u64),
    ) -> io::Result<()> {
        let timeout = timeout.map(|span| libc::timespec {
            tv_sec: (span.as_nanos() / 1_000_000_000).cast_signed(),
            tv_nsec: (span.as_nanos() % 1_000_000_000).cast_signed(),
        });
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS as usize];
        // SAFETY: the event array and the timeout outlive the call, and its length is passed.
        let count = unsafe {
            libc::epoll_pwait2(
                self.epoll.as_raw_fd(),
                events.as_mut_ptr(),
                EVENTS,
                timeout.as_ref().map_or(ptr::null(), ptr::from_ref),
                ptr::null(),
            )
        };
        match usize::try_from(count) {
            Ok(count) => {
                events[..count].iter().for_each(|event| ready(event.u64));
                Ok(())
            }
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                error => Err(error),
            },
        }
    }
}
