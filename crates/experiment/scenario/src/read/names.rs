//! The names of stations: which are allowed, and which stations each name selects.

use std::collections::BTreeMap;

use crate::experiment::{Selector, StationGroup};

/// The rule for a name, in words.
pub(crate) const ALLOWED: &str = "1 to 32 of A-Z, a-z, 0-9, - and _, other than \"server\"";

/// The groups by name.
pub(crate) struct Names<'a> {
    groups: &'a [StationGroup],
    by_name: BTreeMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(groups: &'a [StationGroup]) -> Self {
        let by_name = groups.iter().enumerate().map(|(index, group)| (group.name.as_str(), index));
        Self { groups, by_name: by_name.collect() }
    }

    /// The stations that `name` selects: a group, or a numbered member of a group.
    pub(crate) fn resolve(&self, name: &str) -> Option<Selector> {
        if let Some(group) = self.by_name.get(name) {
            return Some(Selector { group: *group, number: None });
        }
        self.member(name)
    }

    /// Whether a group has this name.
    pub(crate) fn is_group(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The numbered member that `name` selects.
    fn member(&self, name: &str) -> Option<Selector> {
        numbered(name).find_map(|(prefix, number)| {
            let group = *self.by_name.get(prefix)?;
            let count = self.groups[group].count;
            (count > 1 && number <= count).then_some(Selector { group, number: Some(number) })
        })
    }

    /// A name that `group` or a member of it shares with another group or its members.
    pub(crate) fn clash(&self, group: usize) -> Option<String> {
        let StationGroup { name, count, .. } = &self.groups[group];
        if self.by_name.get(name.as_str()) != Some(&group) {
            return Some(name.clone()); // a later group has the same name
        }
        if self.member(name).is_some() {
            return Some(name.clone());
        }
        // A group `tablet1` with several members and a group `tablet` with 11 or more members both
        // have a `tablet11`. If any member clashes, the first does, because its number is the
        // smallest.
        let first = format!("{name}1");
        let clashing = |(prefix, number): (&str, u32)| {
            let other = self.by_name.get(prefix).map(|other| self.groups[*other].count);
            other.is_some_and(|count| count > 1 && number <= count)
        };
        let clashes = *count > 1
            && numbered(&first).filter(|(prefix, _)| prefix.len() < name.len()).any(clashing);
        clashes.then_some(first)
    }
}

/// Every way to read `name` as a group's name and a number from 1 without leading zeros.
fn numbered(name: &str) -> impl Iterator<Item = (&str, u32)> {
    let digits = name.bytes().rev().take(5).take_while(u8::is_ascii_digit).count();
    (1..=digits).filter_map(move |length| {
        let (prefix, number) = name.split_at(name.len() - length);
        let plain = !number.starts_with('0') && !prefix.is_empty();
        plain.then(|| number.parse().ok()).flatten().map(|number| (prefix, number))
    })
}

/// Whether two selections have a station in common.
pub(crate) fn overlap(a: Selector, b: Selector) -> bool {
    a.group == b.group && (a.number == b.number || a.number.is_none() || b.number.is_none())
}
