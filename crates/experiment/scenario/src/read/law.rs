//! Reads `law` of a condition: the law's name, or a table of its name and its parameters.
//!
//! The agent's configuration has the same parameters with the same ranges. A test of the lab, which
//! writes such configurations, compares both readers.

use wakeai_units::Duration;

use super::fields::{Field, Fields};
use crate::condition::{Law, LawParameters};

/// The largest target queueing delay, percent of a round.
const MOST_PERCENT: u32 = 10_000;
/// The shortest and the longest target queueing delay.
const SHORTEST_QUEUE: Duration = Duration::from_millis(1);
const LONGEST_QUEUE: Duration = Duration::from_secs(10);
/// The defaults of `queue_min` and `queue_max`, against which the other of the two is checked.
const DEFAULT_MIN: Duration = Duration::from_millis(1);
const DEFAULT_MAX: Duration = Duration::from_millis(75);

/// The keys of the parameters. All of them belong to the law `airtime`.
const PARAMETERS: [&str; 3] = ["queue_rounds_percent", "queue_min", "queue_max"];

pub(super) fn read(field: &Field<'_>) -> Option<(Law, LawParameters)> {
    if field.node.as_table().is_none() {
        return Some((name(field)?, LawParameters::default()));
    }
    let mut fields = field.table()?;
    let law = fields.require("name", "the name of a law, such as \"airtime\"");
    let law = law.and_then(|field| name(&field));
    refuse_of_others(&mut fields, law);
    let parameters = parameters(&mut fields);
    fields.finish();
    Some((law?, parameters))
}

fn name(field: &Field<'_>) -> Option<Law> {
    field.choice(&Law::ALL.map(|law| (law.name(), law)))
}

fn refuse_of_others(fields: &mut Fields<'_>, law: Option<Law>) {
    if law.is_none_or(|law| law == Law::Airtime) {
        return;
    }
    for field in PARAMETERS.into_iter().filter_map(|key| fields.get(key)) {
        field.refuse("nothing: this law has no parameters, queue_* are those of \"airtime\"");
    }
}

fn parameters(fields: &mut Fields<'_>) -> LawParameters {
    let queue = |field: &Field<'_>| field.duration(SHORTEST_QUEUE..=LONGEST_QUEUE);
    let [percent_key, min_key, max_key] = PARAMETERS;
    let queue_rounds_percent = fields.read(percent_key, |field| field.integer(1..=MOST_PERCENT));
    let queue_min = fields.read(min_key, queue);
    let most = fields.get(max_key);
    let queue_max = most.as_ref().and_then(queue);
    let (min, max) = (queue_min.unwrap_or(DEFAULT_MIN), queue_max.unwrap_or(DEFAULT_MAX));
    if min > max {
        let found = format!("queue_min {min} above queue_max {max}");
        if let Some(at_fault) = most.or_else(|| fields.get(min_key)) {
            at_fault.refuse_as(&*found, "queue_min at most queue_max");
        }
    }
    LawParameters { queue_rounds_percent, queue_min, queue_max }
}
