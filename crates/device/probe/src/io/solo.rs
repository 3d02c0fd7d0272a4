//! Measures, from a station, the goodput and round-trip times that it reaches alone.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use wakeai_units::Duration;

use super::clock;
use super::listen::Stop;
use super::run::{ProbeError, ProbePeer};
use super::sender::{ProbeSender, SendError};
use super::serve::{is_timeout, receive};
use crate::solo::{Goodput, Leg, RoundTrips, SoloReport, SoloStream, StreamDirection, StreamKey};
use crate::token::Token;

/// The number of round trips that are measured without load.
const IDLE_PINGS: usize = 40;
/// The time between two round trips.
const BETWEEN: Duration = Duration::from_millis(50);
/// The longest wait for a connection and for its result.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// Measures what this machine reaches through its access point, one direction after the other.
///
/// # Errors
/// [`ProbeError::Send`].
pub fn probe_solo(
    listener: &ProbePeer,
    time: Duration,
    stop: Stop<'_>,
    mut progress: impl FnMut(&str),
) -> Result<SoloReport, ProbeError> {
    let mut sender = ProbeSender::connect(&listener.addresses, &listener.token, stop)?;
    progress("idle round trips");
    let idle = RoundTrips::from_times(&pings(&mut sender, &|times| times >= IDLE_PINGS)?);
    let mut leg = |number, direction| {
        let stream = SoloStream { session: sender.session, number, direction, time };
        leg(&mut sender, &listener.token, &stream, &idle, stop)
    };
    progress("upload");
    let up = leg(1, StreamDirection::Up)?;
    progress("download");
    let down = leg(2, StreamDirection::Down)?;
    Ok(SoloReport { up, down, idle })
}

/// Measures one round trip after another, until `done` returns `true` for their number.
fn pings(
    sender: &mut ProbeSender<'_>,
    done: &dyn Fn(usize) -> bool,
) -> Result<Vec<Option<Duration>>, SendError> {
    let mut times = Vec::new();
    while !done(times.len()) {
        let next = clock::now() + BETWEEN;
        times.push(sender.ping()?);
        clock::sleep_until(next);
    }
    Ok(times)
}

/// Transfers data in one direction, and measures round trips meanwhile.
fn leg(
    sender: &mut ProbeSender<'_>,
    token: &Token,
    stream: &SoloStream,
    idle: &RoundTrips,
    stop: Stop<'_>,
) -> Result<Leg, ProbeError> {
    let to = sender.to;
    let done = AtomicBool::new(false);
    let (times, goodput) = std::thread::scope(|scope| {
        let transfer = scope.spawn(|| {
            let goodput = transfer((to, token), stream, stop);
            done.store(true, Ordering::Relaxed);
            goodput
        });
        // If a ping fails, the transfer ends by itself, because it fails for the same reasons: the
        // user stops the probe, or the listener is gone.
        let times = pings(sender, &|_| done.load(Ordering::Relaxed));
        (times, transfer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let times = times?;
    let failed = |source| SendError::Socket {
        what: format!("transfer data with {to}"),
        source: in_words(source),
    };
    let goodput = goodput.map_err(failed)?;
    Ok(Leg::new(&goodput, RoundTrips::from_times(&times), idle))
}

/// The error of a transfer, in words: a read or a write that took too long is `EAGAIN` (socket(7)).
fn in_words(error: io::Error) -> io::Error {
    let (kind, words) = match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => (
            io::ErrorKind::TimedOut,
            "no answer within 10 s: the listener has ended, or the way to it is broken",
        ),
        io::ErrorKind::UnexpectedEof => (
            io::ErrorKind::UnexpectedEof,
            "the listener closed the connection before it had measured: see what it says",
        ),
        _ => return error,
    };
    io::Error::new(kind, words)
}

fn transfer(
    (to, token): (SocketAddr, &Token),
    stream: &SoloStream,
    stop: Stop<'_>,
) -> io::Result<Goodput> {
    let key = StreamKey::new(token);
    let mut connection = TcpStream::connect_timeout(&to, PATIENCE)?;
    connection.write_all(&key.open(stream))?;
    let give_up = clock::now() + stream.time + Duration::from_secs(20);
    let over = || stop() || clock::now() >= give_up;
    if stream.direction == StreamDirection::Down {
        connection.set_read_timeout(Some(PATIENCE))?;
        return receive(&mut connection, stream, &over);
    }
    let poll = std::time::Duration::from_millis(super::listen::STOP_MS.into());
    connection.set_write_timeout(Some(poll))?;
    let mut reader = connection.try_clone()?;
    reader.set_read_timeout(Some(poll))?;
    let answered = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let chunk = vec![0; 1 << 16];
            while !answered.load(Ordering::Relaxed) && !over() {
                match connection.write(&chunk) {
                    Ok(_) => {}
                    Err(error) if is_timeout(&error) => {}
                    Err(_) => break, // the listener has measured, and has closed
                }
            }
            // The connection ends now, so that its data does not delay the next measurement.
            let _ = connection.shutdown(Shutdown::Write);
        });
        let result = result(&mut reader, &over);
        answered.store(true, Ordering::Relaxed);
        let wrong =
            || io::Error::new(io::ErrorKind::InvalidData, "the result is not the listener's");
        key.read_result(stream, &result?).ok_or_else(wrong)
    })
}

/// Reads the result, which the listener sends when it has measured.
fn result(
    reader: &mut TcpStream,
    over: &dyn Fn() -> bool,
) -> io::Result<[u8; crate::solo::RESULT_BYTES]> {
    let mut bytes = [0; crate::solo::RESULT_BYTES];
    let mut length = 0;
    while length < bytes.len() {
        match reader.read(&mut bytes[length..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => length += count,
            Err(error) if is_timeout(&error) && !over() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_that_gets_no_answer_is_told_without_the_number_of_an_error() {
        for kind in [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut] {
            assert!(in_words(kind.into()).to_string().starts_with("no answer within 10 s: "));
        }
        let again = io::Error::from_raw_os_error(nix::libc::EAGAIN);
        assert!(!in_words(again).to_string().contains("os error"));
        let ended = in_words(io::ErrorKind::UnexpectedEof.into()).to_string();
        assert!(ended.starts_with("the listener closed the connection"), "{ended}");
    }
}
