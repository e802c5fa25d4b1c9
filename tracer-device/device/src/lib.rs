//! The device API of traced kernels.
//!
//! A kernel is a function in a module with `#[warptrace::kernels]` that uses this crate. The same source
//! compiles to PTX for a GPU and to host code for the simulator.
//!
//! # Parts
//! - [`simt`]: thread indices, masks, votes, shuffles, barriers.
//! - [`DisjointSlice`], [`AtomicSlice`], and plain slices: arrays for safe code.
//! - [`atomic`], [`Global`], [`Shared`], [`math`]: memory and arithmetic, the same on both devices.
//! - [`trace!`] and [`trace_loop!`]: manual trace points. In a compiled kernel they are comments, which
//!   `warptrace-ptx` replaces with recording instructions. On the simulator they call its recorder.
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

/// Adds a manual trace point to a function that `#[warptrace::kernels]` traces: `trace!("name")`, or
/// `trace!("name", if condition)` for the lanes where the condition holds. `trace!("name" = 40)` sets its id,
/// from which the next ids continue.
///
/// `trace!("length", end - start)` records a value instead, and `trace!("x", x; "y", y)` records two. A value
/// is an integer of up to 64 bits, `f32`, `f64`, `bool` or `char`. It creates no event: recordings of values
/// hold the value of each lane. Untraced kernels compute the value too, unless the compiler can eliminate it.
///
/// The attribute replaces this macro. In code that the attribute does not process, it is a compile error.
#[macro_export]
macro_rules! trace {
    ($($tokens:tt)*) => {
        compile_error!(
            "`trace!` stands in a function of a module with #[warptrace::kernels], not in a closure, in another \
             macro, or in a function that is not traced"
        )
    };
}

/// Traces the iterations of a loop as a manual trace point, in a module with
/// `#[warptrace::kernels(only_marked)]`: `let mut steps = trace_loop!("name");` before the loop,
/// `steps.tick();` at the start of its body, `drop(steps);` after it. Returns a [`LoopTrace`].
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
/// Element types of arrays in device memory: plain data without padding, for which any bytes are valid.
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
