//! Events and figures of `.wtrc` traces as Arrow record batches.
//!
//! ```text
//! TraceFile ──┬─ EventBatch    events and runs of some warps, decoded on request
//!             ├─ AccessBatch   addresses and values of some warps, likewise
//!             └─ TraceFigures  warps, locations, loops, launches, kernels, lines, causes, edges, sites,
//!                              losses: figures and metadata
//! ```
//!
//! `docs/reference/exports.md` describes the columns. The first column of each table is `trace`, the name
//! given for the trace. Columns are chosen by their numbers. Parquet files, SQL and Python use these tables.

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

/// Maximum number of rows of a batch.
pub const BATCH: usize = 8192;

/// Receives batches. Returns `Break` to stop.
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
    /// Returns all public tables, in the order of display.
    pub fn all() -> impl Iterator<Item = Self> {
        let events = [EventTable::Events, EventTable::Runs].into_iter().map(Self::Events);
        let figures = FigureTable::ALL.into_iter().map(Self::Figures);
        events.chain(figures).chain(AccessTable::ALL.into_iter().map(Self::Accesses))
    }

    /// Returns the name in queries and files.
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

    /// Passes the rows of the selected part of a trace to `sink`, events, addresses and values by launch.
    /// `chosen` has the table's column numbers and their schema. Fails if the trace is damaged or lacks a
    /// selected item.
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
