//! Pipes for splice(2). A direction of a connection borrows a pipe while the pipe holds data.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::pipe2;
use wakeai_units::Bytes;

/// The size of a pipe in bytes, four times the default (pipe(7)). With the default, a transfer
/// needs four times as many system calls. They cost a quarter of the goodput if many connections
/// take turns.
pub(crate) const PIPE_BYTES: usize = 1 << 18;
/// The number of empty pipes that are kept for later use.
const SPARE: usize = 64;

/// The number of pipes that `memory` allows.
pub(crate) fn most(memory: Bytes) -> usize {
    usize::try_from(memory.get()).unwrap_or(usize::MAX) / PIPE_BYTES
}

/// A pipe. It is empty unless a connection has it on [`Loan`].
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) read: OwnedFd,
    pub(crate) write: OwnedFd,
}

/// All pipes of the proxy, within its memory limit.
#[derive(Debug)]
pub(crate) struct Pipes {
    spare: RefCell<Vec<Pipe>>,
    lent: Cell<usize>,
    most: usize,
}

impl Pipes {
    pub(crate) fn new(memory: Bytes) -> Self {
        Self { spare: RefCell::default(), lent: Cell::new(0), most: most(memory) }
    }

    /// Lends a pipe; `None` if the limit is reached or the kernel has no more.
    pub(crate) fn lend(&self) -> Option<Loan<'_>> {
        if self.lent.get() >= self.most {
            return None;
        }
        let spare = self.spare.borrow_mut().pop();
        let pipe = match spare {
            Some(pipe) => pipe,
            None => open().inspect_err(|error| tracing::debug!(%error, "no pipe")).ok()?,
        };
        self.lent.set(self.lent.get() + 1);
        Some(Loan { pipes: self, pipe: Some(pipe), held: 0 })
    }
}

fn open() -> io::Result<Pipe> {
    let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
    // The kernel does not enlarge a pipe of a user who has many pipes. The pipe then keeps its
    // size.
    let size = i32::try_from(PIPE_BYTES).unwrap_or(i32::MAX);
    let _ = fcntl(&write, FcntlArg::F_SETPIPE_SZ(size));
    Ok(Pipe { read, write })
}

/// A pipe on loan. Dropping the loan returns the pipe if it is empty, and closes it if the
/// connection ended with data in it.
#[derive(Debug)]
pub(crate) struct Loan<'a> {
    pipes: &'a Pipes,
    pipe: Option<Pipe>,
    /// Bytes in the pipe.
    pub(crate) held: usize,
}

impl Loan<'_> {
    pub(crate) fn pipe(&self) -> &Pipe {
        self.pipe.as_ref().expect("taken only when dropped")
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        self.pipes.lent.set(self.pipes.lent.get() - 1);
        let mut spare = self.pipes.spare.borrow_mut();
        if self.held == 0 && spare.len() < SPARE {
            spare.extend(self.pipe.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_has_room_for_what_it_is_given() {
        let pipe = open().unwrap();
        let room = fcntl(&pipe.write, FcntlArg::F_GETPIPE_SZ).unwrap();
        assert_eq!(usize::try_from(room), Ok(PIPE_BYTES));
    }

    #[test]
    fn pipes_are_lent_within_the_limit_and_used_again() {
        let pipes = Pipes::new(Bytes::new(2 * PIPE_BYTES as u64 + 1));
        let (first, mut second) = (pipes.lend().unwrap(), pipes.lend().unwrap());
        assert!(pipes.lend().is_none(), "the limit is two");
        second.held = 1;
        drop(second);
        assert_eq!(pipes.spare.borrow().len(), 0, "a pipe with data in it is closed");
        drop(first);
        assert_eq!(pipes.spare.borrow().len(), 1);
        let _again = pipes.lend().unwrap();
        assert_eq!(pipes.spare.borrow().len(), 0);
    }
}
