//! The proxy with transparent and with explicit connections.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::time::Instant;

use wakeai_kernel::Snapshotter;

use crate::passed;
use crate::road::{Proxy, Road, SERVER, ip};
use wakeai_tests::{nothing_left, stderr, stdout, wait_for};

const PAGE: &str = "carried";

/// Answers one request for each connection, and holds the connection open until its client ends.
fn serve(listener: TcpListener) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).unwrap();
            let length = PAGE.len();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{PAGE}").unwrap();
        }
    });
}

fn fetched(curl: &mut Command) {
    let found = curl.args(["-sS", "-m", "60", "--noproxy", ""]).output().unwrap();
    assert!(found.status.success(), "{}", stderr(&found));
    assert_eq!(stdout(&found), PAGE);
}

pub(crate) fn carries_forwarded_and_explicit_connections() {
    let began = Instant::now();
    let web = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", web.local_addr().unwrap());
    serve(web);
    let proxy = Proxy::local(&["--algorithm", "wakeai_cubic"]);
    let at = proxy.addresses[0].to_string();
    fetched(Command::new("curl").args(["--socks5", &at, &url]));
    fetched(Command::new("curl").args(["--proxytunnel", "--proxy", &format!("http://{at}"), &url]));
    let (status, counters) = proxy.end();
    assert!(status.success());
    assert_eq!(counters["finished"], 2);
    nothing_left();

    let road = Road::new();
    let before = road.rules();
    let taken = ["--transparent", "forwarded", "--in-interface", "client"];
    let proxy = road.proxy(&[&taken[..], &["--algorithm", "wakeai_av", "--rate=8Mbit/s"]].concat());
    assert_ne!(road.rules(), before);
    for to in SERVER {
        let to = SocketAddr::new(ip(to), 9000);
        let listener = road.inside("server", || TcpListener::bind(to).unwrap());
        let mut client = road.command("client", "curl");
        let mut client =
            client.args(["-sS", "-m", "60", &format!("http://{to}/")]).spawn().unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        // The proxy's connection exists until the request is answered.
        wait_for("the proxy's connection has the algorithm", || {
            let all = road.inside("router", || Snapshotter::open().unwrap().snapshot(None));
            let leg = all.unwrap().into_iter().find(|found| found.socket.remote == to)?;
            (&*leg.algorithm == "wakeai_av").then_some(())
        });
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        assert!(client.wait().unwrap().success());
    }
    let (status, counters) = proxy.end();
    assert!(status.success());
    assert_eq!(counters["connected"], 2);
    assert_eq!(road.rules(), before);
    nothing_left();
    passed("the proxy carried connections of both families", began);
}
