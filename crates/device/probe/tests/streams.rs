//! The TCP side of a listener for `probe solo`, on real sockets.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv6Addr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

use wakeai_probe::solo::{SoloStream, StreamDirection, StreamKey};
use wakeai_probe::{
    BufferProbe, DatagramKind, HEADER_BYTES, Header, Limits, ProbePeer, ProbeSockets, Seal, Token,
    probe_buffer, probe_solo,
};
use wakeai_units::Duration;

const TOKEN: Token = Token::from_bytes([5; 16]);
const STREAM: SoloStream = SoloStream {
    session: 7,
    number: 1,
    direction: StreamDirection::Down,
    time: Duration::from_secs(1),
};

/// Runs `test` with the address of a listener.
fn with_listener(test: impl FnOnce(SocketAddr)) {
    let sockets = ProbeSockets::bind("127.0.0.1:0".parse().unwrap(), true).unwrap();
    let address = sockets.address().unwrap();
    let stop = AtomicBool::new(false);
    let over = || stop.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        let listener = scope.spawn(|| sockets.listen(&TOKEN, Limits::default(), &over).unwrap());
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
    let hello =
        Header { kind: DatagramKind::Hello, session: STREAM.session, burst: 0, number: 0, tag: 0 };
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
        assert_eq!(again(key.open(&SoloStream { session: 8, ..STREAM })), 0, "another session");
        let next = SoloStream { number: 2, ..STREAM };
        assert!(again(key.open(&next)) > 0, "the token's holder gets data");
        assert_eq!(again(key.open(&next)), 0, "a repeated connection");
    });
}

#[test]
fn a_measurement_ends_with_goodputs_and_round_trips() {
    with_listener(|address| {
        let peer = ProbePeer { addresses: vec![address], token: TOKEN };
        let report = probe_solo(&peer, Duration::from_secs(1), &|| false, |_| {}).unwrap();
        assert!(report.up.goodput_mbps > 0.0 && report.down.goodput_mbps > 0.0, "{report:?}");
        assert_eq!(report.idle.answers, 40, "{report:?}");
    });
}

#[test]
fn an_address_that_does_not_answer_does_not_keep_a_probe_from_the_next_one() {
    with_listener(|address| {
        let silent = SocketAddr::from((Ipv6Addr::LOCALHOST, address.port()));
        let Ok(_silent) = UdpSocket::bind(silent) else { return }; // there is no IPv6
        let peer = ProbePeer { addresses: vec![silent, address], token: TOKEN };
        let report = probe_solo(&peer, Duration::from_secs(1), &|| false, |_| {}).unwrap();
        assert_eq!(report.idle.answers, 40, "{report:?}");
    });
}

#[test]
fn the_result_of_an_upload_comes_without_a_reset_while_the_client_still_sends() {
    with_listener(|address| {
        greet(address);
        let stream = SoloStream { direction: StreamDirection::Up, ..STREAM };
        let key = StreamKey::new(&TOKEN);
        let mut connection = TcpStream::connect(address).unwrap();
        connection.write_all(&key.open(&stream)).unwrap();
        let rest = vec![0; 1 << 20];
        let mut reader = connection.try_clone().unwrap();
        let result = std::thread::spawn(move || {
            let mut result = [0; 48];
            reader.read_exact(&mut result).unwrap();
            (reader, result)
        });
        while !result.is_finished() {
            connection.write_all(&rest[..1 << 16]).unwrap();
        }
        connection.write_all(&rest).unwrap();
        connection.shutdown(Shutdown::Write).unwrap();
        let (mut reader, result) = result.join().unwrap();
        assert!(key.read_result(&stream, &result).is_some());
        assert_eq!(reader.read(&mut [0]).unwrap(), 0, "the end, and no reset");
    });
}

/// Answers the requests of a sender, and those for arrivals with three bytes that are no list.
fn answer_strangely(socket: &UdpSocket, stop: &AtomicBool) {
    let seal = Seal::new(&TOKEN);
    socket.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
    let (mut buffer, mut answer) = ([0; 2048], [0; 2048]);
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        let Some((header, _)) = seal.read(&buffer[..length]) else { continue };
        let (kind, body) = match header.kind {
            DatagramKind::Hello => (DatagramKind::Welcome, &b""[..]),
            DatagramKind::Fetch => (DatagramKind::Arrivals, &b"???"[..]),
            _ => continue,
        };
        let header = Header { kind, ..header };
        let datagram = seal.write(&header, body, HEADER_BYTES + body.len(), &mut answer).unwrap();
        socket.send_to(datagram, from).unwrap();
    }
}

#[test]
fn a_listener_whose_lists_cannot_be_read_is_not_called_silent() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let station = ProbePeer { addresses: vec![socket.local_addr().unwrap()], token: TOKEN };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| answer_strangely(&socket, &stop));
        let limit = "10Mbit/s".parse().unwrap();
        let probe = BufferProbe { station, second: None, runs: 1, limit };
        let error = probe_buffer(&probe, &|| false, |_| {}).unwrap_err().to_string();
        stop.store(true, Ordering::Relaxed);
        assert!(error.contains("answers in a form that this version cannot read"), "{error}");
    });
}
