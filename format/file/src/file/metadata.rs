//! What was recorded, where and how: the `META` section.
//!
//! The body is this module's [`Metadata`] in [postcard's wire
//! format](https://postcard.jamesmunns.com/wire-format): fields in the order of declaration, unsigned
//! integers as varints of seven bits a byte (lowest first), strings and sequences behind their length,
//! options behind a byte 0 or 1, enum variants by number in the order of declaration. The encoding does not
//! describe itself, so any change of a field is a new version of the section.

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
    /// The kind of device that ran the kernels.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[non_exhaustive]
    pub enum DeviceKind {
        /// A GPU, through the CUDA driver.
        Cuda = "cuda",
        /// The simulator: same streams, no meaning for performance.
        Simulator = "simulator",
    }
}

/// The device that ran the kernels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// GPU or simulator.
    pub kind: DeviceKind,
    /// Name as the driver gives it.
    pub name: String,
    /// Compute capability, major and minor; `None` for the simulator.
    pub compute_capability: Option<(u32, u32)>,
    /// Version of the driver as text; `None` for the simulator.
    pub driver_version: Option<String>,
}

impl DeviceInfo {
    /// A GPU.
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

    /// The simulator.
    pub fn simulator(name: impl Into<String>) -> Self {
        Self {
            kind: DeviceKind::Simulator,
            name: name.into(),
            compute_capability: None,
            driver_version: None,
        }
    }
}

/// A kernel that the file's launches refer to by its index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelInfo {
    /// Name of the kernel's entry.
    pub name: String,
    /// Source file, or empty when it is not known.
    pub source_file: String,
}

/// A trace point: what an event's location id means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocationInfo {
    /// The id of the trace point. Never 0.
    pub id: u16,
    /// Short name.
    pub name: String,
    /// What it means when a lane comes by here.
    pub description: String,
    /// Source file, or empty when it is not known.
    pub file: String,
    /// Line from 1, or 0 when it is not known.
    pub line: u32,
    /// Column from 1, or 0 when it is not known.
    pub column: u32,
    /// The function in which it stands, or empty when it is not known.
    pub function: String,
    /// The construct of the source that it stands for.
    pub kind: LocationKind,
    /// Id of the location that directly encloses it, or 0 when there is none or it is not known. Always
    /// smaller than [`id`](Self::id).
    pub parent: u16,
    /// Line from 1 where lanes that went another way meet again, or 0 when it is not known.
    pub rejoin_line: u32,
    /// Column from 1 there, or 0 when it is not known.
    pub rejoin_column: u32,
    /// What the compiled code has here, if the recorder knew the code. Not in the metadata's bytes, but in a
    /// [`CODE`](super::LocationCode) section.
    #[serde(with = "beside")]
    pub code: Option<LocationCode>,
    /// What the code tells of the wait that begins here, likewise in a [`WAIT`](super::WaitInfo) section.
    #[serde(with = "beside")]
    pub wait: Option<Box<WaitInfo>>,
}

impl LocationInfo {
    /// Makes a trace point of which nothing else is known: neither its position nor its structure.
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

    /// Takes over what a kernel's source declares; `file` is its source file.
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

    /// Gives the name and, where it is known, the place in the source, as messages say it.
    pub(super) fn describe(&self) -> String {
        let Self { name, file, line, .. } = self;
        match (file.as_str(), line) {
            ("", _) => format!("`{name}`"),
            (file, 0) => format!("`{name}` ({file})"),
            (file, line) => format!("`{name}` ({file}:{line})"),
        }
    }
}

/// What recordings do where memory is used up. The file has its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
pub enum RecordedPolicy {
    /// They keep a beginning of each warp.
    #[default]
    Stop,
    /// They keep an end of each warp.
    Ring,
    /// Their warps wait. What is lost where they wait and get no memory may be in the middle.
    Stream,
    /// A policy that this build does not know.
    Other(String),
}

impl RecordedPolicy {
    /// The name in the file.
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

/// Names the property that tells which loops were counted: a [`Counting`]'s name.
pub const COUNTING: &str = "counting";
/// The property that says which times were recorded: `blocks`, `runs` or `all`; absent if none.
pub const TIMES: &str = "times";
/// Property: of which memory accesses were recorded, as `--accesses` says it; absent if of none.
pub const ACCESSES: &str = "accesses";
/// Names the property that has the command line of the process that recorded, or of `warptrace run`.
pub const COMMAND: &str = "command";
/// Names the property that has the command line of a program that was recorded by `warptrace run`.
pub const PROGRAM: &str = "program";
/// Names the property that tells how much device memory the session might take, in bytes.
pub const MEMORY_LIMIT: &str = "memory_limit";
/// Names the property that tells how much of it the session took at most, in bytes.
pub const MEMORY_PEAK: &str = "memory_peak";
/// Names the property that tells which trace points `warptrace run` placed.
pub const POINTS: &str = "points";
/// Names the property that tells which part of the program was recorded.
pub const WINDOW: &str = "window";
/// Property: the steps in which the clock of a multiprocessor goes, in cycles, decimal, if times were
/// recorded and it was measured.
pub const CLOCK_STEP: &str = "clock_step";
/// Property: the same of the global timer, in nanoseconds.
pub const TIMER_STEP: &str = "timer_step";
/// Property: how many locations of waits have no events, since their ids are none of the codec's; absent if
/// none is left out.
pub const WAITS_LEFT_OUT: &str = "waits_left_out";

/// Whether recorders write a property of this name, so that none of the user's own may have it.
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

/// Everything about a recording that is not a launch or an event.
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
    /// Name and version of the program that recorded.
    pub tool: String,
    /// The device.
    pub device: DeviceInfo,
    /// Kernels; launches refer to them by index.
    #[serde(deserialize_with = "bounded::<_, _, MAX_KERNELS>")]
    pub kernels: Vec<KernelInfo>,
    /// One codec a track: track 0 is the trace, track 1 the raw twin of a dual recording.
    #[serde(deserialize_with = "bounded::<_, _, MAX_TRACKS>")]
    pub tracks: Vec<CodecSpec>,
    /// Bytes of a chunk in the pool, header included.
    pub chunk_bytes: u32,
    /// Chunks in the pool.
    pub pool_chunks: u32,
    /// What happens where memory is used up.
    pub policy: RecordedPolicy,
    /// The trace points.
    #[serde(deserialize_with = "bounded::<_, _, MAX_LOCATIONS>")]
    pub locations: Vec<LocationInfo>,
    /// Free-form pairs, such as the program's arguments.
    #[serde(deserialize_with = "bounded::<_, _, MAX_PROPERTIES>")]
    pub properties: Vec<(String, String)>,
    /// When the recording began, in seconds since 1970-01-01 UTC, if a recorder said so here. This project's
    /// say it in [`origin`](Self::origin).
    pub created_unix_seconds: Option<u64>,
    /// Where and as which part of a job it was recorded, if the recorder says so. Not in the metadata's
    /// bytes, but in an [`ORIG`](Origin) section.
    #[serde(default, with = "beside")]
    pub origin: Option<Box<Origin>>,
}

impl Metadata {
    /// Metadata with no kernel and no location yet, chunks of the default size and the policy `stop`.
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

    /// Adds a kernel; its index is the number of kernels before.
    #[must_use]
    pub fn with_kernel(mut self, name: impl Into<String>, source_file: impl Into<String>) -> Self {
        self.kernels.push(KernelInfo { name: name.into(), source_file: source_file.into() });
        self
    }

    /// Adds a trace point whose place in the source is not known. Push to
    /// [`locations`](Self::locations) to give one.
    #[must_use]
    pub fn with_location(mut self, id: u16, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.locations.push(LocationInfo::new(id, name, description));
        self
    }

    /// Adds a free-form pair.
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

    /// The trace point with this id.
    pub fn location(&self, id: u16) -> Option<&LocationInfo> {
        self.locations.iter().find(|location| location.id == id)
    }

    /// The value of a property; `None` if the file does not have it. Of several the last: recorders write
    /// their own behind the user's.
    pub fn property(&self, name: &str) -> Option<&str> {
        self.properties.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Which loops were counted; `None` if the file does not say.
    pub fn counting(&self) -> Option<Counting> {
        self.property(COUNTING).and_then(Counting::from_name)
    }

    /// Bytes of payload that a chunk of the pool can hold.
    pub const fn payload_capacity(&self) -> u32 {
        self.chunk_bytes.saturating_sub(crate::chunk::CHUNK_HEADER_BYTES)
    }

    /// Checks what a file may say.
    ///
    /// # Errors
    /// The first contradiction found, as a [`MetadataError`].
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

    /// The body of the metadata section.
    ///
    /// # Errors
    /// What [`Metadata::check`] refuses; a body over [`MAX_METADATA_BYTES`].
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

    /// Reads the body of a metadata section at file offset `at`.
    ///
    /// # Errors
    /// A body over [`MAX_METADATA_BYTES`], bytes that are not metadata, bytes after it, contents that
    /// [`Metadata::check`] refuses.
    pub fn decode(body: &[u8], at: u64) -> Result<Self, FormatError> {
        let contents = |message: String| FormatError::Contents { section: SECTION, offset: at, message };
        let metadata: Self = decode_body((SECTION, "metadata"), body, at)?;
        metadata.check().map_err(|error| contents(error.to_string()))?;
        Ok(metadata)
    }
}

/// Deserialises a sequence of at most `N` elements. The announced length reserves nothing: a few bytes cannot
/// make the reader allocate more than `N` elements.
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
