//! What a traced kernel calls.
//!
//! A kernel is written once, in a module with `#[warptrace::kernels]`, against this crate; it compiles to PTX
//! for a GPU and, from the same source, for the simulator. The attribute's documentation has an example.
//!
//! # Parts
//! - [`simt`]: thread indices, masks, votes, shuffles, barriers.
//! - [`DisjointSlice`], [`AtomicSlice`], and plain slices: arrays that safe code uses.
//! - [`atomic`], [`Global`], [`Shared`], [`math`]: memory and arithmetic that mean the same on both devices.
//! - [`trace!`] and [`trace_loop!`]: trace points of one's own. In a compiled kernel they are comments, which
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
mod global;
#[doc(hidden)]
pub mod kernel;
mod loops;
pub mod math;
mod module;
mod shared;
pub mod simt;
#[doc(hidden)]
pub mod trace;

/// Names a trace point of one's own, in a function that `#[warptrace::kernels]` traces: `trace!("name")`, or
/// `trace!("name", if condition)` for the lanes where the condition holds.
///
/// `trace!("name" = 40)` says its id; those after it count from there.
///
/// `trace!("length", end - start)` names a value instead, `trace!("x", x; "y", y)` two: an integer of up to 64
/// bits, `f32`, `f64`, `bool` or `char`. It makes no event; recordings of values have what each lane held. The
/// value is computed where nothing is traced, too, as far as the compiler cannot leave that out.
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

/// Names the iterations of a loop as a trace point of one's own, in a module with
/// `#[warptrace::kernels(only_marked)]`: `let mut steps = trace_loop!("name");` before the loop,
/// `steps.tick();` first thing in it, `drop(steps);` behind it. Returns a [`LoopTrace`].
#[macro_export]
macro_rules! trace_loop {
    ($($tokens:tt)*) => {
        compile_error!(
            "`trace_loop!` stands in a function of a module with #[warptrace::kernels(only_marked)], not in a closure \
             or in another macro"
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
pub use loops::LoopTrace;
pub use module::{KernelModule, SourceValue};
pub use shared::Shared;
pub use trace::Value;
/// The rows of a [`KernelModule`]'s table.
pub use warptrace_format::{LocationKind, SourceLocation};
