//! The exchange of JSON over a Unix socket, with one line in each direction.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

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

/// Sends `question` to the socket at `path` and reads the answer. Each single read or write waits
/// at most `patience`. The time to connect is not limited.
///
/// # Errors
/// The errors of [`read`], and an error if nothing listens at `path`.
pub fn exchange<T: DeserializeOwned>(
    path: &Path,
    question: &impl Serialize,
    patience: Duration,
) -> io::Result<T> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    // A server that refuses a client sends the reason and closes at once. Therefore an answer may
    // have arrived even if the question could not be written.
    let written = write(&stream, question);
    read(&stream).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => written.err().unwrap_or(error),
        _ => error,
    })
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
}
