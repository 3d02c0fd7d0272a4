//! A text as a tree of values, each with its place.
//!
//! The conditions of a scenario and `--set` change this tree, which is then read again. So every key can
//! be set, and each value passes the same checks and is reported at its own place.

use std::fmt::Write as _;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The place where a value was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The file, at this byte offset.
    File(usize),
    /// The override with this number, from 0.
    Override(usize),
}

impl Origin {
    /// The start of the file. It stands for the place of the whole tree, and of values that are not
    /// in the text.
    pub const START: Self = Self::File(0);
}

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// The place.
    pub origin: Origin,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// A text.
    String(String),
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// A truth value.
    Boolean(bool),
    /// A date, or an integer of more than 63 bits, as it is written.
    Other(String),
    /// A list.
    Array(Vec<Node>),
    /// Keys and values.
    Table(Table),
}

/// Keys and values in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The entries.
    pub entries: Vec<Entry>,
}

/// A key and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The place of the key.
    pub origin: Origin,
    /// The value.
    pub node: Node,
}

impl Table {
    /// The entry with this key.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Sets `key`, or adds it if it does not exist.
    pub fn insert(&mut self, key: &str, node: Node) {
        let origin = node.origin;
        match self.entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => (entry.origin, entry.node) = (origin, node),
            None => self.entries.push(Entry { key: key.to_owned(), origin, node }),
        }
    }

    /// Removes the entry with this key.
    pub fn remove(&mut self, key: &str) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(at))
    }
}

impl Node {
    /// A value and its place.
    pub fn new(origin: Origin, value: Value) -> Self {
        Self { origin, value }
    }

    /// A text and its place.
    pub fn string(origin: Origin, text: impl Into<String>) -> Self {
        Self::new(origin, Value::String(text.into()))
    }

    /// The table, if the value is one.
    pub fn as_table(&self) -> Option<&Table> {
        let Value::Table(table) = &self.value else { return None };
        Some(table)
    }

    /// The table, if the value is one.
    pub fn as_table_mut(&mut self) -> Option<&mut Table> {
        let Value::Table(table) = &mut self.value else { return None };
        Some(table)
    }

    /// The list, if the value is one.
    pub fn as_array(&self) -> Option<&[Node]> {
        let Value::Array(nodes) = &self.value else { return None };
        Some(nodes)
    }

    /// The text, if the value is one.
    pub fn as_str(&self) -> Option<&str> {
        let Value::String(text) = &self.value else { return None };
        Some(text)
    }

    /// A short description of the value, for an error.
    pub fn found(&self) -> String {
        match &self.value {
            Value::String(text) => format!("\"{}\"", excerpt(text)),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => format!("{number:?}"),
            Value::Boolean(flag) => flag.to_string(),
            Value::Other(text) => excerpt(text),
            Value::Array(_) => "an array".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }
}

/// The beginning of `text`, without control characters.
pub fn excerpt(text: &str) -> String {
    beginning(text, 40)
}

/// The first `most` characters of `text`, without control characters.
pub(crate) fn beginning(text: &str, most: usize) -> String {
    let mut short: String = text.chars().take(most).flat_map(char::escape_debug).collect();
    if text.chars().nth(most).is_some() {
        short.push('…');
    }
    short
}

/// The tree of a parsed document.
pub(crate) fn of_document(document: &DeTable<'_>) -> Table {
    table(document, None)
}

/// The tree of a parsed value from override number `index`.
pub fn of_override(value: &Spanned<DeValue<'_>>, index: usize) -> Node {
    node(value, Some(Origin::Override(index)))
}

fn node(value: &Spanned<DeValue<'_>>, origin: Option<Origin>) -> Node {
    let place = origin.unwrap_or(Origin::File(value.span().start));
    let value = match value.get_ref() {
        DeValue::String(text) => Value::String(text.as_ref().to_owned()),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map_or_else(|_| Value::Other(integer.to_string()), Value::Integer),
        DeValue::Float(float) => float
            .as_str()
            .parse()
            .map_or_else(|_| Value::Other(float.as_str().to_owned()), Value::Float),
        DeValue::Boolean(flag) => Value::Boolean(*flag),
        DeValue::Datetime(date) => Value::Other(date.to_string()),
        DeValue::Array(nodes) => Value::Array(nodes.iter().map(|n| node(n, origin)).collect()),
        DeValue::Table(entries) => Value::Table(table(entries, origin)),
    };
    Node::new(place, value)
}

fn table(parsed: &DeTable<'_>, origin: Option<Origin>) -> Table {
    let mut entries: Vec<Entry> = parsed
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().as_ref().to_owned(),
            origin: origin.unwrap_or(Origin::File(key.span().start)),
            node: node(value, origin),
        })
        .collect();
    entries.sort_by_key(|entry| entry.origin);
    Table { entries }
}

/// `root` as TOML: plain keys first, then tables, then arrays of tables.
pub fn to_toml(root: &Table) -> String {
    let mut text = String::new();
    for entry in &root.entries {
        if section(entry).is_empty() {
            line(&mut text, entry);
        }
    }
    for entry in &root.entries {
        for (header, table) in section(entry) {
            let _ = writeln!(text, "\n{header}"); // writing to a String never fails
            for entry in &table.entries {
                line(&mut text, entry);
            }
        }
    }
    text
}

/// The tables of the entry that have a header of their own, each with its header.
fn section(entry: &Entry) -> Vec<(String, &Table)> {
    let key = inline_key(&entry.key);
    match &entry.node.value {
        Value::Table(table) => vec![(format!("[{key}]"), table)],
        Value::Array(nodes) if nodes.iter().all(|node| node.as_table().is_some()) => nodes
            .iter()
            .filter_map(Node::as_table)
            .map(|table| (format!("[[{key}]]"), table))
            .collect(),
        _ => Vec::new(),
    }
}

fn line(text: &mut String, entry: &Entry) {
    let _ = writeln!(text, "{} = {}", inline_key(&entry.key), inline(&entry.node));
}

fn inline_key(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(bare) { key.to_owned() } else { quoted(key) }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// The value as TOML on one line.
pub fn inline(node: &Node) -> String {
    match &node.value {
        Value::String(text) => quoted(text),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => toml::Value::Float(*number).to_string(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Other(text) => text.clone(),
        Value::Array(nodes) => {
            format!("[{}]", nodes.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        Value::Table(table) => {
            let entries = table.entries.iter();
            let entries = entries
                .map(|entry| format!("{} = {}", inline_key(&entry.key), inline(&entry.node)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}
