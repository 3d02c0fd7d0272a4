//! The keys that the reader reads. They come from its error for an unknown key, which lists all
//! keys.

use std::collections::BTreeSet;

use wakeai_scenario::Scenario;

use super::page;

/// The tables: for each, the prefix of its keys here, and its path in the page's last example.
const TABLES: [(&str, &str); 16] = [
    ("access_point.", "access_point"),
    ("access_point.contention.", "access_point.contention"),
    ("wired.", "wired"),
    ("bss[].", "bss.near"),
    ("bss[].contention.", "bss.near.contention"),
    ("bss[].wired.", "bss.near.wired"),
    ("stations[].", "stations.tablet"),
    ("stations[].contention.", "stations.tablet.contention"),
    ("stations[].announces.", "stations.tablet.announces"),
    ("flows[].", "flows.1"),
    ("events[].", "events.1"),
    ("conditions[].", "conditions.capped"),
    ("conditions[].law.", "conditions.shorter.law"),
    ("conditions[].laws[].", "conditions.shorter.laws.1"),
    ("conditions[].bounds[].", "conditions.capped.bounds.1"),
    ("", ""),
];

/// An access point of the other kind.
const CELLULAR: (&str, &str) =
    ("access_point", "{ medium = \"cellular\", uplink = \"1Mbit/s\", downlink = \"1Mbit/s\" }");

/// Every key that is read, written as in [`page::keys`], without the tables that have a section.
pub(crate) fn keys() -> BTreeSet<String> {
    let mut keys: BTreeSet<String> = TABLES
        .into_iter()
        .flat_map(|(prefix, table)| {
            of_table(table, &[]).into_iter().map(move |key| format!("{prefix}{key}"))
        })
        .collect();
    let cellular = of_table("access_point", &[CELLULAR]);
    keys.extend(cellular.into_iter().map(|key| format!("access_point.{key}")));
    // Tables are removed from the list, because their keys are in it.
    let tables = [
        "access_point.contention",
        "bss[].contention",
        "bss[].wired",
        "stations[].contention",
        "stations[].announces",
    ];
    let tables = tables.map(str::to_owned);
    for table in tables.into_iter().chain(page::tables()) {
        assert!(keys.remove(&table), "{table} is a table");
    }
    keys
}

/// The keys that a table of the page's last example may have.
pub(crate) fn of_table(table: &str, overrides: &[(&str, &str)]) -> Vec<String> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let mut overrides: Vec<(String, String)> = overrides.iter().map(owned).collect();
    let prefix = if table.is_empty() { String::new() } else { format!("{table}.") };
    overrides.push((format!("{prefix}unheard-of-key-of-no-table"), "1".to_owned()));
    let scenario = Scenario::parse(page::examples().last().unwrap()).unwrap();
    let error = scenario.with_overrides(&overrides).unwrap_err();
    let unheard =
        error.problems().iter().find(|problem| problem.key.ends_with("unheard-of-key-of-no-table"));
    let unheard = unheard.unwrap_or_else(|| panic!("{table}: {error}"));
    assert_eq!(unheard.found, "an unknown key", "{table}");
    let keys: Vec<String> = unheard.allowed.split(", ").map(ToOwned::to_owned).collect();
    assert!(keys.len() >= 2, "{table}: {keys:?}");
    keys
}
