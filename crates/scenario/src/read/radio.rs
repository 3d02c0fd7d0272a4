//! The keys of the radio: most are the access point's, for the whole BSS.

use std::fmt::Display;

use wakeai_units::{Bytes, Duration, Rate};
use wakeai_wifi::{
    Bss, Contention, GuardInterval, LEGACY_RATES, Protection, QueueDiscipline, Standard, Width,
};

use super::fields::{Field, Fields};

/// The EDCA parameter set counts a TXOP in units of 32 us; a byte of them is more than any
/// table has.
const LONGEST_TXOP: Duration = Duration::from_micros(255 * 32);

/// Reads the keys of an 802.11 access point, each as its standard allows it, and what it says about
/// contention.
pub(super) fn bss(fields: &mut Fields<'_>) -> Option<(Bss, ContentionKeys)> {
    let names = Standard::ALL.map(|standard| format!("\"{standard}\"")).join(", ");
    let known = fields.require("standard", &names).and_then(|field| standard(&field));
    // Without a known standard the others are read as for the most permissive one.
    let standard = known.unwrap_or(Standard::Ax);
    let defaults = Bss::new(standard);
    let queues = [("fifo", QueueDiscipline::Fifo), ("fq", QueueDiscipline::Fq)];
    let protections = [
        ("none", Protection::None),
        ("cts-to-self", Protection::CtsToSelf),
        ("rts-cts", Protection::RtsCts),
    ];
    let longest = Standard::Ax.longest_ampdu();
    // The keys are read in this order, which is that of the messages.
    let mut bss = Bss {
        standard,
        queue: fields.get("queue").and_then(|f| f.choice(&queues)).unwrap_or(defaults.queue),
        protection: fields
            .get("protection")
            .and_then(|field| field.choice(&protections))
            .unwrap_or(defaults.protection),
        rts_threshold: fields
            .get("rts_threshold")
            .and_then(|field| field.size(Bytes::ZERO..=longest))
            .unwrap_or(defaults.rts_threshold),
        basic_rate: fields
            .get("basic_rate")
            .and_then(|field| legacy_rate(&field))
            .unwrap_or(defaults.basic_rate),
        width: fields
            .get("width")
            .and_then(|field| width(&field, standard))
            .unwrap_or(defaults.width),
        streams: fields
            .get("streams")
            .and_then(|field| field.integer(1..=standard.most_streams()))
            .unwrap_or(defaults.streams),
        guard_interval: fields
            .get("guard_interval")
            .and_then(|field| guard_interval(&field, standard))
            .unwrap_or(defaults.guard_interval),
        ampdu: fields
            .get("ampdu")
            .and_then(|field| aggregating(field, standard))
            .and_then(|field| field.size(Bytes::new(1)..=standard.longest_ampdu()))
            .unwrap_or(defaults.ampdu),
        ampdu_subframes: fields
            .get("ampdu_subframes")
            .and_then(|field| aggregating(field, standard))
            .and_then(|field| field.integer(1..=standard.most_subframes()))
            .unwrap_or(defaults.ampdu_subframes),
        retry_limit: fields
            .get("retry_limit")
            .and_then(|field| field.integer(1..=255))
            .unwrap_or(defaults.retry_limit),
        control_rate: fields.get("control_rate").and_then(|field| legacy_rate(&field)),
        contention: defaults.contention,
    };
    let keys = ContentionKeys::read(fields, standard, ContentionKeys::default());
    bss.contention = keys.resolve(standard);
    known.map(|_| (bss, keys))
}

/// What a table says about contention; what it does not say is `None`.
#[derive(Clone, Copy, Default)]
pub(super) struct ContentionKeys {
    aifsn: Option<u8>,
    cw_min: Option<u16>,
    cw_max: Option<u16>,
    txop: Option<Duration>,
}

impl ContentionKeys {
    /// Reads `contention`, completed by `outer`; what neither says is as in `standard`.
    pub(super) fn read(fields: &mut Fields<'_>, standard: Standard, outer: Self) -> Self {
        let Some(field) = fields.get("contention") else { return outer };
        let Some(mut fields) = field.table() else { return outer };
        let aifsn = fields.get("aifsn").and_then(|f| f.integer(1..=Contention::MOST_AIFSN));
        let cw_min = fields.get("cw_min").and_then(|field| window(&field));
        let cw_max = fields.get("cw_max").and_then(|field| window(&field));
        let txop = fields.get("txop").and_then(|f| f.duration(Duration::ZERO..=LONGEST_TXOP));
        fields.finish();
        let keys = Self {
            aifsn: aifsn.or(outer.aifsn),
            cw_min: cw_min.or(outer.cw_min),
            cw_max: cw_max.or(outer.cw_max),
            txop: txop.or(outer.txop),
        };
        let Contention { cw_min, cw_max, .. } = keys.resolve(standard);
        if cw_min > cw_max {
            let found = format!("cw_min {cw_min} above cw_max {cw_max}");
            field.refuse_as(found, "a cw_min that is at most cw_max");
        }
        keys
    }

    /// With the defaults of `standard` for what is not said.
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
    field.choice(&Standard::ALL.map(|standard| (standard.name(), standard)))
}

/// A PHY rate of data frames of `standard` in `bss`, written as the standard's tables round it.
pub(super) fn phy_rate(field: &Field<'_>, standard: Standard, bss: &Bss) -> Option<Rate> {
    const SHOWN: usize = 8;
    let rates = bss.rates(standard);
    let found: Option<Rate> = field.node.as_str().and_then(|text| text.parse().ok());
    if found.is_some_and(|found| rates.binary_search(&found).is_ok()) {
        return found;
    }
    let least = Bss { width: Width::Mhz20, ..Bss::new(standard) };
    let wanted = found.unwrap_or(least.default_rate(standard));
    let mut near = rates.clone();
    near.sort_by_key(|rate| (rate.bits_per_second().abs_diff(wanted.bits_per_second()), *rate));
    near.truncate(SHOWN);
    near.sort();
    let all = if near.len() == rates.len() { "" } else { ", of which the nearest are" };
    field.refuse(format!(
        "a rate of {standard} at the access point's width, streams and guard interval{all}: {}",
        names(&near)
    ));
    None
}

/// A rate of broadcasts and control frames: non-HT OFDM in every standard.
fn legacy_rate(field: &Field<'_>) -> Option<Rate> {
    let found: Option<Rate> = field.node.as_str().and_then(|text| text.parse().ok());
    let found = found.filter(|found| LEGACY_RATES.contains(found));
    if found.is_none() {
        field.refuse(names(&LEGACY_RATES));
    }
    found
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

/// One of the values that `standard` has; `is_meant` says whether a text means one of them.
fn one_of<T: Copy + Display>(
    field: &Field<'_>,
    standard: Standard,
    values: &[T],
    is_meant: impl Fn(&str, T) -> bool,
) -> Option<T> {
    let text = field.node.as_str();
    let found =
        values.iter().copied().find(|value| text.is_some_and(|text| is_meant(text, *value)));
    if found.is_none() {
        let names: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
        field.refuse(format!("{} for {standard}", names.join(", ")));
    }
    found
}

fn aggregating(field: Field<'_>, standard: Standard) -> Option<Field<'_>> {
    if standard.is_qos() {
        return Some(field);
    }
    field.refuse(format!("nothing: {standard} does not aggregate"));
    None
}

fn window(field: &Field<'_>) -> Option<u16> {
    let window = field.integer(0..=Contention::LARGEST_WINDOW)?;
    if !(window + 1).is_power_of_two() {
        field.refuse("one less than a power of two: 0, 1, 3, 7, 15, … 32767");
        return None;
    }
    Some(window)
}
