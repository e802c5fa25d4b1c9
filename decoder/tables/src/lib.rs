//! Events and figures of `.wtrc` traces as Arrow record batches.
//!
//! ```text
//! TraceFile ──┬─ Batch    events and runs of some warps, decoded while they are asked for
//!             ├─ AccessBatch  addresses and values of some warps, likewise
//!             └─ Figures  warps, locations, loops, launches, kernels, lines, causes, edges, sites,
//!                         losses of accesses: figures and metadata
//! ```
//!
//! `docs/reference/exports.md` describes the columns. Each table has a first column `trace`, the name under
//! which the trace was given; columns are chosen by their numbers in [`schema`].

mod accesses;
mod batch;
mod error;
mod figures;
pub mod schema;
mod sites;

use std::ops::ControlFlow;

use arrow_array::RecordBatch;

pub use accesses::{AccessBatch, access_schema};
pub use batch::{Batch, Kind, Made, Wanted};
pub use error::TableError;
pub use figures::{Figures, Table};
pub use warptrace_analysis::AccessTable;

/// Most rows of a batch.
pub const BATCH: usize = 8192;

/// Takes batches; `Break` if no more are wanted.
pub type Sink<'a> = dyn FnMut(RecordBatch) -> ControlFlow<()> + 'a;
