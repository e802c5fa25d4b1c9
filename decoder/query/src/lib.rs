//! SQL over `.wtrc` traces, with DataFusion.
//!
//! ```text
//! TraceFiles ── Database ──┬─ events, runs       decoded while the query runs, by launch and range of warps
//!                          ├─ accesses, values,
//!                          │  lane_accesses,
//!                          │  lane_values         likewise
//!                          ├─ locations, loops,
//!                          │  warps              figures of `warptrace-analysis`
//!                          └─ launches, traces   metadata
//! Database::ask ── batches of rows ── Writer (table, CSV, JSON, Parquet)
//! ```
//!
//! [`Database::of_workers`] queries traces on other machines, where [`serve`] runs, and [`Database::summed`]
//! returns their figures. `docs/reference/exports.md` describes the tables.
//!
//! # Memory
//! A query needs the memory of [`TraceFile::items_in_order`](warptrace_decoder::TraceFile::items_in_order)
//! for each of at most [`MAX_PARTITIONS`] threads, and a few batches of rows. Sorting and grouping have a
//! separate limit; above it, DataFusion writes to files or the query fails.

mod database;
mod error;
mod figures;
mod filter;
mod listing;
mod message;
mod output;
mod parts;
mod runs;
mod scan;
mod source;
mod sums;
mod traces;
mod workers;

pub use database::{Answer, Database, MAX_PARTITIONS, Stop};
pub use datafusion::arrow::array::RecordBatch;
pub use error::QueryError;
pub use output::{Format, Writer};
pub use source::FoundTrace;
pub use workers::{ListFiles, Listen, Workers, serve};
