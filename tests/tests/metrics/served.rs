//! The pages that are served, and how the programs start with an address for them.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;

use crate::page::{agent, all, has, proxy, server};
use wakeai_tests::agent::{BSSID, Fleet, in_namespace};
use wakeai_tests::bss::{Bss, WIFI};
use wakeai_tests::metrics::{ask, value};
use wakeai_tests::{Machine, program, stderr, wait_for};

#[test]
fn promtool_finds_no_fault_in_any_page() {
    if !has("promtool") {
        return;
    }
    for (program, page) in all() {
        let mut check = Command::new("promtool");
        check.args(["check", "metrics"]).stdin(Stdio::piped());
        check.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut check = check.spawn().unwrap();
        check.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
        let found = check.wait_with_output().unwrap();
        let said = stderr(&found);
        assert!(found.status.success() && said.is_empty(), "{program}: {said}\n{page}");
    }
}

#[test]
fn an_agent_serves_what_it_answers() {
    let Some(page) = agent("") else { return };
    assert_eq!(value(&page, "wakeai_agent_peers"), Some(1.0), "{page}");
    assert_eq!(value(&page, "wakeai_agent_state{state=\"controlling\"}"), Some(1.0), "{page}");
    assert_eq!(value(&page, "wakeai_agent_state{state=\"blind\"}"), Some(0.0), "{page}");
    assert_eq!(value(&page, "wakeai_agent_faults_total{fault=\"clock\"}"), Some(0.0), "{page}");
    assert_eq!(
        value(&page, "wakeai_agent_link_rate_bytes_per_second"),
        Some(6_750_000.0),
        "{page}"
    );
    assert!(value(&page, "wakeai_agent_presence_messages_accepted_total") >= Some(1.0), "{page}");
    let info = "wakeai_agent_info{version=\"";
    assert!(page.contains(info) && page.contains("interface=\"wlan0\""), "{page}");
}

#[test]
fn an_agent_that_serves_as_another_user_serves_its_figures_too() {
    let Some(_machine) = Machine::take() else { return };
    let (bss, fleet) = (Bss::new(&["a"]), Fleet::new());
    let mut command = in_namespace(&bss, "a");
    command.args(["agent", "--user", "nobody"]);
    let config = fleet.configure(1, BSSID, "metrics = \"127.0.0.1:9719\"\n");
    command.arg("--config").arg(config).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let asked = || {
        let address = "127.0.0.1:9719".parse().unwrap();
        bss.namespace("a").run(|| ask(address, "")).unwrap().ok()
    };
    let (_, page) = wait_for("figures are served", asked);
    assert!(page.contains("# TYPE wakeai_agent_info gauge\n"), "{page}");
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, Signal::SIGTERM).unwrap();
    assert!(child.wait().unwrap().success());
    let free = bss.namespace("a").run(|| TcpListener::bind("127.0.0.1:9719").is_ok()).unwrap();
    assert!(free, "the address is free after the end");
}

#[test]
fn a_check_names_an_address_that_another_program_holds() {
    let Some(_machine) = Machine::take() else { return };
    let (bss, fleet) = (Bss::new(&["a"]), Fleet::new());
    let key = fleet.path("group.key");
    let path = fleet.path("checked.toml");
    let text = format!(
        "interface = {WIFI:?}\nkey_file = {key:?}\nbssid = {BSSID:?}\nstation = 1\n\
         metrics = \"127.0.0.1:9719\"\n"
    );
    std::fs::write(&path, text).unwrap();
    let check = || {
        let mut command = in_namespace(&bss, "a");
        command.args(["agent", "--check", "--config"]).arg(&path).stdout(Stdio::piped());
        command.output().unwrap()
    };
    let holder = bss.namespace("a").run(|| TcpListener::bind("127.0.0.1:9719").unwrap()).unwrap();
    let found = check();
    assert_eq!(found.status.code(), Some(2), "{}", stderr(&found));
    let expected = "metrics: cannot serve figures on 127.0.0.1:9719: another program listens there";
    assert!(stderr(&found).contains(expected), "{}", stderr(&found));
    drop(holder);
    let found = check();
    assert_eq!(found.status.code(), Some(0), "{}", stderr(&found));
}

#[test]
fn openmetrics_is_served_to_those_who_accept_it() {
    let (proxy, _) = proxy();
    let (head, body) = ask(proxy.address, "application/openmetrics-text;version=1.0.0").unwrap();
    assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(body.contains("# UNIT wakeai_proxy_relayed_bytes bytes\n"), "{body}");
    assert!(body.ends_with("# EOF\n"), "{body}");
}

#[test]
fn a_proxy_counts_connections_and_the_bytes_that_it_relays() {
    let (proxy, port) = proxy();
    assert_eq!(value(&proxy.page(), "wakeai_proxy_connections"), Some(0.0));
    let destination = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let to = destination.local_addr().unwrap();
    write!(client, "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").unwrap();
    let mut server = destination.accept().unwrap().0;
    let mut answer = [0; 12];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    let page = proxy.page();
    for (sample, expected) in [
        ("wakeai_proxy_connections", 1.0),
        ("wakeai_proxy_connections_accepted_total", 1.0),
        ("wakeai_proxy_connections_connected_total", 1.0),
        ("wakeai_proxy_connections_ended_total{end=\"finished\"}", 0.0),
    ] {
        assert_eq!(value(&page, sample), Some(expected), "{sample}\n{page}");
    }
    client.write_all(b"12345").unwrap();
    server.write_all(b"123").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    server.shutdown(Shutdown::Write).unwrap();
    let ended = "wakeai_proxy_connections_ended_total{end=\"finished\"}";
    let page = wait_for("the connection has ended", || {
        Some(proxy.page()).filter(|page| value(page, ended) == Some(1.0))
    });
    for (sample, expected) in [
        ("wakeai_proxy_connections", 0.0),
        ("wakeai_proxy_connections_peak", 1.0),
        ("wakeai_proxy_relayed_bytes_total{direction=\"up\"}", 5.0),
        ("wakeai_proxy_relayed_bytes_total{direction=\"down\"}", 3.0),
    ] {
        assert_eq!(value(&page, sample), Some(expected), "{sample}\n{page}");
    }
}

#[test]
fn a_server_counts_refusals_by_reason_and_what_its_quota_has() {
    let directory = tempfile::tempdir().unwrap();
    let (server, port) = server(directory.path());
    let free = wait_for("the server has looked at its disk", || {
        value(&server.page(), "wakeai_serve_disk_free_bytes")
    });
    assert!(free > 0.0, "{free}");
    // Creates an upload; the first line of the answer.
    let create = |more: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let head =
            format!("POST /files HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{more}\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.lines().next().unwrap_or_default().to_owned()
    };
    let created = create("Tus-Resumable: 1.0.0\r\nUpload-Length: 1000\r\n");
    assert!(created.contains("201"), "{created}");
    for _ in 0..2 {
        let refused = create("Tus-Resumable: 1.0.0\r\nUpload-Length: 999999999\r\n");
        assert!(refused.contains("507"), "{refused}");
    }
    let refused = create("Upload-Length: 1000\r\n");
    assert!(refused.contains("412"), "{refused}");
    let page = server.page();
    for (sample, expected) in [
        ("wakeai_serve_requests_total", 4.0),
        ("wakeai_serve_requests_refused_total{reason=\"quota\"}", 2.0),
        ("wakeai_serve_requests_refused_total{reason=\"version\"}", 1.0),
        ("wakeai_serve_requests_refused_total{reason=\"not_found\"}", 0.0),
        ("wakeai_serve_quota_bytes", 1e9),
        ("wakeai_serve_quota_used_bytes", 1000.0),
        ("wakeai_serve_client_quota_used_most_bytes", 1000.0),
        ("wakeai_serve_uploads_created_total", 1.0),
        ("wakeai_serve_uploads_unfinished", 1.0),
    ] {
        assert_eq!(value(&page, sample), Some(expected), "{sample}\n{page}");
    }
}

#[test]
fn addresses_that_are_taken_or_that_others_reach_are_refused() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let directory = tempfile::tempdir().unwrap();
    let serve = ["serve", directory.path().to_str().unwrap()];
    for command in [&["proxy"][..], &serve] {
        for (address, status, expected) in [
            (taken.as_str(), 1, "another program listens there"),
            ("0.0.0.0:9719", 2, "expected an address of the loopback interface"),
            ("9719", 2, "expected an IP address and a port"),
        ] {
            let mut command = Command::new(program())
                .args(command)
                .args(["--listen", "127.0.0.1:0", "--metrics", address])
                .output()
                .unwrap();
            let said = stderr(&command);
            assert_eq!(command.status.code(), Some(status), "{said}");
            assert!(said.contains(expected), "{address}: {said}");
            command.stdout.clear();
        }
    }
}
