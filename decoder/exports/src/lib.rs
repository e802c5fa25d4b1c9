//! Writes `.wtrc` traces in forms that other tools read.
//!
//! ```text
//! TraceFile ── Source ──┬─ parquet   tables of runs, locations, launches and losses: SQL, data frames
//!   Selection ──┘       ├─ perfetto  a track a warp, a slice a run, in those of its loops: ui.perfetto.dev
//!                       ├─ firefox   where lanes were active or idle, with stacks of loops: profiler.firefox.com
//!                       └─ lcov      lines and branches that lanes took: genhtml, editors, CI
//! ```
//!
//! `docs/reference/exports.md` describes what each of them holds. All are the same for the same trace,
//! whatever the machine; say what the trace lacks; and take memory that does not grow with the events.

mod axis;
mod error;
mod firefox;
mod lacks;
mod lcov;
mod nest;
#[cfg(feature = "parquet")]
pub mod parquet;
mod source;
pub mod timeline;

pub use error::ExportError;
pub use firefox::{Weight, firefox};
pub use lacks::{Lack, Lacks};
pub use lcov::{Coverage, lcov};
pub use source::{ExportSource, Step};
