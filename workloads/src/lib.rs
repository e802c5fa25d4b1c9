//! The traced programs: host drivers, CPU references, input loaders and generators.
//!
//! Each program runs its kernels through a [`Launcher`](warptrace_host::Launcher), traced or not, on a GPU or on
//! the simulator, and answers its result together with the time that the kernels took.
//!
//! Each program's module has a function `check`, which takes the input and the result and answers a `Finding`, or a
//! `CheckError` that says what is wrong first. Both display in one sentence: `{}` is what `warptrace record` prints,
//! `{:#}` what a row of the evaluation's tables says, where that is another.

pub mod check;
pub mod dmr;
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
mod words;

use warptrace_host::{PtxModule, PtxTable};

pub use grid::Grid;
pub use program::{ProgramInfo, WorkloadError};

/// The programs' kernels as PTX, one module for each variant; empty when this was built without a device
/// compiler.
pub const PTX: PtxTable = include!(concat!(env!("OUT_DIR"), "/ptx_table.rs"));

/// Names a folder of `VARIANT.ptx` files to take instead of [`PTX`], for experiments with kernels and codecs.
pub const PTX_FOLDER_VARIABLE: &str = "WARPTRACE_PTX_DIR";

/// The modules to run: those in the folder that [`PTX_FOLDER_VARIABLE`] names, or [`PTX`].
///
/// The texts of a folder stay in memory until the program ends.
///
/// # Errors
/// If the folder or a file in it cannot be read.
pub fn ptx_table() -> std::io::Result<PtxTable> {
    let Some(folder) = std::env::var_os(PTX_FOLDER_VARIABLE).filter(|value| !value.is_empty()) else {
        return Ok(PTX);
    };
    let mut modules = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if let (Some("ptx"), Some(variant)) = (
            path.extension().and_then(|found| found.to_str()),
            path.file_stem().and_then(|found| found.to_str()),
        ) {
            let text = std::fs::read_to_string(&path)?;
            modules.push(PtxModule { variant: variant.to_owned().leak(), text: text.leak() });
        }
    }
    Ok(modules.leak())
}
