//! The listener and the sender of `wakeai probe`.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::Value;

use crate::{program, stderr, stdout};

/// The program under test, in the network namespace of this name.
pub fn inside(namespace: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{namespace}")).arg(program());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A listener; killed when dropped.
pub struct Listener {
    pub child: Child,
    pub out: BufReader<ChildStdout>,
    /// The address that the listener was given.
    pub address: String,
    pub token: String,
}

impl Listener {
    /// Starts a listener and waits until it listens.
    pub fn start(mut command: Command, probe: &str, address: &str, more: &[&str]) -> Self {
        command.args(["probe", probe, "--listen", address, "--json"]).args(more);
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(said["event"], "listening");
        let token = said["token"].as_str().unwrap().to_owned();
        Self { child, out, address: said["addresses"][0].as_str().unwrap().to_owned(), token }
    }

    /// The sender's arguments for this listener.
    pub fn peer(&self) -> [&str; 4] {
        ["--to", &self.address, "--token", &self.token]
    }

    /// Waits for its end.
    pub fn end(&mut self) -> (ExitStatus, Value) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap(), serde_json::from_str(&rest).unwrap_or(Value::Null))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Measures the buffer from one namespace towards stations, and returns the result.
pub fn buffer(from: &str, stations: &mut [Listener], more: &[&str]) -> Value {
    let mut command = inside(from);
    command.args(["probe", "buffer", "--json"]).args(more);
    for station in stations.iter() {
        command.args(station.peer());
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    for station in stations {
        let (status, ended) = station.end();
        assert!(status.success(), "{ended}");
        assert_eq!(ended["ending"], "done");
        assert!(ended["sent_bytes"].as_u64() <= ended["received_bytes"].as_u64(), "{ended}");
    }
    serde_json::from_str(&stdout(&output)).unwrap()
}

/// Asserts that a spread's median is near the expected value.
#[track_caller]
pub fn near(spread: &Value, expected: f64, percent: f64) {
    let median = spread["median"].as_f64().unwrap_or(f64::NAN);
    let off = (median - expected).abs() / expected * 100.0;
    assert!(off <= percent, "{median} instead of {expected}: {off:.1} %: {spread}");
}
