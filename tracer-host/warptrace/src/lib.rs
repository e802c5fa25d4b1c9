//! Traces the control flow of GPU kernels: the decisions of each warp, in order, with the lanes that took
//! part.
//!
//! A kernel is a Rust function in a module with [`macro@kernels`], which traces its branches, loops and
//! returns. It runs on a GPU or, from the same source, on the simulator. The trace is a file for the tool
//! `warptrace` and the crate `warptrace-decoder`.
//!
//! ```
//! #[warptrace::kernels]
//! mod halving {
//!     use warptrace::device::{DisjointSlice, thread};
//!
//!     /// Counts how often each number can be halved.
//!     #[kernel]
//!     pub fn halvings(numbers: &[u32], counts: DisjointSlice<u32>) {
//!         let Some((index, count)) = counts.own(thread::index()) else { return };
//!         let mut rest = numbers[index];
//!         *count = 0;
//!         while rest > 1 && rest % 2 == 0 {
//!             rest /= 2;
//!             *count += 1;
//!         }
//!     }
//! }
//!
//! use warptrace::{Device, LaunchConfig};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("halvings.wtrc");
//! # let path = path.to_str().unwrap();
//! let device = Device::simulator();
//! let numbers = device.upload(&[12u32, 7, 64, 1])?;
//! let counts = device.zeros::<u32>(4)?;
//! let mut trace = device.trace(path).start(&halving::MODULE)?;
//! trace.launch(&halving::halvings(&numbers, &counts), &LaunchConfig::for_elements(4))?;
//! let summary = trace.finish()?;
//! assert_eq!(counts.download()?, [2, 0, 6, 0]);
//! assert_eq!(summary.lost, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # On a GPU
//! To compile the kernels of a file for GPUs, call `warptrace_build::compile("src/kernels.rs")` in the
//! package's `build.rs`. [`Device::auto`] opens the first GPU, or the simulator if that GPU is not usable.
//! `docs/users/own-kernel.md` describes all steps, starting from an empty folder.
//!
//! # Parts
//! - [`device`]: the functions that kernels call.
//! - [`Device`], [`Buffer`], [`Trace`]: a small interface for the host. [`host`] is the complete interface.
#![cfg_attr(target_arch = "nvptx64", no_std)]

/// For deriving `Pod` for array elements of structure types: `#[derive(Clone, Copy, Pod, Zeroable)]` together
/// with `#[bytemuck(crate = "warptrace::bytemuck")]` and `#[repr(C)]`.
pub use bytemuck;
pub use warptrace_device as device;
pub use warptrace_macros::{kernel, kernels};

#[cfg(not(target_arch = "nvptx64"))]
mod adopted;
#[cfg(not(target_arch = "nvptx64"))]
mod buffer;
#[cfg(not(target_arch = "nvptx64"))]
mod device_handle;
#[cfg(not(target_arch = "nvptx64"))]
mod error;
#[cfg(not(target_arch = "nvptx64"))]
mod launch;
#[cfg(not(target_arch = "nvptx64"))]
mod options;
#[cfg(not(target_arch = "nvptx64"))]
mod shared;
#[cfg(not(target_arch = "nvptx64"))]
mod trace;

#[cfg(not(target_arch = "nvptx64"))]
pub use {
    adopted::AdoptedSlice,
    buffer::Buffer,
    cudarc,
    device_handle::Device,
    error::Error,
    launch::LaunchConfig,
    options::Codec,
    trace::{Summary, Trace, TraceBuilder},
    warptrace_format::Counting,
    warptrace_host as host,
    warptrace_host::{
        BlockChoice, Interrupted, MemorySize, NumberRange, Pod, Policy, RecordingSpec, Spaces, Times, Visits,
        WindowError,
    },
};
