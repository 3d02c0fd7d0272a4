//! Waiting for the end, for a signal or for somebody who asks.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::control::Listener;

/// What the waiting ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// With a signal, or with the deadline.
    Yes,
    /// Somebody asks, or it is time to look at what is ruled.
    No,
}

/// Between two looks at what is ruled.
const LOOK: Duration = Duration::from_millis(100);

/// The signals that end it.
pub(super) struct Signals(UnixStream);

impl Signals {
    /// From here on they do not kill the process. One that hangs up a terminal does nothing where
    /// it was ignored before (nohup(1)).
    pub(super) fn catch() -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if signal != SIGHUP || !is_ignored(signal)? {
                signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
            }
        }
        Ok(Self(read))
    }

    /// Waits for the end, or for somebody who asks; not for long where somebody `looks`.
    pub(super) fn wait(
        &self,
        listener: &Listener,
        deadline: Option<Instant>,
        looks: bool,
    ) -> io::Result<Ended> {
        loop {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Ended::Yes);
            }
            let timeout = match left.into_iter().chain(looks.then_some(LOOK)).min() {
                None => PollTimeout::NONE,
                // Rounded up, so that it does not end a moment before; longer ones take two turns.
                Some(left) => {
                    PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX)
                }
            };
            let mut ready = [
                PollFd::new(self.0.as_fd(), PollFlags::POLLIN),
                PollFd::new(listener.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut ready, timeout) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let [signal, asked] = ready.map(|fd| fd.any().unwrap_or(false));
            if signal {
                return Ok(Ended::Yes);
            }
            if asked || looks {
                return Ok(Ended::No);
            }
        }
    }
}

/// By the mask `SigIgn` of proc(5).
fn is_ignored(signal: i32) -> io::Result<bool> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    Ok(mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0))
}
