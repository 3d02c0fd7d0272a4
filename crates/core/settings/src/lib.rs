//! Reads TOML, of a scenario or of an agent's configuration. One reading finds all problems, and each has its
//! place, its key, what was found and what is allowed.
//!
//! Order of calls: [`Source::parse`] gives the tree of the text, [`Fields::new`] its keys; a reader asks for each
//! key that the table may have, and [`Fields::finish`] reports the others. [`Problems::check`] has what was wrong,
//! and [`Source::refuse`] makes the error of it.

mod error;
mod fields;
mod problems;
mod source;
mod tree;

pub use error::{Place, Problem, Refused};
pub use fields::{Field, Fields, is_name, quoted};
pub use problems::{Finding, Problems};
pub use source::Source;
pub use tree::{Entry, Node, Origin, Table, Value, excerpt, inline, of_override, to_toml};
