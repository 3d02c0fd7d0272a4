//! Finds all problems of a configuration. The search works in rounds. Each round removes a value
//! that cannot be used, and then the next round reads the rest.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::law::LawSection;
use super::{Config, ConfigError};

/// The required keys.
const REQUIRED: [&str; 2] = ["interface", "key_file"];
/// The value for a required key that is missing or invalid. With this value the other keys can
/// still be read.
const PLACEHOLDER: &str = "none";

/// The valid part of a configuration, and the problems of the rest.
#[derive(Debug)]
pub struct Examined {
    /// The valid part of the configuration, with defaults for the rest. It is `None` if the text is
    /// not TOML.
    pub config: Option<Config>,
    /// The problems, sorted by line. Missing keys come last.
    pub problems: Vec<ConfigError>,
    /// The dotted keys that were left out because of the problems.
    left_out: Vec<String>,
}

impl Examined {
    /// Reads and examines the file at `path`.
    pub fn load(path: &Path) -> Self {
        match std::fs::read_to_string(path) {
            Ok(text) => {
                let mut examined = Self::parse(&text);
                let named = examined.problems.into_iter().map(|problem| problem.in_file(path));
                examined.problems = named.collect();
                examined
            }
            Err(source) => Self::unreadable(ConfigError::Read { path: path.to_owned(), source }),
        }
    }

    pub(super) fn into_config(self) -> Result<Config, ConfigError> {
        match (self.problems.into_iter().next(), self.config) {
            (None, Some(config)) => Ok(config),
            (problem, _) => {
                Err(problem.expect("a configuration that cannot be used has a problem"))
            }
        }
    }

    /// Whether this dotted key was kept. A kept key has a valid value from the file, or its
    /// default.
    pub fn is_good(&self, key: &str) -> bool {
        !self.left_out.iter().any(|left_out| {
            let rest = key.strip_prefix(left_out.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }

    pub(super) fn parse(text: &str) -> Self {
        match DeTable::parse(text) {
            Ok(table) => Reading { text, table, problems: Vec::new(), left_out: Vec::new() }.run(),
            Err(error) => Self::unreadable(ConfigError::from_toml(text, &error)),
        }
    }

    fn unreadable(problem: ConfigError) -> Self {
        Self { config: None, problems: vec![problem], left_out: Vec::new() }
    }
}

struct Reading<'a> {
    text: &'a str,
    table: Spanned<DeTable<'a>>,
    problems: Vec<ConfigError>,
    left_out: Vec<String>,
}

/// Reads only the table of the law. At this stage the positions of the keys in the text are known,
/// so an error about a key can name its line.
#[derive(Deserialize)]
struct LawOnly {
    law: Option<LawSection>,
}

impl Reading<'_> {
    fn run(mut self) -> Examined {
        let config = loop {
            self.fill_in();
            let law = LawOnly::deserialize(toml::de::Deserializer::from(self.table.clone()));
            let law = law.map(|of| of.law.map(LawSection::check).transpose());
            // Each round except the last removes a key, so the loop ends.
            let error = match law {
                Err(error) => error,
                Ok(Err(wrong)) => {
                    // If a key of the law was removed, the law is often incomplete. This is not
                    // reported as another problem.
                    if !self.left_out.iter().any(|key| key.starts_with("law.")) {
                        let problem = ConfigError::at(self.text, Some(wrong.span), wrong.problem);
                        self.problems.push(problem);
                    }
                    self.leave_the_law_out();
                    continue;
                }
                Ok(Ok(_)) => {
                    match Config::deserialize(toml::de::Deserializer::from(self.table.clone())) {
                        Ok(config) => break Some(config),
                        Err(error) => error,
                    }
                }
            };
            self.problems.push(ConfigError::from_toml(self.text, &error));
            let Some(key) = take_out(self.table.get_mut(), error.span()) else { break None };
            if key == "law.name" {
                self.leave_the_law_out(); // a law without a name cannot be read
            }
            self.left_out.push(key);
        };
        self.problems.sort_by_key(ConfigError::line);
        Examined { config, problems: self.problems, left_out: self.left_out }
    }

    fn leave_the_law_out(&mut self) {
        self.table.get_mut().remove("law");
        self.left_out.push("law".to_owned());
    }

    fn fill_in(&mut self) {
        for key in REQUIRED {
            if self.table.get_ref().contains_key(key) {
                continue;
            }
            if !self.left_out.iter().any(|left_out| left_out == key) {
                self.problems.push(ConfigError::Missing { file: None, key });
                self.left_out.push(key.to_owned());
            }
            let value = DeValue::String(Cow::Borrowed(PLACEHOLDER));
            self.table
                .get_mut()
                .insert(Spanned::new(0..0, Cow::Borrowed(key)), Spanned::new(0..0, value));
        }
    }
}

/// Removes the innermost entry of the table at `span`, and returns its dotted key.
fn take_out(table: &mut DeTable<'_>, span: Option<Range<usize>>) -> Option<String> {
    let at = span?.start;
    let names: Vec<String> = table.keys().map(|key| key.get_ref().to_string()).collect();
    for name in names {
        let (key, value) = table.get_key_value(name.as_str())?;
        let is_here = key.span().contains(&at) || value.span().contains(&at);
        let inner = match table.get_mut(name.as_str()).map(Spanned::get_mut) {
            Some(DeValue::Table(inner)) => take_out(inner, Some(at..at)),
            _ => None,
        };
        if let Some(inner) = inner {
            return Some(format!("{name}.{inner}"));
        }
        if is_here {
            table.remove(name.as_str());
            return Some(name);
        }
    }
    None
}
