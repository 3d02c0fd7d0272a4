//! Tests of data, half-closes and resets through a running proxy, on loopback.

#![allow(clippy::unwrap_used, reason = "a test that fails, fails")]

mod support;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use socket2::SockRef;
use support::{Proxy, config, pattern};
use wakeai_proxy::Config;

const MEGABYTES: usize = 1 << 23;

fn copying() -> Config {
    Config { memory: "0B".parse().unwrap(), ..config() }
}

/// Sends `bytes` on a thread of its own, and then closes this direction of the connection.
fn send(stream: &TcpStream, bytes: Vec<u8>) -> std::thread::JoinHandle<()> {
    let mut stream = stream.try_clone().unwrap();
    std::thread::spawn(move || {
        stream.write_all(&bytes).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    })
}

fn read_all(mut stream: &TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

fn abort(stream: TcpStream) {
    SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
}

fn is_reset(mut stream: &TcpStream) -> bool {
    loop {
        match stream.read(&mut [0; 4096]) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

#[test]
fn bytes_arrive_whole_both_ways_at_once_spliced_and_copied() {
    for config in [config(), copying()] {
        let copies = config.memory.get() == 0;
        let proxy = Proxy::start(config);
        let (client, server) = proxy.pair();
        let (up, down) = (pattern(MEGABYTES), pattern(MEGABYTES / 2));
        let senders = [send(&client, up.clone()), send(&server, down.clone())];
        let receiver = {
            let server = server.try_clone().unwrap();
            std::thread::spawn(move || read_all(&server))
        };
        assert!(read_all(&client) == down);
        assert!(receiver.join().unwrap() == up);
        for sender in senders {
            sender.join().unwrap();
        }
        drop((client, server));
        let report = proxy.stop_when(|report| report.active == 0);
        let bytes = (report.bytes_up, report.bytes_down);
        assert_eq!(bytes, (up.len() as u64, down.len() as u64));
        let expected = if copies { bytes.0 + bytes.1 } else { 0 };
        assert_eq!(report.bytes_copied, expected);
        assert_eq!((report.finished, report.reset), (1, 0));
    }
}

#[test]
fn connect_by_name_works_and_what_comes_with_the_request_is_not_lost() {
    let proxy = Proxy::start(config());
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let mut client = proxy.dial();
    write!(client, "CONNECT localhost:{port} HTTP/1.0\r\n\r\nearly").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let (accepted, _) = server.accept().unwrap();
    assert_eq!(read_all(&accepted), b"early");
    drop(accepted);
    assert_eq!(read_all(&client), b"HTTP/1.1 200 Connection established\r\n\r\n");
    assert_eq!(proxy.stop_when(|report| report.active == 0).finished, 1);
}

#[test]
fn ipv6_destinations_are_reached() {
    let Ok(server) = TcpListener::bind("[::1]:0") else { return };
    let proxy = Proxy::start(config());
    let (client, code) = proxy.ask(server.local_addr().unwrap());
    assert_eq!(code, 0);
    let (accepted, _) = server.accept().unwrap();
    send(&client, b"six".to_vec()).join().unwrap();
    assert_eq!(read_all(&accepted), b"six");
    drop((client, accepted));
    proxy.stop();
}

#[test]
fn a_half_close_is_passed_on_and_the_other_direction_goes_on() {
    for config in [config(), copying()] {
        let proxy = Proxy::start(config);
        let (client, mut server) = proxy.pair();
        send(&client, b"question".to_vec()).join().unwrap();
        assert_eq!(read_all(&server), b"question", "the half-close arrives at once");
        server.write_all(b"answer").unwrap();
        drop(server);
        assert_eq!(read_all(&client), b"answer");

        let (mut client, server) = proxy.pair();
        send(&server, b"greeting".to_vec()).join().unwrap();
        assert_eq!(read_all(&client), b"greeting");
        client.write_all(b"and back").unwrap();
        drop(client);
        assert_eq!(read_all(&server), b"and back");
        drop(server);
        let report = proxy.stop_when(|report| report.active == 0);
        assert_eq!((report.finished, report.reset), (2, 0));
    }
}

#[test]
fn a_reset_is_passed_on_both_ways() {
    let proxy = Proxy::start(config());
    let (client, server) = proxy.pair();
    abort(client);
    assert!(is_reset(&server));
    let (client, server) = proxy.pair();
    abort(server);
    assert!(is_reset(&client));
    // A reset is passed on after a half-close, too.
    let (client, server) = proxy.pair();
    send(&client, b"x".to_vec()).join().unwrap();
    assert_eq!(read_all(&server), b"x");
    abort(server);
    assert!(is_reset(&client));
    let report = proxy.stop();
    assert_eq!((report.finished, report.reset), (0, 3));
}

#[test]
fn a_reset_is_passed_on_while_the_other_end_does_not_read() {
    let ends = [config(), copying()].map(|config| {
        std::thread::spawn(|| {
            let proxy = Proxy::start(config);
            let (client, server) = proxy.pair();
            fill(&client);
            abort(client);
            // The server does not take what is left, so it gets the reset after five seconds.
            while server.take_error().unwrap().is_none() {
                std::thread::sleep(Duration::from_millis(10));
            }
            assert_eq!(proxy.stop().reset, 1);
        })
    });
    for end in ends {
        end.join().unwrap();
    }
}

/// Sends a long request from `asking` to `answering`, which reads a byte of it, answers and closes.
/// The kernel then sends a reset, because there are unread bytes. Returns what `asking` got.
fn answered_early(asking: &TcpStream, answering: TcpStream, answer: &[u8]) -> Vec<u8> {
    let mut writer = asking.try_clone().unwrap();
    let request = vec![b'x'; 1 << 16];
    let request = std::thread::spawn(move || while writer.write_all(&request).is_ok() {});
    let mut answering = answering;
    answering.read_exact(&mut [0]).unwrap();
    answering.write_all(answer).unwrap();
    drop(answering);
    let (mut got, mut chunk) = (Vec::new(), [0; 4096]);
    let mut reader = asking;
    while let Ok(count @ 1..) = reader.read(&mut chunk) {
        got.extend_from_slice(&chunk[..count]);
    }
    request.join().unwrap();
    got
}

#[test]
fn the_answer_of_an_end_that_closes_with_unread_bytes_arrives_before_the_reset() {
    for config in [config(), copying()] {
        let proxy = Proxy::start(config);
        let answer = pattern(20_000);
        for round in 0..40 {
            let (client, server) = proxy.pair();
            assert!(answered_early(&client, server, &answer) == answer, "down, {round}");
            let (client, server) = proxy.pair();
            assert!(answered_early(&server, client, &answer) == answer, "up, {round}");
        }
        let report = proxy.stop_when(|report| report.active == 0);
        assert_eq!((report.reset, report.finished), (80, 0));
    }
}

#[test]
fn when_the_proxy_ends_neither_side_takes_a_part_for_the_whole() {
    let proxy = Proxy::start(config());
    let (client, mut server) = proxy.pair();
    server.write_all(b"the first half").unwrap();
    let mut half = [0; 14];
    (&client).read_exact(&mut half).unwrap();
    proxy.stop();
    assert!(is_reset(&client) && is_reset(&server));
}

#[test]
fn a_connection_has_not_finished_before_its_last_byte_was_acknowledged() {
    let proxy = Proxy::start(config());
    let (client, server) = proxy.pair();
    // What the client does not read fills its receive buffer; the rest waits in the proxy's socket.
    SockRef::from(&client).set_recv_buffer_size(4096).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    send(&server, pattern(1 << 17)).join().unwrap();
    assert_eq!(read_all(&server), b"", "the client's half-close has passed");
    std::thread::sleep(Duration::from_millis(300));
    abort(client);
    drop(server);
    let report = proxy.stop_when(|report| report.active == 0);
    assert_eq!((report.finished, report.reset), (0, 1));
}

#[test]
fn every_client_is_counted_once() {
    let proxy = Proxy::start(Config { connect_timeout: "300ms".parse().unwrap(), ..config() });
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(proxy.ask(gone).1, 5);
    assert_eq!(proxy.ask("192.0.2.1:1".parse().unwrap()).1, 2);
    drop(proxy.dial());
    let mut unfinished = proxy.dial();
    unfinished.write_all(b"CONN").unwrap();
    abort(unfinished);
    let mut bad = proxy.dial();
    bad.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    read_all(&bad);
    drop(bad);
    let silent = proxy.dial();
    assert_eq!(read_all(&silent), b"");
    let (client, server) = proxy.pair();
    drop((client, server));
    let report = proxy.stop_when(|report| report.active == 0);
    let unconnected = [
        report.denied_destinations,
        report.failed_connects,
        report.left_clients,
        report.bad_requests,
        report.silent_clients,
    ];
    assert_eq!(unconnected, [1, 1, 2, 1, 1]);
    assert_eq!(report.accepted, unconnected.iter().sum::<u64>() + report.connected);
    let ended = report.finished + report.reset + report.idle + report.dead;
    assert_eq!((report.connected, ended), (1, 1));
}

/// A listener of both families at one port. That of IPv6 drops every SYN, as a path that leads
/// nowhere does, because its queue is full.
struct Blackhole {
    v4: TcpListener,
    _v6: socket2::Socket,
    _queued: Vec<TcpStream>,
}

impl Blackhole {
    fn new() -> Option<Self> {
        let v4 = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = SocketAddr::from((Ipv6Addr::LOCALHOST, v4.local_addr().unwrap().port()));
        let v6 = socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::STREAM, None).ok()?;
        v6.bind(&there.into()).ok()?; // there may be no IPv6
        v6.listen(0).unwrap();
        let mut queued = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&there, Duration::from_millis(300)) {
            queued.push(stream);
        }
        Some(Self { v4, _v6: v6, _queued: queued })
    }

    fn port(&self) -> u16 {
        self.v4.local_addr().unwrap().port()
    }

    /// The connections to the port of IPv6 that wait for an answer to their SYN (proc(5)).
    fn attempts(&self) -> usize {
        let table = std::fs::read_to_string("/proc/thread-self/net/tcp6").unwrap();
        let to = format!("{:04X}", self.port());
        let is_attempt = |line: &&str| {
            let fields: Vec<_> = line.split_whitespace().collect();
            fields[2].ends_with(&format!(":{to}")) && fields[3] == "02"
        };
        table.lines().filter(is_attempt).count()
    }
}

#[test]
fn an_address_that_does_not_answer_does_not_keep_a_client_from_the_next_one() {
    let Some(server) = Blackhole::new() else { return };
    let before = server.attempts();
    let proxy = Proxy::start(config());
    let mut client = proxy.dial();
    let authority = format!("localhost:{}", server.port());
    write!(client, "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n").unwrap();
    let mut status = [0; 13];
    client.read_exact(&mut status).unwrap();
    assert_eq!(status, *b"HTTP/1.1 200 ");
    assert_eq!(server.attempts(), before, "the losing attempt is closed");
    drop(server.v4.accept().unwrap());
    drop(client);
    let report = proxy.stop();
    assert_eq!((report.connected, report.failed_connects), (1, 0));
}

#[test]
fn no_attempt_goes_to_an_address_that_is_not_allowed() {
    let v4 = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = v4.local_addr().unwrap().port();
    let Ok(v6) = TcpListener::bind((Ipv6Addr::LOCALHOST, port)) else { return };
    let mut config = config();
    config.access.to = vec!["127.0.0.1".parse().unwrap()];
    let proxy = Proxy::start(config);
    let mut client = proxy.dial();
    write!(client, "CONNECT localhost:{port} HTTP/1.0\r\n\r\n").unwrap();
    drop(v4.accept().unwrap());
    client.shutdown(Shutdown::Write).unwrap();
    assert!(read_all(&client).starts_with(b"HTTP/1.1 200 "));
    v6.set_nonblocking(true).unwrap();
    assert_eq!(v6.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "nobody came");
    proxy.stop();
}

#[test]
fn a_refused_client_that_sends_much_gets_its_answer() {
    let proxy = Proxy::start(config());
    let mut client = proxy.dial();
    let body = vec![b'x'; 1 << 19];
    write!(client, "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n").unwrap();
    client.write_all(&body).unwrap();
    let answer = String::from_utf8(read_all(&client)).unwrap();
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    // A reset would discard an answer that has to be sent again.
    assert!(client.take_error().unwrap().is_none());
    proxy.stop();
}

/// Writes until nothing more is accepted for a while; returns the number of bytes written.
fn fill(stream: &TcpStream) -> usize {
    let mut writer = stream.try_clone().unwrap();
    writer.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let chunk = pattern(1 << 20);
    let mut written = 0;
    loop {
        match writer.write(&chunk[written % chunk.len()..]) {
            Ok(bytes) => written += bytes,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                writer.set_write_timeout(Some(support::PATIENCE)).unwrap();
                return written;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// The largest number of bytes that the buffers of one socket may hold, in both directions.
fn socket_buffers() -> usize {
    let most = |name: &str| -> usize {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
        text.split_whitespace().last().unwrap().parse().unwrap()
    };
    most("tcp_rmem") + most("tcp_wmem")
}

#[test]
fn a_reader_that_does_not_read_holds_the_sender_back_and_loses_nothing() {
    for config in [config(), copying()] {
        let memory = config.memory.get() as usize;
        let proxy = Proxy::start(config);
        let (client, server) = proxy.pair();
        let written = fill(&client);
        // The bytes wait in a send buffer and a receive buffer of each of the two connections, and
        // in the proxy's memory.
        let most = 2 * socket_buffers() + memory;
        assert!(written <= most, "{written} bytes under way, {most} have room");
        // Meanwhile the proxy serves other clients.
        let (other, far) = proxy.pair();
        let sender = send(&other, pattern(MEGABYTES));
        assert!(read_all(&far) == pattern(MEGABYTES));
        sender.join().unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let chunk = pattern(1 << 20);
        let received = read_all(&server);
        assert_eq!(received.len(), written);
        assert!(received.chunks(chunk.len()).all(|part| part == &chunk[..part.len()]));
        drop((client, server, other, far));
        proxy.stop();
    }
}

#[test]
fn a_source_that_is_not_allowed_gets_nothing() {
    let mut config = config();
    config.access.from = vec!["192.0.2.0/24".parse().unwrap()];
    let proxy = Proxy::start(config);
    for request in [&b"\x05\x01\x00"[..], b"CONNECT localhost:80 HTTP/1.1\r\n\r\n"] {
        let mut client = proxy.dial();
        let _ = client.write_all(request); // the connection may already be closed
        let mut said = Vec::new();
        let _ = client.read_to_end(&mut said); // the connection is closed or reset
        assert_eq!(said, b"");
    }
    let report = proxy.stop();
    assert_eq!((report.denied_sources, report.accepted, report.connected), (2, 0, 0));
}

#[test]
fn a_destination_that_is_not_allowed_is_refused_by_address_and_by_name() {
    let mut config = config();
    config.access.to = vec!["192.0.2.0/24".parse().unwrap()];
    let proxy = Proxy::start(config);
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    assert_eq!(proxy.ask(address).1, 2, "not allowed by the ruleset (RFC 1928 §6)");
    let mapped = format!("[::ffff:127.0.0.1]:{}", address.port()).parse().unwrap();
    assert_eq!(proxy.ask(mapped).1, 2);
    let mut client = proxy.dial();
    write!(client, "CONNECT localhost:{} HTTP/1.0\r\n\r\n", address.port()).unwrap();
    assert!(read_all(&client).starts_with(b"HTTP/1.1 403 "));
    server.set_nonblocking(true).unwrap();
    assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "nobody came");
    let report = proxy.stop();
    assert_eq!((report.denied_destinations, report.connected), (3, 0));
}

#[test]
fn a_destination_that_refuses_is_told_as_such() {
    let proxy = Proxy::start(config());
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(proxy.ask(gone).1, 5, "connection refused (RFC 1928 §6)");
    assert_eq!(proxy.stop().failed_connects, 1);
}

#[test]
fn a_client_that_does_not_ask_is_closed() {
    let proxy = Proxy::start(Config { connect_timeout: "200ms".parse().unwrap(), ..config() });
    let mut client = proxy.dial();
    client.write_all(b"\x05").unwrap();
    assert_eq!(read_all(&client), b"");
    assert_eq!(proxy.stop().silent_clients, 1);
}

#[test]
fn a_connection_in_which_nothing_moves_is_reset() {
    let proxy = Proxy::start(Config { idle_timeout: "300ms".parse().unwrap(), ..config() });
    let (client, server) = proxy.pair();
    assert!(is_reset(&client) && is_reset(&server));
    assert_eq!(proxy.stop().idle, 1);
}

#[test]
fn nobody_is_connected_to_the_proxy_itself() {
    let proxy = Proxy::start(config());
    assert_eq!(proxy.ask(proxy.address).1, 2, "not allowed by the ruleset (RFC 1928 §6)");
    assert_eq!(proxy.stop().accepted, 1);
}

#[test]
fn over_the_limit_another_client_waits_and_the_same_is_closed() {
    let proxy = Proxy::start(Config { connections: 1, ..config() });
    let (first, server) = proxy.pair();
    assert!(read_all(&proxy.dial()).is_empty(), "this client has its share");
    let mut second = dial_from([127, 0, 0, 2], &proxy);
    second.write_all(b"\x05\x01\x00").unwrap();
    second.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(second.read(&mut [0; 2]).is_err(), "it waits");
    drop((first, server));
    second.set_read_timeout(Some(support::PATIENCE)).unwrap();
    let mut answer = [0; 2];
    second.read_exact(&mut answer).unwrap();
    assert_eq!(answer, [5, 0]);
    let report = proxy.stop();
    assert_eq!((report.most_active, report.over_share), (1, 1));
}

/// A connection from `address`, which the proxy takes for another client.
fn dial_from(address: [u8; 4], proxy: &Proxy) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((address, 0)).into()).unwrap();
    socket.connect(&proxy.address.into()).unwrap();
    socket.into()
}

#[test]
fn under_pressure_a_client_with_many_idle_connections_loses_them_sooner() {
    let idle_timeout = "600s".parse().unwrap();
    let proxy = Proxy::start(Config { connections: 8, idle_timeout, ..config() });
    let held: Vec<_> = (0..6).map(|_| proxy.pair()).collect();
    for host in 2..4 {
        // Other clients take slots until none is free. The idle limit is then ten seconds.
        std::mem::forget(dial_from([127, 0, 0, host], &proxy));
    }
    assert!(is_reset(&held[0].0), "the idle timeout alone would be ten minutes");
    assert!(proxy.stop().idle >= 1);
}

#[test]
fn an_algorithm_that_the_kernel_does_not_have_is_named() {
    let config = Config { algorithm: Some("nonesuch".to_owned()), ..config() };
    let error = wakeai_proxy::run(config, std::future::pending(), |_| {}).unwrap_err();
    assert!(error.is_missing());
    assert!(error.to_string().contains("\"nonesuch\""), "{error}");
}

#[test]
fn an_address_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = vec![taken.local_addr().unwrap()];
    let config = Config { listen, transparent: Vec::new(), ..config() };
    let error = wakeai_proxy::run(config, std::future::pending(), |_| {}).unwrap_err();
    assert!(!error.is_missing());
    assert!(error.to_string().contains(&taken.local_addr().unwrap().to_string()), "{error}");
}
