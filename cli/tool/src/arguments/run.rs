//! Arguments of `run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use warptrace_spec::RunSpec;

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:\n  warptrace run -o app.wtrc -- ./app --size 1000\n\n\
The program keeps its output and its exit code. When it has ended, a summary on standard error lists what was traced, and \
what was not and why. Kernels need PTX in the program. Kernels of Triton and torch.compile have it; `run` sets the \
environment variables with which JAX, CuTe DSL and CuPy keep it (--print-environment). Build C++ with \
`nvcc -lineinfo`.")]
pub(crate) struct RunArguments {
    /// File for the trace. For programs with several processes or devices: `%p` is the process id, `%r` the
    /// rank, `%d` the device number, `%%` a percent sign. By default the file is named after the program or
    /// its Python script: app.wtrc, or app-2.wtrc if that exists
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Recording options.
    #[command(flatten)]
    pub(crate) spec: RunSpec,

    /// Library to load into the program, instead of the built-in one
    #[arg(long, value_name = "FILE")]
    pub(crate) shim: Option<PathBuf>,

    /// Assembler for traced kernels if the driver is too old for them. By default `ptxas` of the program's
    /// packages or of the CUDA toolkit is used
    #[arg(long, value_name = "FILE")]
    pub(crate) ptxas: Option<PathBuf>,

    /// Print the environment variables that are set for frameworks, and exit
    #[arg(long, exclusive = true)]
    pub(crate) print_environment: bool,

    /// The program with its arguments
    #[arg(
        required_unless_present = "print_environment",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    pub(crate) program: Vec<OsString>,
}
