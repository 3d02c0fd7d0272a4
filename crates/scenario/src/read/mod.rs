//! From the tree to the typed experiment.

mod access_point;
mod conditions;
pub(crate) mod fields;
mod flows;
pub(crate) mod names;
pub(crate) mod problems;
mod proxied;
mod radio;
mod stations;

use wakeai_units::{Duration, Rate};
use wakeai_wifi::Wired;

use crate::experiment::Experiment;
use crate::tree::Node;
use fields::{Field, Fields};
use names::Names;
use problems::Problems;

/// The longest delay each way.
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// The slowest and the fastest rate of a wire, a flow or a maximum.
const SLOWEST: Rate = Rate::from_bps(1_000);
const FASTEST: Rate = Rate::from_mbps(1_000_000);
/// Packets in a queue.
const LONGEST_QUEUE: u32 = 1_000_000;
/// The shortest and the longest run.
const SHORTEST_RUN: Duration = Duration::from_millis(1);
const LONGEST_RUN: Duration = Duration::from_secs(1_000 * 3_600);

/// What a run's own keys say.
pub(crate) struct Span {
    pub(crate) duration: Duration,
    pub(crate) warmup: Duration,
}

/// Reads everything; `None` where it came across a problem.
pub(crate) fn experiment(root: &Node, problems: &Problems) -> Option<Experiment> {
    let table = root.as_table().expect("a document is a table");
    let mut fields = Fields::new(table, root.origin, "", problems);
    let name = fields.require("name", "a text of 1 to 100 characters").and_then(|f| title(&f));
    let span = span(&mut fields);
    let access_point = access_point::read(&mut fields);
    let wired = wired(&mut fields);
    let stations = stations::read(&mut fields, access_point.as_ref());
    let names = Names::new(&stations);
    let flows = flows::read(&mut fields, &names, &stations, &span);
    let events = conditions::events(&mut fields, &names, &stations, access_point.as_ref(), &span);
    let conditions = conditions::read(&mut fields, &names);
    fields.finish();
    if !problems.is_empty() {
        return None;
    }
    Some(Experiment {
        name: name?,
        duration: span.duration,
        warmup: span.warmup,
        access_point: access_point?.access_point,
        wired,
        flows,
        events,
        conditions,
        stations,
    })
}

fn title(field: &Field<'_>) -> Option<String> {
    const ALLOWED: &str = "a text of 1 to 100 characters, none of them control characters";
    let text = field.text(ALLOWED)?;
    let long = text.len() > 400 || text.chars().count() > 100;
    if text.trim().is_empty() || long || text.chars().any(char::is_control) {
        field.refuse(ALLOWED);
        return None;
    }
    Some(text.to_owned())
}

fn span(fields: &mut Fields<'_>) -> Span {
    let duration = fields.require("duration", "a duration such as \"600s\"");
    let duration = duration.and_then(|field| field.duration(SHORTEST_RUN..=LONGEST_RUN));
    let warmup = fields.get("warmup").and_then(|field| {
        let warmup = field.duration(Duration::ZERO..=LONGEST_RUN)?;
        if duration.is_some_and(|duration| warmup >= duration) {
            field.refuse("less than `duration`");
        }
        Some(warmup)
    });
    Span { duration: duration.unwrap_or(LONGEST_RUN), warmup: warmup.unwrap_or(Duration::ZERO) }
}

fn wired(fields: &mut Fields<'_>) -> Wired {
    let defaults = Wired::default();
    let Some(mut wired) = fields.get("wired").and_then(|field| field.table()) else {
        return defaults;
    };
    let rate = wired.get("rate").and_then(|field| field.rate(SLOWEST..=FASTEST));
    let delay = wired.get("delay").and_then(|field| delay(&field));
    let queue = wired.get("queue").and_then(|field| queue(&field));
    wired.finish();
    Wired {
        rate: rate.unwrap_or(defaults.rate),
        delay: delay.unwrap_or(defaults.delay),
        queue: queue.unwrap_or(defaults.queue),
    }
}

fn delay(field: &Field<'_>) -> Option<Duration> {
    field.duration(Duration::ZERO..=LONGEST_DELAY)
}

fn queue(field: &Field<'_>) -> Option<u32> {
    field.integer(1..=LONGEST_QUEUE)
}

/// The tables of a list that may be left out.
fn list<'a>(fields: &mut Fields<'a>, key: &'static str, most: usize) -> Vec<Fields<'a>> {
    fields.get(key).map(|field| field.tables(most)).unwrap_or_default()
}
