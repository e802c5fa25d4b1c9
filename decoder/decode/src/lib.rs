//! Reads `.wtrc` traces: events, accounting, verification. Needs neither CUDA nor a GPU.
//!
//! # Reading events
//!
//! | call | use |
//! | --- | --- |
//! | [`TraceFile::decode_warp`] | one warp: its events as an iterator, or its items |
//! | [`TraceFile::decode_all`] | each event of many warps, in order of warp, decoded on all cores |
//! | [`TraceFile::items_in_order`] | runs and cycles of many warps, in order of warp, on one thread; [`RunJoiner`] joins them into runs |
//! | [`TraceFile::fold_items`] | runs and cycles of many warps, in any order of warps, on all cores |
//!
//! [`TraceFile::accesses_in_order`] and [`TraceFile::fold_accesses`] return addresses and values.
//! [`TraceFile::streams`] lists the warps that recorded or lost events, with their accounting.
//! [`TraceFile::verify`] checks the whole file.
//!
//! # Losses
//! [`TraceFile::losses`] lists the missing events of a launch and the reasons. With
//! [`WarpFilter::with_marks`], ordered reads deliver a mark where events are missing: before a warp's first
//! event if earlier events were overwritten or the position is unknown, after its last event if later ones
//! are missing. Every counted loss has a mark, also in warps without events. A warp that did not finish, or
//! has no account, has a mark only if it has events or counted losses; [`TraceFile::lossy_warps`] lists all
//! such warps. Warps that were not chosen have no marks.
//!
//! # Reading is total
//! For any input, reading returns data, or an error that names section, field and offset. If the end of a
//! file is missing or damaged, the part up to the last whole frame can be read: see
//! [`TraceFile::completeness`].
//!
//! # Memory
//! Files are not memory-mapped, and memory does not grow with the number of events. An open file keeps its
//! metadata, 48 bytes for each frame and accounting section, and 60 bytes for each launch. Decoding adds a
//! few frames of at most 16 MiB, a window of 64 MiB of compressed payload, and twice 2 MiB of events for each
//! thread. Addresses and values need, for each thread, a section of 2^19 entries of 24 bytes and a warp of at
//! most 2^24 entries, and 256 MiB for warps that continue in a later section. `verify` checks several small
//! launches at once, with at most 32 frames and 2^18 chunks and entries in total. [`WarpEvents`] and `verify`
//! add at most 8 MiB of events for each stream that they read. `verify` adds 9 MiB for each dual stream whose
//! tracks have different orders.
//!
//! # Order
//! Any two events of a warp that share a lane come in the order in which they happened. Events without a
//! common lane may have happened in another order, or at the same time: a repeated event is stored as a run
//! at its first occurrence, and events of other lanes after the run may have happened between its repeats.
//! Warps come in the order of their linear index, which is unrelated to time.
// This crate parses untrusted bytes.
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
