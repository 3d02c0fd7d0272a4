//! Listening sockets, the acceptance of connections, and their end.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::TcpStream;

/// The length of an accept queue that many clients fill; the kernel limits it to `net.core.somaxconn`.
pub const BACKLOG: i32 = 4096;
/// The pause after an accept that failed because memory or file descriptors were short.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// The most bytes that are dropped at once.
const PARTING_BUFFER: usize = 1 << 13;
/// The methods that HTTP knows (RFC 9110, section 9; RFC 5789). A server answers others with 501, and these, where it does
/// not take them, with 405.
pub const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/// Opens a listening socket. This call needs no event loop. `prepare` sets options before the socket is bound.
///
/// # Errors
///
/// The address is not this machine's or is in use, or a privilege is missing.
pub fn listen(
    address: SocketAddr,
    backlog: i32,
    prepare: impl FnOnce(&Socket) -> io::Result<()>,
) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    // The kernel may still remember connections of an earlier process. With this option they do not
    // block the port.
    socket.set_reuse_address(true)?;
    prepare(&socket)?;
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
    Ok(socket.into())
}

/// Accepts connections without end, and gives each to `serve`. `failed` counts the times that no connection could be
/// accepted; clients then wait.
pub async fn accept_each<C>(
    accept: impl AsyncFn() -> io::Result<C>,
    failed: impl Fn(),
    mut serve: impl AsyncFnMut(C),
) {
    let mut is_failing = false;
    loop {
        match accept().await {
            Ok(client) => {
                is_failing = false;
                serve(client).await;
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                failed();
                if !is_failing {
                    tracing::warn!(%error, "cannot accept: clients wait");
                }
                is_failing = true;
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

/// Whether an error of accept(2) concerns only the connection that would have been accepted. A pause after it would
/// delay other clients. All other errors would occur again at once, mostly because a resource is short.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error().map(Errno::from_raw),
        Some(
            Errno::ECONNABORTED
                | Errno::EHOSTDOWN
                | Errno::EHOSTUNREACH
                | Errno::EINTR
                | Errno::ENETDOWN
                | Errno::ENETUNREACH
                | Errno::ENONET
                | Errno::ENOPROTOOPT
                | Errno::EOPNOTSUPP
                | Errno::EPERM
                | Errno::EPROTO
        )
    )
}

/// Raises the limit of open files to `wanted`, as far as the system allows. Returns the limit that holds then.
pub fn raise_open_files(wanted: u64) -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return u64::MAX };
    if soft >= wanted {
        return soft;
    }
    let raise = |files, hard| setrlimit(Resource::RLIMIT_NOFILE, files, hard).map(|()| files);
    let raised = raise(wanted, hard.max(wanted)).or_else(|_| raise(hard.min(wanted), hard));
    raised.unwrap_or(soft)
}

/// Ends a connection whose last answer the other end may not have read: ends the sending, and drops what still comes, for
/// `time` and up to a number of bytes. At a close with unread bytes the kernel would send a reset, and the other end could
/// lose the answer (RFC 9112, section 9.6).
pub async fn part(stream: &TcpStream, time: Duration, most_bytes: usize) {
    let parted = async {
        SockRef::from(stream).shutdown(Shutdown::Write)?;
        let (mut buffer, mut bytes) = (vec![0; PARTING_BUFFER], 0);
        while bytes < most_bytes {
            stream.readable().await?;
            match stream.try_read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => bytes += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    };
    if let Ok(Err(error)) = tokio::time::timeout(time, parted).await {
        tracing::debug!(%error, "the other end left before it read the answer");
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// The accepted clients, the number of counted failures, and the pauses, with these outcomes of accept(2).
    fn accepted(outcomes: Vec<Result<u32, Errno>>) -> (Vec<u32>, u32, Duration) {
        let runtime = crate::event_loop(1).unwrap();
        runtime.block_on(async {
            tokio::time::pause();
            let begun = tokio::time::Instant::now();
            let left = RefCell::new(outcomes.into_iter());
            let (clients, failures) = (RefCell::new(Vec::new()), Cell::new(0));
            let accept = async || {
                let Some(outcome) = left.borrow_mut().next() else {
                    return std::future::pending().await;
                };
                outcome.map_err(io::Error::from)
            };
            let failed = || failures.set(failures.get() + 1);
            let accepting = accept_each(accept, failed, async |client| {
                clients.borrow_mut().push(client);
                if client == 0 {
                    std::future::pending::<()>().await;
                }
            });
            // The last client ends the test: an accept loop has no end.
            tokio::select! {
                () = accepting => {}
                () = async { while !clients.borrow().contains(&0) { tokio::time::sleep(Duration::from_millis(1)).await } } => {}
            }
            (clients.take(), failures.get(), begun.elapsed())
        })
    }

    #[test]
    fn only_a_lack_of_resources_pauses_and_counts() {
        let aborted = || Err(Errno::ECONNABORTED);
        let (clients, failures, _) = accepted(vec![aborted(), Ok(1), aborted(), Ok(0)]);
        assert_eq!((clients, failures), (vec![1, 0], 0));
        let short = || Err(Errno::EMFILE);
        let (clients, failures, paused) = accepted(vec![short(), short(), Ok(2), Ok(0)]);
        assert_eq!((clients, failures), (vec![2, 0], 2));
        assert!(paused >= 2 * ACCEPT_AGAIN, "{paused:?}");
    }
}
