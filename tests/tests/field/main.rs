//! `wakeai field` on machines that are hosts of a lab, over ssh.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]
#![allow(clippy::print_stdout, reason = "the harness shows it where a test fails or is skipped")]

mod faults;
mod many;
mod rig;
mod runs;
mod ways;

/// A short experiment of two stations with two conditions.
const TWO: &str = r#"
name = "two"
duration = "4s"
warmup = "1s"
[access_point]
standard = "802.11n"
[wired]
delay = "5ms"
[[stations]]
name = "tablet"
count = 2
[[flows]]
from = "tablet"
to = "server"
[[conditions]]
name = "default"
[[conditions]]
name = "airtime"
law = "airtime"
"#;
