//! Events and figures of `.wtrc` traces as Arrow record batches.
//!
//! ```text
//! TraceFile ──┬─ EventBatch    events and runs of some warps, decoded while they are asked for
//!             ├─ AccessBatch   addresses and values of some warps, likewise
//!             └─ TraceFigures  warps, locations, loops, launches, kernels, lines, causes, edges, sites,
//!                              losses: figures and metadata
//! ```
//!
//! `docs/reference/exports.md` describes the columns. Each table has a first column `trace`, the name under
//! which the trace was given; columns are chosen by their numbers. Parquet files, SQL and Python have these tables.

mod accesses;
mod column;
mod error;
mod events;
mod figures;

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

pub use accesses::{AccessBatch, access_schema};
pub use error::TableError;
pub use events::{COUNT, EventBatch, EventTable, Made, SINGLE, Wanted};
pub use figures::{FigureTable, TraceFigures};
pub use warptrace_analysis::AccessTable;

/// Most rows of a batch.
pub const BATCH: usize = 8192;

/// Takes batches; `Break` if no more are wanted.
pub type Sink<'a> = dyn FnMut(RecordBatch) -> ControlFlow<()> + 'a;

/// A table of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceTable {
    /// Events, or runs of them.
    Events(EventTable),
    /// Figures or metadata.
    Figures(FigureTable),
    /// Addresses or values.
    Accesses(AccessTable),
}

impl TraceTable {
    /// Returns all that people ask, in the order in which they are named to them.
    pub fn all() -> impl Iterator<Item = Self> {
        let events = [EventTable::Events, EventTable::Runs].into_iter().map(Self::Events);
        let figures = FigureTable::ALL.into_iter().map(Self::Figures);
        events.chain(figures).chain(AccessTable::ALL.into_iter().map(Self::Accesses))
    }

    /// Returns the name that queries and files have for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Events(table) => table.name(),
            Self::Figures(table) => table.name(),
            Self::Accesses(table) => table.name(),
        }
    }

    /// Returns the columns.
    pub fn schema(self) -> SchemaRef {
        match self {
            Self::Events(table) => table.schema(),
            Self::Figures(table) => table.schema(),
            Self::Accesses(table) => access_schema(table),
        }
    }

    /// Gives the rows of the selected part of a trace to `sink`, launch by launch where they are of events,
    /// addresses or values. `chosen` has the numbers, in the table, of the columns in the schema beside them.
    ///
    /// # Errors
    /// The trace is damaged, or does not have what is selected.
    pub fn rows(
        self,
        of: &TraceFigures<'_>,
        chosen: (&[usize], &SchemaRef),
        sink: &mut Sink<'_>,
    ) -> Result<(), TableError> {
        let TraceFigures { name, trace, selection, .. } = *of;
        let made = Arc::new(Made::default());
        if let Self::Figures(table) = self {
            return of.rows(table, chosen, sink).map(|_| ());
        }
        for (launch, warps) in selection.launches(trace)? {
            let flow = match self {
                Self::Events(table) => {
                    let wanted = Wanted { warps, selection: selection.clone(), locations: 0..=u64::MAX };
                    EventBatch::new((name, trace), launch, chosen, &made).fill(trace, &wanted, table, sink)?
                }
                Self::Accesses(table) => {
                    AccessBatch::new((name, trace), launch, table, chosen).fill(&warps, selection, sink)?.0
                }
                Self::Figures(_) => break,
            };
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }
}
