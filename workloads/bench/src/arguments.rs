//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use warptrace_host::{DeviceChoice, MemorySize, Policy};
use warptrace_workloads::Grid;

use crate::fidelity::Slower;
use crate::record::Record;
pub(crate) use crate::whole::arguments::{Inputs, Whole};

/// Records the programs of this project, checks the tracer on a device, and measures it.
///
/// Runs where it is copied to: it carries the GPU code and needs neither a compiler nor a network. Without a
/// GPU everything runs on the simulator with `--quick`; times from there say nothing about performance.
#[derive(Debug, Parser)]
#[command(
    name = "warptrace-bench",
    bin_name = "warptrace-bench",
    version,
    propagate_version = true,
    after_help = "First steps:\n  \
        warptrace-bench check --device sim --quick\n  \
        warptrace-bench bench --device sim --quick --out results/sim\n\n\
        Exit codes: 0 done; 1 could not do it; 2 bad arguments; 3 a check or a comparison failed."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program and record what its warps do
    Record(Box<Record>),
    /// Prove results, events and lanes right on a device
    Check(Check),
    /// Measure times and sizes, of the tracer and of other compressors, and draw them
    Bench(Bench),
    /// Time whole programs, each run in a separate process; or compare policies with the same amount of
    /// device memory
    Whole(Whole),
    /// Compare how often warps come to each trace point: untraced, traced, as the trace says, on the
    /// simulator
    Fidelity(Fidelity),
    /// Repeat recordings for a long time, and look for growth of memory and for a miscount
    Soak(Soak),
}

/// What `check` and `bench` have in common.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// Where to run: `auto` takes the first GPU, or the simulator where there is none
    #[arg(long, value_name = "auto|cuda[:N]|sim", default_value = "auto")]
    pub(crate) device: DeviceChoice,

    /// Small inputs, for the simulator
    #[arg(long)]
    pub(crate) quick: bool,

    /// Only these programs, separated by commas: fractal, nbody, mis, mst, dmr, matmul, stress
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) programs: Vec<String>,

    /// Only this codec and `raw`, by its name in the tables; may be given several times
    #[arg(long = "codec", value_name = "NAME")]
    pub(crate) codecs: Vec<String>,

    /// Grid of MIS, MST and DMR, as in 192x256 (the thesis's); one that fills the device if not given
    #[arg(long, value_name = "BLOCKSxTHREADS")]
    pub(crate) grid: Option<Grid>,

    /// Folder with real inputs (graphs/USA-road-d.NY*, meshes/ttimeu100000.2*)
    #[arg(long, value_name = "DIR")]
    pub(crate) inputs: Option<PathBuf>,

    /// Folder for traces while they are needed; the system's if not given
    #[arg(long, value_name = "DIR")]
    pub(crate) scratch: Option<PathBuf>,

    /// Device memory that the tracer may take, as in 64GiB; it starts with less and grows as needed. If not
    /// given, a quarter of this machine's memory on the simulator, and three quarters of the free memory on a
    /// GPU
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_memory: Option<MemorySize>,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) target: Target,

    /// Folder for check.md
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Seconds after which nothing new is begun; what is left out counts as failed
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) time_limit: Option<u64>,
}

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(flatten)]
    pub(crate) target: Target,

    /// Folder for bench.csv, bench.md and the figures
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) out: PathBuf,

    /// Samples of each codec, of one run or of several short ones; one more run goes before them
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,

    /// Commit of the build, for the table
    #[arg(long, env = "WARPTRACE_COMMIT", default_value = option_env!("WARPTRACE_COMMIT").unwrap_or("unknown"))]
    pub(crate) commit: String,

    /// Most MiB of a raw trace that other compressors are given; of longer ones they get the beginning, and
    /// the tables say so. 256, or 8 with --quick, if not given
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) prefix_mib: Option<u64>,

    /// Seconds after which nothing new is begun; the tables hold what was measured until then. Three fifths
    /// of it are for the device, the rest for other compressors
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) time_limit: Option<u64>,

    /// Number of other compressors that run at once, one core each; half of the cores if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: Option<u32>,

    /// Leave the other compressors out
    #[arg(long)]
    pub(crate) no_compressors: bool,
}

/// Arguments of `soak`.
#[derive(Debug, Args)]
pub(crate) struct Soak {
    /// Where to run: `auto` takes the first GPU, or the simulator where there is none
    #[arg(long, value_name = "auto|cuda[:N]|sim", default_value = "auto")]
    pub(crate) device: DeviceChoice,

    /// Only these programs, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) programs: Vec<String>,

    /// Only these policies, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "stop,ring,stream")]
    pub(crate) policies: Vec<Policy>,

    /// Inputs as large as those that are measured
    #[arg(long)]
    pub(crate) large: bool,

    /// Minutes of each policy
    #[arg(long, default_value_t = 10.0)]
    pub(crate) minutes: f64,

    /// Device memory of a session; some have two and four times as much
    #[arg(long, value_name = "SIZE", default_value = "16MiB")]
    pub(crate) memory: MemorySize,

    /// Folder for soak.md
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) out: PathBuf,

    /// Commit of the build, for the table
    #[arg(long, env = "WARPTRACE_COMMIT", default_value = option_env!("WARPTRACE_COMMIT").unwrap_or("unknown"))]
    pub(crate) commit: String,
}

/// Arguments of `fidelity`.
#[derive(Debug, Args)]
pub(crate) struct Fidelity {
    /// Where to run; the counters are a GPU's
    #[arg(long, value_name = "cuda[:N]", default_value = "cuda")]
    pub(crate) device: DeviceChoice,

    /// Only these programs, separated by commas: fractal, nbody, matmul, stress, dmr, mis, mst
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) programs: Vec<String>,

    /// Folder for fidelity.md, fidelity.csv and fidelity-locations.csv, or simulator-masks.md
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) out: PathBuf,

    /// Untraced runs of MIS and MST, of which each differs; of the other programs two at most
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,

    /// Also run MIS and MST untraced with this many instructions more for each event, or with `+N` at the
    /// kernel's start (numbers separated by commas): what time alone changes
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    pub(crate) slower: Vec<Slower>,

    /// Nsight Compute's program; the first on the PATH or in the usual folders if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) ncu: Option<PathBuf>,

    /// Folder for traces while they are needed; the system's if not given
    #[arg(long, value_name = "DIR")]
    pub(crate) scratch: Option<PathBuf>,

    /// Commit of the build, for the table
    #[arg(long, env = "WARPTRACE_COMMIT", default_value = option_env!("WARPTRACE_COMMIT").unwrap_or("unknown"))]
    pub(crate) commit: String,

    /// Seconds after which nothing new is begun; what is left out counts as failed
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) time_limit: Option<u64>,

    /// Compare the simulator with this fidelity-locations.csv of a GPU, which takes no GPU; may be given
    /// several times, and the first that has a program counts
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Vec<PathBuf>,

    /// With --against: multiprocessors of that GPU, from which the grids of MIS and MST follow; 132 is an
    /// H200's
    #[arg(long, default_value_t = 132, value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    pub(crate) multiprocessors: u32,

    /// With --against: chooses among the interleavings of blocks that communicate
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Program and input, as in the tables: run it once in this process, under Nsight Compute
    #[arg(long, hide = true, requires = "mode")]
    pub(crate) subject: Option<String>,

    /// `untraced`, or the name of a recording
    #[arg(long, hide = true)]
    pub(crate) mode: Option<String>,

    /// Device memory of that recording; its own if not given
    #[arg(long, hide = true)]
    pub(crate) memory: Option<MemorySize>,
}
