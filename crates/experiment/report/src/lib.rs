//! One HTML file from results of `wakeai sim` and `wakeai lab`.
//!
//! [`Source::read`] reads a result, and from a directory of `--out` also its records. [`render`]
//! makes the page: the verdict, the tables and the plots of each source. The page contains
//! everything that it needs, and its Content-Security-Policy forbids to load anything from the
//! network. All text of scenarios and file names is escaped by the template or set as text by the
//! script.

mod curves;
mod page;
mod source;
mod verdict;

pub use curves::{Curves, Line, Plot};
pub use page::render;
pub use source::{Source, SourceError};
