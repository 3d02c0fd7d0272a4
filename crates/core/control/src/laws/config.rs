//! The laws by name, their parameters with ranges and defaults, and the reader of both for scenarios and agents.

use std::ops::RangeInclusive;

use strum::VariantArray as _;
use wakeai_settings::{Field, Fields, Value};
use wakeai_units::{Bytes, Duration, Segments};

use super::airtime::{Airtime, AirtimeKnobs};
use super::{Fixed, Law, shimada};
use crate::Bounds;

impl LawName {
    /// All laws, in the order of the reference page and of their numbers in messages
    /// ([`LawNumber`](crate::common::LawNumber)): a further law comes last.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The name as it is written.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether reservations change the bounds of this law. They do not change bounds that were set by hand.
    pub(crate) fn yields(self) -> bool {
        self != Self::Fixed
    }
}

/// The largest value of `floor` and `ceiling`, in segments. It is roughly TCP's largest window, 1 GiB (RFC 7323,
/// 2.3), in segments of 1 KiB.
pub const LARGEST_WINDOW: u32 = 1_000_000;
/// The values of `small_queue`. The kernel's own limit (`tcp_limit_output_bytes`) is 4 MiB.
const SMALL_QUEUE: RangeInclusive<Bytes> = Bytes::new(1)..=Bytes::new(100_000_000);
/// The values of `queue_rounds_percent`.
const QUEUE_ROUNDS_PERCENT: RangeInclusive<u32> = 1..=10_000;
/// The values of `queue_min` and `queue_max`.
const QUEUE: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10);

/// The keys of [`LawConfig::Fixed`] and of [`LawConfig::Airtime`]. The other laws have none.
const FIXED: [&str; 4] = ["floor", "ceiling", "small_queue", "receive"];
const AIRTIME: [&str; 4] = ["queue_rounds_percent", "queue_min", "queue_max", "downloads"];

/// Where a law is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LawPlace {
    /// In an agent's configuration, as a table; the name `none` is no law.
    Agent,
    /// In a condition of a scenario, as a name or a table. The bounds of the law `fixed` are in tables of their own,
    /// one for some of the stations ([`LawConfig::read_bounds`]).
    Condition,
}

/// A law with its knobs.
#[derive(Clone, Debug, PartialEq, Eq, strum::EnumDiscriminants)]
#[strum_discriminants(
    doc = "The name of a law in scenarios and configurations.",
    name(LawName),
    derive(Hash, strum::IntoStaticStr, strum::Display, strum::VariantArray),
    strum(serialize_all = "kebab-case")
)]
pub enum LawConfig {
    /// Bounds set by hand (Matsuno et al., §5).
    Fixed {
        /// The floor of the station, segments; zero is no floor.
        floor: Segments,
        /// The ceiling of the station, segments.
        ceiling: Segments,
        /// The bytes that may wait in the host's queue ([`Bounds::small_queue`]); zero leaves
        /// Linux's own limit.
        small_queue: Bytes,
        /// The largest receive window of the station, segments ([`Bounds::receive`]).
        receive: Segments,
    },
    /// Each bound is the smaller of two candidates. One is an equal share, by the number of sending
    /// stations, of the window that the path and the access point's buffer allow. The other is read
    /// from the left column of table 1 of Shimada et al. by the queueing delay.
    ShimadaBefore,
    /// As [`Self::ShimadaBefore`], but with the right column of table 1.
    ShimadaAfter,
    /// The law [`airtime`](super::airtime): a share of the airtime, and a short queue.
    Airtime(AirtimeKnobs),
}

impl LawConfig {
    /// The law `fixed` that bounds nothing.
    pub const UNBOUND: Self = Self::by_hand(Segments::ZERO, Segments::MAX);

    /// The law `fixed` with these bounds of the congestion window alone.
    pub const fn by_hand(floor: Segments, ceiling: Segments) -> Self {
        Self::Fixed { floor, ceiling, small_queue: Bytes::ZERO, receive: Segments::MAX }
    }

    /// The law with default knobs. `fixed` has no bounds until its fields are set.
    pub fn new(name: LawName) -> Self {
        match name {
            LawName::Fixed => Self::UNBOUND,
            LawName::ShimadaBefore => Self::ShimadaBefore,
            LawName::ShimadaAfter => Self::ShimadaAfter,
            LawName::Airtime => Self::Airtime(AirtimeKnobs::default()),
        }
    }

    /// The law's name.
    pub fn name(&self) -> LawName {
        self.into()
    }

    /// The law, ready for its first tick.
    pub fn build(&self) -> Box<dyn Law + Send> {
        match self {
            Self::Fixed { floor, ceiling, small_queue, receive } => {
                let window = Bounds::window(*floor, *ceiling);
                let (small_queue, receive) = (*small_queue, *receive);
                Box::new(Fixed(Bounds { small_queue, receive, ..window }))
            }
            Self::ShimadaBefore => Box::new(shimada::BEFORE),
            Self::ShimadaAfter => Box::new(shimada::AFTER),
            Self::Airtime(knobs) => Box::new(Airtime::new(knobs.clone())),
        }
    }

    /// Whether the station's agent counts, announces and bounds what the station receives.
    pub(crate) fn governs_downloads(&self) -> bool {
        !matches!(self, Self::Airtime(AirtimeKnobs { downloads: false, .. }))
    }

    /// Reads a law; `Some(None)` is the name `none`.
    pub fn read(field: &Field<'_>, place: LawPlace) -> Option<Option<Self>> {
        let none = (place == LawPlace::Agent).then_some(("none", None));
        let laws = LawName::ALL.iter().map(|law| (law.as_str(), Some(*law)));
        let names: Vec<_> = none.into_iter().chain(laws).collect();
        if place == LawPlace::Condition && field.node.as_table().is_none() {
            return Some(field.choice(&names)?.map(Self::new));
        }
        let mut fields = field.table()?;
        let key = fields.require("name", "the name of a law, such as \"airtime\"");
        let name = key.as_ref().and_then(|key| key.choice(&names));
        let law = name.flatten().map(|name| match (name, place) {
            (LawName::Fixed, LawPlace::Agent) => {
                if !["floor", "ceiling", "receive"].into_iter().any(|key| fields.has(key)) {
                    let problem = key.as_ref().expect("it has the name");
                    problem.refuse_as(
                        "\"fixed\" without bounds",
                        "a ceiling, a floor or a receive window, in segments",
                    );
                }
                Self::read_bounds(&mut fields)
            }
            (LawName::Airtime, _) => Self::Airtime(airtime(&mut fields)),
            (other, _) => Self::new(other),
        });
        let others = [(LawName::Fixed, &FIXED[..]), (LawName::Airtime, &AIRTIME)];
        for (owner, keys) in others {
            let is_here = owner != LawName::Fixed || place == LawPlace::Agent;
            for key in keys.iter().filter(|_| is_here) {
                let Some(key) = fields.get(key) else { continue };
                if name.is_some_and(|name| name != Some(owner)) {
                    key.refuse(format!("nothing: it is a key of the law \"{owner}\""));
                }
            }
        }
        fields.finish();
        name.map(|_| law)
    }

    /// Reads the bounds of the law `fixed`: the keys `floor`, `ceiling`, `small_queue` and `receive`.
    pub fn read_bounds(fields: &mut Fields<'_>) -> Self {
        let [floor_key, ceiling_key, small_queue_key, receive_key] = FIXED;
        let floor = fields.read(floor_key, |field| field.integer(0..=LARGEST_WINDOW));
        let ceiling = fields.read(ceiling_key, |field| {
            let ceiling = field.integer(1..=LARGEST_WINDOW)?;
            if floor.is_some_and(|floor| floor > ceiling) {
                field.refuse("at least `floor`");
            }
            Some(ceiling)
        });
        let has_ceiling = fields.has(ceiling_key);
        let small_queue = fields.read(small_queue_key, |field| {
            if !has_ceiling {
                field.refuse("nothing without `ceiling`, because it has no effect then");
            }
            field.size(SMALL_QUEUE)
        });
        // With less than two segments each one would wait for the delayed ACK of the last.
        let receive = fields.read(receive_key, |field| field.integer(2..=LARGEST_WINDOW));
        Self::Fixed {
            receive: receive.map_or(Segments::MAX, Segments::new),
            floor: Segments::new(floor.unwrap_or(0)),
            ceiling: ceiling.map_or(Segments::MAX, Segments::new),
            small_queue: small_queue.unwrap_or(Bytes::ZERO),
        }
    }

    /// The keys and values from which [`LawConfig::read`] reads the parameters.
    pub fn parameters(&self) -> Vec<(&'static str, Value)> {
        match self {
            Self::Fixed { floor, ceiling, small_queue, receive } => {
                let is_given = [
                    true,
                    *ceiling != Segments::MAX,
                    *small_queue > Bytes::ZERO,
                    *receive != Segments::MAX,
                ];
                let text = Value::String(small_queue.to_string());
                let segments = |window: Segments| Value::Integer(window.get().into());
                let values = [segments(*floor), segments(*ceiling), text, segments(*receive)];
                let all = FIXED.into_iter().zip(values).zip(is_given);
                all.filter_map(|(entry, is_given)| is_given.then_some(entry)).collect()
            }
            Self::ShimadaBefore | Self::ShimadaAfter => Vec::new(),
            Self::Airtime(knobs) => {
                let text = |span: Duration| Value::String(span.to_string());
                let percent = Value::Integer(knobs.queue_rounds_percent.into());
                let downloads = Value::Boolean(knobs.downloads);
                let values = [percent, text(knobs.queue_min), text(knobs.queue_max), downloads];
                AIRTIME.into_iter().zip(values).collect()
            }
        }
    }
}

fn airtime(fields: &mut Fields<'_>) -> AirtimeKnobs {
    let [percent_key, min_key, max_key, downloads_key] = AIRTIME;
    let default = AirtimeKnobs::default();
    let queue_rounds_percent = fields.read_or(percent_key, default.queue_rounds_percent, |field| {
        field.integer(QUEUE_ROUNDS_PERCENT)
    });
    let queue_min = fields.read_or(min_key, default.queue_min, |field| field.duration(QUEUE));
    let queue_max = fields.read_or(max_key, default.queue_max, |field| field.duration(QUEUE));
    if queue_min > queue_max
        && let Some(at_fault) = fields.get(max_key).or_else(|| fields.get(min_key))
    {
        let found = format!("queue_min {queue_min} above queue_max {queue_max}");
        at_fault.refuse_as(found, "queue_min at most queue_max");
    }
    let downloads = fields.read_or(downloads_key, default.downloads, Field::boolean);
    AirtimeKnobs { queue_rounds_percent, queue_min, queue_max, downloads }
}
