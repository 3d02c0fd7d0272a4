//! Reads `[[bss]]`: several access points, and which groups and access points hear each other.

use std::collections::BTreeSet;

use wakeai_settings::{Field, Fields, Table};
use wakeai_wifi::Wired;

use super::names::{self, Names};
use super::radio::{self, Read};
use super::{AccessPoints, list, with_places};
use crate::experiment::{BssSpec, Medium, Stack};

/// The most access points.
const MOST: usize = 100;
/// The largest number of a channel. The numbers only tell channels apart.
const LARGEST_CHANNEL: u32 = 1_000;
/// The most names in one `hears`.
const MOST_HEARD: usize = 1_000;

/// The keys of `[[bss]]` that no access point has.
const OWN: [&str; 4] = ["name", "channel", "hears", "wired"];

/// Reads the entries. A key of `[access_point]` that an entry does not have is that of the table
/// `[access_point]` of `root`, and so are the keys of `wired`.
pub(super) fn read(
    fields: &mut Fields<'_>,
    root: &Table,
    access_point: Option<&Read>,
    wired: Wired,
) -> Vec<Option<(BssSpec, Read)>> {
    let Some(field) = fields.get("bss") else { return Vec::new() };
    let outer = root.get("access_point").and_then(|entry| entry.node.as_table());
    let tables = field.tables(MOST);
    if tables.is_empty() {
        field.refuse("at least one [[bss]]");
    }
    if access_point.is_some_and(|read| read.access_point.wifi().is_none()) {
        field.refuse("nothing with a cellular link, which is one cell");
        return tables.iter().map(|_| None).collect();
    }
    if access_point.is_some_and(|read| read.stack.is_linux()) {
        field.refuse("nothing beside `access_point.stack`, which has one access point");
    }
    let mut seen = BTreeSet::new();
    let mut bands = std::collections::BTreeMap::new();
    let entry = |table| one(table, outer, wired);
    let entries: Vec<_> = tables.into_iter().map(entry).collect();
    for (spec, _) in entries.iter().flatten() {
        if !seen.insert(spec.name.as_str()) {
            field.refuse_as(
                format!("a second BSS named \"{}\"", spec.name),
                "names that are unique",
            );
        }
        if let Medium::Wifi(bss) = &spec.access_point.medium {
            let first = *bands.entry(spec.channel).or_insert(bss.standard);
            if !bss.standard.shares_band(first) {
                let found = format!("{first} and {} on channel {}", bss.standard, spec.channel);
                field.refuse_as(found, "standards of one band on a channel");
            }
        }
    }
    entries
}

fn one(mut fields: Fields<'_>, outer: Option<&Table>, wired: Wired) -> Option<(BssSpec, Read)> {
    let name = fields.require("name", names::ALLOWED);
    let name = name.and_then(|field| field.text_if(names::ALLOWED, wakeai_settings::is_name));
    let channel = fields.read_or("channel", 1, |field| field.integer(1..=LARGEST_CHANNEL));
    let hears = fields.read("hears", heard);
    let wired = fields.get("wired").map_or(wired, |field| super::wired(&field, wired));
    let merged = fields.over(outer, &OWN, &["medium", "stack"]);
    let read = radio::wifi_table(fields.with_table(&merged), Stack::None)?;
    let access_point = read.access_point;
    Some((BssSpec { name: name?.to_owned(), channel, access_point, wired, hears }, read))
}

/// Reads `hears`: a list of names, which may be empty.
pub(super) fn heard(field: &Field<'_>) -> Option<Vec<String>> {
    let allowed = format!("a list of at most {MOST_HEARD} names of groups and BSSs");
    let Some(nodes) = field.node.as_array().filter(|nodes| nodes.len() <= MOST_HEARD) else {
        field.refuse(allowed);
        return None;
    };
    let names = nodes.iter().map(|node| node.as_str().map(str::to_owned)).collect();
    field.or_refuse(names, || allowed)
}

/// Reports the names in `hears` that no group and no BSS has, and BSSs with the name of a group.
pub(super) fn check_hearing(
    fields: &mut Fields<'_>,
    access_points: &AccessPoints,
    names: &Names<'_>,
) {
    let specs: Vec<&BssSpec> = access_points.bsss.iter().flatten().map(|(spec, _)| spec).collect();
    let bss_named = |name: &str| specs.iter().any(|spec| spec.name == name);
    for spec in &specs {
        if names.resolve(&spec.name).is_some() {
            let found = format!("a BSS with the name of a group or station, \"{}\"", spec.name);
            fields.problems.add(fields.origin, "bss", found, "another name");
        }
    }
    if access_points.bsss.iter().any(Option::is_none) {
        return; // their names are not known
    }
    for key in ["bss", "stations"] {
        let (_, lists) = with_places(list(fields, key, usize::MAX), |mut table| table.get("hears"));
        for field in lists {
            for name in field.node.as_array().unwrap_or_default() {
                let known =
                    name.as_str().is_none_or(|name| names.is_group(name) || bss_named(name));
                if !known {
                    let found = format!("the name {}", name.found());
                    field.refuse_as(found, "names of groups and BSSs");
                }
            }
        }
    }
}
