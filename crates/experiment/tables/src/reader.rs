//! A table read from Parquet, one group of rows at a time.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;

use arrow_array::{
    Array, ArrayAccessor, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;

use crate::SCHEMA;
use crate::writer::ROW_GROUP;

/// Why a table cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The file cannot be opened.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The content is damaged, or it is not Parquet.
    #[error("{} is no table that can be read: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The table has another schema.
    #[error("{} has the schema {found:?}, expected {expected:?}", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// The version that was found.
        found: String,
        /// The version that was expected.
        expected: &'static str,
    },
    /// A column is missing, has another type, or has a null where its values may not be null.
    #[error("{} lacks the column {column:?}, or a value in it", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// The column's name.
        column: String,
    },
}

/// A table that is being read.
pub struct TableReader {
    path: PathBuf,
    /// The version of the schema in the file's metadata; empty without one.
    version: String,
    groups: ParquetRecordBatchReader,
}

impl TableReader {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or it is not Parquet.
    pub fn open(path: &Path) -> Result<Self, TableError> {
        let path = path.to_owned();
        let file =
            File::open(&path).map_err(|source| TableError::File { path: path.clone(), source })?;
        let (version, groups) = guarded(&path, || {
            let file = ParquetRecordBatchReaderBuilder::try_new(file)?;
            let version = file.schema().metadata().get(SCHEMA).cloned().unwrap_or_default();
            Ok((version, file.with_batch_size(ROW_GROUP).build()?))
        })?;
        Ok(Self { path, version, groups })
    }

    /// Checks the version of the schema in the file's metadata.
    ///
    /// # Errors
    ///
    /// The file has another version, or none.
    pub fn expect(self, expected: &'static str) -> Result<Self, TableError> {
        if self.version == expected {
            return Ok(self);
        }
        Err(TableError::Schema { path: self.path, found: self.version, expected })
    }

    /// The next group of rows; `None` after the last one.
    ///
    /// # Errors
    ///
    /// The file is damaged.
    pub fn next_group(&mut self) -> Result<Option<Group>, TableError> {
        let group = guarded(&self.path, || Ok(self.groups.next().transpose()?))?;
        Ok(group.map(|batch| Group { path: self.path.clone(), batch }))
    }
}

impl std::fmt::Debug for TableReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableReader").field("path", &self.path).finish_non_exhaustive()
    }
}

thread_local! {
    /// Whether this thread is in [`guarded`].
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, which reads the file `path`. The library panics on some damaged files; here such a panic becomes an
/// error.
fn guarded<T>(
    path: &Path,
    work: impl FnOnce() -> Result<T, ParquetError>,
) -> Result<T, TableError> {
    static QUIET: Once = Once::new();
    QUIET.call_once(keep_guarded_panics_quiet);
    IS_GUARDED.set(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(false);
    let reason = match done {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "its parts do not fit together".to_owned(),
    };
    Err(TableError::Damaged { path: path.to_owned(), reason })
}

/// Installs a panic hook that does not report the panics that become a [`TableError`], and passes
/// all others to the previous hook. If another hook is installed later that must not see these
/// panics, such as one that restores the terminal, call this function again.
pub fn keep_guarded_panics_quiet() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !IS_GUARDED.get() {
            before(info);
        }
    }));
}

/// A group of rows.
#[derive(Clone, Debug)]
pub struct Group {
    path: PathBuf,
    batch: RecordBatch,
}

impl Group {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// A value of a column of the type `A`; `None` is null.
    fn value<'a, A: 'static>(
        &'a self,
        column: &str,
        row: usize,
    ) -> Result<Option<<&'a A as ArrayAccessor>::Item>, TableError>
    where
        &'a A: ArrayAccessor,
    {
        let values = self.batch.column_by_name(column);
        let values = values.and_then(|values| values.as_any().downcast_ref::<A>());
        let values = values.ok_or_else(|| self.lacks(column))?;
        Ok(values.is_valid(row).then(|| values.value(row)))
    }

    /// An unsigned integer; `None` is null. Panics beyond the last row.
    ///
    /// # Errors
    ///
    /// There is no such column of unsigned integers.
    pub fn u64(&self, column: &str, row: usize) -> Result<Option<u64>, TableError> {
        let values = self.batch.column_by_name(column);
        if values.is_some_and(|values| values.as_any().is::<UInt32Array>()) {
            return Ok(self.value::<UInt32Array>(column, row)?.map(u64::from));
        }
        self.value::<UInt64Array>(column, row)
    }

    /// A floating-point number; `None` is null. Panics beyond the last row.
    ///
    /// # Errors
    ///
    /// There is no such column of floating-point numbers.
    pub fn f64(&self, column: &str, row: usize) -> Result<Option<f64>, TableError> {
        self.value::<Float64Array>(column, row)
    }

    /// A text; `None` is null. Panics beyond the last row.
    ///
    /// # Errors
    ///
    /// There is no such column of texts.
    pub fn text(&self, column: &str, row: usize) -> Result<Option<&str>, TableError> {
        self.value::<StringArray>(column, row)
    }

    /// The error for a column that is missing, or that has a null although its values may not be null.
    pub fn lacks(&self, column: &str) -> TableError {
        TableError::Column { path: self.path.clone(), column: column.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;
    use wakeai_connection::{CongestionState, Figures, INFINITE_SSTHRESH};
    use wakeai_units::{Bytes, Duration, Rate, Segments};

    use super::*;
    use crate::writer::{Column, TableWriter, Value};
    use crate::{figure_columns, figures_of};

    #[derive(Clone, Debug, PartialEq)]
    struct Row {
        number: Option<u64>,
        name: Option<String>,
        figures: Figures,
    }

    impl std::borrow::Borrow<Figures> for Row {
        fn borrow(&self) -> &Figures {
            &self.figures
        }
    }

    /// A file that is removed when the test ends.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("wakeai-tables-{}-{name}.parquet", std::process::id());
            Self(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn write(path: &Path, rows: &[Row]) {
        let mut columns = vec![
            Column::new("number", Value::MaybeU64(|row: &Row| row.number)),
            Column::new("name", Value::Text(|row| row.name.as_deref())),
        ];
        columns.extend(figure_columns());
        let mut table = TableWriter::new("rows 1", columns, File::create(path).unwrap()).unwrap();
        for row in rows {
            table.push(row.clone()).unwrap();
        }
        table.finish().unwrap();
    }

    fn read_back(path: &Path) -> Vec<Row> {
        let mut table = TableReader::open(path).unwrap().expect("rows 1").unwrap();
        let mut rows = Vec::new();
        while let Some(group) = table.next_group().unwrap() {
            rows.extend((0..group.rows()).map(|row| Row {
                number: group.u64("number", row).unwrap(),
                name: group.text("name", row).unwrap().map(str::to_owned),
                figures: figures_of(&group, row).unwrap(),
            }));
        }
        rows
    }

    prop_compose! {
        fn figures()(
            counts in any::<[u32; 8]>(),
            times in any::<[Option<u16>; 4]>(),
            rates in any::<[Option<u32>; 2]>(),
            state in 0..5_u8,
            application_limited in any::<bool>(),
        ) -> Figures {
            let time = |index: usize| times[index].map(|us| Duration::from_micros(us.into()));
            let rate = |index: usize| rates[index].map(|bytes| Rate::from_bps(u64::from(bytes) * 8));
            Figures {
                cwnd: Segments::new(counts[0]),
                ssthresh: Segments::new(counts[1].min(INFINITE_SSTHRESH)),
                smoothed_rtt: time(0),
                latest_rtt: time(1),
                min_rtt: time(2),
                congestion_state: CongestionState::from_number(state),
                packets_out: Segments::new(counts[2]),
                sacked_out: Segments::new(counts[3]),
                lost_out: Segments::new(counts[4]),
                retrans_out: Segments::new(counts[5]),
                send_queue: Bytes::new(counts[6].into()),
                delivered: u64::from(counts[7]) << 8,
                delivery_rate: rate(0),
                // It belongs to the sample of the rate.
                application_limited: application_limited && rates[0].is_some(),
                pacing_rate: rate(1),
                k: time(3),
                mss: Bytes::new(counts[6].into()),
                interface: counts[7],
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::default())]
        #[test]
        fn what_was_written_is_read_back(
            rows in prop::collection::vec(
                (any::<Option<u64>>(), any::<Option<String>>(), figures())
                    .prop_map(|(number, name, figures)| Row { number, name, figures }),
                0..50,
            )
        ) {
            let scratch = Scratch::new("back");
            write(&scratch.0, &rows);
            prop_assert_eq!(read_back(&scratch.0), rows);
        }

        #[test]
        fn a_damaged_file_is_an_error_and_no_panic(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)
        ) {
            let scratch = Scratch::new("damaged");
            let row = Row { number: Some(7), name: None, figures: Figures::default() };
            write(&scratch.0, &[row.clone(), row]);
            let mut bytes = std::fs::read(&scratch.0).unwrap();
            for (place, byte) in damage {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            std::fs::write(&scratch.0, bytes).unwrap();
            if let Ok(mut table) = TableReader::open(&scratch.0) {
                while let Ok(Some(group)) = table.next_group() {
                    for row in 0..group.rows() {
                        let _ = figures_of(&group, row);
                    }
                }
            }
        }
    }

    #[test]
    fn another_schema_and_a_missing_column_are_named() {
        let scratch = Scratch::new("schema");
        write(&scratch.0, &[Row { number: None, name: None, figures: Figures::default() }]);
        let open = || TableReader::open(&scratch.0).unwrap();
        let error = open().expect("rows 2").unwrap_err().to_string();
        assert!(error.contains(r#"has the schema "rows 1", expected "rows 2""#), "{error}");
        let group = open().next_group().unwrap().unwrap();
        let error = group.u64("length", 0).unwrap_err().to_string();
        assert!(error.contains(r#"lacks the column "length""#), "{error}");
        assert!(group.u64("name", 0).is_err(), "it is a column of texts");
    }
}
