//! Traced programs: host drivers, CPU references, input loaders and generators.
//!
//! Each program runs its kernels through a [`Launcher`](warptrace_host::Launcher), traced or not, on a GPU or
//! on the simulator. It returns its result and the kernel time. Most program modules have a function `check`,
//! which takes the input and the result and returns a sentence about the result or about its first error.

pub mod check;
pub mod dmr;
pub mod fault;
pub mod fractal;
mod grid;
pub mod inputs;
pub mod matmul;
pub mod mis;
pub mod mst;
pub mod nbody;
mod program;
mod run;
pub mod stress;
pub mod triad;
mod words;

pub use grid::Grid;
pub use program::{Automatic, ProgramInfo, WorkloadError};

/// PTX of the programs' kernels; empty if the crate was built without a device compiler.
pub const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));

/// Environment variable with the path of a PTX file that replaces [`PTX`], for experiments with kernels.
pub const PTX_VARIABLE: &str = "WARPTRACE_PTX";

/// Returns the kernels to run: the file that [`PTX_VARIABLE`] names, whose text is leaked, or [`PTX`]. Fails
/// if the file cannot be read.
pub fn ptx() -> std::io::Result<&'static str> {
    match std::env::var_os(PTX_VARIABLE).filter(|value| !value.is_empty()) {
        Some(path) => Ok(std::fs::read_to_string(path)?.leak()),
        None => Ok(PTX),
    }
}
