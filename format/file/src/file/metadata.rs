//! Metadata of a recording: the `META` section.
//!
//! The body is [`Metadata`] in [postcard's wire format](https://postcard.jamesmunns.com/wire-format): fields
//! in the order of declaration, unsigned integers as varints (seven bits per byte, lowest first), strings and
//! sequences after their length, options after a byte 0 or 1, enum variants by number. Fields that other
//! sections store ([`LocationInfo::code`], [`LocationInfo::wait`], [`Metadata::origin`]) take no bytes. The
//! encoding is not self-describing, so a change of a field requires a new section version.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::code::{LocationCode, beside};
use super::encoded::decode_body;
use super::error::FormatError;
use super::known_locations::KnownLocations;
use super::limits::{MAX_KERNELS, MAX_LOCATIONS, MAX_METADATA_BYTES, MAX_PROPERTIES};
use super::metadata_error::MetadataError;
use super::origin::Origin;
use super::wait::WaitInfo;
use crate::account::MAX_TRACKS;
use crate::chunk::{MAX_CHUNK_BYTES, MIN_CHUNK_BYTES};
use crate::codec::CodecSpec;
use crate::counting::Counting;
use crate::location::SOURCE_HASH_PREFIX;
use crate::location::{LocationKind, SourceLocation};

const SECTION: &str = "META";

crate::named_enum! {
    /// Kind of device that ran the kernels.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[non_exhaustive]
    pub enum DeviceKind {
        /// A GPU, used through the CUDA driver.
        Cuda = "cuda",
        /// The simulator. Its traces have the same form, but its times say nothing about a GPU.
        Simulator = "simulator",
    }
}

/// Device that ran the kernels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// GPU or simulator.
    pub kind: DeviceKind,
    /// Name, as the driver reports it.
    pub name: String,
    /// Compute capability, major and minor; `None` for the simulator.
    pub compute_capability: Option<(u32, u32)>,
    /// Driver version as text; `None` for the simulator.
    pub driver_version: Option<String>,
}

impl DeviceInfo {
    /// Describes a GPU.
    pub fn cuda(
        name: impl Into<String>,
        compute_capability: (u32, u32),
        driver_version: impl Into<String>,
    ) -> Self {
        Self {
            kind: DeviceKind::Cuda,
            name: name.into(),
            compute_capability: Some(compute_capability),
            driver_version: Some(driver_version.into()),
        }
    }

    /// Describes a simulator.
    pub fn simulator(name: impl Into<String>) -> Self {
        Self {
            kind: DeviceKind::Simulator,
            name: name.into(),
            compute_capability: None,
            driver_version: None,
        }
    }
}

/// A kernel. Launches refer to it by its index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelInfo {
    /// Name of the kernel's entry.
    pub name: String,
    /// Source file; empty if unknown.
    pub source_file: String,
}

/// A trace point: the meaning of a location id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocationInfo {
    /// Id of the trace point, never 0.
    pub id: u16,
    /// Short name.
    pub name: String,
    /// Meaning of an event here.
    pub description: String,
    /// Source file; empty if unknown.
    pub file: String,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
    /// Enclosing function; empty if unknown.
    pub function: String,
    /// Source construct.
    pub kind: LocationKind,
    /// Id of the directly enclosing location, smaller than [`id`](Self::id); 0 if none or unknown.
    pub parent: u16,
    /// Line where diverged lanes reconverge, from 1; 0 if unknown.
    pub rejoin_line: u32,
    /// Column where diverged lanes reconverge, from 1; 0 if unknown.
    pub rejoin_column: u32,
    /// Compiled code at this location, if known. Stored in a [`CODE`](super::LocationCode) section only.
    #[serde(with = "beside")]
    pub code: Option<LocationCode>,
    /// Wait that begins here, if known. Stored in a [`WAIT`](super::WaitInfo) section only.
    #[serde(with = "beside")]
    pub wait: Option<Box<WaitInfo>>,
}

impl LocationInfo {
    /// Returns true if `text` names this location: by its id, its name, or as `FILE:LINE`, where the file is the
    /// end of its path. A number is always an id.
    ///
    /// ```
    /// # use warptrace_format::file::LocationInfo;
    /// let info = LocationInfo { file: "src/main.rs".to_owned(), line: 12, ..LocationInfo::new(3, "STEP", "") };
    /// assert!(["3", "STEP", "main.rs:12", "src/main.rs:12"].iter().all(|text| info.is_named(text)));
    /// assert!(["12", "ain.rs:12", "main.rs"].iter().all(|text| !info.is_named(text)));
    /// ```
    pub fn is_named(&self, text: &str) -> bool {
        if let Ok(id) = text.parse::<u16>() {
            return self.id == id;
        }
        let is_file = |name: &str| {
            self.file.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        let is_line = |(file, line): (&str, &str)| line.parse() == Ok(self.line) && is_file(file);
        self.name == text || text.rsplit_once(':').is_some_and(is_line)
    }

    /// Creates a trace point with unknown position and structure.
    pub fn new(id: u16, name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            id,
            name: name.into(),
            description: description.into(),
            file: String::new(),
            line: 0,
            column: 0,
            function: String::new(),
            kind: LocationKind::Marked,
            parent: 0,
            rejoin_line: 0,
            rejoin_column: 0,
            code: None,
            wait: None,
        }
    }

    /// Creates a trace point from its declaration in a kernel's source; `file` is the source file.
    pub fn from_source(location: &SourceLocation, file: impl Into<String>) -> Self {
        Self {
            id: location.id,
            name: location.name.to_owned(),
            description: location.kind.meaning().to_owned(),
            file: file.into(),
            line: location.line,
            column: location.column,
            function: location.function.to_owned(),
            kind: location.kind,
            parent: location.parent,
            rejoin_line: location.rejoin_line,
            rejoin_column: location.rejoin_column,
            code: None,
            wait: None,
        }
    }

    pub(super) fn describe(&self) -> String {
        let Self { name, file, line, .. } = self;
        match (file.as_str(), line) {
            ("", _) => format!("`{name}`"),
            (file, 0) => format!("`{name}` ({file})"),
            (file, line) => format!("`{name}` ({file}:{line})"),
        }
    }
}

/// Policy of the recorder when memory is used up. The file stores its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
pub enum RecordedPolicy {
    /// Keeps the first events of each warp.
    #[default]
    Stop,
    /// Keeps the last events of each warp.
    Ring,
    /// Makes warps wait. A warp that waits without success can lose events in the middle.
    Stream,
    /// A policy that this build does not know.
    Other(String),
}

impl RecordedPolicy {
    /// Returns the name in the file.
    pub fn name(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::Ring => "ring",
            Self::Stream => "stream",
            Self::Other(name) => name,
        }
    }
}

impl From<String> for RecordedPolicy {
    fn from(name: String) -> Self {
        let known = [Self::Stop, Self::Ring, Self::Stream].into_iter().find(|policy| policy.name() == name);
        known.unwrap_or(Self::Other(name))
    }
}

impl From<RecordedPolicy> for String {
    fn from(policy: RecordedPolicy) -> Self {
        policy.name().to_owned()
    }
}

/// Property: which loops were counted, as a [`Counting`] name.
pub const COUNTING: &str = "counting";
/// Property: which times were recorded: `blocks`, `runs` or `all`; absent if none.
pub const TIMES: &str = "times";
/// Property: which memory accesses were recorded, in the form of `--accesses`; absent if none.
pub const ACCESSES: &str = "accesses";
/// Property: command line of the recording process, or of `warptrace run`.
pub const COMMAND: &str = "command";
/// Property: command line of the program recorded by `warptrace run`.
pub const PROGRAM: &str = "program";
/// Property: limit of the session's device memory, in bytes.
pub const MEMORY_LIMIT: &str = "memory_limit";
/// Property: device memory that the session allocated at its start, in bytes. It allocates no more later.
pub const MEMORY_PEAK: &str = "memory_peak";
/// Property: which trace points `warptrace run` placed.
pub const POINTS: &str = "points";
/// Property: the recorded part of the program; absent if all of it.
pub const WINDOW: &str = "window";
/// Property: step of the multiprocessor clock in cycles, decimal; absent if not measured or without times.
pub const CLOCK_STEP: &str = "clock_step";
/// Property: step of the global timer in nanoseconds, decimal; absent if not measured or without times.
pub const TIMER_STEP: &str = "timer_step";
/// Property: number of wait locations without events, because the codec cannot carry more ids; absent if 0.
pub const WAITS_LEFT_OUT: &str = "waits_left_out";

/// Returns true if recorders write a property of this name, so that users cannot use it.
pub fn is_recorders(name: &str) -> bool {
    [
        ACCESSES,
        CLOCK_STEP,
        COMMAND,
        COUNTING,
        MEMORY_LIMIT,
        MEMORY_PEAK,
        POINTS,
        PROGRAM,
        TIMER_STEP,
        TIMES,
        WAITS_LEFT_OUT,
        WINDOW,
    ]
    .contains(&name)
        || name.starts_with(SOURCE_HASH_PREFIX)
}

/// Description of a recording, except launches and events.
///
/// ```
/// use warptrace_format::codec::CodecSpec;
/// use warptrace_format::file::{DeviceInfo, Metadata};
/// let metadata = Metadata::new("warptrace 0.1.0", DeviceInfo::simulator("warptrace simulator"), vec![CodecSpec::Raw])
///     .with_kernel("fractal", "kernels/src/fractal.rs")
///     .with_location(1, "pixel", "a lane starts its pixel")
///     .with_property("width", "512");
/// metadata.check()?;
/// # Ok::<(), warptrace_format::file::MetadataError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Metadata {
    /// Name and version of the recorder.
    pub tool: String,
    /// The device.
    pub device: DeviceInfo,
    /// Kernels. Launches refer to them by index.
    #[serde(deserialize_with = "bounded::<_, _, MAX_KERNELS>")]
    pub kernels: Vec<KernelInfo>,
    /// Codec of each track: track 0 is the trace, track 1 the raw twin of a dual recording.
    #[serde(deserialize_with = "bounded::<_, _, MAX_TRACKS>")]
    pub tracks: Vec<CodecSpec>,
    /// Size of a chunk in the pool, header included, in bytes.
    pub chunk_bytes: u32,
    /// Number of chunks in the pool.
    pub pool_chunks: u32,
    /// Policy when memory is used up.
    pub policy: RecordedPolicy,
    /// Trace points.
    #[serde(deserialize_with = "bounded::<_, _, MAX_LOCATIONS>")]
    pub locations: Vec<LocationInfo>,
    /// Free-form key-value pairs, such as the program's arguments.
    #[serde(deserialize_with = "bounded::<_, _, MAX_PROPERTIES>")]
    pub properties: Vec<(String, String)>,
    /// Start of the recording in seconds since 1970-01-01 UTC, if not in [`origin`](Self::origin).
    pub created_unix_seconds: Option<u64>,
    /// Host, device and rank of the recording, if known. Stored in an [`ORIG`](Origin) section only.
    #[serde(default, with = "beside")]
    pub origin: Option<Box<Origin>>,
}

impl Metadata {
    /// Creates metadata without kernels and locations, with chunks of the default size and the policy `stop`.
    pub fn new(tool: impl Into<String>, device: DeviceInfo, tracks: Vec<CodecSpec>) -> Self {
        Self {
            tool: tool.into(),
            device,
            kernels: Vec::new(),
            tracks,
            chunk_bytes: crate::chunk::DEFAULT_CHUNK_BYTES,
            pool_chunks: 0,
            policy: RecordedPolicy::Stop,
            locations: Vec::new(),
            properties: Vec::new(),
            created_unix_seconds: None,
            origin: None,
        }
    }

    /// Adds a kernel. Its index is the number of kernels before it.
    #[must_use]
    pub fn with_kernel(mut self, name: impl Into<String>, source_file: impl Into<String>) -> Self {
        self.kernels.push(KernelInfo { name: name.into(), source_file: source_file.into() });
        self
    }

    /// Adds a trace point without a source position.
    #[must_use]
    pub fn with_location(mut self, id: u16, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.locations.push(LocationInfo::new(id, name, description));
        self
    }

    /// Adds a property.
    #[must_use]
    pub fn with_property(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push((key.into(), value.into()));
        self
    }

    /// Sets the pool's chunk size in bytes and its number of chunks.
    #[must_use]
    pub fn with_pool(mut self, chunk_bytes: u32, pool_chunks: u32) -> Self {
        (self.chunk_bytes, self.pool_chunks) = (chunk_bytes, pool_chunks);
        self
    }

    /// Returns the trace point with this id.
    pub fn location(&self, id: u16) -> Option<&LocationInfo> {
        self.locations.iter().find(|location| location.id == id)
    }

    /// Returns the value of a property. The last one counts: recorders append theirs after the user's.
    pub fn property(&self, name: &str) -> Option<&str> {
        self.properties.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns which loops were counted, if the file has a name that this build knows.
    pub fn counting(&self) -> Option<Counting> {
        self.property(COUNTING).and_then(Counting::from_name)
    }

    /// Describes a limit of the recorded events, if loops were counted in lock step or points are sparse.
    pub fn assumption(&self) -> Option<&'static str> {
        let counted = self.counting().and_then(Counting::assumption);
        counted.or_else(|| match self.property(POINTS)? {
            "loops" => Some(
                "points at loops: divergence inside iterations is not recorded, so idle slots are a lower bound",
            ),
            "functions" => Some(
                "points at functions: divergence inside functions is not recorded, so idle slots are a lower bound",
            ),
            _ => None,
        })
    }

    /// Returns the payload capacity of a chunk in the pool, in bytes.
    pub const fn payload_capacity(&self) -> u32 {
        self.chunk_bytes.saturating_sub(crate::chunk::CHUNK_HEADER_BYTES)
    }

    /// Checks the metadata against the format. Returns the first contradiction found.
    pub fn check(&self) -> Result<(), MetadataError> {
        if self.tracks.is_empty() || self.tracks.len() > MAX_TRACKS {
            return Err(MetadataError::Tracks { found: self.tracks.len() });
        }
        for (what, found, limit) in [
            ("kernels", self.kernels.len(), MAX_KERNELS),
            ("locations", self.locations.len(), MAX_LOCATIONS),
            ("properties", self.properties.len(), MAX_PROPERTIES),
        ] {
            if found > limit {
                return Err(MetadataError::TooMany { what, found: found as u64, limit: limit as u64 });
            }
        }
        for (track, codec) in self.tracks.iter().enumerate() {
            codec.check().map_err(|source| MetadataError::Codec { track, source })?;
        }
        if !self.chunk_bytes.is_power_of_two()
            || !(MIN_CHUNK_BYTES..=MAX_CHUNK_BYTES).contains(&self.chunk_bytes)
        {
            return Err(MetadataError::ChunkBytes { found: self.chunk_bytes });
        }
        self.check_locations()
    }

    fn check_locations(&self) -> Result<(), MetadataError> {
        let mut known = KnownLocations::default();
        known.add(&self.locations, &self.tracks)
    }

    /// Encodes the body of the section. Fails like [`check`](Self::check), and over [`MAX_METADATA_BYTES`].
    pub fn encode(&self) -> Result<Vec<u8>, MetadataError> {
        self.check()?;
        let body = postcard::to_allocvec(self)
            .expect("metadata has only strings, integers, options and sequences of known length");
        let found = body.len() as u64;
        if found > MAX_METADATA_BYTES {
            return Err(MetadataError::TooMany { what: "metadata bytes", found, limit: MAX_METADATA_BYTES });
        }
        Ok(body)
    }

    /// Decodes the body of a section at file offset `at`. Rejects what [`encode`](Self::encode) rejects.
    pub fn decode(body: &[u8], at: u64) -> Result<Self, FormatError> {
        let contents = |message: String| FormatError::Contents { section: SECTION, offset: at, message };
        let metadata: Self = decode_body((SECTION, "metadata"), body, at)?;
        metadata.check().map_err(|error| contents(error.to_string()))?;
        Ok(metadata)
    }
}

/// Deserialises a sequence of at most `N` elements. Memory does not depend on the announced length.
pub(super) fn bounded<'de, D, T, const N: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Bounded<T, const N: usize>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Bounded<T, N> {
        type Value = Vec<T>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(out, "at most {N} elements")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
            let mut vector = Vec::new();
            while let Some(element) = elements.next_element()? {
                if vector.len() == N {
                    return Err(serde::de::Error::invalid_length(N + 1, &self));
                }
                vector.push(element);
            }
            Ok(vector)
        }
    }
    deserializer.deserialize_seq(Bounded::<T, N>(PhantomData))
}

#[cfg(test)]
#[path = "metadata_tests.rs"]
mod tests;
