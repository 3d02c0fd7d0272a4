//! Reads `[access_point]` and the keys of the radio.

use std::fmt::Display;

use wakeai_units::{Bytes, Duration, Rate};
use wakeai_wifi::{
    Bss, Cell, Contention, GuardInterval, Protection, QueueDiscipline, QueueLimit, Scheduler,
    Standard, Width,
};

use super::{limit, rate};
use crate::experiment::{AccessPoint, Medium, Stack};
use wakeai_settings::{Field, Fields, quoted};

/// The longest time for which a station may keep the channel (TXOP). The EDCA parameter set counts
/// it in units of 32 us. 255 units are more than any value in the tables of the standard.
const LONGEST_TXOP: Duration = Duration::from_micros(255 * 32);

/// The access point, and its keys of contention, which are the defaults of its stations.
#[derive(Clone, Copy)]
pub(super) struct Read {
    pub(super) access_point: AccessPoint,
    pub(super) contention: ContentionKeys,
    pub(super) stack: Stack,
}

pub(super) fn access_point(fields: &mut Fields<'_>) -> Option<Read> {
    let field = fields.require("access_point", "a table with at least `standard`")?;
    let mut fields = field.table()?;
    let kinds = [("wifi", false), ("cellular", true)];
    let is_cellular = fields.read_or("medium", false, |field| field.choice(&kinds));
    if !is_cellular {
        let stacks =
            [Stack::None, Stack::Mac80211, Stack::Minstrel].map(|stack| (stack.into(), stack));
        let stack = fields.read_or("stack", Stack::None, |field| field.choice(&stacks));
        return wifi_table(fields, stack);
    }
    let buffer = buffer(&mut fields, Stack::None);
    let cell = cellular(&mut fields);
    fields.finish();
    let medium = Medium::Cellular(cell?);
    let contention = ContentionKeys::default();
    Some(Read { access_point: AccessPoint { buffer, medium }, contention, stack: Stack::None })
}

/// Reads the keys of an 802.11 access point, all of which the table has.
pub(super) fn wifi_table(mut fields: Fields<'_>, stack: Stack) -> Option<Read> {
    let buffer = buffer(&mut fields, stack);
    let read = bss(&mut fields);
    fields.finish();
    let (bss, contention) = read?;
    let access_point = AccessPoint { buffer, medium: Medium::Wifi(bss) };
    Some(Read { access_point, contention, stack })
}

fn buffer(fields: &mut Fields<'_>, stack: Stack) -> QueueLimit {
    let most = Stack::MOST_PACKETS;
    match stack {
        Stack::None => fields.read_or("buffer", QueueLimit::Packets(300), limit),
        Stack::Mac80211 | Stack::Minstrel => {
            fields.read_or("buffer", QueueLimit::Packets(most), |field| {
                field.integer(1..=most).map(QueueLimit::Packets)
            })
        }
    }
}

fn cellular(fields: &mut Fields<'_>) -> Option<Cell> {
    let allowed = "a rate such as \"50Mbit/s\"";
    let uplink = fields.require("uplink", allowed).and_then(|field| rate(&field));
    let downlink = fields.require("downlink", allowed).and_then(|field| rate(&field));
    let schedulers = [
        ("proportional-fair", Scheduler::ProportionalFair),
        ("round-robin", Scheduler::RoundRobin),
    ];
    let scheduler =
        fields.read_or("scheduler", Scheduler::default(), |field| field.choice(&schedulers));
    Some(Cell { uplink: uplink?, downlink: downlink?, scheduler })
}

/// Reads the keys of an 802.11 access point, each within the limits of its standard.
fn bss(fields: &mut Fields<'_>) -> Option<(Bss, ContentionKeys)> {
    let names = quoted(Standard::ALL.iter());
    let known = fields.require("standard", &names).and_then(|field| standard(&field));
    // If the standard is unknown, the other keys are read as for the most permissive one.
    let standard = known.unwrap_or(Standard::Ax);
    let defaults = Bss::new(standard);
    let queues = [("fifo", QueueDiscipline::Fifo), ("fq", QueueDiscipline::Fq)];
    let protections = [
        ("none", Protection::None),
        ("cts-to-self", Protection::CtsToSelf),
        ("rts-cts", Protection::RtsCts),
    ];
    let longest = Standard::Ax.longest_ampdu();
    // Keys are read, and their problems are reported, in this order.
    let mut bss = Bss {
        standard,
        queue: fields.read_or("queue", defaults.queue, |field| field.choice(&queues)),
        protection: fields
            .read_or("protection", defaults.protection, |field| field.choice(&protections)),
        rts_threshold: fields.read_or("rts_threshold", defaults.rts_threshold, |field| {
            field.size(Bytes::ZERO..=longest)
        }),
        basic_rate: fields
            .read_or("basic_rate", defaults.basic_rate, |field| legacy_rate(field, standard)),
        short_preamble: fields.read_or("preamble", false, |field| preamble(field, standard)),
        width: fields.read_or("width", defaults.width, |field| width(field, standard)),
        streams: fields.read_or("streams", defaults.streams, |field| {
            field.integer(1..=standard.most_streams())
        }),
        guard_interval: fields.read_or("guard_interval", defaults.guard_interval, |field| {
            guard_interval(field, standard)
        }),
        ampdu: fields.read_or("ampdu", defaults.ampdu, |field| {
            aggregating(field, standard)?.size(Bytes::new(1)..=standard.longest_ampdu())
        }),
        ampdu_subframes: fields.read_or("ampdu_subframes", defaults.ampdu_subframes, |field| {
            aggregating(field, standard)?.integer(1..=standard.most_subframes())
        }),
        amsdu: fields.read_or("amsdu", defaults.amsdu, |field| {
            aggregating(field, standard)?.size(Bytes::ZERO..=standard.longest_amsdu())
        }),
        retry_limit: fields
            .read_or("retry_limit", defaults.retry_limit, |field| field.integer(1..=255)),
        control_rate: fields.read("control_rate", |field| legacy_rate(field, standard)),
        contention: defaults.contention,
    };
    let keys = ContentionKeys::read(fields, standard, ContentionKeys::default());
    bss.contention = keys.resolve(standard);
    known.map(|_| (bss, keys))
}

/// The keys of a `contention` table; an absent key is `None`.
#[derive(Clone, Copy, Default)]
pub(super) struct ContentionKeys {
    aifsn: Option<u8>,
    cw_min: Option<u16>,
    cw_max: Option<u16>,
    txop: Option<Duration>,
}

impl ContentionKeys {
    /// Reads the table `contention`. Absent keys get their values from `outer`.
    pub(super) fn read(fields: &mut Fields<'_>, standard: Standard, outer: Self) -> Self {
        let Some(field) = fields.get("contention") else { return outer };
        let Some(mut fields) = field.table() else { return outer };
        let aifsns = 1..=Contention::MOST_AIFSN;
        let keys = Self {
            aifsn: fields.read("aifsn", |field| field.integer(aifsns)).or(outer.aifsn),
            cw_min: fields.read("cw_min", window).or(outer.cw_min),
            cw_max: fields.read("cw_max", window).or(outer.cw_max),
            txop: fields
                .read("txop", |field| field.duration(Duration::ZERO..=LONGEST_TXOP))
                .or(outer.txop),
        };
        fields.finish();
        let Contention { cw_min, cw_max, .. } = keys.resolve(standard);
        if cw_min > cw_max {
            let found = format!("cw_min {cw_min} above cw_max {cw_max}");
            field.refuse_as(found, "a cw_min that is at most cw_max");
        }
        keys
    }

    /// The values, with the defaults of `standard` for absent keys.
    pub(super) fn resolve(self, standard: Standard) -> Contention {
        let Self { aifsn, cw_min, cw_max, txop } = self;
        let defaults = Contention::of(standard);
        Contention {
            aifsn: aifsn.unwrap_or(defaults.aifsn),
            cw_min: cw_min.unwrap_or(defaults.cw_min),
            cw_max: cw_max.unwrap_or(defaults.cw_max),
            txop: txop.unwrap_or(defaults.txop),
        }
    }
}

pub(super) fn standard(field: &Field<'_>) -> Option<Standard> {
    field.choice(&Standard::ALL.map(|standard| (standard.into(), standard)))
}

/// A PHY rate of data frames of `standard` in `bss`. It has to be written with the rounding of the
/// standard's tables.
pub(super) fn phy_rate(field: &Field<'_>, standard: Standard, bss: &Bss) -> Option<Rate> {
    const SHOWN: usize = 8;
    let rates = bss.rates(standard);
    let found: Option<Rate> = field.parsed();
    if found.is_some_and(|found| rates.binary_search(&found).is_ok()) {
        return found;
    }
    let least = Bss { width: Width::Mhz20, ..Bss::new(standard) };
    let wanted = found.unwrap_or(least.default_rate(standard));
    let mut near = rates.clone();
    near.sort_by_key(|rate| (rate.bits_per_second().abs_diff(wanted.bits_per_second()), *rate));
    near.truncate(SHOWN);
    near.sort();
    let all = if near.len() == rates.len() { "" } else { "; the nearest of these are" };
    field.refuse(format!(
        "a rate of {standard} at the access point's width, streams and guard interval{all}: {}",
        names(&near)
    ));
    None
}

/// A rate of broadcasts and control frames.
fn legacy_rate(field: &Field<'_>, standard: Standard) -> Option<Rate> {
    let found = field.parsed().filter(|found| standard.legacy_rates().contains(found));
    field.or_refuse(found, || names(standard.legacy_rates()))
}

/// Whether frames have the short preamble, which only 802.11b has.
fn preamble(field: &Field<'_>, standard: Standard) -> Option<bool> {
    let short = field.choice(&[("long", false), ("short", true)])?;
    if short && standard != Standard::B {
        field.refuse(format!("\"long\": {standard} has no short preamble"));
        return None;
    }
    Some(short)
}

fn names(rates: &[Rate]) -> String {
    rates.iter().map(Rate::to_string).collect::<Vec<_>>().join(", ")
}

fn width(field: &Field<'_>, standard: Standard) -> Option<Width> {
    one_of(field, standard, standard.widths(), |text, width| text == width.to_string())
}

fn guard_interval(field: &Field<'_>, standard: Standard) -> Option<GuardInterval> {
    one_of(field, standard, standard.guard_intervals(), |text, interval| {
        text.parse() == Ok(interval.duration())
    })
}

/// The first of the standard's `values` for which `is_meant` holds, given the field's text.
fn one_of<T: Copy + Display>(
    field: &Field<'_>,
    standard: Standard,
    values: &[T],
    is_meant: impl Fn(&str, T) -> bool,
) -> Option<T> {
    let is_meant = |value: &T| field.node.as_str().is_some_and(|text| is_meant(text, *value));
    let found = values.iter().copied().find(is_meant);
    field.or_refuse(found, || format!("{} for {standard}", quoted(values.iter())))
}

/// The field; it is refused if `standard` does not aggregate frames.
fn aggregating<'f, 'a>(field: &'f Field<'a>, standard: Standard) -> Option<&'f Field<'a>> {
    let allowed = standard.is_qos().then_some(field);
    field.or_refuse(allowed, || format!("nothing: {standard} does not aggregate"))
}

fn window(field: &Field<'_>) -> Option<u16> {
    let window = field.integer(0..=Contention::LARGEST_WINDOW)?;
    let window = Some(window).filter(|window| (window + 1).is_power_of_two());
    field.or_refuse(window, || "one less than a power of two: 0, 1, 3, 7, 15, … 32767".to_owned())
}
