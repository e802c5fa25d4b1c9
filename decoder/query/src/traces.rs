//! The table of traces: which file is of which rank.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt32Array, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::Result;
use warptrace_format::file::Origin;
use warptrace_tables::Sink;

use crate::source::Named;

/// Returns the columns: a row for each trace.
pub(crate) fn schema() -> SchemaRef {
    let column = |name, kind, is_optional| Field::new(name, kind, is_optional);
    Arc::new(Schema::new(vec![
        column("trace", DataType::Utf8, false),
        column("job", DataType::Utf8, true),
        column("rank", DataType::UInt32, true),
        column("host", DataType::Utf8, true),
        column("worker", DataType::Utf8, true),
        column("whole", DataType::Boolean, false),
        column("state", DataType::Utf8, false),
        column("launches", DataType::UInt64, false),
        column("events", DataType::UInt64, false),
    ]))
}

/// Makes the rows.
pub(crate) fn rows(traces: &[Named], columns: &[usize], sink: &mut Sink<'_>) -> Result<()> {
    fn text<'a>(traces: &'a [Named], of: impl Fn(&'a Named) -> Option<&'a str>) -> ArrayRef {
        Arc::new(traces.iter().map(of).collect::<StringArray>())
    }
    fn origin(named: &Named) -> Option<&Origin> {
        named.trace.metadata().origin.as_deref()
    }
    let number = |of: &dyn Fn(&Named) -> u64| -> ArrayRef {
        Arc::new(traces.iter().map(|named| Some(of(named))).collect::<UInt64Array>())
    };
    let rank: UInt32Array = traces.iter().map(|named| origin(named)?.rank).collect();
    let whole: BooleanArray = traces.iter().map(|named| Some(named.trace.state().is_whole)).collect();
    let all: Vec<ArrayRef> = vec![
        text(traces, |named| Some(&named.name)),
        text(traces, |named| origin(named)?.job.as_deref()),
        Arc::new(rank),
        text(traces, |named| origin(named)?.host.as_deref()),
        text(traces, Named::place),
        Arc::new(whole),
        text(traces, |named| Some(&named.trace.state().sentence)),
        number(&|named| named.trace.launches().len() as u64),
        number(&Named::events),
    ];
    // Whether more is wanted does not matter: there is no more.
    let _ = sink(RecordBatch::try_new(schema(), all)?.project(columns)?);
    Ok(())
}
