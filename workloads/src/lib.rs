//! The traced programs: host drivers, CPU references, input loaders and generators.
//!
//! Each program runs its kernels through a [`Launcher`](warptrace_host::Launcher), traced or not, on a GPU or on
//! the simulator, and answers its result together with the time that the kernels took.

pub mod check;
pub mod fractal;
mod grid;
pub mod inputs;
pub mod mis;
pub mod mst;
pub mod nbody;
mod program;
mod run;

use warptrace_host::{PtxModule, PtxTable};

pub use grid::Grid;
pub use program::{ProgramInfo, WorkloadError};

/// The programs' kernels as PTX, one module for each variant; empty when this was built without a device
/// compiler.
pub const PTX: PtxTable = include!(concat!(env!("OUT_DIR"), "/ptx_table.rs"));
