//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use warptrace_format::codec::{CodecSpec, EclParams};

use crate::device::DeviceChoice;

/// What did my warps actually do?
///
/// warptrace records every control-flow decision of a GPU kernel, warp by warp, compressed while the kernel runs, and
/// tells afterwards what happened. Without a GPU the same kernels run on a simulator.
#[derive(Debug, Parser)]
#[command(
    version,
    propagate_version = true,
    after_help = "First steps:\n  \
        warptrace record fractal -o fractal.wtrc     run a kernel and record it\n  \
        warptrace info fractal.wtrc                  what is in the file\n  \
        warptrace verify fractal.wtrc                is every event there and sound\n  \
        warptrace decode fractal.wtrc --block 0 --warp 3\n\n\
        Exit codes: 0 done; 1 could not do it; 2 bad arguments; 3 `verify` found the trace incomplete or damaged."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program and record what its warps do
    Record(Record),
    /// Say what a trace holds
    Info(Info),
    /// Print the events of a trace
    Decode(Decode),
    /// Check that a trace is complete and sound
    Verify(Verify),
    /// List the devices that can run kernels
    Devices,
}

/// Arguments of `record`.
#[derive(Debug, Args)]
pub(crate) struct Record {
    #[command(subcommand)]
    pub(crate) program: Program,
}

/// The programs.
#[derive(Debug, Subcommand)]
pub(crate) enum Program {
    /// The Mandelbrot set in double precision, one thread a pixel
    Fractal(Fractal),
}

/// How to record, for every program.
#[derive(Debug, Args)]
pub(crate) struct Recording {
    /// Where to write the trace
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Where to run: `auto` takes the first GPU, or the simulator where there is none
    #[arg(long, value_name = "auto|cuda[:N]|sim", default_value = "auto")]
    pub(crate) device: DeviceChoice,

    /// How the kernel writes its events: `raw` is five bytes each; `ecl` compresses them
    #[arg(long, value_enum, default_value = "ecl")]
    pub(crate) codec: Codec,

    /// Parameters of `ecl`: hash bits, shift, window bits (other than the default: simulator only)
    #[arg(long, value_name = "L,S,W", value_parser = parse_ecl_params)]
    pub(crate) ecl: Option<EclParams>,

    /// Record every event raw as well, so that `verify` can compare the two
    #[arg(long)]
    pub(crate) dual: bool,

    /// Where the kernel keeps the codec's tables
    #[arg(long, value_enum, default_value = "shared")]
    pub(crate) tables: Tables,

    /// Device memory for the trace of one launch, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) pool_mib: u64,

    /// Bytes of a chunk: a power of two from 512 to 1048576
    #[arg(long, value_name = "BYTES", default_value_t = warptrace_format::chunk::DEFAULT_CHUNK_BYTES)]
    pub(crate) chunk_bytes: u32,

    /// zstd level of the file, 0 for no compression
    #[arg(long, value_name = "0..19", default_value_t = 3, value_parser = clap::value_parser!(i32).range(0..=19))]
    pub(crate) zstd: i32,

    /// Seed of the simulator's interleaving
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

/// Arguments of `record fractal`.
#[derive(Debug, Args)]
pub(crate) struct Fractal {
    /// Pixels of a side
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=32768))]
    pub(crate) width: u32,

    /// Most steps a pixel
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) depth: u32,

    /// The square to compute: left edge, upper edge, side
    #[arg(long, value_name = "LEFT,TOP,SIDE", value_parser = parse_region, allow_hyphen_values = true,
        default_value = "-0.74395,-0.10461,0.00578")]
    pub(crate) region: [f64; 3],

    /// Also write the picture, as PNG
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) recording: Recording,
}

/// The codecs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Codec {
    /// Five bytes an event
    Raw,
    /// CUT, LZa2, RLE: the codec of the ECL-Tracer thesis
    Ecl,
}

/// Where the encoder's tables live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tables {
    /// The block's shared memory: faster
    Shared,
    /// Global memory, for kernels that need their shared memory themselves
    Global,
}

impl Recording {
    /// The codec with its parameters.
    pub(crate) fn codec(&self) -> anyhow::Result<CodecSpec> {
        match (self.codec, self.ecl) {
            (Codec::Raw, None) => Ok(CodecSpec::Raw),
            (Codec::Raw, Some(_)) => {
                anyhow::bail!("--ecl sets parameters of the codec `ecl`: use it with --codec ecl")
            }
            (Codec::Ecl, params) => Ok(CodecSpec::Ecl(params.unwrap_or(EclParams::DEFAULT))),
        }
    }
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

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The trace
    pub(crate) file: PathBuf,
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

    /// Where to write; standard output if not given
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Forms of decoded events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A heading for each warp, a line for each event
    Text,
    /// One JSON object a line
    Jsonl,
    /// Comma-separated values with a header
    Csv,
}

fn numbers<T: std::str::FromStr>(text: &str) -> Option<Vec<T>> {
    text.split(',').map(|part| part.trim().parse().ok()).collect()
}

fn parse_region(text: &str) -> Result<[f64; 3], String> {
    numbers(text)
        .and_then(|found: Vec<f64>| found.try_into().ok())
        .filter(|found: &[f64; 3]| found.iter().all(|number| number.is_finite()) && found[2] > 0.0)
        .ok_or_else(|| {
            "three numbers are needed, the side above 0, as in -0.74395,-0.10461,0.00578".to_owned()
        })
}

fn parse_ecl_params(text: &str) -> Result<EclParams, String> {
    let help = "three numbers are needed: hash bits, shift, window bits, as in 9,2,10";
    let found: [u8; 3] = numbers(text).and_then(|found: Vec<u8>| found.try_into().ok()).ok_or(help)?;
    EclParams::new(found[0], found[1], found[2]).map_err(|error| error.to_string())
}

fn parse_block(text: &str) -> Result<[u32; 3], String> {
    let found: Vec<u32> = numbers(text).ok_or("a block is X, X,Y or X,Y,Z, as in 12 or 3,4")?;
    match found[..] {
        [x] => Ok([x, 0, 0]),
        [x, y] => Ok([x, y, 0]),
        [x, y, z] => Ok([x, y, z]),
        _ => Err("a block has one to three coordinates".to_owned()),
    }
}
