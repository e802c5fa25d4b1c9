//! Runs warptrace kernels on the CPU with the semantics of a GPU.
//!
//! A kernel is a closure that one thread of the grid executes. The simulator runs it once per lane, each lane
//! on a separate coroutine, 32 lanes to a warp. A lane suspends at each [`WarpOp`]. The warp's scheduler then
//! selects the lanes that execute the next operation together.
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering};
//! use warptrace_device::simt;
//! use warptrace_sim::{Launch, Simulator};
//!
//! let even = AtomicU32::new(0);
//! let kernel = || {
//!     if simt::thread_idx()[0] % 2 == 0 {
//!         // The lanes that execute this together, as on a GPU.
//!         even.store(simt::active_mask(), Ordering::Relaxed);
//!     }
//! };
//! Simulator::new().launch(&Launch::new([1, 1, 1], [32, 1, 1]), &kernel)?;
//! assert_eq!(even.into_inner(), 0x5555_5555);
//! # Ok::<(), warptrace_sim::SimError>(())
//! ```
//!
//! # Parts
//! ```text
//! Simulator::launch ── workers (rayon) ── Resident: the blocks that are resident on one thread
//!                                            ├─ Warp: 32 coroutines; selects the next group
//!                                            ├─ Context: implements `Lane`, the kernel's interface
//!                                            ├─ WarpRecorder: events and values of a warp, into log memory
//!                                            └─ Arena: the lanes' stacks, in one mapping
//! ```
//!
//! `docs/contributors/simulator.md` describes the order of execution, the detected misuse and the speed. The
//! simulator requires Unix: the stacks come from `mmap`.
//!
//! [`WarpOp`]: warptrace_device::simt::host::WarpOp

mod context;
mod error;
mod host_memory;
mod launch;
mod panics;
mod random;
mod recorder;
mod resident;
mod shared;
mod simulator;
mod site;
mod stack;
mod values;
mod warp;

pub use error::{LeftBefore, SimError, SourcePoint, ThreadPlace, Waiting};
pub use host_memory::host_memory;
pub use launch::{Interaction, Launch, LaunchReport, Progress, limits};
pub use recorder::spans::place;
pub use simulator::{Simulator, Watchdog};
pub use values::ValueSites;
pub use warptrace_abi::recording::{LogKind, Recording};
