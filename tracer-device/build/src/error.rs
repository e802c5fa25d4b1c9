//! Errors of kernel compilation.

use std::path::PathBuf;

use crate::Diagnostic;

/// A kernels crate could not be compiled or checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No device compiler is installed.
    #[error(
        "no device compiler: {tried}. Run `cargo xtask setup`, or `rustup component add rust-src`, or name one in WARPTRACE_RUSTC"
    )]
    NoCompiler {
        /// The candidates, and why each is unusable.
        tried: String,
    },
    /// A program could not be started.
    #[error("could not run {}: {source}", .program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The compiler reported errors in the kernels.
    #[error("the kernels of {} do not compile for the device:\n{output}", .crate_folder.display())]
    Compile {
        /// The kernels crate.
        crate_folder: PathBuf,
        /// Output of the compiler.
        output: String,
        /// Its errors; empty if cargo failed before it ran.
        errors: Vec<Diagnostic>,
    },
    /// The compiler wrote no PTX.
    #[error("the compiler left no PTX in {}", .folder.display())]
    NoOutput {
        /// The expected folder.
        folder: PathBuf,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// `ptxas` is not installed.
    #[error("no ptxas: not in {}, not on the PATH; run `cargo xtask setup`", .folder.display())]
    NoPtxas {
        /// The project's tool folder.
        folder: PathBuf,
    },
    /// `ptxas` refused the PTX.
    #[error("ptxas refuses the PTX for {architecture}:\n{output}")]
    Assemble {
        /// The architecture.
        architecture: String,
        /// Output of the assembler.
        output: String,
    },
    /// `cuobjdump` or `nvdisasm` is not installed.
    #[error("no cuobjdump and nvdisasm: not in {}, not on the PATH; run `cargo xtask setup --tests`", .folder.display())]
    NoDisassembler {
        /// The project's tool folder.
        folder: PathBuf,
    },
    /// `cuobjdump` refused a file.
    #[error("cuobjdump refuses {}:\n{output}", .file.display())]
    Disassemble {
        /// The file.
        file: PathBuf,
        /// Output of the disassembler.
        output: String,
    },
}

impl BuildError {
    pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }

    pub(crate) fn start(program: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let program = program.to_owned();
        move |source| Self::Start { program, source }
    }
}
