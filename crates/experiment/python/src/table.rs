//! Tables, which Python receives as Arrow streams and which are read from and written to Parquet.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, new_null_array};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors;

/// A table of columns.
#[pyclass(frozen, module = "wakeai._native")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) fn new(batch: RecordBatch) -> Self {
        Self { schema: batch.schema(), batches: vec![batch] }
    }
}

#[pymethods]
impl Table {
    /// The table as an Arrow stream (Arrow's `PyCapsule` interface).
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // a producer may ignore it
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __repr__(&self) -> String {
        format!("<wakeai.Table: {} rows of {}>", self.__len__(), self.column_names().join(", "))
    }

    /// Writes the table as Parquet. The same table gives the same bytes.
    fn write_parquet(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.write(&path)).map_err(|error| {
            PyOSError::new_err(format!("cannot write {}: {error}", path.display()))
        })
    }
}

impl Table {
    fn write(&self, path: &Path) -> Result<(), parquet::errors::ParquetError> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(parquet::basic::ZstdLevel::default()))
            .set_created_by("wakeai".to_owned())
            .build();
        let file = File::create(path)?;
        let mut writer = ArrowWriter::try_new(file, self.schema.clone(), Some(properties))?;
        for batch in &self.batches {
            writer.write(batch)?;
        }
        writer.into_inner()?.sync_all()?;
        Ok(())
    }
}

/// Reads Parquet files as one table. A column that some files lack is null in their rows.
#[pyfunction]
pub(crate) fn read_parquet(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Table> {
    py.detach(|| read(&paths)).map_err(|(path, reason)| {
        let text = format!("{} cannot be read as Parquet: {reason}", path.display());
        errors::new(py, "ReadError", &text)
    })
}

fn read(paths: &[PathBuf]) -> Result<Table, (PathBuf, String)> {
    let mut batches = Vec::new();
    for path in paths {
        let read = || -> Result<Vec<RecordBatch>, Box<dyn std::error::Error>> {
            let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
            let empty = RecordBatch::new_empty(builder.schema().clone());
            let mut found = builder.build()?.collect::<Result<Vec<_>, ArrowError>>()?;
            if found.is_empty() {
                found.push(empty);
            }
            Ok(found)
        };
        // The Parquet library panics on some damaged files.
        let found = std::panic::catch_unwind(read)
            .map_err(|_| (path.clone(), "its parts do not fit together".to_owned()))?
            .map_err(|error| (path.clone(), error.to_string()))?;
        batches.extend(found.into_iter().map(|batch| (path, batch)));
    }
    let mut schema = Schema::empty();
    for (path, batch) in &batches {
        let fields = batch.schema();
        let fields = fields.fields().iter();
        // The merged metadata of files would differ with their order.
        let fields = fields.map(|of| Field::new(of.name(), of.data_type().clone(), true));
        let merged = Schema::try_merge([schema, Schema::new(fields.collect::<Vec<_>>())]);
        schema = merged.map_err(|error| ((*path).clone(), error.to_string()))?;
    }
    let schema = Arc::new(schema);
    let aligned = batches.into_iter().map(|(path, batch)| {
        let column = |field: &Arc<Field>| -> ArrayRef {
            let found = batch.column_by_name(field.name());
            let found = found.filter(|array| array.data_type() == field.data_type());
            found.cloned().unwrap_or_else(|| new_null_array(field.data_type(), batch.num_rows()))
        };
        let columns = schema.fields().iter().map(column).collect();
        RecordBatch::try_new(schema.clone(), columns)
            .map_err(|error| (path.clone(), error.to_string()))
    });
    let batches = aligned.collect::<Result<_, _>>()?;
    Ok(Table { schema, batches })
}
