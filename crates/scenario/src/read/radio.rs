//! The keys of a radio, which the access point and every group of stations may have.

use wakeai_units::{Bytes, Duration, Rate};

use super::fields::{Field, Fields};
use crate::radio::{Contention, Standard, StationRadio};

/// PHY rates. The fastest is more than 802.11ax's 9.6 Gbit/s with eight streams.
const SLOWEST: Rate = Rate::from_bps(100_000);
const FASTEST: Rate = Rate::from_mbps(10_000);

/// The largest contention window, 2^15 - 1 slots.
const LARGEST_WINDOW: u32 = 32_767;

/// What one table says about a radio; what it does not say is `None`.
#[derive(Clone, Copy, Default)]
pub(super) struct RadioKeys {
    width_mhz: Option<u32>,
    streams: Option<u32>,
    guard_interval: Option<Duration>,
    ampdu: Option<Bytes>,
    ampdu_subframes: Option<u32>,
    ppdu_time: Option<Duration>,
    retry_limit: Option<u32>,
    aifsn: Option<u32>,
    cw_min: Option<u32>,
    cw_max: Option<u32>,
    txop: Option<Duration>,
    control_rate: Option<Rate>,
}

impl RadioKeys {
    /// These keys with the access point's `control_rate`.
    pub(super) fn with_control_rate(self, control_rate: Option<Rate>) -> Self {
        Self { control_rate, ..self }
    }
}

/// All of these keys but `control_rate`, which only the access point has.
pub(super) const KEYS: [&str; 8] = [
    "width",
    "streams",
    "guard_interval",
    "ampdu",
    "ampdu_subframes",
    "ppdu_time",
    "retry_limit",
    "contention",
];

impl RadioKeys {
    /// Reads [`KEYS`], each as `standard` allows it.
    pub(super) fn read(fields: &mut Fields<'_>, standard: Standard) -> Self {
        let mut keys = Self {
            width_mhz: fields.get("width").and_then(|field| width(&field, standard)),
            streams: fields.get("streams").and_then(|f| f.integer(1..=standard.max_streams())),
            guard_interval: fields
                .get("guard_interval")
                .and_then(|field| guard_interval(&field, standard)),
            ampdu: fields.get("ampdu").and_then(|field| ampdu(field, standard)),
            ampdu_subframes: fields
                .get("ampdu_subframes")
                .and_then(|field| aggregating(field, standard)?.integer(1..=subframes(standard))),
            ppdu_time: fields.get("ppdu_time").and_then(|field| {
                field.duration(Duration::from_micros(100)..=Duration::from_millis(10))
            }),
            retry_limit: fields.get("retry_limit").and_then(|field| field.integer(1..=255)),
            ..Self::default()
        };
        if let Some(contention) = fields.get("contention") {
            keys.read_contention(&contention, standard);
        }
        keys
    }

    fn read_contention(&mut self, field: &Field<'_>, standard: Standard) {
        let Some(mut fields) = field.table() else { return };
        self.aifsn = fields.get("aifsn").and_then(|field| field.integer(1..=15));
        self.cw_min = fields.get("cw_min").and_then(|field| window(&field));
        self.cw_max = fields.get("cw_max").and_then(|field| window(&field));
        // The EDCA parameter set counts units of 32 us; a byte of them is more than any table has.
        let longest = Duration::from_micros(255 * 32);
        self.txop = fields.get("txop").and_then(|field| field.duration(Duration::ZERO..=longest));
        fields.finish();
        let Contention { cw_min, cw_max, .. } = self.contention(standard);
        if cw_min > cw_max {
            field.refuse_as(
                format!("cw_min {cw_min} above cw_max {cw_max}"),
                "a cw_min that is at most cw_max",
            );
        }
    }

    /// These keys, and where they say nothing those of `other`.
    fn or(self, other: Self) -> Self {
        Self {
            width_mhz: self.width_mhz.or(other.width_mhz),
            streams: self.streams.or(other.streams),
            guard_interval: self.guard_interval.or(other.guard_interval),
            ampdu: self.ampdu.or(other.ampdu),
            ampdu_subframes: self.ampdu_subframes.or(other.ampdu_subframes),
            ppdu_time: self.ppdu_time.or(other.ppdu_time),
            retry_limit: self.retry_limit.or(other.retry_limit),
            aifsn: self.aifsn.or(other.aifsn),
            cw_min: self.cw_min.or(other.cw_min),
            cw_max: self.cw_max.or(other.cw_max),
            txop: self.txop.or(other.txop),
            control_rate: self.control_rate.or(other.control_rate),
        }
    }

    /// These keys of a station, completed by the access point's `other`: of what belongs to a
    /// standard only where both have the same one.
    pub(super) fn within(self, other: Self, same_standard: bool) -> Self {
        let common = Self {
            width_mhz: None,
            streams: None,
            guard_interval: None,
            ampdu: None,
            ampdu_subframes: None,
            ..other
        };
        self.or(if same_standard { other } else { common })
    }

    pub(super) fn contention(&self, standard: Standard) -> Contention {
        let defaults = standard.default_contention();
        Contention {
            aifsn: self.aifsn.unwrap_or(defaults.aifsn),
            cw_min: self.cw_min.unwrap_or(defaults.cw_min),
            cw_max: self.cw_max.unwrap_or(defaults.cw_max),
            txop: self.txop.unwrap_or(defaults.txop),
        }
    }

    /// A radio with every default in place; without `rate`, at the highest of its setting.
    pub(super) fn resolve(&self, standard: Standard, rate: Option<Rate>) -> StationRadio {
        let width_mhz = self.width_mhz.unwrap_or(standard.default_width_mhz());
        let streams = self.streams.unwrap_or(1);
        let guard_interval =
            self.guard_interval.unwrap_or(Duration::from_nanos(standard.guard_intervals_ns()[0]));
        let (ampdu, ampdu_subframes) = standard.default_aggregation();
        StationRadio {
            standard,
            rate: rate.unwrap_or_else(|| standard.top_rate(width_mhz, streams, guard_interval)),
            width_mhz,
            streams,
            guard_interval,
            ampdu: self.ampdu.unwrap_or(ampdu),
            ampdu_subframes: self.ampdu_subframes.unwrap_or(ampdu_subframes),
            ppdu_time: self.ppdu_time.unwrap_or(Duration::from_micros(5_484)),
            retry_limit: self.retry_limit.unwrap_or(7),
            contention: self.contention(standard),
            given_control_rate: self.control_rate,
        }
    }
}

/// A PHY rate: any that is sane, so that a rate of one's own device can be tried.
pub(super) fn phy_rate(field: &Field<'_>) -> Option<Rate> {
    field.rate(SLOWEST..=FASTEST)
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
    // 802.11-2020, 9.4.2.55.3, 9.4.2.157.2, and 802.11ax, 9.4.2.248.2.
    let most = match standard {
        Standard::A | Standard::G | Standard::N => 65_535,
        Standard::Ac => 1_048_575,
        Standard::Ax => 6_500_631,
    };
    aggregating(field, standard)?.size(Bytes::new(1)..=Bytes::new(most))
}

fn aggregating(field: Field<'_>, standard: Standard) -> Option<Field<'_>> {
    if standard.aggregates() {
        return Some(field);
    }
    field.refuse(format!("nothing: {} does not aggregate", standard.name()));
    None
}

const fn subframes(standard: Standard) -> u32 {
    if matches!(standard, Standard::Ax) { 256 } else { 64 }
}

fn window(field: &Field<'_>) -> Option<u32> {
    let window = field.integer(0..=LARGEST_WINDOW)?;
    if !(window + 1).is_power_of_two() {
        field.refuse("one less than a power of two: 0, 1, 3, 7, 15, … 32767");
        return None;
    }
    Some(window)
}
