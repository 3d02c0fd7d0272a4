//! Reads the keys of one table, each with its type and range. An unknown key is a problem.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use wakeai_units::{Bytes, Duration, Rate};

use crate::problems::Problems;
use crate::tree::{Node, Origin, Table, Value, excerpt};

/// The keys of one table.
///
/// Order of calls: [`Fields::get`] for every key that the table may have, then [`Fields::finish`],
/// which reports all other keys.
pub struct Fields<'a> {
    table: &'a Table,
    /// The place of the table.
    pub origin: Origin,
    /// The path of the table, empty for that of the whole text.
    pub path: String,
    /// The keys that were read.
    known: Vec<&'static str>,
    /// Where problems are added.
    pub problems: &'a Problems,
}

/// A key that the table has, and its value.
pub struct Field<'a> {
    /// The value and its place.
    pub node: &'a Node,
    /// The path of the key.
    pub path: String,
    /// Where problems are added.
    pub problems: &'a Problems,
}

impl<'a> Fields<'a> {
    /// The keys of `table`, whose path is `path`.
    pub fn new(table: &'a Table, origin: Origin, path: &str, problems: &'a Problems) -> Self {
        Self { table, origin, path: path.to_owned(), known: Vec::new(), problems }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Whether the table has `key`.
    pub fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// The value of `key`, if the table has it.
    pub fn get(&mut self, key: &'static str) -> Option<Field<'a>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        let node = &self.table.get(key)?.node;
        Some(Field { node, path: self.path_of(key), problems: self.problems })
    }

    /// Reads the value of `key` with `read`, if the table has it.
    pub fn read<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Field<'a>) -> Option<T>,
    ) -> Option<T> {
        self.get(key).and_then(|field| read(&field))
    }

    /// Does what [`Fields::read`] does, and returns `default` if the key is absent or its value is
    /// refused.
    pub fn read_or<T>(
        &mut self,
        key: &'static str,
        default: T,
        read: impl FnOnce(&Field<'a>) -> Option<T>,
    ) -> T {
        self.read(key, read).unwrap_or(default)
    }

    /// The value of `key`. If the key is absent, this is a problem, whose text names what is
    /// `allowed`.
    pub fn require(&mut self, key: &'static str, allowed: &str) -> Option<Field<'a>> {
        let field = self.get(key);
        if field.is_none() {
            self.problems.add(self.origin, self.path_of(key), "nothing: it is required", allowed);
        }
        field
    }

    /// The entries of this table without the keys `own`, and those of `outer` that it does not have, without the keys
    /// `outer_own`: a table whose absent keys are those of another one.
    pub fn over(&self, outer: Option<&Table>, own: &[&str], outer_own: &[&str]) -> Table {
        let entries = self.table.entries.iter().filter(|entry| !own.contains(&entry.key.as_str()));
        let mut merged = Table { entries: entries.cloned().collect() };
        for entry in outer.into_iter().flat_map(|outer| &outer.entries) {
            if merged.get(&entry.key).is_none() && !outer_own.contains(&entry.key.as_str()) {
                merged.insert(&entry.key, entry.node.clone());
            }
        }
        merged
    }

    /// The keys of `table` in the place of this one, with the same path. The keys that were read count as known.
    pub fn with_table<'b>(&self, table: &'b Table) -> Fields<'b>
    where
        'a: 'b,
    {
        let (path, known) = (self.path.clone(), self.known.clone());
        Fields { table, origin: self.origin, path, known, problems: self.problems }
    }

    /// Reports the keys that were not read.
    pub fn finish(self) {
        for entry in &self.table.entries {
            if !self.known.contains(&entry.key.as_str()) {
                let allowed = match nearest(&entry.key, &self.known) {
                    Some(near) => format!("{near}? The keys here are {}", self.known.join(", ")),
                    None => self.known.join(", "),
                };
                let key = self.path_of(&excerpt(&entry.key));
                self.problems.add(entry.origin, key, "an unknown key", allowed);
            }
        }
    }
}

impl<'a> Field<'a> {
    /// Reports that the value is not what is `allowed`.
    pub fn refuse(&self, allowed: impl Into<String>) {
        self.problems.add(self.node.origin, &self.path, self.node.found(), allowed);
    }

    /// Reports that the value is not what is `allowed`, with a description of what was `found`.
    pub fn refuse_as(&self, found: impl Into<String>, allowed: impl Into<String>) {
        self.problems.add(self.node.origin, &self.path, found, allowed);
    }

    /// Returns `value`. `None` is a problem, whose text names what is `allowed`.
    pub fn or_refuse<T>(&self, value: Option<T>, allowed: impl FnOnce() -> String) -> Option<T> {
        if value.is_none() {
            self.refuse(allowed());
        }
        value
    }

    /// The text, if `is_allowed` holds for it.
    pub fn text_if(&self, allowed: &str, is_allowed: impl FnOnce(&str) -> bool) -> Option<&'a str> {
        let text = self.node.as_str().filter(|text| is_allowed(text));
        self.or_refuse(text, || allowed.to_owned())
    }

    /// The text parsed as a `T`; `None` if the text is no `T`.
    pub fn parsed<T: FromStr>(&self) -> Option<T> {
        self.node.as_str()?.parse().ok()
    }

    /// A duration in this range.
    pub fn duration(&self, range: RangeInclusive<Duration>) -> Option<Duration> {
        self.within(self.parsed(), &range, "a duration", "in ns, us, ms, s, min or h")
    }

    /// A rate in this range.
    pub fn rate(&self, range: RangeInclusive<Rate>) -> Option<Rate> {
        self.within(self.parsed(), &range, "a rate", "in bit/s, kbit/s, Mbit/s or Gbit/s")
    }

    /// A size in this range. An integer is a number of bytes.
    pub fn size(&self, range: RangeInclusive<Bytes>) -> Option<Bytes> {
        let value = match &self.node.value {
            Value::Integer(bytes) => u64::try_from(*bytes).ok().map(Bytes::new),
            _ => self.parsed(),
        };
        self.within(value, &range, "a size", "in B, kB, MB, GB or TB")
    }

    /// Whether the value is in quotes.
    pub fn is_text(&self) -> bool {
        self.node.as_str().is_some()
    }

    /// An integer in this range.
    pub fn integer<T>(&self, range: RangeInclusive<T>) -> Option<T>
    where
        T: Copy + PartialOrd + Display + TryFrom<i64>,
    {
        let value = match &self.node.value {
            Value::Integer(number) => T::try_from(*number).ok(),
            _ => None,
        };
        self.within(value, &range, "an integer", "without quotes")
    }

    fn within<T: PartialOrd + Display>(
        &self,
        value: Option<T>,
        range: &RangeInclusive<T>,
        what: &str,
        how: &str,
    ) -> Option<T> {
        let value = value.filter(|value| range.contains(value));
        self.or_refuse(value, || format!("{what} from {} to {}, {how}", range.start(), range.end()))
    }

    /// A share from 0 to 1, in millionths.
    pub fn parts_per_million(&self) -> Option<u32> {
        let share = match self.node.value {
            Value::Integer(number) => Some(number as f64),
            Value::Float(number) => Some(number),
            _ => None,
        };
        let share = share.filter(|share| (0.0..=1.0).contains(share));
        let share = self.or_refuse(share, || "a number from 0.0 to 1.0".to_owned())?;
        Some((share * 1e6).round() as u32)
    }

    /// A truth value.
    pub fn boolean(&self) -> Option<bool> {
        let flag = match self.node.value {
            Value::Boolean(flag) => Some(flag),
            _ => None,
        };
        self.or_refuse(flag, || "true or false".to_owned())
    }

    /// The value that belongs to the word in this field, which must be one of `choices`.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        let text = self.node.as_str();
        let found = choices.iter().find(|(name, _)| Some(*name) == text);
        self.or_refuse(found.map(|(_, value)| *value), || quoted(choices.iter().map(|(n, _)| n)))
    }

    /// A table.
    pub fn table(&self) -> Option<Fields<'a>> {
        let table = self.or_refuse(self.node.as_table(), || format!("a table, [{}]", self.path))?;
        Some(Fields::new(table, self.node.origin, &self.path, self.problems))
    }

    /// A list of tables. The path of each table ends in its name, or in its number if it has no
    /// name.
    pub fn tables(&self, most: usize) -> Vec<Fields<'a>> {
        let allowed = format!("a list of tables, [[{}]], of at most {most}", self.path);
        let Some(nodes) = self.node.as_array() else {
            self.refuse(allowed);
            return Vec::new();
        };
        if nodes.len() > most {
            self.refuse_as(format!("{} of them", nodes.len()), allowed);
            return Vec::new();
        }
        let tables = nodes.iter().enumerate().filter_map(|(index, node)| {
            let Value::Table(table) = &node.value else {
                self.problems.add(node.origin, &self.path, node.found(), allowed.as_str());
                return None;
            };
            let name = table.get("name").and_then(|entry| entry.node.as_str());
            let path = match name.filter(|name| is_name(name)) {
                Some(name) => format!("{}.{name}", self.path),
                None => format!("{}.{}", self.path, index + 1),
            };
            Some(Fields::new(table, node.origin, &path, self.problems))
        });
        tables.collect()
    }

    /// One text or a list of texts. Each text becomes a field of its own.
    pub fn one_or_more(&self, most: usize) -> Vec<Field<'a>> {
        let nodes = match &self.node.value {
            Value::Array(nodes) => nodes.as_slice(),
            _ => std::slice::from_ref(self.node),
        };
        if nodes.is_empty() || nodes.len() > most {
            self.refuse_as(format!("a list of {}", nodes.len()), format!("1 to {most} names"));
            return Vec::new();
        }
        let field = |node| Field { node, path: self.path.clone(), problems: self.problems };
        nodes.iter().map(field).collect()
    }
}

/// The words in quotes, with commas between them.
pub fn quoted(words: impl Iterator<Item = impl Display>) -> String {
    words.map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}

/// Whether an entry of a list can have this name, in which its path ends.
pub fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=32).contains(&name.len()) && name.chars().all(allowed) && name != "server"
}

/// The known key that is closest to `key`, if it is close enough to be a likely typing error.
fn nearest(key: &str, known: &[&'static str]) -> Option<&'static str> {
    if key.len() > 32 {
        return None;
    }
    let near = known.iter().map(|name| (strsim::levenshtein(key, name), *name)).min()?;
    (near.0 <= near.1.len().max(3) / 3).then_some(near.1)
}
