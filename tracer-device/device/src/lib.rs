//! What a traced kernel calls.
//!
//! A kernel is written once, inside [`kernel!`], against this crate; it compiles to PTX for a GPU and, from
//! the same source, for the simulator. Its trace points are declared with [`trace_points!`] and marked with
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
//! - [`DisjointSlice`], [`AtomicSlice`], and plain slices: arrays that safe code uses.
//! - [`atomic`], [`Global`], [`Shared`], [`math`]: memory and arithmetic that mean the same on both devices.
//! - [`trace_loc`] and [`trace_loop`]: trace points. In a compiled kernel they are comments, which
//!   `warptrace-ptx` turns into the instructions that record; on the simulator they are calls of its
//!   recorder.
#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(abi_ptx, link_llvm_intrinsics, asm_experimental_arch, stdarch_nvptx, core_float_math)
)]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]

mod arrays;
pub mod atomic;
mod atomic_slice;
#[doc(hidden)]
pub mod automatic;
mod global;
#[doc(hidden)]
pub mod kernel;
mod loops;
pub mod math;
mod module;
mod shared;
pub mod simt;
mod trace;
mod trace_points;

/// Names a trace point of one's own, in a function that `#[warptrace::kernels]` traces: `trace!("name")`, or
/// `trace!("name", if condition)` for the lanes where the condition holds.
///
/// The attribute replaces it; what is left over stands where it does not look.
#[macro_export]
macro_rules! trace {
    ($($tokens:tt)*) => {
        compile_error!(
            "`trace!` stands in a function of a module with #[warptrace::kernels], not in a closure, in another \
             macro, or in a function that is not traced"
        )
    };
}

#[cfg(not(target_arch = "nvptx64"))]
pub use arrays::DeviceArray;
pub use arrays::{BlockIndex, DisjointSlice, Owner, ThreadIndex, thread};
pub use atomic_slice::AtomicSlice;
/// Plain data: no padding, any bytes are a value. What arrays in a device's memory hold.
pub use bytemuck::Pod;
pub use global::Global;
#[cfg(not(target_arch = "nvptx64"))]
pub use kernel::{ArgumentMemory, KernelArg, KernelCall, SafeCall};
pub use loops::{LoopTrace, trace_loop};
pub use module::KernelModule;
pub use shared::Shared;
pub use trace::{Location, trace_loc};
pub use trace_points::{TracePoint, TracePoints};
/// The rows of a [`KernelModule`]'s table.
pub use warptrace_format::{LocationKind, SourceLocation};
