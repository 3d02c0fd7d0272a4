//! Tables of records as Parquet files.
//!
//! A table is a list of [`Column`]s, each with the function that finds its value in a row. [`TableWriter`] writes rows,
//! and [`TableReader`] reads a file back, one group of rows at a time. Each file has the version of its schema in its
//! metadata under the key [`SCHEMA`]. All tables of connections share the columns of a connection's
//! [`Figures`](wakeai_connection::Figures): [`figure_columns`] gives these columns, and [`figures_of`] reads them.

mod figures;
mod reader;
mod writer;

pub use figures::{figure_columns, figures_of};
pub use parquet::errors::ParquetError;
pub use reader::{Group, TableError, TableReader, keep_guarded_panics_quiet};
pub use writer::{Column, TableWriter, Value, copy_first};

/// A list of [`Column`]s: the type of a row and its name, and then the name, the type and the value of each column.
#[macro_export]
macro_rules! columns {
    ($of:ty as $row:ident: $($name:literal $kind:ident($value:expr),)*) => {
        vec![$($crate::Column::new($name, $crate::Value::$kind(|one| {
            let $row: &$of = ::std::borrow::Borrow::borrow(one);
            $value
        }))),*]
    };
}

/// The key in a file's metadata that has the version of its schema.
pub const SCHEMA: &str = "wakeai.schema";
