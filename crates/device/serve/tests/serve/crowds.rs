//! Many connections at once.

use std::net::TcpStream;

use crate::support::{OCTETS, TestServer, is_closed, pattern, wait_for};

#[test]
fn a_thousand_idle_connections_are_bounded_and_make_room() {
    let server = TestServer::limited(|limits| {
        limits.connections = 100;
        limits.client_connections = 50;
        limits.head_timeout = "60s".parse().unwrap();
    });
    let idle: Vec<TcpStream> = (0..1000).map(|_| server.dial()).collect();
    // A client that comes now gets a place once the others have been idle for a second.
    let made =
        wait_for("there is room", || server.try_ask("POST", "/files", &["Upload-Length: 5"], b""));
    let path = made.field("location");
    assert_eq!(server.patch(path, 0, &[], b"12345").status, 204);
    drop(idle);
    let (report, _directory) = server.stop();
    assert!(report.over_share >= 900, "{report:?}");
    assert!(report.evicted >= 1, "{report:?}");
    assert!(report.most_active <= 60, "{report:?}");
}

#[test]
fn connections_in_use_are_not_closed_for_others() {
    let server = TestServer::limited(|limits| limits.client_connections = 2);
    let path = server.create(10, "a");
    let other = server.create(10, "b");
    let one = server.begin(&path, 0, 10, b"12345");
    let two = server.begin(&other, 0, 10, b"12345");
    wait_for("both are in use", || {
        let mut third = server.dial();
        is_closed(&mut third).then_some(())
    });
    drop((one, two));
    wait_for("there is room", || server.try_ask("HEAD", &path, &[], b""));
}

#[test]
fn two_hundred_uploads_at_once_are_all_kept() {
    let server = TestServer::limited(|limits| limits.client_connections = 512);
    let body = pattern(100_000);
    std::thread::scope(|scope| {
        for number in 0..200 {
            let (server, body) = (&server, &body);
            scope.spawn(move || {
                let path = server.create(body.len(), &format!("file-{number}"));
                for at in (0..body.len()).step_by(50_000) {
                    let reply = server.patch(&path, at, &[OCTETS; 0], &body[at..at + 50_000]);
                    assert_eq!(reply.status, 204, "{reply:?}");
                }
            });
        }
    });
    let names = server.names();
    assert_eq!(names.len(), 200);
    for name in names {
        assert_eq!(std::fs::read(server.file(&name)).unwrap(), body, "{name}");
    }
}
