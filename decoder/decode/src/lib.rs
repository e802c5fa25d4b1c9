//! Opens `.wtrc` traces: events, accounting, verification. Needs neither CUDA nor a GPU.
//!
//! ```text
//! ByteSource ── TraceFile::open ──┬─ decode_warp   events of one warp, as an iterator
//!                                 ├─ decode_all    events of all warps, in order of warp, decoded in parallel
//!                                 ├─ fold_items    runs and cycles of all warps, on all cores, not expanded
//!                                 ├─ warp_items    those of one warp
//!                                 ├─ items_with_losses  those of all warps, in order, with marks
//!                                 ├─ decode_with_losses  the same, with marks where events are missing
//!                                 ├─ streams       accounting of each warp
//!                                 ├─ fold_accesses  addresses and values of all warps, on all cores, as runs of vectors
//!                                 ├─ losses        what is missing in a launch, and why
//!                                 └─ verify        everything that can be checked, as a report
//! ```
//!
//! # Reading is total
//! Any bytes give data or an error that names section, field and offset. A file that was cut short, or whose
//! end is damaged, opens up to its last whole frame, and [`TraceFile::completeness`] says so.
//!
//! # Memory
//! Nothing is mapped, and nothing grows with the events of a file. What is kept: the metadata, 56 bytes for
//! each frame and accounting section, and 40 for each launch. What is in flight while decoding: a few frames
//! of at most 16 MiB, a window of 64 MiB of compressed payload, and 2 MiB of events a thread, twice.
//! Of addresses and values: for each thread a section of 2^19 entries of 24 bytes and a warp of at most 2^24, and 256
//! MiB of warps of which a section that follows may have more.
//! `verify` checks small launches side by side, of together at most 32 frames and 2^18 chunks and entries.
//! [`WarpEvents`] and `verify` add at most 8 MiB of events for each stream they read, and `verify` 9 MiB for
//! each dual stream whose tracks stand in different orders.
//!
//! # Order
//! Inside a warp, the events that a lane took part in come exactly in the order in which they happened. So do
//! any two events that share a lane. Events that share none may have happened in another order, or at once:
//! an event that is repeated stands, as a run, where it happened first, and events of other lanes that stand
//! behind it may have happened in between. Between warps the order is that of their linear index, which says
//! nothing about time.
// Bytes are parsed here.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod accesses;
mod accounts;
mod all;
mod buffers;
mod count;
mod derived;
mod error;
mod feed;
mod file;
pub mod fuzzing;
mod host;
mod items;
pub mod lanes;
mod losses;
mod missing;
mod open;
mod output;
#[cfg(test)]
#[path = "../tests/it/support/sections.rs"]
mod sections;
mod shown;
mod source;
mod spans;
mod state;
mod streams;
mod times;
mod verify;
mod warp;
mod window;
mod work;

pub use accesses::{VectorRun, WarpAccesses};
pub use all::{EventBlock, WarpFilter};
pub use buffers::{BufferMap, Place, extent};
pub use error::{DecodeError, OpenError};
pub use file::{Completeness, KeptText, PrefixReason, Totals, TraceFile};
pub use host::OnHost;
pub use items::{LocationCount, WarpItem};
pub use losses::{LaunchEnd, LaunchLosses, Loss, LossyWarps, LossyWarpsIter};
pub use missing::{Missing, Piece};
pub use output::LimitedOutput;
pub use source::{ByteSource, SeekSource};
pub use spans::WarpSpans;
pub use state::{FileState, Untimed};
pub use streams::{StreamSummary, Streams};
pub use verify::{
    AccessProblem, EventPosition, LanesNext, LossTotal, Problem, SpanFault, TwinReport, VerifyReport,
};
pub use warp::WarpEvents;
