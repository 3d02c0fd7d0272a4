//! The names in the guide, the alerts and the dashboard are those that are served.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::page::{all, families, repository};

/// The rows of the guide's tables of figures: name, type, meaning.
fn documented() -> BTreeMap<String, (String, String)> {
    let guide = fs::read_to_string(repository("docs/guides/metrics.md")).unwrap();
    let rows = guide.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("| `wakeai_")?.split_once("` | ")?;
        let (kind, help) = rest.trim_end_matches(" |").split_once(" | ")?;
        Some((format!("wakeai_{name}"), (kind.to_owned(), help.to_owned())))
    });
    rows.collect()
}

/// The names of our figures in an expression.
fn names(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("wakeai_")).map(str::to_owned).collect()
}

/// Whether a family has samples of this name.
fn is_sample(documented: &BTreeMap<String, (String, String)>, name: &str) -> bool {
    let of_histogram = ["_bucket", "_sum", "_count"].iter().any(|ending| {
        let family = name.strip_suffix(ending).and_then(|family| documented.get(family));
        family.is_some_and(|(kind, _)| kind == "histogram")
    });
    of_histogram || documented.get(name).is_some_and(|(kind, _)| kind != "histogram")
}

#[test]
fn the_guide_lists_every_figure_that_is_served_and_no_other() {
    let documented = documented();
    for (program, page) in all() {
        let prefix = format!("wakeai_{program}_");
        let of_program = documented.iter().filter(|(name, _)| name.starts_with(&prefix));
        let listed: BTreeMap<_, _> =
            of_program.map(|(name, of)| (name.clone(), of.clone())).collect();
        assert_eq!(families(&page), listed, "{program}");
    }
}

#[test]
fn alerts_and_dashboard_ask_for_figures_that_are_served() {
    let documented = documented();
    assert!(documented.len() > 60, "{}", documented.len());
    let alerts = fs::read_to_string(repository("packaging/prometheus/alerts.yml")).unwrap();
    let dashboard = fs::read_to_string(repository("packaging/grafana/wakeai.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let queries: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    assert!(queries.len() > 15, "{}", queries.len());
    for query in &queries {
        assert!(!names(query).is_empty(), "{query}");
    }
    for name in names(&(alerts + " " + &queries.join(" "))) {
        assert!(is_sample(&documented, &name), "{name} is not served");
    }
}
