//! Copies the beginning of a table, as far as it is to be kept.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader as _, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use crate::writer::properties;

/// Copies the first `rows` rows of a table of [`crate::TableWriter`] into `to`, and returns `to`.
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
            ColumnReader::Int32ColumnReader(from) => copy_column::<Int32Type, W>(from, rows, copy),
            ColumnReader::Int64ColumnReader(from) => copy_column::<Int64Type, W>(from, rows, copy),
            ColumnReader::DoubleColumnReader(from) => {
                copy_column::<DoubleType, W>(from, rows, copy)
            }
            ColumnReader::ByteArrayColumnReader(from) => {
                copy_column::<ByteArrayType, W>(from, rows, copy)
            }
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
    use crate::{Column, TableReader, TableWriter, Value};

    use super::*;

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
