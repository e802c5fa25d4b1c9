//! Rows of the tables in [`FigureTable`].

use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use warptrace_analysis::Selection;
use warptrace_tables::{FigureTable, Sink, TraceFigures};

use crate::scan::Scan;
use crate::source::Named;

pub(crate) fn rows(traces: &[Named], table: FigureTable, scan: &Scan, sink: &mut Sink<'_>) -> Result<()> {
    let (selection, schema) = (&Selection::default(), scan.schema());
    // One trace after the other, because each analysis uses all cores.
    for named in traces.iter().filter(|named| scan.bounds.allow_text("trace", &named.name)) {
        let (name, trace) = (named.name.as_str(), &named.trace);
        let figures = TraceFigures { name, trace, selection, analysis: &|| named.analysis() };
        let given = figures.rows(table, (&scan.columns, &schema), sink);
        if given.map_err(|error| named.error(error))?.is_break() {
            break;
        }
    }
    Ok(())
}
