//! A report as JSON: what `wakeai sim` and `wakeai lab` print with `--json`, and what others read.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

use crate::aggregate::Aggregate;
use crate::air::between_conditions;
use crate::result::Report;

/// The version of a report's JSON. Keys may be added under the same version. Reports of version 1
/// have neither the key `schema` nor the key `aggregates`.
pub const SCHEMA: u32 = 2;

/// A report as JSON has it.
#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    #[serde(flatten)]
    report: &'a Report,
    aggregates: Vec<Aggregate>,
    /// What changed on the air between conditions. Only the field can have it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    air: Vec<String>,
}

impl Report {
    /// The report as one line of JSON, with the [`Aggregate`] of each condition. Numbers have six decimals.
    pub fn to_json(&self) -> String {
        let document = Document {
            schema: SCHEMA,
            report: self,
            aggregates: Aggregate::of(&self.runs),
            air: between_conditions(&self.runs),
        };
        to_json(&document)
    }

    /// Reads a report of this version or of an earlier one.
    ///
    /// # Errors
    ///
    /// The text is no report, or one of a later version.
    pub fn from_json(text: &str) -> Result<Self, NotAReport> {
        #[derive(Deserialize)]
        struct Version {
            schema: Option<u32>,
        }
        let Version { schema } = serde_json::from_str(text)?;
        match schema {
            Some(found) if found > SCHEMA => Err(NotAReport::Later(found)),
            _ => Ok(serde_json::from_str(text)?),
        }
    }
}

/// The reason why a text is not read as a report.
#[derive(Debug, thiserror::Error)]
pub enum NotAReport {
    /// The text is no JSON, or lacks a key.
    #[error("it is no result of `wakeai sim` or `wakeai lab`: {0}")]
    Json(#[from] serde_json::Error),
    /// The version is unknown.
    #[error("its schema is {0}, and this wakeai knows up to {SCHEMA}: use a later wakeai")]
    Later(u32),
}

/// One line of JSON whose numbers have six decimals.
pub(crate) fn to_json(value: &impl Serialize) -> String {
    let mut json = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut json, SixDecimals);
    value.serialize(&mut serializer).expect("strings, numbers and lists of them");
    String::from_utf8(json).expect("JSON is UTF-8")
}

struct SixDecimals;

impl Formatter for SixDecimals {
    fn write_f64<W: io::Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        CompactFormatter.write_f64(writer, six_decimals(value))
    }
}

/// A figure as results have it.
pub fn six_decimals(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
