//! The table of traces: the file of each rank.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt32Array, UInt64Array};
use datafusion::error::Result;
use warptrace_format::file::Origin;

use crate::source::Named;

pub(crate) fn batch(traces: &[Named]) -> Result<RecordBatch> {
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
    let columns: [(&str, ArrayRef, bool); 9] = [
        ("trace", text(traces, |named| Some(&named.name)), false),
        ("job", text(traces, |named| origin(named)?.job.as_deref()), true),
        ("rank", Arc::new(rank), true),
        ("host", text(traces, |named| origin(named)?.host.as_deref()), true),
        ("worker", text(traces, Named::place), true),
        ("whole", Arc::new(whole), false),
        ("state", text(traces, |named| Some(&named.trace.state().sentence)), false),
        ("launches", number(&|named| named.trace.launches().len() as u64), false),
        ("events", number(&Named::events), false),
    ];
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}
