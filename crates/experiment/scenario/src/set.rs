//! Changes a key of the tree, which is named by its dotted path, for `set` and `--set`.

use wakeai_settings::{Node, Table, Value};

/// The reason why a path names no key.
pub(crate) struct NoSuchPath {
    pub(crate) found: String,
    pub(crate) allowed: String,
}

/// Sets the key at `path` to `node`. The key, and the tables that contain it, are added if they do
/// not exist. An entry of a list is found by its name or by its number from 1.
pub(crate) fn set(root: &mut Table, path: &str, node: Node) -> Result<(), NoSuchPath> {
    let parts: Vec<&str> = path.split('.').collect();
    if parts.iter().any(|part| part.is_empty()) || parts.len() > 8 {
        return Err(NoSuchPath {
            found: format!("the path \"{}\"", wakeai_settings::excerpt(path)),
            allowed: "keys joined by dots, such as duration, access_point.buffer, \
                      stations.tablet.rate, flows.1.size"
                .to_owned(),
        });
    }
    set_in_table(root, &parts, "", node)
}

fn set_in_table(
    table: &mut Table,
    parts: &[&str],
    before: &str,
    node: Node,
) -> Result<(), NoSuchPath> {
    let (key, rest) = parts.split_first().expect("a path has at least one part");
    if rest.is_empty() {
        table.insert(key, node);
        return Ok(());
    }
    let path = if before.is_empty() { (*key).to_owned() } else { format!("{before}.{key}") };
    if table.get(key).is_none() {
        table.insert(key, Node::new(node.origin, Value::Table(Table::default())));
    }
    let entry = table.entries.iter_mut().find(|entry| entry.key == *key);
    let child = &mut entry.expect("found or inserted above").node;
    match &mut child.value {
        Value::Table(table) => set_in_table(table, rest, &path, node),
        Value::Array(nodes) => set_in_list(nodes, rest, &path, node),
        _ => Err(NoSuchPath {
            found: format!("the value {} at {path}", child.found()),
            allowed: format!("{path} itself: it has no keys below"),
        }),
    }
}

fn set_in_list(
    nodes: &mut [Node],
    parts: &[&str],
    before: &str,
    node: Node,
) -> Result<(), NoSuchPath> {
    let (name, rest) = parts.split_first().expect("the caller leaves at least one part");
    let path = format!("{before}.{name}");
    let Some(position) = position(nodes, name) else {
        return Err(NoSuchPath { found: path, allowed: entries(nodes, before) });
    };
    if let Some(table) = nodes[position].as_table_mut().filter(|_| !rest.is_empty()) {
        return set_in_table(table, rest, &path, node);
    }
    let allowed = format!("a key of it, such as {path}.KEY");
    Err(NoSuchPath { found: path, allowed })
}

fn position(nodes: &[Node], name: &str) -> Option<usize> {
    let named = |node: &Node| name_of(node) == Some(name);
    let numbered = || name.parse::<usize>().ok()?.checked_sub(1).filter(|at| *at < nodes.len());
    nodes.iter().position(named).or_else(numbered)
}

fn name_of(node: &Node) -> Option<&str> {
    node.as_table()?.get("name")?.node.as_str()
}

fn entries(nodes: &[Node], before: &str) -> String {
    let names: Vec<&str> = nodes.iter().take(8).filter_map(name_of).collect();
    if names.is_empty() {
        format!("{before}.1 to {before}.{}", nodes.len())
    } else {
        let names = names.iter().map(|name| format!("{before}.{}", wakeai_settings::excerpt(name)));
        names.collect::<Vec<_>>().join(", ")
    }
}

/// The paths and values of a `set` table. In TOML dotted keys without quotes are nested tables, so
/// nested tables become paths here, too.
pub(crate) fn flatten(table: &Table) -> Vec<(String, Node)> {
    let mut flat = Vec::new();
    flatten_into(table, "", &mut flat);
    flat
}

fn flatten_into(table: &Table, before: &str, flat: &mut Vec<(String, Node)>) {
    for entry in &table.entries {
        let path =
            if before.is_empty() { entry.key.clone() } else { format!("{before}.{}", entry.key) };
        match &entry.node.value {
            Value::Table(table) if !table.entries.is_empty() => flatten_into(table, &path, flat),
            _ => flat.push((path, entry.node.clone())),
        }
    }
}
