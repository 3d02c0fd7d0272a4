//! A name server for guests without shared libraries: `name_server ADDRESS NAME ANSWER` answers every
//! question for the IPv4 address of NAME with ANSWER, and says of every other name that there is none (RFC 1035).
//! `scripts/test-static` builds it as a static program.

#![allow(clippy::unwrap_used, reason = "it serves tests: a failure here fails the test")]

use std::net::{Ipv4Addr, UdpSocket};

/// The lengths of a header, and of the type and class of a question.
const HEADER: usize = 12;
const TYPE_AND_CLASS: usize = 4;

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [address, name, answer] = &arguments[..] else {
        panic!("name_server ADDRESS NAME ANSWER");
    };
    let answer: Ipv4Addr = answer.parse().unwrap();
    let socket = UdpSocket::bind((address.as_str(), 53)).unwrap();
    let mut buffer = [0; 512];
    loop {
        let (length, client) = socket.recv_from(&mut buffer).unwrap();
        if let Some(reply) = reply(&buffer[..length], name, answer) {
            socket.send_to(&reply, client).unwrap();
        }
    }
}

/// The answer to the one question of a query; `None` where it is no such query.
fn reply(query: &[u8], name: &str, answer: Ipv4Addr) -> Option<Vec<u8>> {
    let (asked, end) = question(query)?;
    let known = asked.eq_ignore_ascii_case(name);
    let is_address = query[end - TYPE_AND_CLASS..end] == [0, 1, 0, 1];
    let answers = known && is_address;
    // An answer, recursion available; code 3 says that there is no such name.
    let code = if known { 0 } else { 3 };
    let counts = [0, 1, 0, u8::from(answers), 0, 0, 0, 0];
    let mut reply = [&query[..2], &[0x81, 0x80 | code], &counts, &query[HEADER..end]].concat();
    if answers {
        // The name of the question again, as a pointer to it; type, class, 60 s, 4 bytes.
        reply.extend([0xc0, HEADER as u8, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        reply.extend(answer.octets());
    }
    Some(reply)
}

/// The name of the first question, and where the question ends.
fn question(query: &[u8]) -> Option<(String, usize)> {
    let mut labels = Vec::new();
    let mut at = HEADER;
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(query.get(at..at + length)?).into_owned());
        at += length;
    }
    let end = at + TYPE_AND_CLASS;
    (end <= query.len()).then(|| (labels.join("."), end))
}
