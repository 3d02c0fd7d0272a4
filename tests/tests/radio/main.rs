//! `wakeai medium` under radios of `mac80211_hwsim` with hostapd and `wpa_supplicant` as they come, in guests with Debian's
//! kernel. The guests' clock counts instructions, so the load of this machine changes no figure.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]
#![allow(clippy::print_stdout, reason = "whoever runs the tests reads what the guests said")]

mod adapt;
mod agents;
mod air;
mod control;
mod lab;

use std::path::Path;
use std::time::Instant;

use serde_json::Value;
use wakeai_guest::Program;
use wakeai_guest::testing::{KERNELS, Task, skip, take};

/// The programs of the guests in addition to busybox's.
const TOOLS: [&str; 7] = ["hostapd", "ip", "iperf3", "iw", "perl", "wpa_cli", "wpa_supplicant"];

/// What a script said in a guest.
struct Said {
    console: String,
}

impl Said {
    /// The lines that begin with a word, without it.
    fn lines<'a>(&'a self, word: &'a str) -> impl Iterator<Item = &'a str> {
        self.console.lines().filter_map(move |line| line.trim().strip_prefix(word)).map(str::trim)
    }

    /// The JSON after a word.
    fn json(&self, word: &str) -> Value {
        let line = self.lines(word).next().unwrap_or_else(|| panic!("no {word}: {}", self.console));
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }
}

/// Runs the script NAME.sh of this directory in a guest with the newest kernel of the list; `None` where a tool or the kernel
/// is missing here. What the scripts share is in `lib.sh`.
fn run(name: &str, files: &[(&str, &str)]) -> Option<Said> {
    let tools: Result<Vec<_>, _> = TOOLS.into_iter().map(Program::tool).collect();
    let mut programs = match tools {
        Ok(tools) => tools,
        Err(reason) => {
            skip(&reason.to_string());
            return None;
        }
    };
    let work = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let kernel = KERNELS.last().expect("the list has kernels");
    let mut rig = take(kernel, work)?;
    rig.work = rig.work.join(name);
    programs.push(Program { from: wakeai_tests::program().into(), to: "/usr/bin/wakeai".into() });
    let [lib, own] = ["lib", name].map(|name| {
        let file = wakeai_tests::root().join(format!("tests/tests/radio/{name}.sh"));
        std::fs::read_to_string(file).unwrap()
    });
    let script = ("/script".to_owned(), format!("{lib}\n{own}\necho 'guest: all done'\n"));
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    let files = files.chain([script]).collect();
    let began = Instant::now();
    let console = rig.boot(&Task { command: "sh -e /script", programs, files });
    println!("{console}\n{name} took {:.0} s", began.elapsed().as_secs_f64());
    assert!(console.contains("guest: all done"), "{name} did not end:\n{console}");
    Some(Said { console })
}
