//! What is in force, for people.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

use super::control::InForce;

/// Columns from this one on are numbers.
const FIRST_NUMBER: usize = 4;

pub(super) fn render(all: &[InForce]) -> String {
    if all.is_empty() {
        return "nothing is in force\n".to_owned();
    }
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_header([
            "ID",
            "algorithm",
            "rules",
            "to",
            "rate Mbit/s",
            "connections",
            "since s",
            "left s",
        ])
        .add_rows(all.iter().map(row));
    for column in table.column_iter_mut().skip(FIRST_NUMBER) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

fn row(in_force: &InForce) -> [String; 8] {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
    [
        in_force.id.to_string(),
        in_force.algorithm.clone(),
        format!("{} {}", in_force.scope, in_force.name),
        in_force.to.clone().unwrap_or_else(|| "-".to_owned()),
        number(in_force.rate_mbps),
        in_force.connections.to_string(),
        number(Some(in_force.running_s)),
        number(in_force.left_s),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_line_with_its_id_and_its_rate() {
        let in_force = InForce {
            id: 4711,
            algorithm: "wakeai_av".to_owned(),
            scope: "cgroup".to_owned(),
            name: "/sys/fs/cgroup/x".to_owned(),
            netns: 1,
            to: None,
            rate_mbps: Some(5.0),
            connections: 3,
            running_s: 1.25,
            left_s: None,
        };
        let text = render(&[in_force]);
        let line = text.lines().nth(1).unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        let expected =
            ["4711", "wakeai_av", "cgroup", "/sys/fs/cgroup/x", "-", "5.0", "3", "1.2", "-"];
        assert_eq!(words, expected);
        assert_eq!(render(&[]), "nothing is in force\n");
    }
}
