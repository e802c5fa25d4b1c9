//! The specification of a recording.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use warptrace_abi::recording::{LogKind, Placement, Recording, Spaces};
use warptrace_format::Counting;
use warptrace_format::chosen::After;
use warptrace_format::chunk::{DEFAULT_CHUNK_BYTES, MAX_CHUNK_BYTES, MIN_CHUNK_BYTES};
use warptrace_format::codec::{CodecSpec, PredictParams};
use warptrace_format::file::Compression;

#[cfg(feature = "clap")]
use crate::text::{property, seconds};
use crate::{MemorySize, SpecError, Window};

/// Maximum zstd level of a file.
pub const MAX_ZSTD: i32 = 19;
/// By default, a recording uses at most the free device memory divided by this number,
const MEMORY_SHARE: u64 = 8;
/// and at most this many bytes.
const MAX_MEMORY_BYTES: u64 = 16 << 30;
/// Default limit for pinned host memory.
const MAX_HOST_BYTES: u64 = 1 << 30;
/// Default maximum wait of a warp for memory.
const STALL_LIMIT: Duration = Duration::from_secs(10);

/// Policy when device memory is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// They are lost and counted; of each warp a beginning is kept. Kernels never wait
    #[default]
    Stop,
    /// The oldest ones are lost and counted; of each warp an end is kept. Kernels never wait
    Ring,
    /// The host empties the logs while kernels run, and warps wait for it: nothing is lost
    Stream,
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Stop, Self::Ring, Self::Stream];

    /// Returns the name, in the form that [`FromStr`] parses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Ring => "ring",
            Self::Stream => "stream",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|policy| policy.name() == text);
        found.ok_or_else(|| format!("there is no policy `{text}`; the policies are `stop`, `ring`, `stream`"))
    }
}

/// Times to record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Times {
    /// None
    #[default]
    Off,
    /// When each warp began and ended, and on which multiprocessor it ran
    Blocks,
    /// When each run of equal events of a warp began, by the clock of its multiprocessor
    Runs,
    /// Both
    All,
}

impl Times {
    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Blocks => "blocks",
            Self::Runs => "runs",
            Self::All => "all",
        }
    }

    /// Returns true if the places and times of warps are recorded.
    pub const fn has_blocks(self) -> bool {
        matches!(self, Self::Blocks | Self::All)
    }

    /// Returns true if the start times of runs are recorded.
    pub const fn has_runs(self) -> bool {
        matches!(self, Self::Runs | Self::All)
    }
}

/// Recording options. The default records all events, as the kernel executed them.
///
/// ```
/// use std::time::Duration;
///
/// use warptrace_spec::{MemorySize, Policy, RecordingSpec};
/// let memory = Some(MemorySize(1 << 30));
/// let stall_limit = Some(Duration::from_secs(60));
/// let spec = RecordingSpec { memory, stall_limit, ..RecordingSpec::default() };
/// assert_eq!(
///     spec.check().unwrap_err().to_string(),
///     "`stall-limit` is for logs that the host empties while kernels run: choose the policy `stream` as well"
/// );
/// let spec = RecordingSpec { policy: Policy::Stream, ..spec };
/// assert!(spec.check().is_ok());
/// ```
// The comments of the fields are also the text of `--help`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "How to record"))]
#[serde(default, deny_unknown_fields)]
pub struct RecordingSpec {
    /// Encoding of events: `raw`, six bytes per event; `ecl`, the codec of the ECL-Tracer thesis;
    /// `predict`, only events that were not predicted. The simulator takes parameters: `ecl:L,S,W` (hash
    /// bits, shift, window bits), `predict:BITS` (2^BITS slots)
    #[cfg_attr(feature = "clap", arg(long, value_name = "raw|ecl|predict", default_value = "predict"))]
    #[serde(with = "crate::text")]
    pub codec: CodecSpec,

    /// Count the iterations of `all` loops without other trace points, as if lanes executed them in lock
    /// step: this takes less time, but masks can differ from the kernel's. Without this option, loops are
    /// counted where that is `proven` to change nothing. `never`: record each event
    #[cfg_attr(
        feature = "clap",
        arg(
            id = "counting",
            long = "counted",
            value_name = "all|proven|never",
            num_args = 0..=1,
            require_equals = true,
            default_value = "proven",
            hide_default_value = true,
            default_missing_value = "all",
            value_parser = counting_parser()
        )
    )]
    pub counting: Counting,

    /// Record times. `blocks`: begin, end and multiprocessor of each warp, on one axis of nanoseconds.
    /// `runs`: begin of each run of equal events of a warp, by the clock of its multiprocessor; kernels
    /// take the same time, and the trace is larger. `all`: both
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub times: Times,

    /// Also record every event uncompressed, so that `verify` can compare
    #[cfg_attr(feature = "clap", arg(long))]
    pub dual: bool,

    /// Record addresses of loads, stores, atomics and copies, and values that the source names: `all`, or a
    /// list of `global`, `shared`, `local` and `values`, separated by commas. Kernels take longer and need
    /// more memory
    #[cfg_attr(feature = "clap", arg(long, value_name = "all|global,shared,local,values"))]
    #[serde(with = "crate::text::option")]
    pub accesses: Option<Spaces>,

    /// Behaviour if events do not fit into device memory
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub policy: Policy,

    /// With the policy `stream`: maximum time in seconds that a warp waits for memory before it loses
    /// events [default: 10]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SECONDS", value_parser = seconds::parse))]
    #[serde(with = "crate::text::seconds::option")]
    pub stall_limit: Option<Duration>,

    /// Keep logs in pinned host memory. If a kernel fails, the trace has its events until then and the
    /// positions of its warps. Not with the policy `stream`. Kernels take longer, because each log entry
    /// crosses the link to the host
    #[cfg_attr(feature = "clap", arg(long))]
    pub host_logs: bool,

    /// Limit of the device memory that the tracer uses: 64MiB, 1GiB, 512M or plain bytes [default: an
    /// eighth of the free memory, at most 16GiB; at most 1GiB on the simulator and with `--host-logs`]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE"))]
    #[serde(with = "crate::text::option")]
    pub memory: Option<MemorySize>,

    /// Bytes of a chunk: a power of two from 512 to 1048576
    #[cfg_attr(feature = "clap", arg(long, value_name = "BYTES", default_value_t = DEFAULT_CHUNK_BYTES))]
    pub chunk_bytes: u32,

    /// zstd level of the file, 0 for no compression [default: a quick search that suits what codecs leave]
    #[cfg_attr(feature = "clap", arg(long, value_name = "0..19", value_parser = clap::value_parser!(i32).range(0..=i64::from(MAX_ZSTD))))]
    pub zstd: Option<i32>,

    /// A pair of your own for the file, such as an argument of the program; may be given more than once
    #[cfg_attr(feature = "clap", arg(id = "properties", long = "property", value_name = "NAME=VALUE", value_parser = property))]
    pub properties: Vec<(String, String)>,

    /// Which part of the program is recorded.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub window: Window,

    /// Storage of each lane's record in traced kernels on a GPU; `None` selects it per kernel. Only for tests
    /// and measurements: no interface sets it.
    #[cfg_attr(feature = "clap", arg(skip))]
    #[serde(skip)]
    pub placement: Option<Placement>,
}

impl Default for RecordingSpec {
    fn default() -> Self {
        Self {
            codec: CodecSpec::Predict(PredictParams::DEFAULT),
            counting: Counting::default(),
            times: Times::Off,
            dual: false,
            accesses: None,
            policy: Policy::default(),
            stall_limit: None,
            host_logs: false,
            memory: None,
            chunk_bytes: DEFAULT_CHUNK_BYTES,
            zstd: None,
            properties: Vec::new(),
            window: Window::default(),
            placement: None,
        }
    }
}

#[cfg(feature = "clap")]
fn counting_parser() -> impl clap::builder::TypedValueParser<Value = Counting> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(["all", "proven", "never"]).map(|word| match &*word {
        "all" => Counting::All,
        "never" => Counting::Never,
        _ => Counting::Proven,
    })
}

impl RecordingSpec {
    /// Returns the default with another codec.
    pub fn new(codec: CodecSpec) -> Self {
        Self { codec, ..Self::default() }
    }

    /// Checks each value and the combination of options. Returns the first error found.
    pub fn check(&self) -> Result<(), SpecError> {
        self.codec.check()?;
        if !self.chunk_bytes.is_power_of_two()
            || !(MIN_CHUNK_BYTES..=MAX_CHUNK_BYTES).contains(&self.chunk_bytes)
        {
            return Err(SpecError::ChunkBytes { bytes: self.chunk_bytes });
        }
        if let Some(level) = self.zstd.filter(|level| !(0..=MAX_ZSTD).contains(level)) {
            return Err(SpecError::Zstd { level });
        }
        if self.stall_limit.is_some() && self.policy != Policy::Stream {
            return Err(SpecError::NotStreamed { option: "stall-limit" });
        }
        if self.host_logs && self.policy == Policy::Stream {
            return Err(SpecError::HostLogs);
        }
        if self.times.has_runs() && self.counting == Counting::All {
            return Err(SpecError::TimesOfLoops);
        }
        let alone = [
            ("dual", self.dual),
            ("after", self.window.after.is_some()),
            ("policy", self.policy != Policy::Stop),
        ];
        if let Some((option, _)) = alone.into_iter().find(|(_, asked)| *asked)
            && self.accesses.is_some()
        {
            return Err(SpecError::Accesses { option });
        }
        if self.counting == Counting::All && self.window.after.is_some() {
            return Err(SpecError::After { option: "counted" });
        }
        Ok(())
    }

    /// Returns how kernels record, with `after` from [`Visits::among`](crate::Visits::among).
    pub fn traced(&self, after: Option<After>) -> Recording {
        let &Self { counting, dual, placement, .. } = self;
        let logs = match self.policy {
            Policy::Stop => LogKind::Kept,
            Policy::Ring => LogKind::Ring,
            Policy::Stream => LogKind::Streamed,
        };
        let (chooses, spans) = (self.window.looks_inside(), self.times.has_blocks());
        let data = self.spaces();
        // If all loops are counted, an event inside a loop would precede the loop's iterations.
        let waits = self.times.has_runs() && counting != Counting::All;
        Recording { counting, dual, logs, chooses, after, placement, spans, data, waits }
    }

    /// Returns the state spaces whose accesses are recorded.
    pub fn spaces(&self) -> Spaces {
        self.accesses.unwrap_or(Spaces::NONE)
    }

    /// Returns the maximum bytes of device memory for the recording on a device with `free` free bytes.
    pub fn memory_bytes(&self, free: u64) -> u64 {
        let most = if self.host_logs { MAX_HOST_BYTES } else { MAX_MEMORY_BYTES };
        self.memory.map_or_else(|| (free / MEMORY_SHARE).min(most), |MemorySize(bytes)| bytes)
    }

    /// Returns the maximum wait of a warp for memory, for logs that the host empties.
    pub fn stall(&self) -> Duration {
        self.stall_limit.unwrap_or(STALL_LIMIT)
    }

    /// Returns the compression of the file's frames.
    pub fn compression(&self) -> Compression {
        match self.zstd {
            None => Compression::Suited,
            Some(0) => Compression::None,
            Some(level) => Compression::Zstd(level),
        }
    }
}
