//! Which law rules, with its knobs.

use serde::Deserialize;
use toml::Spanned;
use wakeai_units::Segments;

use super::ConfigError;

/// The law that the configuration asks for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
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
    #[default]
    Airtime,
}

impl LawChoice {
    /// Its name in configurations.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Fixed { .. } => "fixed",
            Self::ShimadaBefore => "shimada-before",
            Self::ShimadaAfter => "shimada-after",
            Self::Airtime => "airtime",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LawSection {
    name: Spanned<Name>,
    floor: Option<Spanned<i64>>,
    ceiling: Option<Spanned<i64>>,
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
const MOST: i64 = 1_000_000;

impl LawSection {
    pub(super) fn check(self, text: &str) -> Result<LawChoice, ConfigError> {
        let name = *self.name.get_ref();
        if name != Name::Fixed
            && let Some(value) = self.floor.as_ref().or(self.ceiling.as_ref())
        {
            let found = value.get_ref();
            let problem =
                format!("found {found}, but only the law \"fixed\" has floor and ceiling");
            return Err(ConfigError::at(text, Some(value.span()), problem));
        }
        Ok(match name {
            Name::None => LawChoice::None,
            Name::ShimadaBefore => LawChoice::ShimadaBefore,
            Name::ShimadaAfter => LawChoice::ShimadaAfter,
            Name::Airtime => LawChoice::Airtime,
            Name::Fixed => self.fixed(text)?,
        })
    }

    fn fixed(self, text: &str) -> Result<LawChoice, ConfigError> {
        if self.floor.is_none() && self.ceiling.is_none() {
            let problem = "the law \"fixed\" needs a ceiling or a floor, in segments".to_owned();
            return Err(ConfigError::at(text, Some(self.name.span()), problem));
        }
        let floor = self.floor.map_or(Ok(0), |floor| in_range(text, &floor, 0))?;
        let lowest = i64::from(floor.max(1));
        let ceiling = self.ceiling.map(|ceiling| in_range(text, &ceiling, lowest)).transpose()?;
        let ceiling = ceiling.map_or(Segments::MAX, Segments::new);
        Ok(LawChoice::Fixed { floor: Segments::new(floor), ceiling })
    }
}

fn in_range(text: &str, value: &Spanned<i64>, least: i64) -> Result<u32, ConfigError> {
    let found = *value.get_ref();
    match u32::try_from(found) {
        Ok(segments) if (least..=MOST).contains(&found) => Ok(segments),
        _ => {
            let problem = format!("found {found}, allowed are {least} to {MOST} segments");
            Err(ConfigError::at(text, Some(value.span()), problem))
        }
    }
}
