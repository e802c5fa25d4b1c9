//! Arguments of `run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use warptrace_format::codec::CodecSpec;
use warptrace_host::MemorySize;

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

    /// Where kernels are traced
    #[arg(long, value_enum, default_value = "blocks")]
    pub(crate) points: PointChoice,

    /// Only kernels of this name, as in the source or mangled; `*` stands for any characters. May be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Vec<String>,

    /// Record the first N launches of each kernel only; the others run as without warptrace
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) launches: Option<u64>,

    /// How kernels write their events
    #[arg(long, default_value = "predict")]
    pub(crate) codec: CodecSpec,

    /// Device memory that the tracer takes at most, in all, as in 64MiB, 1GiB, 512M or plain bytes
    /// [default: an eighth of what is free at the first launch, at most 16GiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<MemorySize>,

    /// What happens where events do not fit into device memory
    #[arg(long, value_enum, default_value = "stop")]
    pub(crate) policy: RunPolicy,

    /// How many seconds a launch that finds no room for its records waits for those before it. Then it runs
    /// with what room there is, or untraced
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) wait: u64,

    /// Wait for each launch, and write what it recorded before the next one: of a program whose kernel fails,
    /// more of what came before is kept. Kernels that wait for each other hang
    #[arg(long)]
    pub(crate) sync: bool,

    /// Record nothing before the program says so: `warptrace_begin` of warptrace.h, or `warptrace.trace` in
    /// Python
    #[arg(long)]
    pub(crate) manual: bool,

    /// The library that is loaded into the program, if it is not beside this tool
    #[arg(long, value_name = "FILE")]
    pub(crate) shim: Option<PathBuf>,

    /// The program with its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

/// Where kernels are traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PointChoice {
    /// At every basic block
    Blocks,
    /// On both sides of every branch
    Branches,
    /// At each loop's first block
    Loops,
    /// Where functions are entered
    Functions,
}

/// What happens where events do not fit into device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunPolicy {
    /// They are lost and counted; of each warp a beginning is kept
    Stop,
    /// The oldest ones are lost and counted; of each warp the end is kept
    Ring,
}
