//! One HTML file from results of `wakeai sim` and `wakeai lab`.
//!
//! [`Source::read`] reads a result, and with a directory of `--out` its records. [`render`] makes the page: the verdict, the
//! tables and the plots of each source. The page has everything in itself and asks nothing of the network; a
//! Content-Security-Policy forbids it. All text of scenarios and file names is escaped by the template or set as text by
//! the script.

mod curves;
mod page;
mod policy;
mod source;
mod verdict;

pub use curves::{Curves, Line, Plot};
pub use page::render;
pub use source::{Source, SourceError};
