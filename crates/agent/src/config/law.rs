//! Which law rules, with its knobs.

use serde::Deserialize;
use toml::Spanned;
use wakeai_control::AirtimeKnobs;
use wakeai_units::Segments;

use super::ConfigError;
use super::value::QueueTime;

/// The law that the configuration asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LawChoice {
    /// No law: presence is sent and peers are counted, but nothing is bound or changed.
    None,
    /// Bounds by hand.
    Fixed {
        /// Lowest window of the station, in segments; 0: none.
        floor: Segments,
        /// Highest window of the station, in segments; [`Segments::MAX`]: none.
        ceiling: Segments,
    },
    /// The paper's table, column "before".
    ShimadaBefore,
    /// The paper's table, column "after".
    ShimadaAfter,
    /// Equal shares of the air with a short queue.
    Airtime(AirtimeKnobs),
}

impl Default for LawChoice {
    fn default() -> Self {
        Self::Airtime(AirtimeKnobs::default())
    }
}

impl LawChoice {
    /// Its name in configurations.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Fixed { .. } => "fixed",
            Self::ShimadaBefore => "shimada-before",
            Self::ShimadaAfter => "shimada-after",
            Self::Airtime(_) => "airtime",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LawSection {
    name: Spanned<Name>,
    floor: Option<Spanned<i64>>,
    ceiling: Option<Spanned<i64>>,
    queue_rounds_percent: Option<Spanned<i64>>,
    queue_min: Option<Spanned<QueueTime>>,
    queue_max: Option<Spanned<QueueTime>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Name {
    None,
    Fixed,
    ShimadaBefore,
    ShimadaAfter,
    Airtime,
}

/// Far above any window that TCP can use: 1 GiB (RFC 7323, 2.3) in segments of 1 KiB.
const MOST_SEGMENTS: i64 = 1_000_000;

impl LawSection {
    pub(super) fn check(self, text: &str) -> Result<LawChoice, ConfigError> {
        let name = *self.name.get_ref();
        let span = |value: &Option<Spanned<i64>>| value.as_ref().map(Spanned::span);
        let of_fixed = span(&self.floor).or(span(&self.ceiling));
        let of_airtime = span(&self.queue_rounds_percent)
            .or(self.queue_min.as_ref().map(Spanned::span))
            .or(self.queue_max.as_ref().map(Spanned::span));
        for (law, knob) in [(Name::Fixed, of_fixed), (Name::Airtime, of_airtime)] {
            if let Some(knob) = knob.filter(|_| name != law) {
                let problem = "found here, but this law has no such key: floor and ceiling are \
                               of \"fixed\", queue_* of \"airtime\""
                    .to_owned();
                return Err(ConfigError::at(text, Some(knob), problem));
            }
        }
        match name {
            Name::None => Ok(LawChoice::None),
            Name::ShimadaBefore => Ok(LawChoice::ShimadaBefore),
            Name::ShimadaAfter => Ok(LawChoice::ShimadaAfter),
            Name::Airtime => self.airtime(text),
            Name::Fixed => self.fixed(text),
        }
    }

    fn fixed(self, text: &str) -> Result<LawChoice, ConfigError> {
        if self.floor.is_none() && self.ceiling.is_none() {
            let problem = "the law \"fixed\" needs a ceiling or a floor, in segments".to_owned();
            return Err(ConfigError::at(text, Some(self.name.span()), problem));
        }
        let segments = |value: &Spanned<i64>, least| in_range(text, value, least, MOST_SEGMENTS);
        let floor = self.floor.map_or(Ok(0), |floor| segments(&floor, 0))?;
        let lowest = i64::from(floor.max(1));
        let ceiling = self.ceiling.map(|ceiling| segments(&ceiling, lowest)).transpose()?;
        let ceiling = ceiling.map_or(Segments::MAX, Segments::new);
        Ok(LawChoice::Fixed { floor: Segments::new(floor), ceiling })
    }

    fn airtime(self, text: &str) -> Result<LawChoice, ConfigError> {
        let mut knobs = AirtimeKnobs::default();
        if let Some(percent) = self.queue_rounds_percent {
            knobs.queue_rounds_percent = in_range(text, &percent, 1, 10_000)?;
        }
        if let Some(min) = &self.queue_min {
            knobs.queue_min = min.get_ref().0;
        }
        if let Some(max) = &self.queue_max {
            knobs.queue_max = max.get_ref().0;
        }
        if knobs.queue_min > knobs.queue_max {
            let (min, max) = (knobs.queue_min, knobs.queue_max);
            let problem = format!("found queue_min {min} above queue_max {max}");
            let span = self.queue_max.as_ref().or(self.queue_min.as_ref()).map(Spanned::span);
            return Err(ConfigError::at(text, span, problem));
        }
        Ok(LawChoice::Airtime(knobs))
    }
}

fn in_range(text: &str, value: &Spanned<i64>, least: i64, most: i64) -> Result<u32, ConfigError> {
    let found = *value.get_ref();
    match u32::try_from(found) {
        Ok(value) if (least..=most).contains(&found) => Ok(value),
        _ => {
            let problem = format!("found {found}, allowed are {least} to {most}");
            Err(ConfigError::at(text, Some(value.span()), problem))
        }
    }
}
