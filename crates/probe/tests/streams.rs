//! The TCP side of a listener for `probe solo`, on real sockets.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

use wakeai_probe::solo::{Direction, Stream, StreamKey};
use wakeai_probe::{
    HEADER_BYTES, Header, Kind, Limits, Peer, Seal, Token, bind_solo, listen_solo, probe_solo,
};
use wakeai_units::Duration;

const TOKEN: Token = Token::from_bytes([5; 16]);
const STREAM: Stream =
    Stream { session: 7, number: 1, direction: Direction::Down, time: Duration::from_secs(1) };

/// Runs `test` with the address of a listener.
fn with_listener(test: impl FnOnce(SocketAddr)) {
    let (udp, tcp) = bind_solo("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = udp.local_addr().unwrap();
    let stop = AtomicBool::new(false);
    let over = || stop.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        let listener =
            scope.spawn(|| listen_solo((&udp, &tcp), &TOKEN, Limits::default(), &over).unwrap());
        test(address);
        stop.store(true, Ordering::Relaxed);
        listener.join().unwrap();
    });
}

/// The number of bytes, up to a thousand, that a listener sends to a connection with this opening.
fn answered(to: SocketAddr, opening: &[u8]) -> usize {
    let mut connection = TcpStream::connect(to).unwrap();
    let _ = connection.write_all(opening);
    let mut bytes = [0; 1_000];
    // A reset counts as no answer: a listener that closes a connection without reading it resets
    // it.
    connection.read(&mut bytes).unwrap_or(0)
}

/// Begins the session of [`STREAM`].
fn greet(to: SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(to).unwrap();
    let hello = Header { kind: Kind::Hello, session: STREAM.session, burst: 0, number: 0, tag: 0 };
    let mut buffer = [0; HEADER_BYTES];
    socket.send(Seal::new(&TOKEN).write(&hello, &[], HEADER_BYTES, &mut buffer).unwrap()).unwrap();
    socket.recv(&mut buffer).unwrap();
}

#[test]
fn a_connection_is_served_once_and_only_in_its_session() {
    let key = StreamKey::new(&TOKEN);
    with_listener(|address| {
        assert_eq!(answered(address, &key.open(&STREAM)), 0, "no session has begun");
    });
    with_listener(|address| {
        greet(address);
        let forged = StreamKey::new(&Token::from_bytes([6; 16])).open(&STREAM);
        assert_eq!(answered(address, &forged), 0);
        // The listener serves one connection at a time, and needs time to notice that the previous
        // one has ended.
        let again = |opening: [u8; 72]| {
            std::thread::sleep(std::time::Duration::from_millis(500));
            answered(address, &opening)
        };
        assert_eq!(again(key.open(&Stream { session: 8, ..STREAM })), 0, "another session");
        let next = Stream { number: 2, ..STREAM };
        assert!(again(key.open(&next)) > 0, "the token's holder gets data");
        assert_eq!(again(key.open(&next)), 0, "a repeated connection");
    });
}

#[test]
fn a_measurement_ends_with_goodputs_and_round_trips() {
    with_listener(|address| {
        let peer = Peer { address, token: TOKEN };
        let report = probe_solo(&peer, Duration::from_secs(1), &|| false, |_| {}).unwrap();
        assert!(report.up.goodput_mbps > 0.0 && report.down.goodput_mbps > 0.0, "{report:?}");
        assert_eq!(report.idle.answers, 40, "{report:?}");
    });
}
