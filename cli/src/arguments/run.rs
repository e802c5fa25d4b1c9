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
and why, is said on standard error when it has ended. Kernels need PTX in the program: build with \
`nvcc -gencode arch=compute_90,code=compute_90`, and with `-lineinfo` to see lines of the source.")]
pub(crate) struct Run {
    /// Where to write the trace. `%p` stands for the number of the process, for programs that start others
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// What is recorded, and how.
    #[command(flatten)]
    pub(crate) spec: RunSpec,

    /// The library that is loaded into the program, if it is not beside this tool
    #[arg(long, value_name = "FILE")]
    pub(crate) shim: Option<PathBuf>,

    /// The program with its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}
