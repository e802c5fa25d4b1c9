//! The traced programs: host drivers, CPU references, input loaders and generators.
//!
//! Each program runs its kernels through a [`Launcher`](warptrace_host::Launcher), traced or not, on a GPU or
//! on the simulator, and returns its result together with the time that the kernels took.
//!
//! Each program's module has a function `check`, which takes the input and the result, and says in a sentence what it
//! found or what is wrong first.

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
pub mod prefix_sums;
mod program;
mod run;
pub mod stress;
pub mod triad;
mod words;

pub use grid::Grid;
pub use program::{Automatic, ProgramInfo, WorkloadError};

/// The programs' kernels as PTX; empty when this was built without a device compiler.
pub const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));

/// Names a PTX file to take instead of [`PTX`], for experiments with kernels.
pub const PTX_VARIABLE: &str = "WARPTRACE_PTX";

/// The kernels to run: those in the file that [`PTX_VARIABLE`] names, or [`PTX`].
///
/// The text of a file stays in memory until the program ends.
///
/// # Errors
/// If the file cannot be read.
pub fn ptx() -> std::io::Result<&'static str> {
    match std::env::var_os(PTX_VARIABLE).filter(|value| !value.is_empty()) {
        Some(path) => Ok(std::fs::read_to_string(path)?.leak()),
        None => Ok(PTX),
    }
}
