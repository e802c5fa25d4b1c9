//! The list of the workers' traces.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt32Array, UInt64Array};
use datafusion::error::Result;

#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) pattern: u32,
    /// Path for display: relative to the worker's folder if the pattern is relative.
    pub(crate) path: String,
    /// Canonical path of the file.
    pub(crate) true_path: String,
    pub(crate) length: u64,
    /// Digest of the first and last bytes. Files with equal name, length and digest are the same file.
    pub(crate) digest: u64,
    pub(crate) events: u64,
    pub(crate) is_whole: bool,
    /// A description of what is missing or assumed, or that the trace is complete.
    pub(crate) state: String,
}

pub(crate) fn batch(worker: u32, found: &[Listed]) -> Result<RecordBatch> {
    let numbers = |number: fn(&Listed) -> u64| -> ArrayRef {
        Arc::new(found.iter().map(|file| Some(number(file))).collect::<UInt64Array>())
    };
    let texts = |text: fn(&Listed) -> &str| -> ArrayRef {
        Arc::new(found.iter().map(|file| Some(text(file))).collect::<StringArray>())
    };
    let pattern: UInt32Array = found.iter().map(|file| Some(file.pattern)).collect();
    let is_whole: BooleanArray = found.iter().map(|file| Some(file.is_whole)).collect();
    let columns: [(&str, ArrayRef); 9] = [
        ("worker", Arc::new(UInt32Array::from(vec![worker; found.len()]))),
        ("pattern", Arc::new(pattern)),
        ("path", texts(|file| &file.path)),
        ("true_path", texts(|file| &file.true_path)),
        ("length", numbers(|file| file.length)),
        ("digest", numbers(|file| file.digest)),
        ("events", numbers(|file| file.events)),
        ("is_whole", Arc::new(is_whole)),
        ("state", texts(|file| &file.state)),
    ];
    Ok(RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, false)))?)
}
