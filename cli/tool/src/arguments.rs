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
    /// Sets the color choice for all further output.
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
/// warptrace records every control-flow decision of a GPU kernel, warp by warp, compressed while the kernel
/// runs, and tells afterwards what happened. Without a GPU the same kernels run on a simulator.
#[derive(Debug, Parser)]
#[command(
    name = "warptrace",
    // A constant: the name that the tool was called by may be any text.
    bin_name = "warptrace",
    version,
    propagate_version = true,
    after_help = "First steps:\n  \
        warptrace demo -o demo.wtrc                  record a small kernel\n  \
        warptrace top demo.wtrc                      what did its warps do\n  \
        warptrace report demo.wtrc                   the same and more, as a page to look at\n  \
        warptrace tui demo.wtrc                      the same in the terminal, to look through\n  \
        warptrace info demo.wtrc                     what is in the file\n  \
        warptrace verify demo.wtrc                   is every event there and sound\n  \
        warptrace decode demo.wtrc --block 0 --warp 3\n  \
        warptrace export demo.wtrc --to perfetto -o demo.pftrace\n  \
        warptrace new my-kernels                     a package for a kernel of your own\n  \
        warptrace run -o app.wtrc -- ./app           a CUDA program that has PTX, as it is\n\n\
        Exit codes: 0 done; 1 could not do it; 2 bad arguments; 3 the trace is incomplete or damaged (`verify` found \
        it so, or `demo` lost events); 4 `diff --fail-above` found more change; 130 ended by Ctrl-C."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Decode a trace whatever it costs: without this, a file that asks for far more work than its size lets
    /// expect is refused
    #[arg(long, global = true)]
    pub(crate) unlimited: bool,

    /// Whether tables are in colour; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) color: Color,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Record a small kernel of the tool's own: the Mandelbrot set, one thread a pixel
    Demo(Demo),
    /// Run any CUDA program, unchanged, and record its kernels
    #[cfg(unix)]
    Run(RunArguments),
    /// Say what a trace holds
    Info(Info),
    /// Say on one screen what matters most: idle lanes, hangs, losses
    Top(Page),
    /// Say what parted lanes, and how many idle slots that cost
    Causes(Rows<Cause>),
    /// Count visits, lanes and idle slots of each line
    Lines(Rows<LineFigures>),
    /// Count the trips of loops
    Loops(Rows<LocationFigures>),
    /// Say where lanes wait, how long, and for which warp; of traces with times
    Waits(Rows<WaitFigures>),
    /// Say how the addresses of lanes fit to the memory: sectors, bank conflicts, strides
    Accesses(Rows<SiteFigures>),
    /// Say what was in the values that the source names: ends, mean, the first NaN
    Values(Rows<ValueFigures>),
    /// Count the work of each warp
    Warps(Rows<WarpFigures>),
    /// Group warps that took the same path
    Paths(Rows<PathGroup>),
    /// Count where lanes went from each location
    Edges(Rows<Edge>),
    /// Count events, lanes and idle slots of each kernel
    Stats(Stats),
    /// Compare two traces
    Diff(Diff),
    /// Put the launches of a job's ranks on one axis, and say which rank is late
    Timeline(Timeline),
    /// Write one HTML page that says what warps did
    Report(Report),
    /// Look through a trace in the terminal: source with heat, loops, warps
    Tui(Tui),
    /// Answer a question in SQL about any number of traces
    Query(Query),
    /// Read the traces of this machine for others, which ask with `--workers`
    Worker(Worker),
    /// Print the events of a trace
    Decode(Decode),
    /// Write a trace as Parquet, Perfetto, Firefox Profiler or lcov files
    Export(Export),
    /// Check that a trace is complete and sound
    Verify(Verify),
    /// Say where a program hangs that runs under `warptrace run`: its trace ends with that
    #[cfg(unix)]
    Where(Where),
    /// List the devices that can run kernels
    Devices,
    /// Make a package with a kernel of your own to trace
    New(New),
    /// Print a script that completes this tool's commands and options in a shell
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
    /// Folder for the pages; it is made if it is not there
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: PathBuf,
}

/// Arguments of `new`.
#[derive(Debug, Args)]
pub(crate) struct New {
    /// Folder to make; its last part is the package's name
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
    /// The number of the program's process, or of the one that started it
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

    /// What lanes accessed, in place of events: addresses and values, where they were recorded
    #[arg(long, conflicts_with = "track")]
    pub(crate) accesses: bool,

    /// Where to write; standard output if not given
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
