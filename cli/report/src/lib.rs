//! Renders a `.wtrc` trace as one HTML page that shows how its warps executed.
//!
//! ```text
//! TraceFile ── analyse ──┬─ figures   JSON: output of the commands with `--json` ┐
//!              decode ───┼─ picture   slots of kernels, by cause                  │
//!                        ├─ source    heat of each line                           │
//!                        ├─ loops     trips of lanes and visits of warps          │
//!           accesses ────┼─ memory    sectors and passes of lines                 │
//!                        ├─ warps     work, groups with the same path             ├─ templates ── one file
//!                        ├─ parts     sums by kernel, function and loop           │
//!                        ├─ strips    warps, lane by lane                         │
//!                        ├─ timeline  warps along their own time                  │
//!                        ├─ graph     control flow of each kernel                 │
//!                        └─ changes   differences from another trace              ┘
//! ```
//!
//! The page needs no server and loads no other files. It takes at most [`MAX_BYTES`] for a trace of any size,
//! and lists the rows that it leaves out. All figures come from [`warptrace_analysis`];
//! `docs/reference/answers.md` defines them.
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
mod functions;
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
