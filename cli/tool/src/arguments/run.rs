//! Arguments of `run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use warptrace_spec::RunSpec;

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:\n  warptrace run -o app.wtrc -- ./app --size 1000\n\n\
The program runs as it does without warptrace: its own output, its own exit code. What was traced, and what was not \
and why, is said on standard error when it has ended. Kernels need their PTX in the program. Triton's have it, and those \
of PyTorch's compiler; `run` sets what lets JAX, CuTe DSL and CuPy keep it (--print-environment). C++: build with \
`nvcc -lineinfo`.")]
pub(crate) struct RunArguments {
    /// Where to write the trace. For programs of several processes or devices, `%p` stands for the number of the
    /// process, `%r` for its rank, `%d` for the number of its device, `%%` for a percent sign. By default the file
    /// is named after the program or its Python script: app.wtrc, or app-2.wtrc if that is there
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// What is recorded, and how.
    #[command(flatten)]
    pub(crate) spec: RunSpec,

    /// The library that is loaded into the program, instead of the one that this tool carries
    #[arg(long, value_name = "FILE")]
    pub(crate) shim: Option<PathBuf>,

    /// The assembler for traced kernels that the driver is too old for. Otherwise the one of the program's
    /// packages or of the toolkit is taken
    #[arg(long, value_name = "FILE")]
    pub(crate) ptxas: Option<PathBuf>,

    /// Print the variables that are set for frameworks, and end
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
