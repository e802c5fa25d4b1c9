//! The traces that workers have.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt32Array, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::Result;
use warptrace_tables::Sink;

use crate::workers::Task;

/// Returns the columns: a row for each trace of each worker.
pub(crate) fn schema() -> SchemaRef {
    let column = |name, kind| Field::new(name, kind, false);
    Arc::new(Schema::new(vec![
        column("worker", DataType::UInt32),
        column("pattern", DataType::UInt32),
        column("path", DataType::Utf8),
        column("true_path", DataType::Utf8),
        column("length", DataType::UInt64),
        column("digest", DataType::UInt64),
        column("events", DataType::UInt64),
        column("is_whole", DataType::Boolean),
        column("state", DataType::Utf8),
    ]))
}

/// A trace that a worker has.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    /// Which of the patterns it fits.
    pub(crate) pattern: u32,
    /// As people name it: relative to the worker's folder, if the pattern is.
    pub(crate) path: String,
    /// Which file it is.
    pub(crate) true_path: String,
    pub(crate) length: u64,
    /// Of its first and last bytes: files of one name with one length and digest are the same file.
    pub(crate) digest: u64,
    pub(crate) events: u64,
    pub(crate) is_whole: bool,
    /// What is missing or assumed, or that it is whole.
    pub(crate) state: String,
}

/// Makes the rows of a worker.
pub(crate) fn rows(task: &Task, columns: &[usize], sink: &mut Sink<'_>) -> Result<()> {
    let found = task.list()?;
    let numbers = |number: fn(&Listed) -> u64| -> ArrayRef {
        Arc::new(found.iter().map(|file| Some(number(file))).collect::<UInt64Array>())
    };
    let texts = |text: fn(&Listed) -> &str| -> ArrayRef {
        Arc::new(found.iter().map(|file| Some(text(file))).collect::<StringArray>())
    };
    let worker = UInt32Array::from(vec![task.worker(); found.len()]);
    let pattern: UInt32Array = found.iter().map(|file| Some(file.pattern)).collect();
    let is_whole: BooleanArray = found.iter().map(|file| Some(file.is_whole)).collect();
    let all: Vec<ArrayRef> = vec![
        Arc::new(worker),
        Arc::new(pattern),
        texts(|file| &file.path),
        texts(|file| &file.true_path),
        numbers(|file| file.length),
        numbers(|file| file.digest),
        numbers(|file| file.events),
        Arc::new(is_whole),
        texts(|file| &file.state),
    ];
    let batch = RecordBatch::try_new(schema(), all)?.project(columns)?;
    // Whether more is wanted does not matter: there is no more.
    let _ = sink(batch);
    Ok(())
}
