//! Reads and writes the table `[law]`. A law is the rule by which an agent bounds connections. The
//! table has the law's name and parameters.

use std::ops::Range;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Spanned;
use wakeai_control::{AirtimeKnobs, LawConfig};
use wakeai_units::{Bytes, Duration, Segments};

use super::value;

/// The largest value of the keys `floor` and `ceiling`, in segments: the smallest and the largest
/// congestion window of a connection. The value is roughly TCP's largest window, 1 GiB (RFC 7323,
/// 2.3), in segments of 1 KiB.
pub const MAX_SEGMENTS: u32 = 1_000_000;
/// The largest value of `small_queue`. The kernel's own limit (`tcp_limit_output_bytes`) is 4 MiB.
pub(super) const LARGEST_SMALL_QUEUE: Bytes = Bytes::new(100_000_000);

/// The keys of the table, with their positions in the text.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LawSection {
    name: Spanned<Name>,
    floor: Option<Spanned<i64>>,
    ceiling: Option<Spanned<i64>>,
    small_queue: Option<Spanned<SmallQueue>>,
    queue_rounds_percent: Option<Spanned<i64>>,
    queue_min: Option<Spanned<QueueTime>>,
    queue_max: Option<Spanned<QueueTime>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Name {
    None,
    Fixed,
    ShimadaBefore,
    ShimadaAfter,
    Airtime,
}

/// A target queueing delay.
#[derive(Clone, Copy)]
struct QueueTime(Duration);

impl<'de> Deserialize<'de> for QueueTime {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        value::duration(from, Duration::from_millis(1), Duration::from_secs(10)).map(Self)
    }
}

impl Serialize for QueueTime {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

/// The bytes that may wait in the host's queue.
#[derive(Clone, Copy)]
struct SmallQueue(Bytes);

impl<'de> Deserialize<'de> for SmallQueue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        value::size(from, Bytes::new(1), LARGEST_SMALL_QUEUE).map(Self)
    }
}

impl Serialize for SmallQueue {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

/// The problem of an invalid table, with its position in the text.
pub(super) struct LawProblem {
    pub(super) span: Range<usize>,
    pub(super) problem: String,
}

pub(super) fn deserialize<'de, D>(from: D) -> Result<Option<LawConfig>, D::Error>
where
    D: Deserializer<'de>,
{
    let law = LawSection::deserialize(from)?.check();
    law.map_err(|LawProblem { problem, .. }| D::Error::custom(problem))
}

#[expect(clippy::ref_option, reason = "the signature that serde calls")]
pub(super) fn serialize<S>(law: &Option<LawConfig>, to: S) -> Result<S::Ok, S::Error>
where
    S: Serializer,
{
    fn new<T>(value: T) -> Spanned<T> {
        Spanned::new(0..0, value)
    }
    let named = |name| LawSection {
        name: new(name),
        floor: None,
        ceiling: None,
        small_queue: None,
        queue_rounds_percent: None,
        queue_min: None,
        queue_max: None,
    };
    let section = match law {
        None => named(Name::None),
        Some(LawConfig::Fixed { floor, ceiling, small_queue }) => LawSection {
            floor: Some(new(i64::from(floor.get()))),
            ceiling: (*ceiling != Segments::MAX).then(|| new(i64::from(ceiling.get()))),
            small_queue: (*small_queue > Bytes::ZERO).then(|| new(SmallQueue(*small_queue))),
            ..named(Name::Fixed)
        },
        Some(LawConfig::ShimadaBefore) => named(Name::ShimadaBefore),
        Some(LawConfig::ShimadaAfter) => named(Name::ShimadaAfter),
        Some(LawConfig::Airtime(knobs)) => LawSection {
            queue_rounds_percent: Some(new(i64::from(knobs.queue_rounds_percent))),
            queue_min: Some(new(QueueTime(knobs.queue_min))),
            queue_max: Some(new(QueueTime(knobs.queue_max))),
            ..named(Name::Airtime)
        },
    };
    section.serialize(to)
}

impl LawSection {
    /// Returns the law that the keys describe. Returns an error if the keys do not fit the law's
    /// name or each other.
    pub(super) fn check(self) -> Result<Option<LawConfig>, LawProblem> {
        let name = *self.name.get_ref();
        let of_fixed = span(&self.floor).or(span(&self.ceiling)).or(span(&self.small_queue));
        let of_airtime =
            span(&self.queue_rounds_percent).or(span(&self.queue_min)).or(span(&self.queue_max));
        for (law, key) in [(Name::Fixed, of_fixed), (Name::Airtime, of_airtime)] {
            if let Some(span) = key.filter(|_| name != law) {
                let problem = "this law has no such key: floor, ceiling and small_queue are keys \
                               of \"fixed\", queue_* of \"airtime\""
                    .to_owned();
                return Err(LawProblem { span, problem });
            }
        }
        match name {
            Name::None => Ok(None),
            Name::ShimadaBefore => Ok(Some(LawConfig::ShimadaBefore)),
            Name::ShimadaAfter => Ok(Some(LawConfig::ShimadaAfter)),
            Name::Airtime => self.airtime().map(Some),
            Name::Fixed => self.fixed().map(Some),
        }
    }

    fn fixed(self) -> Result<LawConfig, LawProblem> {
        if self.floor.is_none() && self.ceiling.is_none() {
            let problem = "the law \"fixed\" needs a ceiling or a floor, in segments".to_owned();
            return Err(LawProblem { span: self.name.span(), problem });
        }
        let floor = self.floor.map_or(Ok(0), |floor| in_range(&floor, 0, MAX_SEGMENTS))?;
        let ceiling = self.ceiling.map(|ceiling| in_range(&ceiling, floor.max(1), MAX_SEGMENTS));
        let ceiling = ceiling.transpose()?.map_or(Segments::MAX, Segments::new);
        if let Some(span) = span(&self.small_queue).filter(|_| ceiling == Segments::MAX) {
            let problem = "found no ceiling beside it, without which it has no effect".to_owned();
            return Err(LawProblem { span, problem });
        }
        let small_queue = self.small_queue.map_or(Bytes::ZERO, |bytes| bytes.get_ref().0);
        Ok(LawConfig::Fixed { floor: Segments::new(floor), ceiling, small_queue })
    }

    fn airtime(self) -> Result<LawConfig, LawProblem> {
        let mut knobs = AirtimeKnobs::default();
        if let Some(percent) = &self.queue_rounds_percent {
            knobs.queue_rounds_percent = in_range(percent, 1, 10_000)?;
        }
        knobs.queue_min = self.queue_min.as_ref().map_or(knobs.queue_min, |min| min.get_ref().0);
        knobs.queue_max = self.queue_max.as_ref().map_or(knobs.queue_max, |max| max.get_ref().0);
        if knobs.queue_min <= knobs.queue_max {
            return Ok(LawConfig::Airtime(knobs));
        }
        let (min, max) = (knobs.queue_min, knobs.queue_max);
        let span = span(&self.queue_max).or(span(&self.queue_min)).unwrap_or(self.name.span());
        Err(LawProblem { span, problem: format!("found queue_min {min} above queue_max {max}") })
    }
}

#[expect(clippy::ref_option, reason = "shorter at each of its five calls")]
fn span<T>(value: &Option<Spanned<T>>) -> Option<Range<usize>> {
    value.as_ref().map(Spanned::span)
}

fn in_range(value: &Spanned<i64>, least: u32, most: u32) -> Result<u32, LawProblem> {
    let found = *value.get_ref();
    u32::try_from(found).ok().filter(|value| (least..=most).contains(value)).ok_or_else(|| {
        let problem = format!("found {found}, allowed are {least} to {most}");
        LawProblem { span: value.span(), problem }
    })
}
