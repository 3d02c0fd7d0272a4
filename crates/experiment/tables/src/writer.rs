//! Writes a table to Parquet row by row. It keeps at most one row group in memory.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
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
pub(crate) fn properties(
    metadata: Option<Vec<KeyValue>>,
) -> Result<WriterProperties, ParquetError> {
    let compression = Compression::ZSTD(ZstdLevel::try_new(3)?);
    let builder = WriterProperties::builder().set_compression(compression);
    Ok(builder.set_key_value_metadata(metadata).build())
}

fn message_type<R>(columns: &[Column<R>]) -> Result<TypePtr, ParquetError> {
    let fields = columns.iter().map(|column| {
        let (physical, logical, repetition) = match column.value {
            Value::U32(_) => (Physical::INT32, Some(unsigned(32)), Repetition::REQUIRED),
            Value::MaybeU32(_) => (Physical::INT32, Some(unsigned(32)), Repetition::OPTIONAL),
            Value::U64(_) => (Physical::INT64, Some(unsigned(64)), Repetition::REQUIRED),
            Value::MaybeU64(_) => (Physical::INT64, Some(unsigned(64)), Repetition::OPTIONAL),
            Value::F64(_) => (Physical::DOUBLE, None, Repetition::OPTIONAL),
            Value::Boolean(_) => (Physical::BOOLEAN, None, Repetition::OPTIONAL),
            Value::Text(_) => {
                (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::OPTIONAL)
            }
        };
        let field = Type::primitive_type_builder(column.name, physical);
        field.with_logical_type(logical).with_repetition(repetition).build().map(Arc::new)
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder("row").with_fields(fields).build()?))
}

fn unsigned(bits: i8) -> LogicalType {
    LogicalType::integer(bits, false)
}

fn write_column<R, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column<R>,
    rows: &[R],
) -> Result<(), ParquetError> {
    match column.value {
        // Parquet stores the bits of an unsigned integer in a signed integer.
        Value::U32(value) => {
            let values = rows.iter().map(|row| value(row).cast_signed()).collect();
            write_values::<Int32Type, W>(group, values, None)
        }
        Value::MaybeU32(value) => {
            let present = rows.iter().map(|row| i16::from(value(row).is_some())).collect();
            let values = rows.iter().filter_map(value).map(u32::cast_signed).collect();
            write_values::<Int32Type, W>(group, values, Some(present))
        }
        Value::U64(value) => {
            let values = rows.iter().map(|row| value(row).cast_signed()).collect();
            write_values::<Int64Type, W>(group, values, None)
        }
        Value::MaybeU64(value) => {
            let present = rows.iter().map(|row| i16::from(value(row).is_some())).collect();
            let values = rows.iter().filter_map(value).map(u64::cast_signed).collect();
            write_values::<Int64Type, W>(group, values, Some(present))
        }
        Value::F64(value) => {
            let present = rows.iter().map(|row| i16::from(value(row).is_some())).collect();
            let values = rows.iter().filter_map(value).collect();
            write_values::<DoubleType, W>(group, values, Some(present))
        }
        Value::Boolean(value) => {
            let present = rows.iter().map(|row| i16::from(value(row).is_some())).collect();
            write_values::<BoolType, W>(
                group,
                rows.iter().filter_map(value).collect(),
                Some(present),
            )
        }
        Value::Text(value) => {
            let present = rows.iter().map(|row| i16::from(value(row).is_some())).collect();
            let values = rows.iter().filter_map(value).map(ByteArray::from).collect();
            write_values::<ByteArrayType, W>(group, values, Some(present))
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
