//! A page of metrics: metric families with their samples, as data.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry;

use super::Histogram;

/// The unit of a family. The family's name ends with its unit (OpenMetrics, "Units and Base
/// Units").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number. The family's name says which things it counts.
    None,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// TCP segments.
    Segments,
}

impl Unit {
    fn registered(self) -> Option<registry::Unit> {
        let other = |name: &str| Some(registry::Unit::Other(name.to_owned()));
        match self {
            Self::None => None,
            Self::Seconds => Some(registry::Unit::Seconds),
            Self::Bytes => Some(registry::Unit::Bytes),
            Self::BytesPerSecond => other("bytes_per_second"),
            Self::Segments => other("segments"),
        }
    }
}

/// The labels of a sample. The values of a label come from a small fixed set, except in a
/// [`Page::info`].
type Labels = Vec<(&'static str, String)>;

#[derive(Clone, Debug)]
enum Value {
    Whole(u64),
    Real(f64),
    Histogram(Histogram),
    Info,
}

/// A metric family: a name, its meaning, and its current samples.
#[derive(Clone, Debug)]
pub struct Family {
    /// The name without the unit and without the suffix of the kind.
    base: &'static str,
    unit: Unit,
    kind: MetricType,
    help: &'static str,
    samples: Vec<(Labels, Value)>,
}

impl Family {
    /// Sets the only sample of a family without labels. With `None` the family has no sample.
    pub fn is(&mut self, value: impl Into<Option<u64>>) {
        self.samples.extend(value.into().map(|value| (Vec::new(), Value::Whole(value))));
    }

    /// Sets the only sample of a family without labels. With `None` the family has no sample.
    pub fn is_real(&mut self, value: Option<f64>) {
        self.samples.extend(value.map(|value| (Vec::new(), Value::Real(value))));
    }

    /// Adds a sample with these labels.
    pub fn sample(&mut self, labels: &[(&'static str, &str)], value: u64) -> &mut Self {
        let labels = labels.iter().map(|&(name, text)| (name, text.to_owned())).collect();
        self.samples.push((labels, Value::Whole(value)));
        self
    }

    /// Adds a sample for each of these texts of one label.
    pub fn each(
        &mut self,
        label: &'static str,
        values: impl IntoIterator<Item = (impl AsRef<str>, u64)>,
    ) {
        for (text, value) in values {
            self.sample(&[(label, text.as_ref())], value);
        }
    }

    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let unit = self.unit.registered();
        let mut family =
            encoder.encode_descriptor(self.base, self.help, unit.as_ref(), self.kind)?;
        for (labels, value) in &self.samples {
            match (self.kind, value) {
                (_, Value::Info) => family.encode_info(labels)?,
                (_, Value::Histogram(of)) => return of.encode(family), // the family's only sample
                _ if labels.is_empty() => value.encode(self.kind, &mut family)?,
                _ => value.encode(self.kind, &mut family.encode_family(labels)?)?,
            }
        }
        Ok(())
    }
}

/// The type of an absent exemplar. The encoder needs this type.
type Nothing = Option<&'static Exemplar<[(&'static str, &'static str); 0], f64>>;

impl Value {
    fn encode(&self, kind: MetricType, to: &mut MetricEncoder<'_>) -> std::fmt::Result {
        match (kind, self) {
            (MetricType::Counter, Self::Whole(value)) => to.encode_counter(value, None as Nothing),
            (MetricType::Counter, Self::Real(value)) => to.encode_counter(value, None as Nothing),
            (_, Self::Whole(value)) => to.encode_gauge(value),
            (_, Self::Real(value)) => to.encode_gauge(value),
            (_, Self::Histogram(_) | Self::Info) => Ok(()), // the family encodes these
        }
    }
}

/// All metrics of a program at one moment. A page always has the same families with the same names. A family has no
/// sample if its value is unknown.
#[derive(Clone, Debug, Default)]
pub struct Page {
    families: Vec<Family>,
}

impl Page {
    /// An empty page.
    pub fn new() -> Self {
        Self::default()
    }

    fn family(
        &mut self,
        kind: MetricType,
        base: &'static str,
        unit: Unit,
        help: &'static str,
    ) -> &mut Family {
        debug_assert!(!help.contains(['\\', '"', '\n']), "{help}");
        self.families.push(Family { base, unit, kind, help, samples: Vec::new() });
        self.families.last_mut().expect("it was just added")
    }

    /// Adds a family of counters. `base` is the name without the unit and without `_total`.
    pub fn counter(&mut self, base: &'static str, unit: Unit, help: &'static str) -> &mut Family {
        self.family(MetricType::Counter, base, unit, help)
    }

    /// Adds a family of gauges.
    pub fn gauge(&mut self, base: &'static str, unit: Unit, help: &'static str) -> &mut Family {
        self.family(MetricType::Gauge, base, unit, help)
    }

    /// Adds a histogram.
    pub fn histogram(
        &mut self,
        base: &'static str,
        unit: Unit,
        help: &'static str,
        of: &Histogram,
    ) {
        let family = self.family(MetricType::Histogram, base, unit, help);
        family.samples.push((Vec::new(), Value::Histogram(of.clone())));
    }

    /// Adds texts, if they are known. `base` is the name without `_info`.
    pub fn info(&mut self, base: &'static str, help: &'static str, texts: Option<Labels>) {
        let family = self.family(MetricType::Info, base, Unit::None, help);
        family.samples.extend(texts.map(|texts| (texts, Value::Info)));
    }
}

/// Adds gauges without labels to a [`Page`]. A row has the method of [`Family`] that takes the value, the name after
/// the prefix, the [`Unit`], the help text and the value.
#[macro_export]
macro_rules! gauges {
    (
        $page:expr, $prefix:literal;
        $($is:ident $base:literal $unit:ident $help:literal: $value:expr;)+
    ) => {$(
        $page
            .gauge(concat!($prefix, "_", $base), $crate::metrics::Unit::$unit, $help)
            .$is($value);
    )+};
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        self.families.iter().try_for_each(|family| family.encode(&mut encoder))
    }
}
