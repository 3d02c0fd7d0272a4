//! A table read from Parquet, one group of rows at a time.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;

use parquet::basic::LogicalType;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader as _, SerializedFileReader};

use crate::SCHEMA;

/// The largest number of rows that a group of a readable file has. It bounds the memory that a file can demand.
const MOST_ROWS: i64 = 1 << 22;

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
    file: SerializedFileReader<File>,
    next: usize,
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
        let file = guarded(&path, || SerializedFileReader::new(file))?;
        Ok(Self { path, file, next: 0 })
    }

    /// Checks the version of the schema in the file's metadata.
    ///
    /// # Errors
    ///
    /// The file has another version, or none.
    pub fn expect(self, expected: &'static str) -> Result<Self, TableError> {
        let metadata = self.file.metadata().file_metadata().key_value_metadata();
        let found = metadata.into_iter().flatten().find(|pair| pair.key == SCHEMA);
        let found = found.and_then(|pair| pair.value.clone()).unwrap_or_default();
        if found == expected {
            return Ok(self);
        }
        Err(TableError::Schema { path: self.path, found, expected })
    }

    /// The next group of rows; `None` after the last one.
    ///
    /// # Errors
    ///
    /// The file is damaged, or a column has a type that [`crate::TableWriter`] does not write.
    pub fn next_group(&mut self) -> Result<Option<Group>, TableError> {
        if self.next == self.file.num_row_groups() {
            return Ok(None);
        }
        self.next += 1;
        let (rows, columns) = guarded(&self.path, || self.read_group(self.next - 1))?;
        Ok(Some(Group { path: self.path.clone(), rows, columns }))
    }

    fn read_group(&self, index: usize) -> Result<(usize, BTreeMap<String, Values>), ParquetError> {
        let group = self.file.get_row_group(index)?;
        let rows = group.metadata().num_rows();
        if !(0..=MOST_ROWS).contains(&rows) {
            let reason = format!("a group of {rows} rows, at most {MOST_ROWS} are allowed");
            return Err(ParquetError::General(reason));
        }
        let rows = rows as usize;
        let mut columns = BTreeMap::new();
        for (position, column) in group.metadata().columns().iter().enumerate() {
            let column = column.column_descr();
            let kind = column.logical_type_ref();
            let is_unsigned = matches!(kind, Some(LogicalType::Integer(kind)) if !kind.is_signed);
            let is_text = matches!(kind, Some(LogicalType::String));
            let nullable = column.max_def_level() == 1;
            let values = match group.get_column_reader(position)? {
                ColumnReader::Int32ColumnReader(reader) if is_unsigned => {
                    let convert = |value: i32| u64::from(value.cast_unsigned());
                    Values::U64(read(reader, rows, nullable, convert)?)
                }
                ColumnReader::Int64ColumnReader(reader) if is_unsigned => {
                    Values::U64(read(reader, rows, nullable, i64::cast_unsigned)?)
                }
                ColumnReader::DoubleColumnReader(reader) => {
                    Values::F64(read(reader, rows, nullable, |value| value)?)
                }
                ColumnReader::ByteArrayColumnReader(reader) if is_text => {
                    let text =
                        |value: ByteArray| String::from_utf8_lossy(value.data()).into_owned();
                    Values::Text(read(reader, rows, nullable, text)?)
                }
                _ => continue, // a column of another tool
            };
            columns.insert(column.name().to_owned(), values);
        }
        Ok((rows, columns))
    }
}

impl std::fmt::Debug for TableReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableReader").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Reads a column of `rows` values, each of which may be null.
fn read<T: DataType, V>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    nullable: bool,
    convert: impl Fn(T::T) -> V,
) -> Result<Vec<Option<V>>, ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    while let (records, _, _) = reader.read_records(rows, Some(&mut levels), None, &mut values)?
        && records > 0
    {}
    let mut values = values.into_iter().map(convert);
    let found: Vec<_> = if nullable {
        levels.into_iter().map(|level| if level == 1 { values.next() } else { None }).collect()
    } else {
        values.map(Some).collect()
    };
    if found.len() == rows {
        return Ok(found);
    }
    Err(ParquetError::General(format!("a column has {} of {rows} rows", found.len())))
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
    rows: usize,
    columns: BTreeMap<String, Values>,
}

/// The values of a column.
#[derive(Clone, Debug)]
enum Values {
    U64(Vec<Option<u64>>),
    F64(Vec<Option<f64>>),
    Text(Vec<Option<String>>),
}

impl Group {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// An unsigned integer; `None` is null. Panics beyond the last row.
    ///
    /// # Errors
    ///
    /// There is no such column of unsigned integers.
    pub fn u64(&self, column: &str, row: usize) -> Result<Option<u64>, TableError> {
        match self.columns.get(column) {
            Some(Values::U64(values)) => Ok(values[row]),
            _ => Err(self.lacks(column)),
        }
    }

    /// A floating-point number; `None` is null. Panics beyond the last row.
    ///
    /// # Errors
    ///
    /// There is no such column of floating-point numbers.
    pub fn f64(&self, column: &str, row: usize) -> Result<Option<f64>, TableError> {
        match self.columns.get(column) {
            Some(Values::F64(values)) => Ok(values[row]),
            _ => Err(self.lacks(column)),
        }
    }

    /// A text; `None` is null. Panics beyond the last row.
    ///
    /// # Errors
    ///
    /// There is no such column of texts.
    pub fn text(&self, column: &str, row: usize) -> Result<Option<&str>, TableError> {
        match self.columns.get(column) {
            Some(Values::Text(values)) => Ok(values[row].as_deref()),
            _ => Err(self.lacks(column)),
        }
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
