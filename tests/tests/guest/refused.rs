//! A kernel that is too old.

use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use crate::{file, passed};
use wakeai_tests::{stderr, stdout, wakeai};

const SCENARIO: &str = r#"
name = "one"
duration = "2s"
[access_point]
standard = "802.11g"
[[stations]]
name = "tablet"
max = "20Mbit/s"
[[flows]]
from = "tablet"
to = "server"
"#;

pub(crate) fn every_command_says_what_is_missing() {
    let began = Instant::now();
    let scenario = file("one.toml", SCENARIO).display().to_string();
    let key = "/tmp/group.key";
    assert!(wakeai(&["agent", "--generate-key", key]).status.success());
    let config = format!(
        "interface = \"lo\"\nkey_file = {key:?}\nstation = 1\nbssid = \"02:00:5e:10:00:01\"\n\
         link_rate = \"54Mbit/s\"\n"
    );
    let config = file("agent.toml", &config).display().to_string();
    for command in [
        &["lab", &scenario] as &[&str],
        &["agent", "--config", &config],
        &["monitor"],
        &["use", "wakeai_cubic"],
        &["use", "cubic"],
        &["use", "cubic", "--connections"],
        &["proxy", "--listen", "127.0.0.1:0", "--algorithm", "wakeai_cubic"],
    ] {
        let found = wakeai(command);
        let said = stderr(&found);
        println!("{command:?}: {said}");
        assert_eq!(found.status.code(), Some(77), "{command:?}: {said}");
        let last = said.lines().last().unwrap_or_default();
        assert!(
            last.starts_with("wakeai: cannot ") && last.contains("this kernel lacks "),
            "{said}"
        );
        assert!(last.contains("; use Linux "), "what to do: {said}");
        assert_eq!(stdout(&found), "");
    }
    let doctor = wakeai(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(77));
    assert!(stdout(&doctor).contains("the monitor does not work"), "{}", stdout(&doctor));
    // The screen needs no BPF; it names what is missing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connection = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let shown = wakeai(&["top", "--once", "--json"]);
    assert!(shown.status.success(), "{}", stderr(&shown));
    let local = connection.local_addr().unwrap().to_string();
    let reading = stdout(&shown);
    assert!(reading.contains(&format!("\"local\":\"{local}\"")), "{reading}");
    assert!(
        reading.contains("congestion events: ") && reading.contains("this kernel lacks "),
        "{reading}"
    );
    let simulated = wakeai(&["sim", &scenario]);
    assert!(
        simulated.status.success(),
        "the simulator works on every kernel: {}",
        stderr(&simulated)
    );
    for place in ["/run/netns", "/run/wakeai/leases", "/sys/fs/bpf"] {
        let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
        let mut left = entries.map(|entry| entry.file_name()).filter(|name| name != ".lock");
        assert_eq!(left.next(), None, "in {place}");
    }
    passed("every command said what is missing", began);
}
