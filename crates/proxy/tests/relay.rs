//! Tests of data, half-closes and resets through a running proxy, on loopback.

#![allow(clippy::unwrap_used, reason = "a test that fails, fails")]

mod support;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use socket2::SockRef;
use support::{Proxy, config, pattern};
use wakeai_proxy::{Config, Transparent};

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
        let report = proxy.stop();
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
    write!(client, "CONNECT localhost:{port} HTTP/1.1\r\n\r\nearly").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let (accepted, _) = server.accept().unwrap();
    assert_eq!(read_all(&accepted), b"early");
    drop(accepted);
    assert_eq!(read_all(&client), b"HTTP/1.1 200 Connection established\r\n\r\n");
    assert_eq!(proxy.stop().finished, 1);
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
        let report = proxy.stop();
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
    for config in [config(), copying()] {
        let proxy = Proxy::start(config);
        let (client, server) = proxy.pair();
        fill(&client);
        abort(client);
        assert!(is_reset(&server));
        assert_eq!(proxy.stop().reset, 1);
    }
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
    write!(client, "CONNECT localhost:{} HTTP/1.1\r\n\r\n", address.port()).unwrap();
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
    socket.bind(&std::net::SocketAddr::from((address, 0)).into()).unwrap();
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
    let config = Config { listen, transparent: Transparent::default(), ..config() };
    let error = wakeai_proxy::run(config, std::future::pending(), |_| {}).unwrap_err();
    assert!(!error.is_missing());
    assert!(error.to_string().contains(&taken.local_addr().unwrap().to_string()), "{error}");
}
