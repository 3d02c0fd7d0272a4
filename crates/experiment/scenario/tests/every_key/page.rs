//! The keys that the reference page lists.

use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../../../docs/reference/scenario.md");

/// The examples of the page. The last one has every key.
pub(crate) fn examples() -> Vec<String> {
    let blocks = PAGE.split("```toml\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// The tables that have a section of their own: `access_point`, `stations`, ….
pub(crate) fn tables() -> BTreeSet<String> {
    PAGE.lines().filter_map(section).map(|(name, _)| name.to_owned()).collect()
}

/// Every key in the tables of the page, as `access_point.buffer` or `stations[].queue`.
pub(crate) fn keys() -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let (mut prefix, mut in_table) = (String::new(), false);
    for line in PAGE.lines() {
        if line.starts_with("## ") {
            prefix = section(line).map_or_else(String::new, |(name, list)| {
                if list { format!("{name}[].") } else { format!("{name}.") }
            });
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match cells[..] {
            ["", "key", "kind", ..] => in_table = true,
            ["", names, kind, _, allowed, ..] if in_table => {
                for name in names.split('`').skip(1).step_by(2) {
                    let key = format!("{prefix}{name}");
                    match (kind, allowed) {
                        ("table", "as there") => keys.extend(below(name, &key)),
                        _ => keys.extend([key]),
                    }
                }
            }
            _ => in_table = false,
        }
    }
    keys
}

/// The name of the table that a heading is about, and whether it is a list of tables.
fn section(line: &str) -> Option<(&str, bool)> {
    let header = line.strip_prefix("## `[")?.strip_suffix("]`")?;
    let list = header.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    Some((list.unwrap_or(header), list.is_some()))
}

/// The keys of `table`, each after `prefix`. The page lists them in another section, as
/// `table.KEY`.
fn below(table: &str, prefix: &str) -> Vec<String> {
    let start = format!("| `{table}.");
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix(&start));
    rows.map(|row| format!("{prefix}.{}", row.split('`').next().unwrap())).collect()
}
