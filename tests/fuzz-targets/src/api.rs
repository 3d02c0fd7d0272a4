//! Fuzzes the readers of the local API: the agent's, of requests, and the client's, of answers.

use std::io::ErrorKind;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use wakeai_api::{Answer, Body, Request, json_line};

/// The longest input in bytes; the rest is ignored. The target writes a line completely before it
/// reads it, so the line has to fit into a socket's buffer.
const LONGEST: usize = 1 << 16;

/// Reads the bytes as a request and as an answer. What is accepted must be the same after it was
/// written and read back.
pub(crate) fn target(bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(LONGEST)];
    question(bytes);
    answer(bytes);
}

fn question(line: &[u8]) {
    match Request::parse(line) {
        Err(reason) => assert!(reason.len() < 8 * line.len() + 1_000, "{reason}"),
        Ok(request) => {
            let question = json_line::encode(&request.question()).expect("it has string keys");
            assert_eq!(Request::parse(&question), Ok(request));
        }
    }
}

fn answer(line: &[u8]) {
    let read = read(line);
    let Ok(answer) = read else {
        let kind = read.expect_err("it is an error").kind();
        let closed = kind == ErrorKind::UnexpectedEof;
        assert!(kind == ErrorKind::InvalidData || closed && line.is_empty(), "{kind}");
        return;
    };
    if let Body::Status(status) = &answer.body {
        status.reservation.iter().for_each(|of| assert!(!of.state().to_string().is_empty()));
    }
    let written = json_line::encode(&answer).expect("it has string keys");
    let again: Answer = serde_json::from_slice(&written).expect("what was written can be read");
    assert_eq!(std::mem::discriminant(&again.body), std::mem::discriminant(&answer.body));
}

/// Reads the answer from a socket, as a client does.
fn read(mut line: &[u8]) -> std::io::Result<Answer> {
    let (here, mut there) = UnixStream::pair().expect("this process may open two files");
    std::io::copy(&mut line, &mut there).expect("the buffer is large enough");
    there.shutdown(Shutdown::Write).expect("it is connected");
    json_line::read(&here)
}
