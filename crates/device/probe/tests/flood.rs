//! A listener on a real socket, under a flood of datagrams from a sender that does not know the
//! token.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wakeai_probe::{DatagramKind, Ending, HEADER_BYTES, Header, Limits, ProbeSockets, Seal, Token};

const TOKEN: Token = Token::from_bytes([5; 16]);

fn hello(token: &Token) -> Vec<u8> {
    let header = Header { kind: DatagramKind::Hello, session: 1, burst: 0, number: 0, tag: 9 };
    let mut buffer = [0; HEADER_BYTES];
    Seal::new(token).write(&header, &[], HEADER_BYTES, &mut buffer).unwrap().to_vec()
}

/// A wrong datagram. `number` chooses what is wrong with it.
fn wrong(number: u32, right: &[u8], forged: &[u8]) -> Vec<u8> {
    let mut datagram = right.to_vec();
    match number % 7 {
        0 => return number.to_be_bytes()[..(number / 7 % 5) as usize].to_vec(),
        1 => return forged.to_vec(),
        2 => datagram.truncate(number as usize / 7 % HEADER_BYTES),
        3 => datagram[number as usize / 7 % HEADER_BYTES] ^= 1 << (number / 500 % 8),
        4 => datagram[6..8].copy_from_slice(&u16::MAX.to_be_bytes()), // for a missing body
        5 => datagram[5] = (number / 7) as u8 | 0x80,
        _ => datagram = vec![number as u8; 1_400],
    }
    datagram
}

#[test]
fn a_million_malformed_and_forged_datagrams_get_no_answer_and_the_listener_stays() {
    let sockets = ProbeSockets::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
    let address = sockets.address().unwrap();
    let stop = AtomicBool::new(false);
    let listening = || sockets.listen(&TOKEN, Limits::default(), &|| stop.load(Ordering::Relaxed));
    let heard = std::thread::scope(|scope| {
        let listener = scope.spawn(listening);
        let attacker = UdpSocket::bind("127.0.0.1:0").unwrap();
        attacker.connect(address).unwrap();
        attacker.set_nonblocking(true).unwrap();
        let (right, forged) = (hello(&TOKEN), hello(&Token::from_bytes([6; 16])));
        // More than a million are sent, because some of them find the listener's queue full.
        for number in 0..1_300_000 {
            attacker.send(&wrong(number, &right, &forged)).unwrap();
            if number % 200 == 0 {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        let mut answer = [0; 2048];
        assert!(attacker.recv(&mut answer).is_err(), "nothing was answered");

        let owner = UdpSocket::bind("127.0.0.1:0").unwrap();
        owner.connect(address).unwrap();
        owner.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        owner.send(&right).unwrap();
        let length = owner.recv(&mut answer).unwrap();
        let (header, _) = Seal::new(&TOKEN).read(&answer[..length]).unwrap();
        assert_eq!(header.kind, DatagramKind::Welcome, "it still serves the owner of the token");
        assert!(attacker.recv(&mut answer).is_err(), "nothing was answered");
        let bye = Header { kind: DatagramKind::Bye, session: 1, burst: 0, number: 0, tag: 0 };
        let mut buffer = [0; HEADER_BYTES];
        owner.send(Seal::new(&TOKEN).write(&bye, &[], HEADER_BYTES, &mut buffer).unwrap()).unwrap();
        listener.join().unwrap().unwrap()
    });
    assert_eq!(heard.ending, Some(Ending::Done));
    assert!(heard.tally.refused >= 1_000_000, "{:?}", heard.tally);
    assert_eq!((heard.tally.accepted, heard.tally.answers), (2, 1));
}
