//! The access point of a lab, whose buffer is known.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use wakeai_host::Namespace;

use crate::support::{ANY_LATENESS, Machine, must, nothing_left, wait_for};
use crate::{Listener, buffer, inside, near};

/// The address of the server.
pub(crate) const SERVER: &str = "10.74.0.1";

/// A lab that runs until it is dropped.
pub(crate) struct Lab(Child);

impl Lab {
    /// A lab with hardly any traffic of its own.
    pub(crate) fn start(directory: &Path, access_point: &str) -> Self {
        Self::start_with(directory, access_point, "")
    }

    /// A lab with more flows and conditions.
    pub(crate) fn start_with(directory: &Path, access_point: &str, more: &str) -> Self {
        let path = directory.join("lab.toml");
        let text = format!(
            "name = \"probe\"\nduration = \"600s\"\naccess_point = {{ {access_point} }}\n\
             [[stations]]\nname = \"a\"\nmax = \"20Mbit/s\"\n\
             [[stations]]\nname = \"b\"\nmax = \"20Mbit/s\"\n\
             [[flows]]\nfrom = \"a\"\nto = \"server\"\nkind = \"udp\"\nrate = \"16kbit/s\"\n{more}"
        );
        fs::write(&path, text).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_wakeai"))
            .args(["lab", path.to_str().unwrap(), "--json"])
            .args(ANY_LATENESS)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let lab = Self(child);
        wait_for("the stations have interfaces", || {
            let names = must("ip", "netns list");
            let all = ["server", "a", "b"].iter().all(|name| names.contains(&lab.name(name)));
            let up = || must("ip", &format!("-n {} -br link show up", lab.name("b")));
            (all && up().contains("wlan0")).then_some(())
        });
        // The medium starts after the last host, and then the flow.
        wait_for("packets cross the air", || {
            let server = Namespace::open(&lab.name("server")).ok()?;
            let read = || fs::read_to_string("/proc/thread-self/net/dev").unwrap();
            let table = server.run(read).ok()?;
            let counts = table.lines().find_map(|line| line.trim().strip_prefix("eth0:"))?;
            let received = counts.split_whitespace().nth(1)?; // bytes, then packets (proc_net_dev(5))
            (received != "0").then_some(())
        });
        lab
    }

    pub(crate) fn name(&self, host: &str) -> String {
        format!("wakeai-{}-{host}", self.0.id())
    }

    /// A listener on the stations of these numbers.
    fn listeners(&self, stations: &[&str]) -> Vec<Listener> {
        let start = |name: &&str| {
            let address = if *name == "a" { "10.73.0.1" } else { "10.73.0.2" };
            Listener::start(inside(&self.name(name)), "buffer", address, &[])
        };
        stations.iter().map(start).collect()
    }

    fn buffer(&self, stations: &[&str], more: &[&str]) -> Value {
        buffer(&self.name("server"), &mut self.listeners(stations), more)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

#[test]
fn the_buffer_of_an_access_point_is_found_within_5_percent() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    for (standard, packets) in
        [("802.11n", 50), ("802.11g", 50), ("802.11n", 300), ("802.11g", 300), ("802.11n", 1_000)]
    {
        let access_point = format!("standard = \"{standard}\", buffer = {packets}");
        let lab = Lab::start(directory.path(), &access_point);
        let found = lab.buffer(&["a"], &["--rate", "600Mbit/s"]);
        println!("{standard} {packets}: {found}");
        near(&found["packets"], f64::from(packets), 5.0);
        near(&found["bytes"], f64::from(packets) * 1_500.0, 5.0);
        assert_eq!((&found["counts"], &found["drops"]), (&"packets".into(), &"tail".into()));
        assert_eq!(found["stations"], Value::Null, "there was no second station");
    }
    nothing_left();
}

#[test]
fn a_buffer_that_is_limited_in_bytes_is_found_within_5_percent() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    for (standard, kilobytes) in [("802.11n", 75.0), ("802.11g", 75.0), ("802.11n", 450.0)] {
        let access_point = format!("standard = \"{standard}\", buffer = \"{kilobytes}kB\"");
        let lab = Lab::start(directory.path(), &access_point);
        let found = lab.buffer(&["a"], &["--rate", "600Mbit/s"]);
        println!("{standard} {kilobytes} kB: {found}");
        near(&found["bytes"], kilobytes * 1_000.0, 5.0);
        assert_eq!((&found["counts"], &found["drops"]), (&"bytes".into(), &"tail".into()));
    }
    nothing_left();
}

#[test]
fn a_queue_for_each_station_is_told_from_a_fifo() {
    let Some(_machine) = Machine::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    for (queue, expected) in [("fifo", "shared"), ("fq", "separate")] {
        let access_point = format!("standard = \"802.11n\", queue = \"{queue}\"");
        let lab = Lab::start(directory.path(), &access_point);
        let found = lab.buffer(&["a", "b"], &["--runs", "3", "--rate", "600Mbit/s"]);
        println!("{queue}: {found}");
        assert_eq!(found["stations"], expected, "{found}");
        assert_eq!(found["flows"], "shared", "both flows go to one station: {found}");
        near(&found["packets"], 300.0, 5.0);
    }
    nothing_left();
}
