//! Which law rules, with its knobs.

use serde::Deserialize;
use toml::Spanned;
use wakeai_units::Segments;

use super::ConfigError;

/// The law that the configuration asks for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum LawChoice {
    /// No law: presence is sent and peers are counted, but no connection is bound.
    None,
    /// Bounds by hand.
    Fixed {
        /// Lowest window of the station, in segments.
        floor: Segments,
        /// Highest window of the station, in segments.
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

/// TCP's window in segments is never above this (65535 << 14 bytes in 1-byte segments aside).
const MOST: i64 = 1_000_000;

impl LawSection {
    pub(super) fn check(self, text: &str) -> Result<LawChoice, ConfigError> {
        let name = *self.name.get_ref();
        if name != Name::Fixed {
            for value in [&self.floor, &self.ceiling].into_iter().flatten() {
                let problem = format!(
                    "found {}, but only the law \"fixed\" has floor and ceiling",
                    value.get_ref()
                );
                return Err(ConfigError::at(text, Some(value.span()), problem));
            }
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
        let floor = self.floor.map_or(Ok(1), |floor| in_range(text, &floor, 1))?;
        let Some(ceiling) = self.ceiling else {
            let problem = "the law \"fixed\" needs a ceiling, in segments".to_owned();
            return Err(ConfigError::at(text, Some(self.name.span()), problem));
        };
        let ceiling = in_range(text, &ceiling, i64::from(floor))?;
        Ok(LawChoice::Fixed { floor: Segments::new(floor), ceiling: Segments::new(ceiling) })
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
