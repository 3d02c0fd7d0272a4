//! Writes a table to Parquet row by row. It keeps at most one row group in memory.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::SCHEMA;

/// The number of rows in a row group, which stays in memory until it is written.
pub(crate) const ROW_GROUP: usize = 32_768;

/// A column of the rows `R`.
#[derive(Debug)]
pub struct Column<R> {
    /// The name.
    pub name: &'static str,
    /// The type and the value.
    pub value: Value<R>,
}

impl<R> Column<R> {
    /// The column `name`.
    pub const fn new(name: &'static str, value: Value<R>) -> Self {
        Self { name, value }
    }

    /// The values of the column in these rows.
    pub fn array<'a>(&self, rows: impl Iterator<Item = &'a R>) -> ArrayRef
    where
        R: 'a,
    {
        match self.value {
            Value::U32(of) => Arc::new(UInt32Array::from_iter_values(rows.map(of))),
            Value::MaybeU32(of) => Arc::new(rows.map(of).collect::<UInt32Array>()),
            Value::U64(of) => Arc::new(UInt64Array::from_iter_values(rows.map(of))),
            Value::MaybeU64(of) => Arc::new(rows.map(of).collect::<UInt64Array>()),
            Value::F64(of) => Arc::new(rows.map(of).collect::<Float64Array>()),
            Value::Boolean(of) => Arc::new(rows.map(of).collect::<BooleanArray>()),
            Value::Text(of) => Arc::new(rows.map(of).collect::<StringArray>()),
        }
    }

    fn field(&self) -> Field {
        let may_be_null = !matches!(self.value, Value::U32(_) | Value::U64(_));
        let kind = self.array(std::iter::empty()).data_type().clone();
        Field::new(self.name, kind, may_be_null)
    }
}

/// The type of a column, and the function that finds its value in a row.
#[derive(Debug)]
pub enum Value<R> {
    /// An unsigned integer of 32 bits.
    U32(fn(&R) -> u32),
    /// An unsigned integer of 32 bits; null if there is no value.
    MaybeU32(fn(&R) -> Option<u32>),
    /// An unsigned integer of 64 bits.
    U64(fn(&R) -> u64),
    /// An unsigned integer of 64 bits; null if there is no value.
    MaybeU64(fn(&R) -> Option<u64>),
    /// A floating-point number; null if there is no value.
    F64(fn(&R) -> Option<f64>),
    /// A truth value; null if there is no value.
    Boolean(fn(&R) -> Option<bool>),
    /// Text; null if there is no value.
    Text(fn(&R) -> Option<&str>),
}

/// A table that is being written.
pub struct TableWriter<R, W: Write + Send> {
    columns: Vec<Column<R>>,
    schema: SchemaRef,
    file: ArrowWriter<W>,
    rows: Vec<R>,
    written: u64,
}

impl<R, W: Write + Send> TableWriter<R, W> {
    /// Begins a table with these columns. `schema` is the table's version in the file's metadata.
    ///
    /// # Errors
    ///
    /// The file cannot be written. The other methods fail for the same reason.
    pub fn new(
        schema: &'static str,
        columns: Vec<Column<R>>,
        file: W,
    ) -> Result<Self, ParquetError> {
        let version = KeyValue::new(SCHEMA.to_owned(), schema.to_owned());
        let fields: Vec<Field> = columns.iter().map(Column::field).collect();
        let schema = Arc::new(Schema::new(fields));
        let file = begin(file, Arc::clone(&schema), Some(vec![version]))?;
        Ok(Self { columns, schema, file, rows: Vec::new(), written: 0 })
    }

    /// Adds a row, and writes a row group when it is full.
    ///
    /// # Errors
    ///
    /// See [`Self::new`].
    pub fn push(&mut self, row: R) -> Result<(), ParquetError> {
        self.rows.push(row);
        if self.rows.len() < ROW_GROUP { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        let arrays = self.columns.iter().map(|column| column.array(self.rows.iter()));
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays.collect())?;
        self.file.write(&batch)?;
        self.file.flush()?;
        self.written += self.rows.len() as u64;
        self.rows.clear();
        Ok(())
    }

    /// The number of rows that were added.
    pub fn rows(&self) -> u64 {
        self.written + self.rows.len() as u64
    }

    /// Writes the remaining rows and the footer; returns the file and its number of rows.
    ///
    /// # Errors
    ///
    /// See [`Self::new`].
    pub fn finish(mut self) -> Result<(W, u64), ParquetError> {
        self.flush()?;
        Ok((self.file.into_inner()?, self.written))
    }
}

impl<R, W: Write + Send> fmt::Debug for TableWriter<R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableWriter").field("written", &self.written).finish_non_exhaustive()
    }
}

/// Begins a file with this schema and metadata.
fn begin<W: Write + Send>(
    file: W,
    schema: SchemaRef,
    metadata: Option<Vec<KeyValue>>,
) -> Result<ArrowWriter<W>, ParquetError> {
    let compression = Compression::ZSTD(ZstdLevel::try_new(3)?);
    let properties = WriterProperties::builder().set_compression(compression);
    let properties = properties.set_key_value_metadata(metadata).build();
    let options = ArrowWriterOptions::new().with_properties(properties);
    let options = options.with_skip_arrow_metadata(true).with_schema_root("row".to_owned());
    ArrowWriter::try_new_with_options(file, schema, options)
}

/// Copies the first `rows` rows of a table of [`TableWriter`] into `to`, and returns `to`.
///
/// # Errors
///
/// The table cannot be read, or the copy cannot be written.
pub fn copy_first<W: Write + Send>(from: &Path, rows: u64, to: W) -> Result<W, ParquetError> {
    let table = ParquetRecordBatchReaderBuilder::try_new(File::open(from)?)?;
    let metadata = table.metadata().file_metadata().key_value_metadata().cloned();
    let mut copy = begin(to, Arc::clone(table.schema()), metadata)?;
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    for batch in table.with_limit(rows).with_batch_size(ROW_GROUP).build()? {
        copy.write(&batch?)?;
        copy.flush()?;
    }
    copy.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TableReader;

    fn table<W: Write + Send>(file: W) -> TableWriter<u64, W> {
        let columns = vec![Column::new("number", Value::U64(|n| *n))];
        TableWriter::new("numbers 1", columns, file).unwrap()
    }

    /// A disk with room for `room` bytes.
    struct Disk(usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.0 < bytes.len() {
                return Err(std::io::Error::from_raw_os_error(28)); // ENOSPC
            }
            self.0 -= bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Numbers that do not compress.
    fn noise() -> impl Iterator<Item = u64> {
        (0_u64..).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) ^ (n << 40))
    }

    #[test]
    fn a_full_disk_is_an_error_that_names_it() {
        let mut table = table(Disk(100_000));
        let error = noise().take(1_000_000).try_for_each(|number| table.push(number)).unwrap_err();
        assert!(error.to_string().contains("No space left"), "{error}");
    }

    #[test]
    fn a_disk_that_fills_with_the_footer_is_an_error_too() {
        let mut table = table(Disk(50));
        table.push(1).unwrap();
        assert!(table.finish().is_err());
    }

    #[test]
    fn no_more_than_a_row_group_is_kept_in_memory() {
        let mut table = table(std::io::sink());
        for number in noise().take(10 * ROW_GROUP + 5) {
            table.push(number).unwrap();
            assert!(table.rows.len() < ROW_GROUP && table.rows.capacity() <= 2 * ROW_GROUP);
        }
        let (_, rows) = table.finish().unwrap();
        assert_eq!(rows, 10 * ROW_GROUP as u64 + 5);
    }

    #[test]
    fn the_first_rows_are_copied_with_their_nulls_and_the_schema() {
        let directory = std::env::temp_dir().join(format!("wakeai-first-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (whole, part) = (directory.join("whole"), directory.join("part"));
        let columns = vec![
            Column::new("number", Value::U64(|n: &(u64, String)| n.0)),
            Column::new("even", Value::MaybeU32(|n| n.0.is_multiple_of(2).then_some(n.0 as u32))),
            Column::new(
                "half",
                Value::F64(|n| (!n.0.is_multiple_of(3)).then_some(n.0 as f64 / 2.0)),
            ),
            Column::new("text", Value::Text(|n| (!n.0.is_multiple_of(5)).then_some(&n.1))),
        ];
        let mut table =
            TableWriter::new("numbers 1", columns, File::create(&whole).unwrap()).unwrap();
        for number in 0..70_000 {
            table.push((number, number.to_string())).unwrap();
        }
        table.finish().unwrap();
        for rows in [0, 1, 32_768, 40_001, 70_000, 80_000] {
            copy_first(&whole, rows, File::create(&part).unwrap()).unwrap();
            let mut table = TableReader::open(&part).unwrap().expect("numbers 1").unwrap();
            let mut seen = 0_u64;
            while let Some(group) = table.next_group().unwrap() {
                for row in 0..group.rows() {
                    let even = seen.is_multiple_of(2).then_some(seen);
                    let half = (!seen.is_multiple_of(3)).then_some(seen as f64 / 2.0);
                    let text = (!seen.is_multiple_of(5)).then_some(seen.to_string());
                    assert_eq!(group.u64("number", row).unwrap(), Some(seen));
                    assert_eq!(group.u64("even", row).unwrap(), even);
                    assert_eq!(group.f64("half", row).unwrap(), half);
                    assert_eq!(group.text("text", row).unwrap(), text.as_deref());
                    seen += 1;
                }
            }
            assert_eq!(seen, rows.min(70_000));
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
