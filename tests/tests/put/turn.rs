//! `wakeai put` sends only while the agent permits it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::content::{content, write};
use crate::{SIZE, Server, put, report};
use wakeai_tests::wait_for;

/// Answers the requests of one transfer as an agent does. The test decides whether it may send.
struct Agent {
    may_send: Arc<AtomicBool>,
}

impl Agent {
    fn listen(socket: &Path) -> Self {
        let listener = UnixListener::bind(socket).unwrap();
        let may_send = Arc::new(AtomicBool::new(true));
        let in_thread = Arc::clone(&may_send);
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let mut stream = stream;
            while let Some(Ok(line)) = lines.next() {
                assert!(line.contains("\"request\":\"transfer\""), "{line}");
                let permission = if in_thread.load(Ordering::Relaxed) { "send" } else { "wait" };
                let transfer = format!("{{\"permission\":\"{permission}\",\"sending_peers\":3}}");
                let answer = format!("{{\"version\":1,\"transfer\":{transfer}}}\n");
                if stream.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
        });
        Self { may_send }
    }
}

#[test]
fn a_piece_whose_turn_has_ended_is_cut_and_continued_later() {
    let home = tempfile::tempdir().unwrap();
    let served = home.path().join("served");
    std::fs::create_dir(&served).unwrap();
    // The piece takes longer than a transfer may go on without permission.
    let server = Server::with(&served, &["--rate", "5Mbit/s"]);
    let file = home.path().join("photo.bin");
    write(&file, SIZE);
    let socket = home.path().join("agent.sock");
    let agent = Agent::listen(&socket);
    let socket = socket.to_str().unwrap();
    let arguments = [file.to_str().unwrap(), &server.url, "--chunks", "1", "--agent", socket];
    let mut child = put(home.path(), &arguments).stdout(Stdio::piped()).spawn().unwrap();
    wait_for("the piece begins", || (server.offset() > 100_000).then_some(()));
    agent.may_send.store(false, Ordering::Relaxed);
    // The server has no connection, and the offset stays.
    wait_for("the piece is cut", || {
        assert_eq!(child.try_wait().unwrap(), None, "it ended without permission");
        (server.connections() == 0).then_some(())
    });
    assert!(server.offset() < SIZE);
    agent.may_send.store(true, Ordering::Relaxed);
    let found = report(&child.wait_with_output().unwrap());
    assert_eq!(found["pauses"], 1, "{found}");
    assert_eq!(found["resumes"], 0, "{found}");
    assert_eq!(std::fs::read(served.join("photo.bin")).unwrap(), content(SIZE));
}
