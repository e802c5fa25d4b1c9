//! Traces, and what makes rows of them.

use std::fmt;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use warptrace_analysis::{Analysis, AnalysisError, Selection, analyse};
use warptrace_decoder::TraceFile;
use warptrace_tables::Sink;

use crate::filter::Bounds;

/// A trace with what queries call it.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) trace: TraceFile,
    analysis: OnceLock<Result<Arc<Analysis>, Arc<AnalysisError>>>,
}

impl Named {
    pub(crate) fn new(name: String, trace: TraceFile) -> Self {
        Self { name, trace, analysis: OnceLock::new() }
    }

    /// The figures of the whole trace, which are computed once.
    pub(crate) fn analysis(&self) -> Result<Arc<Analysis>, Arc<AnalysisError>> {
        let analysed = || analyse(&self.trace, &Selection::default()).map(Arc::new).map_err(Arc::new);
        self.analysis.get_or_init(analysed).clone()
    }

    /// An error of this trace.
    pub(crate) fn error(&self, error: impl fmt::Display) -> DataFusionError {
        DataFusionError::External(format!("{}: {error}", self.name).into())
    }
}

impl fmt::Debug for Named {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Named").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Makes the rows of one part of a table.
pub(crate) type Part = Arc<dyn Fn(&mut Sink<'_>) -> Result<()> + Send + Sync>;

/// What is asked of a table.
#[derive(Clone)]
pub(crate) struct Asked {
    /// Numbers of the columns, in the order in which they are wanted.
    pub(crate) columns: Vec<usize>,
    /// The columns.
    pub(crate) schema: SchemaRef,
    pub(crate) bounds: Bounds,
    /// How many parts can be made at once.
    pub(crate) parts: usize,
}

/// Makes the rows of a table in parts, which can be made at once.
pub(crate) trait Rows {
    /// At most as many parts as can be made at once, the same for the same traces.
    fn parts(&self, asked: Asked) -> Vec<Part>;
}
