//! The resources that agents and their BPF maps hold: memory, open files, entries.

use std::fmt;
use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use wakeai_tests::agent::Agent;
use wakeai_tests::must;

/// The maps that all agents share, by their pins.
const MAPS: [&str; 4] = [SOCKETS, "interface_bounds", "heartbeats", "socket_targets"];
/// The map with an entry for each connection that is sending. The number of its entries goes up and down.
const SOCKETS: &str = "socket_bounds";
const SOCKETS_SLACK: u64 = 20;
/// Growth is tolerated up to this part of the early value.
const TOLERATED_PERCENT: u64 = 5;
/// Growth by this many open files or entries is tolerated, because a client may be connected, or a peer may have
/// just started.
const SLACK: u64 = 4;

/// The value of one quantity at one time.
#[derive(Clone, Debug)]
pub(crate) struct Quantity {
    name: String,
    value: u64,
    slack: u64,
}

/// All quantities of these agents, in a fixed order.
pub(crate) fn all(names: &[&str], agents: &[Agent]) -> Vec<Quantity> {
    let mut all = Vec::new();
    for (name, agent) in names.iter().zip(agents) {
        let memory = fs::read_to_string(format!("/proc/{}/smaps_rollup", agent.serving())).unwrap();
        for (figure, slack) in [("Rss", 0), ("Pss", 0), ("Anonymous", 128)] {
            // proc_pid_smaps(5)
            let line = memory.lines().find_map(|line| line.strip_prefix(&format!("{figure}:")));
            let value = line.unwrap().trim().trim_end_matches(" kB").parse().unwrap();
            all.push(Quantity { name: format!("agent {name}: {figure}, kB"), value, slack });
        }
        let files = fs::read_dir(format!("/proc/{}/fd", agent.serving())).unwrap().count() as u64;
        let name = format!("agent {name}: open files");
        all.push(Quantity { name, value: files, slack: SLACK });
    }
    for map in MAPS {
        let name = format!("entries of {map}");
        let slack = if map == SOCKETS { SOCKETS_SLACK } else { SLACK };
        all.push(Quantity { name, value: entries(map), slack });
    }
    all
}

fn entries(map: &str) -> u64 {
    let path = format!("/sys/fs/bpf/wakeai/{map}");
    let dump = must("bpftool", &format!("--json map dump pinned {path}"));
    serde_json::from_str::<Value>(&dump).unwrap().as_array().unwrap().len() as u64
}

/// The quantities early in the run and at its end.
#[derive(Debug)]
pub(crate) struct Held {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: String,
    early: u64,
    late: u64,
    /// The largest value of a sample.
    most: u64,
    slack: u64,
}

impl Row {
    fn has_grown(&self) -> bool {
        let tolerated = (self.early * TOLERATED_PERCENT / 100).max(self.slack);
        self.late > self.early + tolerated
    }

    fn growth_percent(&self) -> f64 {
        100.0 * (self.late as f64 - self.early as f64) / self.early.max(1) as f64
    }
}

impl Held {
    /// The means of the samples in the window before each mark.
    pub(crate) fn new(
        samples: &[(Duration, Vec<Quantity>)],
        marks: [Duration; 2],
        window: Duration,
    ) -> Self {
        let at = |mark: Duration, index: usize| {
            let inside = |time: &Duration| (mark.saturating_sub(window)..=mark).contains(time);
            let values = samples.iter().filter(|(time, _)| inside(time));
            let values: Vec<_> = values.map(|(_, quantities)| quantities[index].value).collect();
            values.iter().sum::<u64>() / values.len() as u64
        };
        let rows = samples[0].1.iter().enumerate().map(|(index, first)| Row {
            name: first.name.clone(),
            early: at(marks[0], index),
            late: at(marks[1], index),
            most: samples.iter().map(|(_, all)| all[index].value).max().unwrap_or(0),
            slack: first.slack,
        });
        Self { rows: rows.collect() }
    }

    /// Whether this map had an entry in any of the samples.
    pub(crate) fn has_entries(&self, map: &str) -> bool {
        self.rows.iter().any(|row| row.name.ends_with(map) && row.most > 0)
    }

    /// The quantities that grew, in words.
    pub(crate) fn grown(&self) -> Vec<String> {
        let grown = self.rows.iter().filter(|row| row.has_grown());
        grown.map(|row| format!("{}: {} -> {}", row.name, row.early, row.late)).collect()
    }

    pub(crate) fn json(&self, length: Duration, connections: u64, starts: u32) -> Value {
        let row = |row: &Row| json!({"name": row.name, "early": row.early, "late": row.late, "grown": row.has_grown()});
        let rows: Vec<_> = self.rows.iter().map(row).collect();
        json!({
            "minutes": length.as_secs_f64() / 60.0, "connections": connections,
            "peer_starts": starts, "held": rows
        })
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<32}{:>12}{:>12}{:>10}", "held", "early", "at the end", "growth")?;
        for row in &self.rows {
            let Row { name, early, late, .. } = row;
            let growth = row.growth_percent();
            let verdict = if row.has_grown() { "  GROWN" } else { "" };
            writeln!(f, "{name:<32}{early:>12}{late:>12}{growth:>8.1} %{verdict}")?;
        }
        Ok(())
    }
}

#[test]
fn a_row_has_grown_beyond_five_percent_and_beyond_its_slack() {
    let row = |early, late, slack| Row { name: String::new(), early, late, most: late, slack };
    assert!(!row(1000, 1050, 0).has_grown());
    assert!(row(1000, 1051, 0).has_grown());
    assert!(!row(20, 24, 4).has_grown());
    assert!(row(20, 25, 4).has_grown());
    assert!(!row(1000, 500, 0).has_grown());
}
