//! Writes `.wtrc` traces in formats of other tools.
//!
//! ```text
//! TraceFile ── ExportSource ──┬─ parquet   tables of runs, locations, launches and losses: SQL, data frames
//!   Selection ──┘             ├─ perfetto  a track a warp, a slice a run, nested in its loops: ui.perfetto.dev
//!                             ├─ firefox   active or idle lanes, with stacks of loops: profiler.firefox.com
//!                             └─ lcov      lines and branches that lanes took: genhtml, editors, CI
//! ```
//!
//! `docs/reference/exports.md` describes their contents. An export depends only on the trace, not on the
//! machine. It states the missing parts of the trace. Its memory does not grow with the number of events.

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
