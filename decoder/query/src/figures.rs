//! Tables of figures and metadata.

use std::sync::Arc;

use warptrace_analysis::Selection;
use warptrace_tables::{FigureTable, TraceFigures};

use crate::source::{Asked, Named, Part, Rows};

/// A table of figures of each trace.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) traces: Arc<[Named]>,
    pub(crate) table: FigureTable,
}

impl Rows for Figures {
    fn parts(&self, asked: Asked) -> Vec<Part> {
        let Asked { columns, schema, bounds, .. } = asked;
        let (traces, table) = (Arc::clone(&self.traces), self.table);
        // One part: each analysis uses all cores by itself.
        let part: Part = Arc::new(move |sink| {
            let selection = &Selection::default();
            for named in traces.iter().filter(|named| bounds.allow_text("trace", &named.name)) {
                let (name, trace) = (named.name.as_str(), &named.trace);
                let figures = TraceFigures { name, trace, selection, analysis: &|| named.analysis() };
                let given = figures.rows(table, (&columns, &schema), sink);
                if given.map_err(|error| named.error(error))?.is_break() {
                    return Ok(());
                }
            }
            Ok(())
        });
        vec![part]
    }
}
