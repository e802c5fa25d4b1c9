//! Opens `.wtrc` traces: events, accounting, verification. Needs neither CUDA nor a GPU.
//!
//! # Reading events
//!
//! | call | when |
//! | --- | --- |
//! | [`TraceFile::decode_warp`] | one warp: its events as an iterator, or its items |
//! | [`TraceFile::decode_all`] | each event of many warps, in order of warp, decoded on all cores |
//! | [`TraceFile::items_in_order`] | runs and cycles of many warps, in order of warp, on one thread; [`RunJoiner`] makes runs of them |
//! | [`TraceFile::fold_items`] | runs and cycles of many warps, in any order of warps, on all cores |
//!
//! Addresses and values come from [`TraceFile::accesses_in_order`] and [`TraceFile::fold_accesses`];
//! [`TraceFile::streams`] gives the accounting of each warp, and [`TraceFile::verify`] checks everything.
//!
//! # Losses
//! [`TraceFile::losses`] says what is missing in a launch, and why. With [`WarpFilter::with_marks`], reading in
//! order gives a mark wherever events are missing: before the first event of a warp if its earlier events were
//! overwritten or some are missing anywhere, after the last one if later events are missing. Every loss that was
//! counted has a mark, also in warps without events. A warp that did not finish, or has no account, has one if
//! it has events or counted losses; [`TraceFile::lossy_warps`] gives the others, and [`TraceFile::launch_end`]
//! says why. Warps that were not chosen have none.
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
mod marks;
mod open;
mod output;
mod runs;
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
pub use accounts::AccountOfWarps;
pub use all::{EventBlock, WarpFilter};
pub use buffers::{AddressPlace, BufferMap, extent};
pub use error::{DecodeError, OpenError};
pub use file::{Completeness, KeptText, PrefixReason, Totals, TraceFile};
pub use host::OnHost;
pub use items::{LocationCount, WarpItem};
pub use losses::{LaunchEnd, LaunchLosses, Loss, LossyWarps, LossyWarpsIter};
pub use output::LimitedOutput;
pub use runs::{EventRun, RunJoiner};
pub use source::{ByteSource, SeekSource};
pub use spans::WarpSpans;
pub use state::{FileState, Untimed, grouped};
pub use streams::{StreamSummary, Streams};
pub use verify::{
    AccessProblem, EventPosition, LanesNext, LaunchTrack, LossTotal, Problem, SpanFault, TwinReport,
    VerifyReport,
};
pub use warp::WarpEvents;
pub use window::WarpClass;
