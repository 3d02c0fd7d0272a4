//! Names with several addresses, and addresses with a zone.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Output};

use serde_json::Value;

use crate::receiver::{Kind, Receiver};
use wakeai_tests::bss::{Bss, WIFI};
use wakeai_tests::{Machine, must, stderr, wait_for};

/// Runs `wakeai put` on the tablet, with a hosts file that only it sees.
fn put(bss: &Bss, hosts: &std::path::Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &bss.name("tablet"), "unshare", "--mount", "sh", "-c"]);
    command.arg("mount --bind \"$0\" /etc/hosts && exec \"$@\"").arg(hosts);
    command.args([wakeai_tests::program(), "put"]).args(arguments);
    command.args(["--json", "--no-resume", "--retry-for", "1s"]).env_remove("WAKEAI_TOKEN");
    command.output().unwrap()
}

#[test]
fn an_address_that_does_not_answer_leaves_the_others_their_chance() {
    let Some(_machine) = Machine::share() else { return };
    let home = tempfile::tempdir().unwrap();
    let bss = Bss::new(&["tablet", "server"]);
    let receiver = Receiver::start(Kind::Nginx, &bss, &home.path().join("server"));
    // Packets to this address leave, and nobody takes them.
    bss.ip("tablet", &format!("addr add 2001:db8::2/64 dev {WIFI} nodad"));
    let dead = "lladdr 02:00:00:00:00:99 nud permanent";
    bss.ip("tablet", &format!("neigh add 2001:db8::1 {dead} dev {WIFI}"));
    let hosts = home.path().join("hosts");
    fs::write(&hosts, "2001:db8::1 server.example\n10.77.0.2 server.example\n").unwrap();
    let file = home.path().join("photo.bin");
    fs::write(&file, b"hello").unwrap();
    let arguments = [file.to_str().unwrap(), "http://server.example:8080/"];
    let output = put(&bss, &hosts, &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(fs::read(receiver.received("photo.bin")).unwrap(), b"hello");
}

/// A server for one file, which answers each request over a connection of its own.
fn serve(listener: &TcpListener) {
    let mut file = Vec::new();
    for stream in listener.incoming() {
        let mut stream = BufReader::new(stream.unwrap());
        let (mut head, mut length) = (String::new(), 0);
        while stream.read_line(&mut head).unwrap() > 2 {
            let line = head.lines().last().unwrap().to_lowercase();
            if let Some(found) = line.strip_prefix("content-length: ") {
                length = found.parse().unwrap();
            }
        }
        assert!(!head.contains('%'), "the server must not see the zone: {head}");
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        let (status, answer) = match head.split(' ').next().unwrap() {
            "PUT" => (201, Vec::new()),
            "GET" => (200, file.clone()),
            "OPTIONS" => (200, Vec::new()),
            _ => (404, Vec::new()),
        };
        if head.starts_with("PUT") {
            file = body;
        }
        let head = format!("HTTP/1.1 {status} Status\r\nContent-Length: {}\r\n\r\n", answer.len());
        stream.get_mut().write_all(&[head.as_bytes(), &answer].concat()).unwrap();
    }
}

#[test]
fn a_link_local_address_is_reached_by_its_zone() {
    let Some(_machine) = Machine::share() else { return };
    let home = tempfile::tempdir().unwrap();
    let bss = Bss::new(&["tablet", "server"]);
    let listener = bss.namespace("server").run(|| TcpListener::bind("[::]:8081").unwrap()).unwrap();
    std::thread::spawn(move || serve(&listener));
    let address = wait_for("the server has a link-local address", || {
        let shown =
            format!("-n {} -j -6 addr show dev {WIFI} scope link -tentative", bss.name("server"));
        let links: Value = serde_json::from_str(&must("ip", &shown)).ok()?;
        Some(links[0]["addr_info"][0]["local"].as_str()?.to_owned())
    });
    wait_for("the tablet has one, too", || {
        let shown =
            bss.inside("tablet", &format!("ip -6 addr show dev {WIFI} scope link -tentative"));
        shown.contains("fe80").then_some(())
    });
    let file = home.path().join("photo.bin");
    fs::write(&file, b"hello").unwrap();
    let hosts = home.path().join("hosts");
    fs::write(&hosts, "127.0.0.1 localhost\n").unwrap();
    for percent in ["%25", "%"] {
        let url = format!("http://[{address}{percent}{WIFI}]:8081/");
        let output = put(&bss, &hosts, &[file.to_str().unwrap(), &url]);
        assert!(output.status.success(), "{}", stderr(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["verified"], "read back", "{report}");
    }
}
