//! One HTML page that answers "what did my warps do?", of a `.wtrc` trace.
//!
//! ```text
//! TraceFile ── analyse ──┬─ figures   JSON on the page: what the commands print with `--json`
//!              decode ───┼─ picture   slots of kernels by cause    ┐
//!                        ├─ source    each line with its heat           │
//!                        ├─ loops     trips over lanes and over warps   │
//!           accesses ────┼─ memory    sectors and passes of lines       │
//!                        ├─ warps     work, groups with the same path   ├─ templates ── one file
//!                        ├─ parts     sums by kernel, function and loop │
//!                        ├─ strips    warps, lane by lane               │
//!                        ├─ timeline  warps along their own time        │
//!                        ├─ graph     where lanes of each kernel went   │
//!                        └─ changes   what is different in another trace┘
//! ```
//!
//! The page needs no server and loads nothing. It has at most [`MAX_BYTES`], however large the trace is: what
//! it leaves out it says. All figures are those of [`warptrace_analysis`]; `docs/reference/answers.md`
//! defines them.
//!
//! ```no_run
//! use warptrace_report::{Options, report};
//! let trace = warptrace_decoder::TraceFile::open("run.wtrc")?;
//! let page = report(&trace, &Options::named("run.wtrc"), None)?;
//! std::fs::write("run.html", page.html)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blocks;
mod build;
mod changes;
mod error;
mod figures;
mod graph;
mod guide;
mod limits;
mod lines;
mod loops;
mod memory;
mod page;
mod parts;
mod picture;
mod strips;
mod svg;
mod table;
mod timeline;
mod warps;

pub use build::{Base, Options, Report, report};
pub use error::ReportError;
pub use limits::MAX_BYTES;
