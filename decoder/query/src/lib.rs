//! SQL over `.wtrc` traces, by DataFusion.
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
//! [`Database::of_workers`] asks the same of traces that [`serve`] has on other machines, and
//! [`Database::summed`] has their figures.
//!
//! `docs/reference/exports.md` describes the tables.
//!
//! # Memory
//! A query holds what [`TraceFile::items_in_order`](warptrace_decoder::TraceFile::items_in_order) holds, once
//! for each of at most [`MAX_PARTITIONS`] threads, a few batches of rows, and what DataFusion sorts or
//! groups, which has a limit of its own; beyond it goes to files, or ends the query with an error.

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
