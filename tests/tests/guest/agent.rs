//! An agent: start, `wakeai status`, stop.

use std::net::Ipv4Addr;
use std::time::Instant;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::passed;
use wakeai_tests::agent::Fleet;
use wakeai_tests::bss::Bss;
use wakeai_tests::traffic::Upload;
use wakeai_tests::{nothing_left, stderr, stdout, wait_for, wakeai};

pub(crate) fn sets_bounds_reports_and_leaves_nothing() {
    let began = Instant::now();
    let bss = Bss::new(&["a", "server"]);
    let (from, to) = (bss.namespace("a"), bss.namespace("server"));
    let pause = std::time::Duration::from_millis(20);
    let upload = Upload::with_pauses(from, &to, Ipv4Addr::new(10, 77, 0, 2), "cubic", pause);
    let before = bss.default("a");
    let law = "[law]\nname = \"fixed\"\nceiling = 5\n";
    let mut agent = Fleet::new().start(&bss, "a", 1, law);
    wait_for("the connection is moved", || (upload.algorithm() == "wakeai_cubic").then_some(()));
    wait_for("the window is at most the ceiling", || (upload.cwnd() <= 5).then_some(()));

    let shown = wakeai(&["status", "--json"]);
    assert!(shown.status.success(), "{}", stderr(&shown));
    let status: Value = serde_json::from_str(stdout(&shown).trim()).unwrap();
    assert_eq!(status["status"]["state"], "controlling", "{status}");
    let local = upload.look().socket.local.to_string();
    let row = wait_for("the screen shows the ceiling", || {
        let shown = wakeai(&["top", "--once", "--json"]);
        assert!(shown.status.success(), "{}", stderr(&shown));
        let reading: Value = serde_json::from_str(stdout(&shown).trim()).unwrap();
        assert_eq!(reading["missing"], serde_json::json!([]));
        let rows = reading["connections"].as_array().unwrap();
        rows.iter().find(|row| row["local"] == *local && row["ceiling"] == 5).cloned()
    });
    assert_eq!(row["pid"], std::process::id(), "{row}");
    assert!(row["rtt_ms"].is_number() && row["events"]["timeout"].is_u64(), "{row}");

    let table = wakeai(&["status"]);
    assert!(table.status.success() && stdout(&table).contains("controlling"), "{}", stdout(&table));

    assert!(agent.end(Signal::SIGTERM).success(), "{}", agent.log());
    assert_eq!((bss.default("a"), upload.algorithm()), (before, "cubic".to_owned()));
    nothing_left();
    passed("an agent bound a connection and left nothing", began);
}
