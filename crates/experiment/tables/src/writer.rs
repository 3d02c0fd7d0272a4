//! Writes a table to Parquet row by row. It keeps at most one row group in memory.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::SCHEMA;

/// The number of rows in a row group, which stays in memory until it is written.
const ROW_GROUP: usize = 32_768;

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
    file: SerializedFileWriter<W>,
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
        let properties = properties(Some(vec![version]))?;
        let file = SerializedFileWriter::new(file, message_type(&columns)?, Arc::new(properties))?;
        Ok(Self { columns, file, rows: Vec::new(), written: 0 })
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
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for column in &self.columns {
            write_column(&mut group, column, &rows)?;
        }
        group.close()?;
        self.written += rows.len() as u64;
        self.rows = rows;
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

/// The properties of every table, with this metadata.
fn properties(metadata: Option<Vec<KeyValue>>) -> Result<WriterProperties, ParquetError> {
    let compression = Compression::ZSTD(ZstdLevel::try_new(3)?);
    let builder = WriterProperties::builder().set_compression(compression);
    Ok(builder.set_key_value_metadata(metadata).build())
}

fn message_type<R>(columns: &[Column<R>]) -> Result<TypePtr, ParquetError> {
    let fields = columns.iter().map(|column| {
        let unsigned = |bits| Some(LogicalType::integer(bits, false));
        let (physical, logical) = match column.value {
            Value::U32(_) | Value::MaybeU32(_) => (Physical::INT32, unsigned(32)),
            Value::U64(_) | Value::MaybeU64(_) => (Physical::INT64, unsigned(64)),
            Value::F64(_) => (Physical::DOUBLE, None),
            Value::Boolean(_) => (Physical::BOOLEAN, None),
            Value::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let is_required = matches!(column.value, Value::U32(_) | Value::U64(_));
        let repetition = if is_required { Repetition::REQUIRED } else { Repetition::OPTIONAL };
        let field = Type::primitive_type_builder(column.name, physical);
        field.with_logical_type(logical).with_repetition(repetition).build().map(Arc::new)
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder("row").with_fields(fields).build()?))
}

fn write_column<R, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column<R>,
    rows: &[R],
) -> Result<(), ParquetError> {
    let rows = rows.iter();
    // Parquet stores the bits of an unsigned integer in a signed integer.
    match column.value {
        Value::U32(value) => {
            let values = rows.map(|row| value(row).cast_signed());
            write_values::<Int32Type, W>(group, values.collect(), None)
        }
        Value::U64(value) => {
            let values = rows.map(|row| value(row).cast_signed());
            write_values::<Int64Type, W>(group, values.collect(), None)
        }
        Value::MaybeU32(value) => {
            write_present::<Int32Type, W>(group, rows.map(|row| value(row).map(u32::cast_signed)))
        }
        Value::MaybeU64(value) => {
            write_present::<Int64Type, W>(group, rows.map(|row| value(row).map(u64::cast_signed)))
        }
        Value::F64(value) => write_present::<DoubleType, W>(group, rows.map(value)),
        Value::Boolean(value) => write_present::<BoolType, W>(group, rows.map(value)),
        Value::Text(value) => write_present::<ByteArrayType, W>(
            group,
            rows.map(|row| value(row).map(ByteArray::from)),
        ),
    }
}

/// Writes a column whose values may be null.
fn write_present<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let (mut values, mut present) = (Vec::new(), Vec::new());
    for value in rows {
        present.push(i16::from(value.is_some()));
        values.extend(value);
    }
    write_values::<T, W>(group, values, Some(present))
}

/// Writes a column of `values`. If the column may be null, `present` has a 1 for each row with a
/// value and a 0 for each row without.
#[expect(clippy::needless_pass_by_value, reason = "made for this call")]
fn write_values<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: Vec<T::T>,
    present: Option<Vec<i16>>,
) -> Result<(), ParquetError> {
    let mut writer = group.next_column()?.expect("as many columns as the schema was made of");
    writer.typed::<T>().write_batch(&values, present.as_deref(), None)?;
    writer.close()
}

/// Copies the first `rows` rows of a table of [`TableWriter`] into `to`, and returns `to`.
///
/// # Errors
///
/// The table cannot be read, or the copy cannot be written.
pub fn copy_first<W: Write + Send>(from: &Path, rows: u64, to: W) -> Result<W, ParquetError> {
    let table = SerializedFileReader::new(File::open(from)?)?;
    let metadata = table.metadata().file_metadata();
    let schema = metadata.schema_descr().root_schema_ptr();
    let properties = properties(metadata.key_value_metadata().cloned())?;
    let mut copy = SerializedFileWriter::new(to, schema, Arc::new(properties))?;
    let mut left = usize::try_from(rows).unwrap_or(usize::MAX);
    for index in 0..table.num_row_groups() {
        let group = table.get_row_group(index)?;
        let count = left.min(usize::try_from(group.metadata().num_rows()).unwrap_or(0));
        if count == 0 {
            break;
        }
        let mut copied = copy.next_row_group()?;
        copy_group(&*group, count, &mut copied)?;
        copied.close()?;
        left -= count;
    }
    copy.into_inner()
}

fn copy_group<W: Write + Send>(
    group: &dyn RowGroupReader,
    rows: usize,
    copy: &mut SerializedRowGroupWriter<'_, W>,
) -> Result<(), ParquetError> {
    for column in 0..group.num_columns() {
        match group.get_column_reader(column)? {
            ColumnReader::Int32ColumnReader(from) => copy_column(from, rows, copy),
            ColumnReader::Int64ColumnReader(from) => copy_column(from, rows, copy),
            ColumnReader::DoubleColumnReader(from) => copy_column(from, rows, copy),
            ColumnReader::ByteArrayColumnReader(from) => copy_column(from, rows, copy),
            _ => Err(ParquetError::General("a column of another tool".to_owned())),
        }?;
    }
    Ok(())
}

fn copy_column<T: DataType, W: Write + Send>(
    mut from: ColumnReaderImpl<T>,
    rows: usize,
    copy: &mut SerializedRowGroupWriter<'_, W>,
) -> Result<(), ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        let (records, _, _) =
            from.read_records(rows - read, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::General(format!("a column has {read} of {rows} rows")));
        }
        read += records;
    }
    let mut to = copy.next_column()?.expect("as many columns as the table has");
    // A column that is never null has no levels.
    let present = (!levels.is_empty()).then_some(&levels[..]);
    to.typed::<T>().write_batch(&values, present, None)?;
    to.close()
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
