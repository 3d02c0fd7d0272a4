//! Reads `[[conditions]]` and `[[events]]`.

use std::collections::BTreeSet;

use wakeai_control::laws::{LawConfig, LawName, LawPlace};
use wakeai_settings::{Field, Fields, inline};
use wakeai_units::{Duration, Rate};

use super::flows::selector;
use super::names::{Names, overlap};
use super::radio::phy_rate;
use super::{Context, LONGEST_RUN, delay, list};
use crate::experiment::{Condition, EventSpec, LawRule, Selector};
use crate::set;

/// The largest number of conditions in a file. There is a limit, because each condition is read by
/// itself with its `set` applied.
const MOST_CONDITIONS: usize = 100;
/// The largest number of keys in one `set`.
const MOST_SET: usize = 200;
/// The largest number of rules in `bounds` and of names in `agents`.
const MOST_RULES: usize = 1_000;
const MOST_EVENTS: usize = 10_000;

const STATIONS: &str = "the name of a group or of one station";

pub(super) fn events(fields: &mut Fields<'_>, context: &Context<'_>) -> Vec<EventSpec> {
    let tables = list(fields, "events", MOST_EVENTS);
    tables.into_iter().filter_map(|table| event(table, context)).collect()
}

fn event(mut fields: Fields<'_>, context: &Context<'_>) -> Option<EventSpec> {
    let at = fields.require("at", "a duration such as \"60s\"").and_then(|field| {
        let at = field.duration(Duration::ZERO..=LONGEST_RUN)?;
        if at >= context.span.duration {
            field.refuse(format!("less than `duration`, {}", context.span.duration));
        }
        Some(at)
    });
    let stations = fields.require("station", STATIONS);
    let stations = stations.and_then(|field| selector(&field, context.names, STATIONS));
    let wired_delay = fields.get("wired_delay").map(|field| delay(&field));
    let rate = fields.get("rate").map(|field| new_rate(&field, context, stations));
    let losses = fields.get("frame_error_rate");
    let losses = losses.map(|field| context.on_wifi(&field)?.parts_per_million());
    if wired_delay.is_none() && rate.is_none() && losses.is_none() {
        let allowed = "at least one of wired_delay, rate, frame_error_rate";
        fields.problems.add(fields.origin, &fields.path, "nothing that changes", allowed);
    }
    fields.finish();
    Some(EventSpec {
        at: at?,
        stations: stations?,
        wired_delay: wired_delay.flatten(),
        rate: rate.flatten(),
        frame_error_ppm: losses.flatten(),
    })
}

impl Context<'_> {
    /// The field; on a cellular link it is refused.
    fn on_wifi<'f, 'a>(&self, field: &'f Field<'a>) -> Option<&'f Field<'a>> {
        let plain = self.access_points.plain.as_ref();
        let is_wifi = plain.is_none_or(|read| read.access_point.wifi().is_some());
        field.or_refuse(is_wifi.then_some(field), || {
            "nothing on a cellular link: no frame errors, and one rate for all stations".to_owned()
        })
    }
}

/// The PHY rate that an event gives to `stations`.
fn new_rate(field: &Field<'_>, context: &Context<'_>, stations: Option<Selector>) -> Option<Rate> {
    context.on_wifi(field)?;
    let group = &context.groups[stations?.group];
    let bss = context.access_points.of(group.bss)?.access_point.wifi()?;
    phy_rate(field, group.radio?.standard, bss)
}

pub(super) fn read(fields: &mut Fields<'_>, names: &Names<'_>) -> Vec<Condition> {
    let tables = list(fields, "conditions", MOST_CONDITIONS);
    let mut seen = BTreeSet::new();
    let conditions: Vec<Condition> =
        tables.into_iter().filter_map(|table| condition(table, names, &mut seen)).collect();
    if conditions.is_empty() {
        return vec![Condition { name: "default".to_owned(), ..Condition::default() }];
    }
    conditions
}

fn condition(
    mut fields: Fields<'_>,
    names: &Names<'_>,
    seen: &mut BTreeSet<String>,
) -> Option<Condition> {
    const NAME: &str = "1 to 32 of A-Z, a-z, 0-9, - and _, a name that no other condition has";
    let name = fields.require("name", NAME).and_then(|field| {
        field.text_if(NAME, |name| wakeai_settings::is_name(name) && seen.insert(name.to_owned()))
    });
    let law = fields.get("law");
    let law_key = law.is_some();
    let law = law.and_then(|field| LawConfig::read(&field, LawPlace::Condition)).flatten();
    let law_name = law.as_ref().map(LawConfig::name);
    let agents = fields.get("agents").map(|field| {
        if !law_key {
            field.refuse("nothing without `law`: agents run where a condition has one");
        }
        let each = field.one_or_more(MOST_RULES).into_iter();
        each.filter_map(|field| selector(&field, names, STATIONS)).collect()
    });
    let laws = laws(&mut fields, names, law_name, law_key);
    let bounds = bounds(&mut fields, names, law_name, law_key);
    let set = set_keys(&mut fields);
    fields.finish();
    let agents = agents.unwrap_or_default();
    Some(Condition { name: name?.to_owned(), law, agents, laws, bounds, set })
}

/// Reads the stations with another law than the condition's.
fn laws(
    fields: &mut Fields<'_>,
    names: &Names<'_>,
    law: Option<LawName>,
    law_key: bool,
) -> Vec<LawRule> {
    let Some(field) = fields.get("laws") else { return Vec::new() };
    if !law_key {
        field.refuse("nothing without `law`: agents run where a condition has one");
    } else if law == Some(LawName::Fixed) {
        field.refuse("nothing beside the law \"fixed\", whose `bounds` are for each station");
    }
    let mut rules: Vec<LawRule> = Vec::new();
    for mut table in field.tables(MOST_RULES) {
        let stations = table.require("stations", STATIONS);
        let law = table.require("law", "a law, as `law` of the condition");
        let law = law.and_then(|field| {
            let law = LawConfig::read(&field, LawPlace::Condition).flatten()?;
            let without_bounds = (law.name() != LawName::Fixed).then_some(law);
            field.or_refuse(without_bounds, || "a law that needs no `bounds`".to_owned())
        });
        add(&mut rules, stations.as_ref(), law.as_ref(), names);
        table.finish();
    }
    rules
}

fn bounds(
    fields: &mut Fields<'_>,
    names: &Names<'_>,
    law: Option<LawName>,
    law_key: bool,
) -> Vec<LawRule> {
    let Some(field) = fields.get("bounds") else {
        if law == Some(LawName::Fixed) {
            let path = format!("{}.bounds", fields.path);
            let allowed = "the bounds of the law \"fixed\", such as \
                           [{ stations = \"tablet\", floor = 1, ceiling = 50 }]";
            fields.problems.add(fields.origin, path, "nothing: it is required", allowed);
        }
        return Vec::new();
    };
    if law != Some(LawName::Fixed) && (law.is_some() || !law_key) {
        field.refuse("nothing: bounds by hand belong to the law \"fixed\"");
    }
    let tables = field.tables(MOST_RULES);
    if tables.is_empty() && law == Some(LawName::Fixed) {
        field.refuse_as("no rule that can be read", "at least one { stations, floor, ceiling }");
    }
    let mut rules = Vec::new();
    for mut table in tables {
        let stations = table.require("stations", STATIONS);
        let bounds = LawConfig::read_bounds(&mut table);
        add(&mut rules, stations.as_ref(), Some(&bounds), names);
        table.finish();
    }
    rules
}

/// Adds a rule for each station or group that `stations` names.
fn add(
    rules: &mut Vec<LawRule>,
    stations: Option<&Field<'_>>,
    law: Option<&LawConfig>,
    names: &Names<'_>,
) {
    for field in stations.iter().flat_map(|field| field.one_or_more(MOST_RULES)) {
        let Some(stations) = selector(&field, names, STATIONS) else { continue };
        if rules.iter().any(|rule| overlap(rule.stations, stations)) {
            let found = format!("{}, which an earlier rule has already", field.node.found());
            field.refuse_as(found, "each station in at most one rule");
        }
        if let Some(law) = law.filter(|_| rules.len() < MOST_RULES) {
            rules.push(LawRule { stations, law: law.clone() });
        }
    }
}

/// The keys of `set`, and their values as text. [`set::set`] applies them to the tree.
fn set_keys(fields: &mut Fields<'_>) -> Vec<(String, String)> {
    let Some(field) = fields.get("set") else { return Vec::new() };
    let Some(table) = field.node.as_table() else {
        field.refuse("a table of keys and values, such as { \"flows.1.size\" = \"10MB\" }");
        return Vec::new();
    };
    let flat = set::flatten(table);
    if flat.len() > MOST_SET {
        let allowed = format!("at most {MOST_SET} keys");
        field.refuse_as(format!("{} keys", flat.len()), allowed);
        return Vec::new();
    }
    for (path, node) in &flat {
        let first = path.split('.').next().unwrap_or_default();
        if matches!(first, "name" | "conditions") {
            let allowed = "a key of the experiment other than `name` and `conditions`";
            fields.problems.add(node.origin, &field.path, first, allowed);
        }
    }
    flat.into_iter().map(|(path, node)| (path, inline(&node))).collect()
}
