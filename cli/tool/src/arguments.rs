//! The command line.

mod answers;
mod export;
mod query;
#[cfg(unix)]
mod run;
mod timeline;

use std::path::PathBuf;

use crate::numbers::parse_block;
use crate::recording::Recording;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use warptrace_analysis::{
    Cause, Edge, LineFigures, LocationFigures, PathGroup, SiteFigures, ValueFigures, WaitFigures, WarpFigures,
};

pub(crate) use self::answers::{Diff, Page, Report, Rows, Stats, Tui};
pub(crate) use self::export::{Export, ExportFormat, SampleWeight};
#[cfg(feature = "query")]
pub(crate) use self::query::{Apart, QueryFormat};
pub(crate) use self::query::{Query, Worker};
#[cfg(unix)]
pub(crate) use self::run::RunArguments;
pub(crate) use self::timeline::Timeline;

/// When tables are in colour.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

impl Color {
    pub(crate) fn choose(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// What did my warps actually do?
///
/// warptrace records the control-flow decisions of GPU kernels, warp by warp, compressed on the GPU, and
/// shows what the warps did. Without a GPU, its own kernels run on a simulator.
#[derive(Debug, Parser)]
#[command(
    name = "warptrace",
    // A constant: the name that the tool was called by may be any text.
    bin_name = "warptrace",
    version,
    propagate_version = true,
    after_help = "First steps:\n  \
        warptrace demo -o demo.wtrc                  record a small kernel\n  \
        warptrace top demo.wtrc                      show what its warps did\n  \
        warptrace report demo.wtrc                   write an HTML page about it\n  \
        warptrace tui demo.wtrc                      browse it in the terminal\n  \
        warptrace info demo.wtrc                     show the contents of the file\n  \
        warptrace verify demo.wtrc                   check that it is complete and undamaged\n  \
        warptrace decode demo.wtrc --block 0 --warp 3\n  \
        warptrace export demo.wtrc --to perfetto -o demo.pftrace\n  \
        warptrace new my-kernels                     create a Rust package with a kernel\n  \
        warptrace run -o app.wtrc -- ./app           record an unmodified CUDA program\n\n\
        Exit codes: 0 success; 1 error; 2 bad arguments; 3 incomplete or damaged trace (`verify`, or `demo` lost events); \
        4 `diff --fail-above` found a larger change; 130 interrupted by Ctrl-C. `run` exits with the program's code."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Decode a trace without a limit of work. By default, files that need far more work than their size
    /// suggests are refused
    #[arg(long, global = true)]
    pub(crate) unlimited: bool,

    /// Colours in tables. auto: on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) color: Color,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Record a built-in kernel: the Mandelbrot set, one thread per pixel
    Demo(Demo),
    /// Run an unmodified CUDA program and record its kernels
    #[cfg(unix)]
    Run(RunArguments),
    /// Show the contents of a trace
    Info(Info),
    /// Show the main findings on one screen: idle lanes, hangs, losses
    Top(Page),
    /// Show where lanes diverge, and how many idle slots that causes
    Causes(Rows<Cause>),
    /// Show visits, lanes and idle slots of each line
    Lines(Rows<LineFigures>),
    /// Show trip counts of loops
    Loops(Rows<LocationFigures>),
    /// Show where lanes wait, how long, and for which warp; for traces with times
    Waits(Rows<WaitFigures>),
    /// Show how lanes access memory: sectors, bank conflicts, strides
    Accesses(Rows<SiteFigures>),
    /// Show the values that the source names: range, mean, first NaN
    Values(Rows<ValueFigures>),
    /// Show the work of each warp
    Warps(Rows<WarpFigures>),
    /// Group warps that took the same path
    Paths(Rows<PathGroup>),
    /// Show where lanes continue after each location
    Edges(Rows<Edge>),
    /// Show events, lanes and idle slots of each kernel
    Stats(Stats),
    /// Compare two traces
    Diff(Diff),
    /// Show the launches of all ranks of a job on one axis, and which rank is late
    Timeline(Timeline),
    /// Write an HTML page about a trace
    Report(Report),
    /// Browse a trace in the terminal: source with heat, loops, warps
    Tui(Tui),
    /// Run an SQL query over any number of traces
    Query(Query),
    /// Serve the traces of this machine to other machines that use `--workers`
    Worker(Worker),
    /// Print the events of a trace
    Decode(Decode),
    /// Write a trace as Parquet, Perfetto, Firefox Profiler or lcov files
    Export(Export),
    /// Check that a trace is complete and undamaged
    Verify(Verify),
    /// Report where a program under `warptrace run` hangs. Its trace ends with the report
    #[cfg(unix)]
    Where(Where),
    /// List the devices that can run kernels
    Devices,
    /// Create a Rust package with a kernel to trace
    New(New),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Write manual pages of all commands
    Man(Man),
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Folder for the pages, created if it does not exist
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: PathBuf,
}

/// Arguments of `new`.
#[derive(Debug, Args)]
pub(crate) struct New {
    /// Folder to create; its last part is the name of the package
    pub(crate) folder: PathBuf,
    /// Folder of warptrace's sources, if they are not where this tool was built
    #[arg(long, value_name = "FOLDER")]
    pub(crate) sources: Option<PathBuf>,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Pixels of a side
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=1 << 15))]
    pub(crate) width: u32,

    /// Most steps of a pixel
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) depth: u32,

    #[command(flatten)]
    pub(crate) recording: Recording,
}

/// Arguments of `info`.
#[derive(Debug, Args)]
pub(crate) struct Info {
    /// The trace
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `where`.
#[cfg(unix)]
#[derive(Debug, Args)]
pub(crate) struct Where {
    /// Process id of the program, or of `warptrace run`
    #[arg(value_name = "PID")]
    pub(crate) process: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The trace; several, a folder, or all that fit a pattern in quotes
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print JSON, with the warps that lost events: for each loss 65,536 rows of equal warps at most
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `decode`.
#[derive(Debug, Args)]
pub(crate) struct Decode {
    /// The trace
    pub(crate) file: PathBuf,

    /// Form of the output
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,

    /// Only this launch
    #[arg(long)]
    pub(crate) launch: Option<u32>,

    /// Only this block: `X`, `X,Y` or `X,Y,Z`
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_block)]
    pub(crate) block: Option<[u32; 3]>,

    /// Only this warp of each block
    #[arg(long, value_name = "WARP")]
    pub(crate) warp: Option<u32>,

    /// Which recording of a dual trace: 0 is the trace, 1 its raw twin
    #[arg(long, default_value_t = 0)]
    pub(crate) track: u32,

    /// Print recorded addresses and values instead of events
    #[arg(long, conflicts_with = "track")]
    pub(crate) accesses: bool,

    /// Output file; standard output if not given
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Forms of decoded events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A heading for each warp, a line for each event; of a mask's digits the leftmost is lane 31, the
    /// rightmost lane 0
    Text,
    /// One JSON object a line; bit i of a mask is lane i
    Jsonl,
    /// Comma-separated values with a header; bit i of a mask is lane i
    Csv,
}
