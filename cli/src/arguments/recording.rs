//! How to record, for every program.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use warptrace_format::Counting;
use warptrace_format::codec::{CodecSpec, EclParams, PredictParams};
use warptrace_host::writer::Compression;
use warptrace_host::{DeviceChoice, MemorySize, Placement, Policy, PoolMemory, SessionOptions, SimOptions};

use super::parse_numbers;

/// How to record.
#[derive(Debug, Args)]
#[command(next_help_heading = "Recording")]
pub(crate) struct Recording {
    /// Where to write the trace
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Where to run: `auto` takes the first GPU, or the simulator where there is none
    #[arg(long, value_name = "auto|cuda[:N]|sim", default_value = "auto", value_parser = parse_device)]
    pub(crate) device: DeviceChoice,

    /// Take the program's automatic trace points, at every decision, instead of those placed by hand
    #[arg(long)]
    pub(crate) automatic: bool,

    /// How the kernel writes its events
    #[arg(long, value_enum, default_value = "ecl")]
    pub(crate) codec: Codec,

    /// Parameters of `ecl`: hash bits, shift, window bits (other than the default: simulator only)
    #[arg(long, value_name = "L,S,W", value_parser = parse_ecl_params)]
    pub(crate) ecl: Option<EclParams>,

    /// Parameter of `predict`: the number of its slots is 2^BITS (other than the default: simulator only)
    #[arg(long, value_name = "BITS", value_parser = parse_predict_params)]
    pub(crate) predict: Option<PredictParams>,

    /// Record every event raw as well, so that `verify` can compare the two
    #[arg(long)]
    pub(crate) dual: bool,

    /// Count the iterations of all loops that hold no other trace point, as if lanes ran them in lock step:
    /// masks can differ from the kernel's. Without, loops are counted where that is proven to change nothing
    #[arg(long)]
    pub(crate) counted: bool,

    /// Where a traced kernel keeps each lane's record, on a GPU
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) records: Records,

    /// Device memory that the tracer takes at most, in all, as in 64MiB, 1GiB, 512M or plain bytes
    /// [default: 1GiB, or a quarter of the device's memory if that is less]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<MemorySize>,

    /// What happens where events do not fit into device memory
    #[arg(long, value_enum, default_value = "stop")]
    pub(crate) policy: Memory,

    /// With `--policy stream`: how many seconds a warp waits for memory before it loses what it would have
    /// recorded
    #[arg(long, value_name = "SECONDS", default_value_t = Policy::STALL.as_secs_f64())]
    pub(crate) stall_limit: f64,

    /// With --policy stream: write runs of events when they begin, too, not only when they end. When a kernel
    /// that hangs is interrupted, the tool then says where each warp is, and at least how often it came
    /// there, and the trace has these events. Costs a store for each run. (Counted loops are known when they
    /// end only.)
    #[arg(long)]
    pub(crate) open_runs: bool,

    /// With --policy stream: in whose memory the logs are
    #[arg(long, value_enum, default_value = "device")]
    pub(crate) pool: Pool,

    /// Bytes of a chunk: a power of two from 512 to 1048576
    #[arg(long, value_name = "BYTES", default_value_t = warptrace_format::chunk::DEFAULT_CHUNK_BYTES)]
    pub(crate) chunk_bytes: u32,

    /// zstd level of the file, 0 for no compression
    #[arg(long, value_name = "0..19", default_value_t = 3, value_parser = clap::value_parser!(i32).range(0..=19))]
    pub(crate) zstd: i32,

    /// Seed of the order in which the simulator runs blocks and warps
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) sim_seed: u64,

    /// Leave out the check of the program's result, which takes the CPU long for large inputs
    #[arg(long)]
    pub(crate) no_check: bool,
}

/// The codecs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Codec {
    /// Six bytes an event, nothing compressed
    Raw,
    /// CUT, LZa2, RLE: the codec of the ECL-Tracer thesis
    Ecl,
    /// Whole events predicted from those before; only what was not expected is written
    Predict,
}

/// What happens where events do not fit into device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Memory {
    /// They are lost and counted; of each warp a beginning is kept. Kernels never wait
    Stop,
    /// The oldest ones are lost and counted; of each warp the end is kept. Kernels never wait
    Ring,
    /// The host empties the logs while kernels run, and warps wait for it: nothing is lost
    Stream,
}

/// In whose memory logs are that the host empties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pool {
    /// The device's
    Device,
    /// The host's: slow, but if the kernel fails, the trace has everything up to then. Implies --open-runs
    Host,
}

/// Where a traced kernel keeps each lane's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Records {
    /// What suits the kernel
    Auto,
    /// Registers
    Registers,
    /// The block's shared memory
    Shared,
    /// Local memory: for kernels that need their registers and their shared memory themselves
    Local,
}

impl Recording {
    /// The codec with its parameters.
    fn codec(&self) -> anyhow::Result<CodecSpec> {
        match self.codec {
            Codec::Ecl | Codec::Raw if self.predict.is_some() => {
                anyhow::bail!(
                    "--predict sets the parameter of the codec `predict`: use it with --codec predict"
                )
            }
            Codec::Predict | Codec::Raw if self.ecl.is_some() => {
                anyhow::bail!("--ecl sets parameters of the codec `ecl`: use it with --codec ecl")
            }
            Codec::Raw => Ok(CodecSpec::Raw),
            Codec::Ecl => Ok(CodecSpec::Ecl(self.ecl.unwrap_or(EclParams::DEFAULT))),
            Codec::Predict => Ok(CodecSpec::Predict(self.predict.unwrap_or(PredictParams::DEFAULT))),
        }
    }

    fn policy(&self) -> anyhow::Result<Policy> {
        match self.policy {
            Memory::Stop | Memory::Ring if self.open_runs => {
                anyhow::bail!("--open-runs is for logs that the host empties: use it with --policy stream")
            }
            Memory::Stop if self.pool == Pool::Host => {
                anyhow::bail!("--pool host is for logs that the host empties: use it with --policy stream")
            }
            Memory::Stop => Ok(Policy::Stop),
            Memory::Ring => Ok(Policy::Ring),
            Memory::Stream => {
                let stall = Duration::try_from_secs_f64(self.stall_limit).map_err(|_| {
                    anyhow::anyhow!(
                        "--stall-limit {}: a number of seconds is needed, 0 or more",
                        self.stall_limit
                    )
                })?;
                let open_runs = self.open_runs || self.pool == Pool::Host;
                Ok(Policy::Stream { stall, open_runs })
            }
        }
    }

    /// Converts it to options of a session.
    pub(crate) fn session(&self, properties: Vec<(String, String)>) -> anyhow::Result<SessionOptions> {
        let mut options = SessionOptions::new(self.codec()?);
        options.dual = self.dual;
        options.counting = if self.counted { Counting::All } else { Counting::Proven };
        options.placement = match self.records {
            Records::Auto => None,
            Records::Registers => Some(Placement::Registers),
            Records::Shared => Some(Placement::Shared),
            Records::Local => Some(Placement::Local),
        };
        options.policy = self.policy()?;
        options.pool = match self.pool {
            Pool::Device => PoolMemory::Device,
            Pool::Host => PoolMemory::Host,
        };
        options.chunk_bytes = self.chunk_bytes;
        options.memory_bytes = self.memory.map(|MemorySize(bytes)| bytes);
        options.compression = match self.zstd {
            0 => Compression::None,
            level => Compression::Zstd(level),
        };
        options.properties = properties;
        Ok(options)
    }

    /// How the simulator runs, if it is taken.
    pub(crate) fn simulator(&self) -> SimOptions {
        SimOptions { seed: self.sim_seed, ..SimOptions::default() }
    }
}

fn parse_device(text: &str) -> Result<DeviceChoice, String> {
    text.parse().map_err(|error| format!("{error}; `warptrace devices` lists them"))
}

fn parse_ecl_params(text: &str) -> Result<EclParams, String> {
    let [hash_bits, shift, window_bits] =
        parse_numbers(text).ok_or("three numbers are needed: hash bits, shift, window bits, as in 9,2,10")?;
    EclParams::new(hash_bits, shift, window_bits).map_err(|error| error.to_string())
}

fn parse_predict_params(text: &str) -> Result<PredictParams, String> {
    let slot_bits = text.parse().map_err(|_| "a number is needed: log2 of the slots, as in 5")?;
    PredictParams::new(slot_bits).map_err(|error| error.to_string())
}
