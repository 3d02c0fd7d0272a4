//! Attacks of a client, a name server or a second proxy, and how the proxy handles them. The rows of docs/security.md
//! name these tests.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use socket2::{Domain, SockRef, Socket, Type};

use crate::road::{CLIENT, Proxy, Road, SERVER, ip};
use wakeai_tests::{Machine, must, nothing_left, stderr, wait_for};

/// SOCKS5 replies (RFC 1928 section 6).
const SUCCEEDED: u8 = 0;
const NOT_ALLOWED: u8 = 2;
/// The address of a second client.
const OTHER: &str = "10.71.0.3";
/// A step that takes longer than this counts as hanging. It is long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Connects from this address of the client's namespace.
fn dial(road: &Road, from: &str, to: SocketAddr) -> TcpStream {
    road.inside("client", || {
        let connect = || {
            let socket = Socket::new(Domain::for_address(to), Type::STREAM, None).unwrap();
            socket.bind(&SocketAddr::new(ip(from), 0).into()).unwrap();
            match socket.connect_timeout(&to.into(), PATIENCE) {
                // The resolution of an address gives up after 3 s, which a busy machine may need for the answer.
                Err(error) if error.kind() == ErrorKind::HostUnreachable => None,
                connected => Some(connected.map(|()| socket).unwrap()),
            }
        };
        let stream = TcpStream::from(wait_for("the address is resolved", connect));
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    })
}

/// Sends a SOCKS5 request for a name or an address, without waiting for the reply to the greeting.
fn ask(stream: &mut TcpStream, host: &str, port: u16) {
    let host = match host.parse() {
        Ok(IpAddr::V4(address)) => [&[1][..], &address.octets()].concat(),
        Ok(IpAddr::V6(address)) => [&[4][..], &address.octets()].concat(),
        Err(_) => [&[3, host.len() as u8][..], host.as_bytes()].concat(),
    };
    let request = [b"\x05\x01\x00\x05\x01\x00", &host[..], &port.to_be_bytes()].concat();
    stream.write_all(&request).unwrap();
}

/// The code of the reply; `None` where the connection was closed without one.
fn reply(stream: &mut TcpStream) -> Option<u8> {
    let mut said = [0; 12];
    match stream.read_exact(&mut said) {
        Ok(()) => Some(said[3]),
        Err(_) => None,
    }
}

fn asked(road: &Road, from: &str, proxy: &Proxy, host: &str, port: u16) -> (TcpStream, Option<u8>) {
    let mut stream = dial(road, from, proxy.addresses[0]);
    ask(&mut stream, host, port);
    let code = reply(&mut stream);
    (stream, code)
}

/// Accepts connections, and keeps them.
fn accept_all(listener: TcpListener) {
    std::thread::spawn(move || {
        let _kept: Vec<_> = listener.incoming().collect();
    });
}

/// A proxy on the router for the client's network, with further arguments.
fn listening(road: &Road, arguments: &[&str]) -> Proxy {
    road.proxy(&[&["--listen", "10.71.0.1:0"], arguments].concat())
}

/// A query, and the address of the resolver that waits for its answer.
type Query = (Vec<u8>, SocketAddr);

/// A name server at the server's address. The first label of a name decides on the answer. Names that begin with `slow`
/// get an answer only after [`NameServer::answer_slow`].
struct NameServer {
    held: Arc<Mutex<Vec<Query>>>,
    hold: Arc<AtomicBool>,
    socket: UdpSocket,
}

impl NameServer {
    fn start(road: &Road) -> Self {
        let socket = road.inside("server", || UdpSocket::bind((SERVER[0], 53)).unwrap());
        let (held, hold) = (Arc::<Mutex<Vec<Query>>>::default(), Arc::new(AtomicBool::new(true)));
        let server = Self {
            held: Arc::clone(&held),
            hold: Arc::clone(&hold),
            socket: socket.try_clone().unwrap(),
        };
        std::thread::spawn(move || {
            let mut query = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut query) {
                let query = query[..length].to_vec();
                if query[13..].starts_with(b"slow") && hold.load(Ordering::SeqCst) {
                    held.lock().unwrap().push((query, from));
                } else {
                    socket.send_to(&answer(&query), from).unwrap();
                }
            }
        });
        server
    }

    fn answer_slow(&self) {
        self.hold.store(false, Ordering::SeqCst);
        for (query, from) in self.held.lock().unwrap().drain(..) {
            self.socket.send_to(&answer(&query), from).unwrap();
        }
    }

    /// A proxy on the router that asks the name server.
    fn proxy(road: &Road, arguments: &[&str]) -> Proxy {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("resolv.conf");
        std::fs::write(&file, format!("nameserver {}\noptions timeout:30 attempts:1\n", SERVER[0]))
            .unwrap();
        let mut command = road.command("router", "unshare");
        command
            .args(["--mount", "sh", "-c", "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\""])
            .arg(&file)
            .arg(wakeai_tests::program())
            .args(["proxy", "--json", "--listen", "10.71.0.1:0"])
            .args(arguments);
        Proxy::start(&mut command)
    }
}

/// The answer to a query (RFC 1035 section 4.1): the question, with one record of its type where the name has one.
fn answer(query: &[u8]) -> Vec<u8> {
    let label = &query[13..13 + usize::from(query[12])];
    let end = 12 + query[12..].iter().position(|byte| *byte == 0).unwrap() + 1;
    let question = &query[12..end + 4];
    let wants_v6 = query[end + 1] == 28;
    let known: &[&str] = match label {
        b"loop" => &["127.0.0.1", "::1"],
        b"metadata" => &["169.254.169.254"],
        b"own" => &["10.72.0.1", "fd72::1"],
        b"translated" => &["64:ff9b::7f00:1"],
        _ => &[SERVER[0]],
    };
    let known =
        known.iter().map(|address| ip(address)).find(|address| address.is_ipv6() == wants_v6);
    let mut said = query[..2].to_vec();
    said.extend([0x81, 0x80, 0, 1, 0, u8::from(known.is_some()), 0, 0, 0, 0]);
    said.extend(question);
    if let Some(address) = known {
        said.extend([0xc0, 12, 0, if wants_v6 { 28 } else { 1 }, 0, 1, 0, 0, 0, 60]);
        match address {
            IpAddr::V4(address) => said.extend([&[0, 4][..], &address.octets()].concat()),
            IpAddr::V6(address) => said.extend([&[0, 16][..], &address.octets()].concat()),
        }
    }
    said
}

#[test]
fn a_wide_network_excludes_own_link_local_and_multicast_addresses() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    let _names = NameServer::start(&road);
    accept_all(road.inside("server", || TcpListener::bind("[::]:9000").unwrap()));
    accept_all(road.inside("router", || TcpListener::bind("[::]:9000").unwrap()));
    let proxy = NameServer::proxy(&road, &["--allow-to", "0.0.0.0/0,::/0"]);
    for host in [
        "127.0.0.1",
        "127.8.8.8",
        "::1",
        "localhost",
        "0.0.0.0",
        "0.1.2.3",
        "::",
        "169.254.169.254",
        "fe80::1",
        "224.0.0.1",
        "255.255.255.255",
        "ff02::1",
        "10.71.0.1",
        "10.72.0.1",
        "fd72::1",
        "::ffff:127.0.0.1",
        "::ffff:10.72.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b::a48:1", // 10.72.0.1
        "2002:7f00:1::",
        "2002:a48:1::7",
        "loop.example",
        "metadata.example",
        "own.example",
        "translated.example",
    ] {
        let (_, code) = asked(&road, CLIENT[0], &proxy, host, 9000);
        assert_eq!(code, Some(NOT_ALLOWED), "{host}");
    }
    for host in [SERVER[0], SERVER[1], "there.example"] {
        assert_eq!(asked(&road, CLIENT[0], &proxy, host, 9000).1, Some(SUCCEEDED), "{host}");
    }
    drop(proxy);
    // Each address can be reached if the list has an entry of its own for it.
    let listed = "0.0.0.0/0,::/0,127.0.0.0/8,10.72.0.1,fd72::1";
    let proxy = NameServer::proxy(&road, &["--allow-to", listed]);
    for (host, code) in [
        ("127.0.0.1", SUCCEEDED),
        ("::ffff:127.0.0.1", SUCCEEDED),
        ("10.72.0.1", SUCCEEDED),
        ("fd72::1", SUCCEEDED),
        ("::1", NOT_ALLOWED),
        ("10.71.0.1", NOT_ALLOWED),
        ("169.254.169.254", NOT_ALLOWED),
    ] {
        assert_eq!(asked(&road, CLIENT[0], &proxy, host, 9000).1, Some(code), "{host}");
    }
}

#[test]
fn forwarded_connections_are_intercepted_by_interface_or_list() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    let run = |arguments: &[&str]| {
        let mut command = road.command("router", "timeout");
        command.args(["--foreground", "10", wakeai_tests::program(), "proxy"]).args(arguments);
        command.output().unwrap()
    };
    for arguments in [
        &["--transparent", "forwarded"] as &[&str],
        &["--transparent", "forwarded", "--allow-to", "10.72.0.0/24"],
        &["--transparent", "own", "--in-interface", "client"],
        &["--transparent", "forwarded", "--in-interface", "client\" accept"],
    ] {
        let found = run(arguments);
        assert_eq!(found.status.code(), Some(2), "{arguments:?}: {}", stderr(&found));
        assert!(stderr(&found).contains("--in-interface"), "{}", stderr(&found));
    }
    // Connections that arrive at another interface do not go through the proxy.
    accept_all(road.inside("server", || TcpListener::bind("[::]:9000").unwrap()));
    for (interface, taken) in [("server", 0), ("client", 2)] {
        let mut proxy = road.proxy(&["--transparent", "forwarded", "--in-interface", interface]);
        for (from, to) in CLIENT.into_iter().zip(SERVER) {
            dial(&road, from, SocketAddr::new(ip(to), 9000));
        }
        wait_for("the connections are counted", || {
            (proxy.counters()["connected"] == taken).then_some(())
        });
    }
}

#[test]
fn a_forward_chain_that_filters_is_named_at_the_start() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    let nft = |script: &str| {
        let status = road.command("router", "nft").arg(script).status().unwrap();
        assert!(status.success());
    };
    let warned = || {
        let mut command = road.command("router", "timeout");
        command.args([
            "--foreground",
            "--preserve-status",
            "-s",
            "TERM",
            "2",
            wakeai_tests::program(),
            "proxy",
        ]);
        command.args(["--transparent", "forwarded", "--in-interface", "client"]);
        let found = command.output().unwrap();
        assert!(found.status.success(), "{}", stderr(&found));
        stderr(&found)
    };
    nft("table inet open { chain passing { type filter hook forward priority 0; counter; }; }");
    assert!(!warned().contains("chain"), "a chain that only counts filters nothing");
    nft("table inet wall { chain border { type filter hook forward priority 0; policy drop; }; }");
    let said = warned();
    assert!(said.contains("inet wall border") && !said.contains("passing"), "{said}");
    nft("delete table inet wall");
    nft(
        "table ip filter { chain FORWARD { type filter hook forward priority 0; jump GUESTS; }; chain GUESTS { drop; }; }",
    );
    assert!(warned().contains("ip filter FORWARD"));
}

#[test]
fn one_client_leaves_slots_to_others() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    road.ip("client", &format!("addr add {OTHER}/24 dev eth0"));
    accept_all(road.inside("server", || TcpListener::bind("[::]:9000").unwrap()));
    let mut proxy = listening(&road, &["--max-connections", "8", "--connect-timeout", "120s"]);
    let greedy: Vec<_> = (0..20).map(|_| dial(&road, CLIENT[0], proxy.addresses[0])).collect();
    let (_other, code) = asked(&road, OTHER, &proxy, SERVER[0], 9000);
    assert_eq!(code, Some(SUCCEEDED));
    let counters = proxy.counters();
    assert_eq!((&counters["active"], &counters["over_share"]), (&7.into(), &14.into()));
    drop(greedy);
}

#[test]
fn explicit_clients_leave_slots_to_transparent_ones() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    accept_all(road.inside("server", || TcpListener::bind("[::]:9000").unwrap()));
    let taken = ["--transparent", "forwarded", "--allow-from", "10.71.0.0/24", "--allow-to"];
    let taken =
        [&taken[..], &["10.72.0.0/24", "--max-connections", "8", "--connect-timeout", "120s"]]
            .concat();
    let mut proxy = listening(&road, &taken);
    let mut silent = Vec::new();
    for host in 3..13 {
        let from = format!("10.71.0.{host}");
        road.ip("client", &format!("addr add {from}/24 dev eth0"));
        silent.push(dial(&road, &from, proxy.addresses[0]));
    }
    let _through = dial(&road, CLIENT[0], SocketAddr::new(ip(SERVER[0]), 9000));
    wait_for("the connection is carried", || (proxy.counters()["connected"] == 1).then_some(()));
}

#[test]
fn slow_lookups_of_one_client_leave_those_of_others() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    road.ip("client", &format!("addr add {OTHER}/24 dev eth0"));
    let names = NameServer::start(&road);
    accept_all(road.inside("server", || TcpListener::bind("[::]:9000").unwrap()));
    let proxy = NameServer::proxy(&road, &["--allow-to", "10.72.0.0/24"]);
    let _slow: Vec<_> = (0..40)
        .map(|number| {
            let mut stream = dial(&road, CLIENT[0], proxy.addresses[0]);
            ask(&mut stream, &format!("slow{number}.example"), 9000);
            stream
        })
        .collect();
    wait_for("the proxy asks the name server", || {
        (names.held.lock().unwrap().len() >= 8).then_some(())
    });
    let (_other, code) = asked(&road, OTHER, &proxy, "there.example", 9000);
    assert_eq!(code, Some(SUCCEEDED));
}

#[test]
fn a_slot_is_held_until_its_lookup_has_ended() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    let names = NameServer::start(&road);
    let mut proxy =
        NameServer::proxy(&road, &["--allow-to", "10.72.0.0/24", "--max-connections", "8"]);
    for number in 0..3 {
        let mut stream = dial(&road, CLIENT[0], proxy.addresses[0]);
        ask(&mut stream, &format!("slow{number}.example"), 9000);
        let asked = 2 * (number + 1);
        wait_for("the proxy asks the name server", || {
            (names.held.lock().unwrap().len() >= asked).then_some(())
        });
        SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    }
    // The first request for the counters may be handled together with connections that the kernel has accepted before.
    // The second request is handled after all of them.
    wait_for("the resets have arrived", || {
        let mut command = road.command("router", "ss");
        let found = command.args(["-Htn", "state", "established"]).output().unwrap();
        assert!(found.status.success(), "{}", stderr(&found));
        found.stdout.is_empty().then_some(())
    });
    proxy.counters();
    assert_eq!(proxy.counters()["active"], 3);
    names.answer_slow();
    wait_for("the slots are free", || (proxy.counters()["active"] == 0).then_some(()));
}

/// A process that is killed when this is dropped, so that it does not outlive the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn only_one_of_several_proxies_intercepts_connections() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    let before = road.rules();
    for _ in 0..4 {
        let start = || {
            let mut command = road.command("router", wakeai_tests::program());
            command.args(["proxy", "--json", "--transparent", "forwarded"]);
            command.args(["--allow-from", "10.71.0.0/24", "--allow-to", "10.72.0.0/24"]);
            Ended(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
        };
        let mut all: Vec<_> = (0..6).map(|_| start()).collect();
        wait_for("all proxies but one have ended", || {
            let ended = all.iter_mut().filter_map(|child| child.0.try_wait().unwrap());
            (ended.count() >= 5).then_some(())
        });
        let at = all.iter_mut().position(|child| child.0.try_wait().unwrap().is_none());
        let mut first = all.remove(at.expect("one of them runs"));
        let mut line = String::new();
        std::io::BufRead::read_line(
            &mut std::io::BufReader::new(first.0.stdout.as_mut().unwrap()),
            &mut line,
        )
        .unwrap();
        assert!(line.contains("listening"), "{line}");
        let rules = road.rules();
        assert!(rules[0].contains("wakeai_proxy"), "{rules:?}");
        assert!(rules[1].contains("0x77616b65") && rules[2].contains("0x77616b65"), "{rules:?}");
        assert!(rules[4].contains("local"), "{rules:?}");
        let pid = first.0.id().to_string();
        for mut other in all {
            let mut said = String::new();
            other.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            assert_eq!(other.0.wait().unwrap().code(), Some(1));
            assert!(said.contains(&pid), "{said}");
        }
        must("kill", &pid);
        assert!(first.0.wait().unwrap().success());
        assert_eq!(road.rules(), before);
    }
    nothing_left();
}

/// A field of every thread of the process, by `proc_pid_status(5)`.
fn of_threads(pid: u32, name: &str) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let field = |path: std::path::PathBuf| {
        let status = std::fs::read_to_string(path.join("status")).unwrap();
        let words =
            status.lines().find_map(|line| line.strip_prefix(name)).unwrap().split_whitespace();
        words.collect::<Vec<_>>().join(" ")
    };
    tasks.map(|task| field(task.unwrap().path())).collect()
}

#[test]
fn with_a_user_the_proxy_serves_as_it_and_undoes_every_change() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    let before = road.rules();
    accept_all(road.inside("server", || TcpListener::bind("[::]:9000").unwrap()));
    // The proxy binds ports below 1024 before it changes its user. A second process, which stays root, undoes the
    // changes.
    let listen = ["--listen", "10.71.0.1:108", "--user", "nobody"];
    let taken = ["--transparent", "forwarded", "--in-interface", "client"];
    let algorithm = ["--algorithm", "wakeai_av", "--rate", "8Mbit/s"];
    for (arguments, kept) in [
        (listen.to_vec(), 0),
        ([&listen[..], &taken].concat(), 1_u64 << 12 | 1 << 10),
        ([&listen[..], &taken, &algorithm].concat(), 1 << 12 | 1 << 10 | 1 << 39),
    ] {
        let mut proxy = road.proxy(&arguments);
        assert_eq!(asked(&road, CLIENT[0], &proxy, SERVER[0], 9000).1, Some(SUCCEEDED));
        let children = format!("/proc/{0}/task/{0}/children", proxy.pid());
        let children = std::fs::read_to_string(children).unwrap();
        let serving = children.trim().parse().unwrap_or(proxy.pid());
        for (name, value) in [
            ("Uid:", "65534 65534 65534 65534".to_owned()),
            ("Gid:", "65534 65534 65534 65534".to_owned()),
            ("Groups:", String::new()),
            ("NoNewPrivs:", "1".to_owned()),
            ("CapPrm:", format!("{kept:016x}")),
            ("CapEff:", format!("{kept:016x}")),
            ("CapBnd:", format!("{kept:016x}")),
            ("CapInh:", format!("{:016x}", 0)),
            ("CapAmb:", format!("{:016x}", 0)),
        ] {
            let found = of_threads(serving, name);
            assert!(found.iter().all(|found| *found == value), "{name} {found:?}");
        }
        if arguments.contains(&"forwarded") {
            dial(&road, CLIENT[0], SocketAddr::new(ip(SERVER[0]), 9000));
            wait_for("the connection is carried", || {
                (proxy.counters()["connected"] == 2).then_some(())
            });
        }
        let (status, counters) = proxy.end();
        assert!(status.success());
        assert!(counters["connected"].as_u64().unwrap() >= 1);
        assert_eq!(road.rules(), before);
        nothing_left();
    }
    let unknown = Command::new(wakeai_tests::program())
        .args(["proxy", "--listen", "127.0.0.1:0", "--user", "nobody-of-this-name"])
        .output()
        .unwrap();
    assert_eq!(unknown.status.code(), Some(2), "{}", stderr(&unknown));
    assert!(stderr(&unknown).contains("nobody-of-this-name"));
}

#[test]
fn a_killed_proxy_takes_its_serving_process_along() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    let taken = ["--transparent", "forwarded", "--in-interface", "client", "--user", "nobody"];
    let proxy = road.proxy(&taken);
    let children = format!("/proc/{0}/task/{0}/children", proxy.pid());
    let serving: i32 = std::fs::read_to_string(children).unwrap().trim().parse().unwrap();
    proxy.kill();
    let status = format!("/proc/{serving}/stat");
    wait_for("the serving process has ended", || {
        std::fs::read_to_string(&status).map_or(true, |stat| stat.contains(") Z ")).then_some(())
    });
}

#[test]
fn without_file_descriptors_the_proxy_stays_and_counts() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    accept_all(road.inside("server", || TcpListener::bind("[::]:9000").unwrap()));
    let mut proxy = listening(&road, &[]);
    let (_held, code) = asked(&road, CLIENT[0], &proxy, SERVER[0], 9000);
    assert_eq!(code, Some(SUCCEEDED));
    let limit = |files: &str| must("prlimit", &format!("--pid {} --nofile={files}", proxy.pid()));
    let before =
        must("prlimit", &format!("--pid {} --nofile -o SOFT,HARD --noheadings --raw", proxy.pid()));
    let before = before.trim().replace(' ', ":");
    limit(&format!("5:{}", before.split(':').nth(1).unwrap()));
    let mut waiting = dial(&road, CLIENT[0], proxy.addresses[0]);
    let failures = wait_for("the failure to accept is counted", || {
        proxy.counters()["accept_failures"].as_u64().filter(|count| *count > 0)
    });
    assert!(failures > 0);
    must("prlimit", &format!("--pid {} --nofile={before}", proxy.pid()));
    ask(&mut waiting, SERVER[0], 9000);
    assert_eq!(reply(&mut waiting), Some(SUCCEEDED), "the waiting connection was not lost");
}

#[test]
fn a_peer_that_vanishes_silently_frees_its_slot() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    accept_all(road.inside("server", || TcpListener::bind("[::]:9000").unwrap()));
    // The keep-alive probes begin after a twelfth of the idle timeout, so they find the vanished peer first.
    let mut proxy = listening(&road, &["--idle-timeout", "60s"]);
    let (_held, code) = asked(&road, CLIENT[0], &proxy, SERVER[0], 9000);
    assert_eq!(code, Some(SUCCEEDED));
    let wall = "table inet wall { chain in { type filter hook input priority 0; policy drop; }; }";
    assert!(road.command("client", "nft").arg(wall).status().unwrap().success());
    wait_for("the vanished peer is noticed", || (proxy.counters()["dead"] == 1).then_some(()));
}

#[test]
fn slow_and_endless_requests_are_limited_and_counted() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    let mut proxy = listening(&road, &["--connect-timeout", "2s"]);
    let mut dribbling = dial(&road, CLIENT[0], proxy.addresses[0]);
    let mut half_open = dial(&road, CLIENT[0], proxy.addresses[0]);
    half_open.write_all(b"\x05\x01\x00").unwrap();
    let mut long = dial(&road, CLIENT[0], proxy.addresses[0]);
    let _ = long.write_all(format!("CONNECT a:1 HTTP/1.1\r\nX: {}", "x".repeat(20_000)).as_bytes());
    let mut said = Vec::new();
    long.read_to_end(&mut said).unwrap();
    assert!(said.starts_with(b"HTTP/1.1 431 "));
    for byte in b"CONNECT a.example:80 HTTP/1.1\r\nX-Padding: xxxxxxxxxx".iter().cycle() {
        if dribbling.write_all(&[*byte]).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let counters = wait_for("both connections are closed", || {
        Some(proxy.counters()).filter(|counters: &Value| counters["silent_clients"] == 2)
    });
    assert_eq!((&counters["bad_requests"], &counters["active"]), (&1.into(), &0.into()));
}
