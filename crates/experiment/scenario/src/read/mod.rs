//! Turns the tree of the file's values into the typed experiment.

mod bss;
mod conditions;
mod flows;
pub(crate) mod names;
mod radio;
mod stations;

use wakeai_settings::{Field, Fields, Finding, Origin, Problems, Table};
use wakeai_units::{Bytes, Duration, Rate};
use wakeai_wifi::{QueueLimit, Wired};

use crate::experiment::{BssSpec, Experiment, StationGroup};
use names::Names;

/// The longest delay in each direction.
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// The slowest and the fastest rate of a wire, a flow or a maximum.
const SLOWEST: Rate = Rate::from_bps(1_000);
const FASTEST: Rate = Rate::from_mbps(1_000_000);
/// The largest number of packets that a queue may hold.
const LONGEST_QUEUE: u32 = 1_000_000;
/// The smallest and the largest number of bytes that a queue may hold: the longest packet of the
/// medium, and a million packets of 1500 bytes.
const LEAST_BYTES: Bytes = Bytes::new(2_296);
const MOST_BYTES: Bytes = Bytes::new(1_500_000_000);
/// The shortest and the longest run.
const SHORTEST_RUN: Duration = Duration::from_millis(1);
const LONGEST_RUN: Duration = Duration::from_secs(1_000 * 3_600);

/// The length of a run and of its warmup.
pub(crate) struct Span {
    pub(crate) duration: Duration,
    pub(crate) warmup: Duration,
}

/// The values against which flows and events are checked.
struct Context<'a> {
    names: &'a Names<'a>,
    groups: &'a [StationGroup],
    /// The access points that were read: `[access_point]`, or one for each `[[bss]]`.
    access_points: &'a AccessPoints,
    span: &'a Span,
}

/// The access points of a scenario. One that could not be read is `None`.
struct AccessPoints {
    /// That of `[access_point]`.
    plain: Option<radio::Read>,
    /// The entries of `[[bss]]`.
    bsss: Vec<Option<(BssSpec, radio::Read)>>,
}

impl AccessPoints {
    /// The access point of the stations with this `bss`.
    fn of(&self, bss: usize) -> Option<&radio::Read> {
        match self.bsss.get(bss) {
            Some(entry) => entry.as_ref().map(|(_, read)| read),
            None => self.plain.as_ref(),
        }
    }
}

/// Reads the whole experiment, and reports all its problems.
pub(crate) fn experiment(root: &Table, problems: Problems) -> Result<Experiment, Vec<Finding>> {
    let mut fields = Fields::new(root, Origin::START, "", &problems);
    let name = fields.require("name", "a text of 1 to 100 characters").and_then(|f| title(&f));
    let span = span(&mut fields);
    let access_point = radio::access_point(&mut fields);
    let wired =
        fields.get("wired").map_or_else(Wired::default, |field| wired(&field, Wired::default()));
    let bsss = bss::read(&mut fields, root, access_point.as_ref(), wired);
    let access_points = AccessPoints { plain: access_point, bsss };
    let stations = stations::read(&mut fields, &access_points);
    let names = Names::new(&stations);
    bss::check_hearing(&mut fields, &access_points, &names);
    let context =
        Context { names: &names, groups: &stations, access_points: &access_points, span: &span };
    let flows = flows::read(&mut fields, &context);
    let events = conditions::events(&mut fields, &context);
    let conditions = conditions::read(&mut fields, &names);
    fields.finish();
    problems.check()?;
    Ok(Experiment {
        name: name.expect("its absence is a problem"),
        duration: span.duration,
        warmup: span.warmup,
        access_point: access_points.plain.expect("its absence is a problem").access_point,
        wired,
        stack: access_points.plain.expect("its absence is a problem").stack,
        bsss: access_points.bsss.into_iter().flatten().map(|(spec, _)| spec).collect(),
        flows,
        events,
        conditions,
        stations,
    })
}

fn title(field: &Field<'_>) -> Option<String> {
    let title =
        field.text_if("a text of 1 to 100 characters, none of them control characters", |text| {
            !text.trim().is_empty()
                && text.len() <= 400
                && text.chars().count() <= 100
                && !text.chars().any(char::is_control)
        });
    title.map(str::to_owned)
}

fn span(fields: &mut Fields<'_>) -> Span {
    let duration = fields.require("duration", "a duration such as \"600s\"");
    let duration = duration.and_then(|field| field.duration(SHORTEST_RUN..=LONGEST_RUN));
    let warmup = fields.read_or("warmup", Duration::ZERO, |field| {
        let warmup = field.duration(Duration::ZERO..=LONGEST_RUN)?;
        if duration.is_some_and(|duration| warmup >= duration) {
            field.refuse("less than `duration`");
        }
        Some(warmup)
    });
    Span { duration: duration.unwrap_or(LONGEST_RUN), warmup }
}

/// Reads a table `wired`. Absent keys have the values of `defaults`.
fn wired(field: &Field<'_>, defaults: Wired) -> Wired {
    let Some(mut wired) = field.table() else { return defaults };
    let read = Wired {
        rate: wired.read_or("rate", defaults.rate, rate),
        delay: wired.read_or("delay", defaults.delay, delay),
        queue: wired.read_or("queue", defaults.queue, limit),
        loss_ppm: wired.read_or("loss", defaults.loss_ppm, Field::parts_per_million),
    };
    wired.finish();
    read
}

fn rate(field: &Field<'_>) -> Option<Rate> {
    field.rate(SLOWEST..=FASTEST)
}

fn delay(field: &Field<'_>) -> Option<Duration> {
    field.duration(Duration::ZERO..=LONGEST_DELAY)
}

fn queue(field: &Field<'_>) -> Option<u32> {
    field.integer(1..=LONGEST_QUEUE)
}

/// The limit of a queue: packets as an integer, or bytes as a size such as "450kB".
fn limit(field: &Field<'_>) -> Option<QueueLimit> {
    if field.is_text() {
        return field.size(LEAST_BYTES..=MOST_BYTES).map(QueueLimit::Bytes);
    }
    queue(field).map(QueueLimit::Packets)
}

/// The place of a table in the file.
type TablePlace = (Origin, String);

/// What `read` makes of those tables that it can read, and the place of each.
fn with_places<'a, T>(
    tables: Vec<Fields<'a>>,
    read: impl Fn(Fields<'a>) -> Option<T>,
) -> (Vec<TablePlace>, Vec<T>) {
    let placed = tables.into_iter().filter_map(|table| {
        let place = (table.origin, table.path.clone());
        Some((place, read(table)?))
    });
    placed.unzip()
}

/// The tables of the list `key`, which may be absent.
fn list<'a>(fields: &mut Fields<'a>, key: &'static str, most: usize) -> Vec<Fields<'a>> {
    fields.get(key).map(|field| field.tables(most)).unwrap_or_default()
}
