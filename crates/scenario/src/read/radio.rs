//! The keys of the radio: most are the access point's, for the whole BSS.

use wakeai_units::{Bytes, Duration, Rate};

use super::fields::{Field, Fields};
use crate::radio::{Contention, Standard, StationRadio};

/// The largest contention window, 2^15 - 1 slots.
const LARGEST_WINDOW: u32 = 32_767;
/// The EDCA parameter set counts a TXOP in units of 32 us; a byte of them is more than any
/// table has.
const LONGEST_TXOP: Duration = Duration::from_micros(255 * 32);

/// What the access point says about the radio; what it does not say is `None`.
#[derive(Clone, Copy, Default)]
pub(super) struct RadioKeys {
    width_mhz: Option<u32>,
    streams: Option<u32>,
    guard_interval: Option<Duration>,
    ampdu: Option<Bytes>,
    ampdu_subframes: Option<u32>,
    retry_limit: Option<u32>,
    control_rate: Option<Rate>,
    contention: ContentionKeys,
}

impl RadioKeys {
    /// Reads the access point's keys, each as its `standard` allows it.
    pub(super) fn read(fields: &mut Fields<'_>, standard: Standard) -> Self {
        Self {
            width_mhz: fields.get("width").and_then(|field| width(&field, standard)),
            streams: fields.get("streams").and_then(|f| f.integer(1..=standard.max_streams())),
            guard_interval: fields
                .get("guard_interval")
                .and_then(|field| guard_interval(&field, standard)),
            ampdu: fields.get("ampdu").and_then(|field| ampdu(field, standard)),
            ampdu_subframes: fields
                .get("ampdu_subframes")
                .and_then(|field| subframes(field, standard)),
            retry_limit: fields.get("retry_limit").and_then(|field| field.integer(1..=255)),
            control_rate: fields.get("control_rate").and_then(|field| legacy_rate(&field)),
            contention: ContentionKeys::read(fields, standard, ContentionKeys::default()),
        }
    }

    pub(super) fn control_rate(&self) -> Option<Rate> {
        self.control_rate
    }

    /// The keys of `contention` in a station's own table, completed by the access point's.
    pub(super) fn contention_of(
        &self,
        fields: &mut Fields<'_>,
        standard: Standard,
    ) -> ContentionKeys {
        ContentionKeys::read(fields, standard, self.contention)
    }

    /// The radio of a station of `standard` with every default in place, where the access point's
    /// own is `same`. A station of another standard has one stream and its own standard's width,
    /// or the access point's where that is narrower, and A-MPDUs no longer than its standard has.
    pub(super) fn resolve(
        &self,
        standard: Standard,
        same: Standard,
        contention: ContentionKeys,
    ) -> StationRadio {
        let widest = self.width_mhz.unwrap_or(same.default_width_mhz());
        let own = standard == same;
        let width_mhz = if own { widest } else { standard.default_width_mhz().min(widest) };
        let streams = self.streams.filter(|_| own).unwrap_or(1);
        let intervals = standard.guard_intervals_ns();
        let guard_interval = self
            .guard_interval
            .filter(|interval| intervals.contains(&interval.as_nanos()))
            .unwrap_or(Duration::from_nanos(intervals[0]));
        let (ampdu, ampdu_subframes) = standard.default_aggregation();
        let (most_ampdu, most_subframes) = standard.most_aggregation();
        StationRadio {
            standard,
            rate: standard.top_rate(width_mhz, streams, guard_interval),
            width_mhz,
            streams,
            guard_interval,
            ampdu: self.ampdu.unwrap_or(ampdu).min(most_ampdu),
            ampdu_subframes: self.ampdu_subframes.unwrap_or(ampdu_subframes).min(most_subframes),
            retry_limit: self.retry_limit.unwrap_or(7),
            contention: contention.or(self.contention).resolve(standard),
            given_control_rate: self.control_rate,
        }
    }

    /// The PHY rates of stations of each standard, in the order of [`Standard::ALL`]: those of
    /// every width and number of streams up to the access point's.
    pub(super) fn rates(&self, same: Standard) -> [Vec<Rate>; 5] {
        let width = self.width_mhz.unwrap_or(same.default_width_mhz());
        Standard::ALL.map(|standard| {
            let radio = self.resolve(standard, same, ContentionKeys::default());
            standard.rates(width, self.streams.unwrap_or(1), radio.guard_interval)
        })
    }
}

/// What a table says about contention; what it does not say is `None`.
#[derive(Clone, Copy, Default)]
pub(super) struct ContentionKeys {
    aifsn: Option<u32>,
    cw_min: Option<u32>,
    cw_max: Option<u32>,
    txop: Option<Duration>,
}

impl ContentionKeys {
    /// Reads `contention`; what it does not say is as in `outer` and then as in `standard`.
    fn read(fields: &mut Fields<'_>, standard: Standard, outer: Self) -> Self {
        let Some(field) = fields.get("contention") else { return Self::default() };
        let Some(mut fields) = field.table() else { return Self::default() };
        let keys = Self {
            aifsn: fields.get("aifsn").and_then(|field| field.integer(1..=15)),
            cw_min: fields.get("cw_min").and_then(|field| window(&field)),
            cw_max: fields.get("cw_max").and_then(|field| window(&field)),
            txop: fields.get("txop").and_then(|f| f.duration(Duration::ZERO..=LONGEST_TXOP)),
        };
        fields.finish();
        let Contention { cw_min, cw_max, .. } = keys.or(outer).resolve(standard);
        if cw_min > cw_max {
            let found = format!("cw_min {cw_min} above cw_max {cw_max}");
            field.refuse_as(found, "a cw_min that is at most cw_max");
        }
        keys
    }

    fn or(self, other: Self) -> Self {
        Self {
            aifsn: self.aifsn.or(other.aifsn),
            cw_min: self.cw_min.or(other.cw_min),
            cw_max: self.cw_max.or(other.cw_max),
            txop: self.txop.or(other.txop),
        }
    }

    fn resolve(self, standard: Standard) -> Contention {
        let defaults = standard.default_contention();
        Contention {
            aifsn: self.aifsn.unwrap_or(defaults.aifsn),
            cw_min: self.cw_min.unwrap_or(defaults.cw_min),
            cw_max: self.cw_max.unwrap_or(defaults.cw_max),
            txop: self.txop.unwrap_or(defaults.txop),
        }
    }
}

/// A PHY rate of data frames of `standard`: one of `rates` (ascending), written as the standard's tables round it.
pub(super) fn phy_rate(field: &Field<'_>, standard: Standard, rates: &[Rate]) -> Option<Rate> {
    const SHOWN: usize = 8;
    let found: Option<Rate> = field.node.as_str().and_then(|text| text.parse().ok());
    if found.is_some_and(|found| rates.binary_search(&found).is_ok()) {
        return found;
    }
    let wanted = found.unwrap_or(standard.top_rate(20, 1, Duration::from_nanos(800)));
    let mut near = rates.to_vec();
    near.sort_by_key(|rate| (rate.bits_per_second().abs_diff(wanted.bits_per_second()), *rate));
    near.truncate(SHOWN);
    near.sort();
    let all = if near.len() == rates.len() { "" } else { ", of which the nearest are" };
    field.refuse(format!(
        "a rate of {} at the access point's width, streams and guard interval{all}: {}",
        standard.name(),
        names(&near)
    ));
    None
}

/// A rate of broadcasts and control frames: non-HT OFDM in every standard.
pub(super) fn legacy_rate(field: &Field<'_>) -> Option<Rate> {
    let rates = Standard::A.rates(20, 1, Duration::from_nanos(800));
    let found: Option<Rate> = field.node.as_str().and_then(|text| text.parse().ok());
    let found = found.filter(|found| rates.contains(found));
    if found.is_none() {
        field.refuse(names(&rates));
    }
    found
}

fn names(rates: &[Rate]) -> String {
    rates.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn width(field: &Field<'_>, standard: Standard) -> Option<u32> {
    let widths = standard.widths_mhz();
    let text = field.node.as_str();
    let found = widths.iter().copied().find(|mhz| text == Some(format!("{mhz}MHz").as_str()));
    if found.is_none() {
        let names: Vec<String> = widths.iter().map(|mhz| format!("\"{mhz}MHz\"")).collect();
        field.refuse(format!("{} for {}", names.join(", "), standard.name()));
    }
    found
}

fn guard_interval(field: &Field<'_>, standard: Standard) -> Option<Duration> {
    let intervals = standard.guard_intervals_ns();
    let found: Option<Duration> = field.node.as_str().and_then(|text| text.parse().ok());
    let found = found.filter(|interval| intervals.contains(&interval.as_nanos()));
    if found.is_none() {
        let names: Vec<String> = intervals.iter().map(|ns| format!("\"{ns}ns\"")).collect();
        field.refuse(format!("{} for {}", names.join(", "), standard.name()));
    }
    found
}

fn ampdu(field: Field<'_>, standard: Standard) -> Option<Bytes> {
    let (most, _) = standard.most_aggregation();
    aggregating(field, standard)?.size(Bytes::new(1)..=most)
}

fn subframes(field: Field<'_>, standard: Standard) -> Option<u32> {
    let (_, most) = standard.most_aggregation();
    aggregating(field, standard)?.integer(1..=most)
}

fn aggregating(field: Field<'_>, standard: Standard) -> Option<Field<'_>> {
    if standard.aggregates() {
        return Some(field);
    }
    field.refuse(format!("nothing: {} does not aggregate", standard.name()));
    None
}

fn window(field: &Field<'_>) -> Option<u32> {
    let window = field.integer(0..=LARGEST_WINDOW)?;
    if !(window + 1).is_power_of_two() {
        field.refuse("one less than a power of two: 0, 1, 3, 7, 15, … 32767");
        return None;
    }
    Some(window)
}
