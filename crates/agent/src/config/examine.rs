//! All that is wrong with a configuration, not only the first of it: what cannot be used is left out,
//! and the rest is read again.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize as _;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Config, ConfigError, File};

/// The keys without which there is no configuration.
const REQUIRED: [&str; 2] = ["interface", "key_file"];
/// Stands for a required key that cannot be used; nobody looks at its value.
const PLACEHOLDER: &str = "none";

/// A configuration, as far as it is good.
#[derive(Debug)]
pub struct Examined {
    /// What can be used, with defaults for the rest. `None` where the text is not TOML.
    pub config: Option<Config>,
    /// What is wrong, in the order of the lines; what is missing comes last.
    pub problems: Vec<ConfigError>,
    /// Dotted keys that were left out for it.
    left_out: Vec<String>,
}

impl Examined {
    /// Reads `path` and examines what it says.
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
            (problem, _) => Err(problem.expect("what cannot be used has a problem")),
        }
    }

    /// Whether what the configuration says of this dotted key, if anything, is good.
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

impl Reading<'_> {
    fn run(mut self) -> Examined {
        loop {
            self.fill_in();
            // Each round takes something out, so there is an end.
            let config = match File::deserialize(toml::de::Deserializer::from(self.table.clone())) {
                Ok(file) => self.assemble(file),
                Err(error) => {
                    self.problems.push(ConfigError::from_toml(self.text, &error));
                    let Some(key) = take_out(self.table.get_mut(), error.span()) else {
                        return self.end(None);
                    };
                    if key == "law.name" {
                        self.leave_the_law_out(); // without a name it is none
                    }
                    self.left_out.push(key);
                    None
                }
            };
            if let Some(config) = config {
                return self.end(Some(config));
            }
        }
    }

    fn end(mut self, config: Option<Config>) -> Examined {
        self.problems.sort_by_key(ConfigError::line);
        Examined { config, problems: self.problems, left_out: self.left_out }
    }

    /// `None`: the law makes no sense as a whole, and is left out.
    fn assemble(&mut self, mut file: File) -> Option<Config> {
        match file.law.take().map(|law| law.check(self.text)).transpose() {
            Ok(law) => Some(file.into_config(law.unwrap_or_default())),
            Err(problem) => {
                // Of what is left of a law, no more is to be expected.
                if !self.left_out.iter().any(|key| key.starts_with("law.")) {
                    self.problems.push(problem);
                }
                self.leave_the_law_out();
                None
            }
        }
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
                self.problems.push(ConfigError::missing(key));
                self.left_out.push(key.to_owned());
            }
            let value = DeValue::String(Cow::Borrowed(PLACEHOLDER));
            self.table
                .get_mut()
                .insert(Spanned::new(0..0, Cow::Borrowed(key)), Spanned::new(0..0, value));
        }
    }
}

/// Takes out what lies at `span`, the smallest part that can go, and names it.
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
