//! `wakeai proxy`: curl and iperf3 through it, transparent in namespaces of its own, target rates, privileges, many
//! idle connections, and the undoing of its changes after `kill -9`.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

mod attacks;
mod drift;
mod road;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use road::{CLIENT, Proxy, Road, SERVER, ip};
use serde_json::Value;
use wakeai_kernel::{Snapshotter, TcpSnapshot};
use wakeai_tests::{Machine, must, nothing_left, stderr, wait_for, wakeai};

/// Accepts connections. Writes each client's address to the client, and then echoes the client's data.
fn serve(listener: TcpListener) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                writeln!(stream, "{}", stream.peer_addr().unwrap()).unwrap();
                let mut back = stream.try_clone().unwrap();
                let _ = std::io::copy(&mut stream, &mut back);
            });
        }
    });
}

fn line(stream: &mut TcpStream) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut text = Vec::new();
    let mut byte = [0];
    while byte != *b"\n" {
        stream.read_exact(&mut byte).unwrap();
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap().trim().to_owned()
}

fn echoes(stream: &mut TcpStream, word: &str) {
    writeln!(stream, "{word}").unwrap();
    assert_eq!(line(stream), word);
}

#[test]
fn curl_goes_through_by_socks5_and_by_connect() {
    let Some(_machine) = Machine::take() else { return };
    let body: Vec<u8> = (0..3_000_000_u32).map(|at| (at ^ (at >> 7)) as u8).collect();
    let web = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = web.local_addr().unwrap().port();
    let page = body.clone();
    std::thread::spawn(move || {
        for stream in web.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len()).unwrap();
            stream.write_all(&page).unwrap();
        }
    });
    let mut proxy = Proxy::local(&[]);
    let at = proxy.addresses[0].to_string();
    let connect = format!("http://{at}");
    for way in [
        &["--socks5", &at] as &[&str],
        &["--socks5-hostname", &at],
        &["--proxytunnel", "--proxy", &connect],
    ] {
        let url = format!("http://localhost:{port}/");
        let mut curl = Command::new("curl");
        let output = curl.args(["-sS", "-m", "60", "--noproxy", "", &url]).args(way).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{way:?}: {}", stderr(&output));
        assert!(output.stdout == body, "{way:?}");
    }
    // Curl has its page before the proxy has seen the end of the connection.
    wait_for("all connections are finished", || {
        let counters = proxy.counters();
        assert_eq!(counters["reset"], 0, "{counters}");
        (counters["finished"] == 3).then_some(())
    });
    let (status, counters) = proxy.end();
    assert!(status.success());
    assert!(counters["bytes_down"].as_u64().unwrap() > 9_000_000);
}

#[test]
fn forwarded_connections_keep_their_addresses_in_both_families() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    let server = road.inside("server", || TcpListener::bind("[::]:9000").unwrap());
    serve(server);
    let dial = |to: &str| {
        let to = SocketAddr::new(ip(to), 9000);
        road.inside("client", || TcpStream::connect(to).unwrap())
    };
    let mut earlier = dial(SERVER[0]);
    line(&mut earlier);

    let before = road.rules();
    let mut proxy = road.proxy(&["--transparent", "forwarded", "--in-interface", "client"]);
    assert_ne!(road.rules(), before);
    let mut held = Vec::new();
    for (client, to) in CLIENT.into_iter().zip(SERVER) {
        let mut stream = dial(to);
        assert_eq!(stream.peer_addr().unwrap().ip(), ip(to));
        let seen: SocketAddr = line(&mut stream).parse().unwrap();
        assert_eq!(seen.ip().to_canonical(), ip(client));
        assert_eq!(seen.port(), stream.local_addr().unwrap().port());
        echoes(&mut stream, "through");
        held.push(stream);
    }
    assert_eq!(proxy.counters()["connected"], 2);
    // Connections that are not allowed, and those that existed before the proxy, are forwarded past the proxy.
    echoes(&mut earlier, "still here");
    let mut second = road.command("router", wakeai_tests::program());
    let second = second.args(["proxy", "--transparent", "own"]).output().unwrap();
    assert_eq!(second.status.code(), Some(1), "a namespace can have only one transparent proxy");
    assert!(stderr(&second).contains(&proxy.pid().to_string()), "{}", stderr(&second));

    let (status, counters) = proxy.end();
    assert!(status.success());
    assert_eq!((&counters["connected"], &counters["accepted"]), (&2.into(), &2.into()));
    assert_eq!(road.rules(), before);
    echoes(&mut earlier, "and after");
    line(&mut dial(SERVER[1])); // forwarded again
}

#[test]
fn connections_outside_the_lists_are_forwarded_unchanged() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    serve(road.inside("server", || TcpListener::bind("[::]:9000").unwrap()));
    let allowed = ["--transparent", "forwarded", "--in-interface", "client"];
    let allowed = [&allowed[..], &["--allow-to", "203.0.113.0/24,10.72.0.9"]].concat();
    let proxy = road.proxy(&allowed);
    for to in SERVER {
        let to = SocketAddr::new(ip(to), 9000);
        line(&mut road.inside("client", || TcpStream::connect(to).unwrap()));
    }
    let (_, counters) = proxy.end();
    assert_eq!(counters["accepted"], 0);
}

#[test]
fn iperf3_of_this_machine_goes_through_and_its_air_leg_has_the_algorithm() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    let quiet = |end, arguments: &str| {
        let mut command = road.command(end, "iperf3");
        command.args(arguments.split(' ')).stdout(Stdio::null());
        command
    };
    let mut server = quiet("server", "-s -1").spawn().unwrap();
    wait_for("iperf3 listens", || {
        let table = std::fs::read_to_string(format!("/proc/{}/net/tcp6", server.id())).unwrap();
        table.contains(":1451 ").then_some(()) // 5201
    });
    let arguments = ["--transparent", "own", "--algorithm", "wakeai_cubic"];
    let proxy = road.proxy(&arguments);
    let to = format!("-c {} -t 3 -C reno", SERVER[0]);
    let mut client = quiet("router", &to).spawn().unwrap();
    let to = SocketAddr::new(ip(SERVER[0]), 5201);
    wait_for("control and data go through the proxy", || {
        let all = road.inside("router", || Snapshotter::open().unwrap().snapshot(None).unwrap());
        let lent = |found: &TcpSnapshot| &*found.algorithm == "wakeai_cubic";
        let legs = all.iter().filter(|found| found.socket.remote == to && lent(found));
        (legs.count() == 2).then_some(())
    });
    assert!(client.wait().unwrap().success());
    assert!(server.wait().unwrap().success());
    let (_, counters) = proxy.end();
    assert_eq!(counters["connected"], 2, "control and data");
    assert!(counters["bytes_up"].as_u64().unwrap() > 1_000_000);
    assert_eq!(counters["bytes_copied"], 0);
    nothing_left();
}

/// The target of a socket in bytes per second, as the kernel has it.
fn target_of(cookie: u64) -> Option<u64> {
    let map = "-j map dump pinned /sys/fs/bpf/wakeai/socket_targets";
    let entries: Vec<Value> = serde_json::from_str(&must("bpftool", map)).unwrap();
    let formatted = entries.iter().map(|entry| &entry["formatted"]);
    let mut own = formatted.filter(|entry| entry["key"] == cookie);
    own.next().map(|entry| entry["value"].as_u64().unwrap())
}

#[test]
fn each_connection_has_the_target_of_its_destination_until_it_has_closed() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    serve(road.inside("server", || TcpListener::bind("[::]:9000").unwrap()));
    let rates = "--rate=8Mbit/s,10.72.0.0/16=4Mbit/s";
    let taken = ["--transparent", "forwarded", "--in-interface", "client"];
    let proxy = road.proxy(&[&taken[..], &["--algorithm", "wakeai_av", rates]].concat());
    let open: Vec<_> = SERVER
        .into_iter()
        .map(|to| {
            let to = SocketAddr::new(ip(to), 9000);
            let mut stream = road.inside("client", || TcpStream::connect(to).unwrap());
            line(&mut stream);
            let all = road.inside("router", || Snapshotter::open().unwrap().snapshot(None));
            let leg = all.unwrap().into_iter().find(|found| found.socket.remote == to).unwrap();
            assert_eq!(&*leg.algorithm, "wakeai_av");
            (stream, leg.socket.cookie)
        })
        .collect();
    let targets: Vec<_> = open.iter().map(|(_, cookie)| target_of(*cookie)).collect();
    assert_eq!(targets, [Some(500_000), Some(1_000_000)]);
    for (stream, cookie) in open {
        drop(stream);
        wait_for("the target rate is removed", || target_of(cookie).is_none().then_some(()));
    }
    let (status, _) = proxy.end();
    assert!(status.success());
    nothing_left();
}

/// Checks that every thread of the process has only these capabilities (bits of `<linux/capability.h>`), and cannot get
/// others.
fn keeps_only(pid: u32, bits: &[u32]) {
    let kept = bits.iter().fold(0_u64, |set, bit| set | 1 << bit);
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let field = |name: &str| {
            status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned()
        };
        let set = |name| u64::from_str_radix(&field(name), 16).unwrap();
        for name in ["CapEff:", "CapPrm:", "CapBnd:"] {
            assert_eq!(set(name), kept, "{name}");
        }
        assert_eq!((set("CapInh:"), set("CapAmb:")), (0, 0));
        assert_eq!(field("NoNewPrivs:"), "1");
    }
}

#[test]
fn a_running_proxy_keeps_no_privilege_that_it_does_not_need() {
    const BIND_SERVICE: u32 = 10;
    const ADMIN: u32 = 12;
    const PERFMON: u32 = 38;
    const BPF: u32 = 39;
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    let before = road.rules();
    keeps_only(Proxy::local(&[]).pid(), &[]);
    keeps_only(Proxy::local(&["--algorithm", "cubic"]).pid(), &[ADMIN]);
    let both =
        ["--transparent", "forwarded,own", "--in-interface=client", "--algorithm", "wakeai_cubic"];
    for (arguments, kept) in [
        (&both[..3], &[ADMIN, BIND_SERVICE] as &[u32]),
        (&both[..], &[ADMIN, BIND_SERVICE, PERFMON, BPF]),
    ] {
        let proxy = road.proxy(arguments);
        keeps_only(proxy.pid(), kept);
        let (status, _) = proxy.end();
        assert!(status.success());
        assert_eq!(
            road.rules(),
            before,
            "the proxy's remaining capabilities suffice to undo its changes"
        );
    }
    nothing_left();
}

#[test]
fn after_kill_9_any_command_removes_every_rule_and_route() {
    let Some(_machine) = Machine::take() else { return };
    let road = Road::new();
    let before = road.rules();
    let arguments = ["--transparent", "forwarded,own", "--in-interface", "client"];
    road.proxy(&[&arguments[..], &["--algorithm", "wakeai_cubic"]].concat()).kill();
    assert_ne!(road.rules(), before, "a killed proxy undoes nothing itself");
    let any = wakeai(&["completion", "bash"]);
    assert!(any.status.success());
    assert!(stderr(&any).contains("nftables"), "{}", stderr(&any));
    assert_eq!(road.rules(), before);
    nothing_left();
    assert_eq!(stderr(&wakeai(&["completion", "bash"])), "", "the second command finds nothing");
}

#[test]
fn five_thousand_idle_connections_take_less_than_200_megabytes() {
    const CONNECTIONS: usize = 5_000;
    let Some(_machine) = Machine::take() else { return };
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let wanted = 2 * CONNECTIONS as u64 + 200;
    setrlimit(Resource::RLIMIT_NOFILE, wanted, hard.max(wanted)).unwrap();
    let mut proxy = Proxy::local(&[]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_be_bytes();
    let request = [b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01", &port[..]].concat();
    let pairs: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let mut client = TcpStream::connect(proxy.addresses[0]).unwrap();
            client.write_all(&request).unwrap();
            client.read_exact(&mut [0; 12]).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            // Each connection carries data both ways before it is idle.
            client.write_all(b"there").unwrap();
            server.read_exact(&mut [0; 5]).unwrap();
            server.write_all(b"back").unwrap();
            client.read_exact(&mut [0; 4]).unwrap();
            (client, server)
        })
        .collect();
    assert_eq!(proxy.counters()["active"], CONNECTIONS);
    let status = std::fs::read_to_string(format!("/proc/{}/status", proxy.pid())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kilobytes: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    println!("{CONNECTIONS} idle connections: {kilobytes} kB resident");
    assert!(kilobytes * 1024 < 200_000_000, "{kilobytes} kB");
    drop(pairs);
    let (status, _) = proxy.end();
    assert!(status.success());
}

#[test]
fn bad_usage_and_missing_privileges_are_told_apart() {
    for arguments in [
        &["--allow-from", "0.0.0.0/0"] as &[&str],
        &["--allow-to", "10.0.0.1/8"],
        &["--listen", "nowhere"],
        &["--memory", "64"],
        &["--transparent", "everything"],
        &["--algorithm", "wakeai_av", "--rate", "fast"],
        &["--rate", "5Mbit/s"],
        &["--rate", "5Mbit/s", "--algorithm", "cubic"],
    ] {
        let found = wakeai(&[&["proxy"], arguments].concat());
        assert_eq!(found.status.code(), Some(2), "{arguments:?}: {}", stderr(&found));
    }
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    // A copy of the program that every user may run.
    let directory = tempfile::tempdir().unwrap();
    let program = wakeai_tests::program_in(directory.path());
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    for arguments in [
        &["--transparent", "own"] as &[&str],
        &["--algorithm", "nonesuch"],
        &["--algorithm", "wakeai_av", "--rate", "5Mbit/s"],
    ] {
        let mut command = Command::new(&program);
        command.args(["proxy", "--listen", "127.0.0.1:0"]).args(arguments).uid(65534).gid(65534);
        let found = command.output().unwrap();
        assert_eq!(found.status.code(), Some(77), "{arguments:?}: {}", stderr(&found));
    }
}
