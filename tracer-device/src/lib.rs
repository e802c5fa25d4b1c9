//! What a traced kernel calls.
//!
//! A kernel is written once, inside [`kernel!`], against this crate; it compiles to PTX for a GPU and, from the
//! same source, for the simulator. Its trace points are declared with [`trace_points!`] and marked with
//! [`trace_loc`].
//!
//! ```
//! use warptrace_device::{Global, kernel, simt, trace_loc, trace_points};
//!
//! trace_points! {
//!     /// Decisions of `halve`.
//!     pub mod at in "lib.rs" {
//!         IN_RANGE = 1: "the thread has an element",
//!         EVEN = 2: "the element is even",
//!     }
//! }
//!
//! kernel! {
//!     /// Halves the even elements.
//!     pub fn halve(data: Global<u32>) {
//!         let i = simt::global_thread_x();
//!         if (i as u64) < data.len() {
//!             trace_loc(at::IN_RANGE);
//!             // SAFETY: `i` is below the length, and each thread has its own element.
//!             unsafe {
//!                 if data.get(i as u64) % 2 == 0 {
//!                     trace_loc(at::EVEN);
//!                     data.set(i as u64, data.get(i as u64) / 2);
//!                 }
//!             }
//!         }
//!     }
//! }
//! # let _call = halve(Global::empty());
//! ```
//!
//! # Parts
//! - [`simt`]: thread indices, masks, votes, shuffles, barriers.
//! - [`atomic`], [`Global`], [`Shared`], [`math`]: memory and arithmetic that mean the same on both devices.
//! - [`trace_loc`], [`trace_loop`] and [`KernelGuard`]: the tracer itself. `state` says where a warp's state is, `access` how it is read and written, `warp` how it opens and
//!   ends, `event` how an event gets into a lane's `log`, `counts` how a counted loop does; `area` is memory for logs, which groups of a warp share.
//!   `after` merges and encodes the logs that kernels have left, `drain` (with `merge`) those that are emptied inside a kernel; `stream` appends to
//!   chunks, `pool` hands out chunks and log memory.
//!
//! # Why the tracer stays correct when groups of a warp interleave
//! Since Volta, two diverged groups of one warp may be scheduled in any order, instruction by instruction.
//! 1. The event is fixed by one `activemask`: its lanes all receive the same mask, and take the vote that follows together.
//! 2. Each lane has a record of the run that it is in. An event repeats a run if the records of all its lanes say so. A lane changes none but its own,
//!    so it makes no difference what other groups do in between.
//! 3. A log is its lane's alone, and each run in it bears the time at which it began, read while its group was together. So a lane's events are in the
//!    order in which it executed them, whoever kept them.
//! 4. Memory for logs is taken by all lanes of a group together; a group that finds another at it claims memory of its own (see `area`, also for why there is no
//!    lock and no atomic). Nobody waits.
//! 5. Logs are emptied when the group has all live lanes and they are together, or after the kernel.
#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(abi_ptx, link_llvm_intrinsics, asm_experimental_arch, stdarch_nvptx, core_float_math)
)]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]

#[cfg(all(target_arch = "nvptx64", recording))]
mod access;
#[cfg(recording)]
mod after;
#[cfg(recording)]
mod apart;
#[cfg(recording)]
mod area;
pub mod atomic;
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
mod counts;
#[cfg(recording)]
mod drain;
#[cfg(recording)]
mod event;
mod global;
mod guard;
#[doc(hidden)]
pub mod kernel;
#[cfg(recording)]
mod log;
mod loops;
pub mod math;
#[cfg(recording)]
mod merge;
#[cfg(recording)]
mod pool;
#[cfg(recording)]
mod recorder;
mod shared;
pub mod simt;
#[cfg(recording)]
mod space;
#[cfg(recording)]
mod state;
#[cfg(recording)]
mod stream;
mod trace;
mod trace_points;
#[cfg(recording)]
mod unit;
#[cfg(recording)]
mod warp;

#[cfg(not(target_arch = "nvptx64"))]
pub use after::{TOGETHER_LANES, TOGETHER_THREADS, encode_call, encode_together_call, merge_call};
pub use global::Global;
pub use guard::KernelGuard;
#[cfg(not(target_arch = "nvptx64"))]
pub use kernel::{KernelArg, KernelCall};
#[cfg(recording)]
pub use log::SLICE_UNITS_CHOICES as SLICE_UNITS;
pub use loops::{LoopTrace, trace_loop};
#[cfg(recording)]
pub use recorder::{Codec, DEVICE_ECL, DEVICE_PREDICT, encoding_bytes};
pub use shared::Shared;
#[cfg(recording)]
pub use state::warp_state_bytes;
pub use trace::trace_loc;
pub use trace_points::{TracePoint, TracePoints};
