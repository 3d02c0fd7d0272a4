//! The exchange of JSON over a Unix socket, with one line in each direction.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, getsockopt, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike as _};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest line that is read, in bytes. An agent's answer has some 200 bytes per connection and per peer. The
/// numbers of connections and peers are limited.
const MAX_LINE: u64 = 16 << 20;

/// Encodes `value` as one line, with the newline.
///
/// # Errors
/// An error if `value` has a map with keys that are not strings.
pub fn encode(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// Writes `value` as one line.
///
/// # Errors
/// An error if the stream cannot be written.
pub fn write(mut stream: &UnixStream, value: &impl Serialize) -> io::Result<()> {
    stream.write_all(&encode(value)?)
}

/// Reads one line.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] if the line is not a `T`. [`io::ErrorKind::UnexpectedEof`] if the
/// stream was closed without a line. Another kind if the stream cannot be read.
pub fn read<T: DeserializeOwned>(stream: &UnixStream) -> io::Result<T> {
    let mut line = String::new();
    // If reading fails after a part of the line, for example with a timeout, this error is
    // returned. It says more than a JSON error about the incomplete line.
    BufReader::new(stream.take(MAX_LINE)).read_line(&mut line)?;
    if line.is_empty() {
        let closed = "the connection was closed without an answer";
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, closed));
    }
    serde_json::from_str(&line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Why a question over a Unix socket has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// Nothing is at the path.
    #[error("nothing is there: it has not been started, or has ended")]
    Absent,
    /// A socket is at the path, and no process listens.
    #[error(
        "no process listens there any more: it has ended without removing its socket; start it again"
    )]
    Dead,
    /// This user may not connect.
    #[error(
        "this user may not connect to it; run as root, or as a user whom its configuration admits"
    )]
    Forbidden,
    /// The process did not answer in time. A request for a change was withdrawn.
    #[error(
        "no answer within {} s: {}; the request was withdrawn, and changes nothing", patience.as_secs_f64(), reason
    )]
    Silent {
        /// The time that was waited.
        patience: Duration,
        /// What is known of the process.
        reason: String,
    },
    /// The answer is not the expected line of JSON.
    #[error("{0}")]
    Strange(String),
    /// The connection failed otherwise.
    #[error("{0}")]
    Failed(io::Error),
}

impl ExchangeError {
    fn of(error: io::Error, stream: Option<&UnixStream>, patience: Duration) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Absent,
            io::ErrorKind::ConnectionRefused => Self::Dead,
            io::ErrorKind::PermissionDenied => Self::Forbidden,
            // A limit on the time of a call ends it with EAGAIN.
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Self::Silent { patience, reason: stream.map_or_else(unknown, state_of_peer) }
            }
            io::ErrorKind::InvalidData => Self::Strange(error.to_string()),
            _ => Self::Failed(error),
        }
    }
}

fn unknown() -> String {
    "too many others wait for it, or it is stopped".to_owned()
}

/// What `/proc` tells about the process that listens at the other end.
fn state_of_peer(stream: &UnixStream) -> String {
    let Ok(peer) = getsockopt(stream, sockopt::PeerCredentials) else { return unknown() };
    let pid = peer.pid();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    match state {
        Some('T' | 't') => {
            format!("process {pid} is stopped, and `kill -CONT {pid}` lets it go on")
        }
        Some(_) => format!("process {pid} runs, but is busy or waits for something"),
        None => format!("process {pid} has ended"),
    }
}

/// Connects to the socket at `path`. To connect, and each later read or write, waits at most
/// `patience`.
///
/// # Errors
/// [`ExchangeError`].
pub fn connect(path: &Path, patience: Duration) -> Result<UnixStream, ExchangeError> {
    let connect = || {
        let limit = TimeVal::microseconds(i64::try_from(patience.as_micros()).unwrap_or(i64::MAX));
        let (family, kind) = (AddressFamily::Unix, SockType::Stream);
        let socket = socket(family, kind, SockFlag::SOCK_CLOEXEC, None)?;
        // The limit on sending holds for connect(2), too, which waits while the queue of the
        // listener is full (unix(7), socket(7)).
        setsockopt(&socket, sockopt::SendTimeout, &limit)?;
        setsockopt(&socket, sockopt::ReceiveTimeout, &limit)?;
        nix::sys::socket::connect(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
        Ok(UnixStream::from(socket))
    };
    connect().map_err(|errno: nix::errno::Errno| ExchangeError::of(errno.into(), None, patience))
}

/// Sends `question` over the stream and reads the answer. Where there is no answer in time, the
/// connection is shut down. A server makes a change only when its answer could be written, so a
/// request that failed is not carried out later.
///
/// # Errors
/// [`ExchangeError`].
pub fn ask<T: DeserializeOwned>(
    stream: &UnixStream,
    question: &impl Serialize,
    patience: Duration,
) -> Result<T, ExchangeError> {
    // A server that refuses a client sends the reason and closes at once. Therefore an answer may
    // have arrived even if the question could not be written.
    let written = write(stream, question);
    let answer = read(stream).or_else(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Err(written.err().unwrap_or(error)),
        io::ErrorKind::WouldBlock => {
            // From here on no answer can be written. One that was written before is read.
            stream.shutdown(Shutdown::Both)?;
            read(stream).map_err(|_| error)
        }
        _ => Err(error),
    });
    answer.map_err(|error| ExchangeError::of(error, Some(stream), patience))
}

/// Sends `question` to the socket at `path` and reads the answer. To connect, and each single read or
/// write, waits at most `patience`.
///
/// # Errors
/// [`ExchangeError`].
pub fn exchange<T: DeserializeOwned>(
    path: &Path,
    question: &impl Serialize,
    patience: Duration,
) -> Result<T, ExchangeError> {
    ask(&connect(path, patience)?, question, patience)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back_as_it_was_written() {
        let (here, there) = UnixStream::pair().unwrap();
        write(&here, &("a\nb", 7)).unwrap();
        assert_eq!(read::<(String, u32)>(&there).unwrap(), ("a\nb".to_owned(), 7));
    }

    #[test]
    fn a_bad_line_and_a_closed_stream_are_different_errors() {
        let (here, there) = UnixStream::pair().unwrap();
        write(&here, &"seven").unwrap();
        drop(here);
        assert_eq!(read::<u32>(&there).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read::<u32>(&there).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_timeout_after_a_part_of_a_line_is_the_timeouts_error() {
        let (mut here, there) = UnixStream::pair().unwrap();
        there.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        here.write_all(b"[1, ").unwrap();
        assert_eq!(read::<Vec<u32>>(&there).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_refusal_is_read_where_the_question_cannot_be_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            write(&stream, &"too many clients").unwrap();
        });
        // The question is larger than a socket's buffer. Therefore it is not written completely
        // before the server closes.
        let question = "x".repeat(1 << 22);
        let answer = exchange::<String>(&path, &question, Duration::from_secs(10));
        server.join().unwrap();
        assert_eq!(answer.unwrap(), "too many clients");
    }

    #[test]
    fn a_path_without_a_process_and_a_process_without_an_answer_are_told_in_words() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let patience = Duration::from_millis(50);
        let said = || exchange::<u32>(&path, &1, patience).unwrap_err().to_string();
        assert!(said().contains("nothing is there"), "{}", said());
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let silent = said();
        let own = format!("process {} runs", std::process::id());
        assert!(silent.contains("no answer within 0.05 s") && silent.contains(&own), "{silent}");
        assert!(!silent.contains("os error"), "{silent}");
        drop(listener);
        assert!(said().contains("no process listens"), "{}", said());
    }

    #[test]
    fn a_full_queue_of_a_listener_is_waited_for_no_longer_than_asked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let socket =
            socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None).unwrap();
        nix::sys::socket::bind(socket.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
        nix::sys::socket::listen(&socket, nix::sys::socket::Backlog::new(0).unwrap()).unwrap();
        let patience = Duration::from_millis(50);
        let waiting: Vec<_> = (0..2).map(|_| connect(&path, patience)).collect();
        let refused = waiting.iter().find_map(|tried| tried.as_ref().err()).unwrap().to_string();
        assert!(refused.contains("no answer within"), "{refused}");
    }

    #[test]
    fn an_answer_that_comes_with_the_end_of_the_patience_counts() {
        let (here, there) = UnixStream::pair().unwrap();
        here.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
        let failed = ask::<u32>(&here, &1, Duration::from_millis(30)).unwrap_err().to_string();
        assert!(failed.contains("withdrawn"), "{failed}");
        assert_eq!(read::<u32>(&there).unwrap(), 1, "the question has arrived");
        assert!(write(&there, &2).is_err(), "its answer cannot be written any more");
    }
}
