//! What to record and how, and what came of it.

use std::time::Duration;

use warptrace_device::{KernelModule, TracePoints};
use warptrace_format::chunk::DEFAULT_CHUNK_BYTES;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::LocationInfo;

use super::metadata::{locations, module_locations};
use crate::writer::Compression;
use crate::{Placement, Window};

/// The program that a session traces, for the file's metadata.
#[derive(Clone, Copy, Debug)]
pub struct TracedProgram<'a> {
    /// Each kernel's name and source file.
    pub kernels: &'a [(&'a str, &'a str)],
    /// The trace points of all kernels that were placed by hand; ids are unique in the program.
    pub points: &'a [TracePoints],
    /// Modules whose automatic trace points the kernels have; their ids, too, are unique in the program.
    pub modules: &'a [KernelModule],
}

impl TracedProgram<'_> {
    /// All locations of the program, as a file has them.
    pub fn locations(&self) -> Vec<LocationInfo> {
        let mut locations = locations(self.points);
        locations.extend(self.modules.iter().flat_map(module_locations));
        locations
    }
}

/// What happens where events do not fit into device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// They are lost, and counted: of each warp a beginning is kept. Nobody waits.
    Stop,
    /// Each lane writes over its oldest ones, which are lost, and counted: of each warp an end is kept.
    /// Nobody waits.
    Ring,
    /// The host empties logs while kernels run, and warps wait for it: nothing is lost, however long the
    /// trace is. A warp that has waited for `stall` in vain counts what it would have recorded as lost, and
    /// goes on.
    Stream {
        /// How long a warp waits for memory.
        stall: Duration,
        /// Write runs into the logs when they begin, not only when they end: where a kernel hangs or fails,
        /// what its lanes are in is known then, and in the trace. Each run costs a store more, and a
        /// repetition some instructions.
        open_runs: bool,
    },
}

impl Policy {
    /// How long a warp waits for memory if nothing else is asked for.
    pub const STALL: Duration = Duration::from_secs(10);
}

/// In whose memory the logs of kernels are that [the host empties](Policy::Stream).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolMemory {
    /// The device's own.
    #[default]
    Device,
    /// The host's, which kernels write by way of the link between them. It stays when a kernel fails: all
    /// that was recorded up to then is in the trace. It is slower by far.
    Host,
}

/// What to record and how.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Codec of the trace.
    pub codec: CodecSpec,
    /// Record every event raw as well, on track 1.
    pub dual: bool,
    /// Count the iterations of loops, and record them where the loop ends.
    pub counted: bool,
    /// Where traced kernels keep each lane's record on a GPU; `None`: what suits each kernel.
    pub placement: Option<Placement>,
    /// Which part of the program is recorded.
    pub window: Window,
    /// Bytes of a chunk, header included: a power of two from 512 bytes to 1 MiB.
    pub chunk_bytes: u32,
    /// Bytes of device memory that the tracer takes at most, all together: for logs, chunks, accounts, tables
    /// and scratch. `None`: 1 GiB, or a quarter of the device's memory if that is less. (Not counted is what
    /// the driver takes: for code, and for records in local memory.)
    pub memory_bytes: Option<u64>,
    /// What happens where events do not fit into device memory.
    pub policy: Policy,
    /// Where logs that the host empties are; of [`memory_bytes`](Self::memory_bytes), too.
    pub pool: PoolMemory,
    /// Compression of the file's frames.
    pub compression: Compression,
    /// Name and version of the tool, for the file.
    pub tool: String,
    /// Free-form pairs for the file, such as the program's arguments.
    pub properties: Vec<(String, String)>,
}

impl SessionOptions {
    /// The defaults: everything, no raw twin, 4 KiB chunks, the usual memory, zstd.
    pub fn new(codec: CodecSpec) -> Self {
        Self {
            codec,
            dual: false,
            counted: false,
            placement: None,
            window: Window::default(),
            chunk_bytes: DEFAULT_CHUNK_BYTES,
            memory_bytes: None,
            policy: Policy::Stop,
            pool: PoolMemory::Device,
            compression: Compression::default(),
            tool: concat!("warptrace ", env!("CARGO_PKG_VERSION")).to_owned(),
            properties: Vec::new(),
        }
    }
}

impl SessionOptions {
    /// Whether runs are written when they begin.
    pub(crate) fn opens_runs(&self) -> bool {
        matches!(self.policy, Policy::Stream { open_runs: true, .. })
    }
}

/// What traced launches cost and yielded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchReport {
    /// Launches of the program.
    pub launches: u64,
    /// Of these, with warps that were chosen to be recorded.
    pub recorded_launches: u64,
    /// Events that reached a trace point.
    pub attempted: u64,
    /// Of these, in the trace.
    pub recorded: u64,
    /// Of these, without room in device memory.
    pub lost: u64,
    /// In a dual recording: events without room in device memory on the raw twin's track.
    pub twin_lost: u64,
    /// Chunks written, all tracks together.
    pub chunks: u64,
    /// Payload bytes of track 0: what the codec made of the events.
    pub payload_bytes: u64,
    /// The program's kernels alone.
    pub kernel: Duration,
    /// The kernels that bring what they have left into chunks, between them (see `warptrace_device`).
    pub encoding: Duration,
    /// Copying from the device, while the program waits.
    pub copy: Duration,
    /// Sorting, compressing and writing, on a thread of its own while the program goes on.
    pub write: Duration,
    /// Device memory of the session.
    pub memory: MemoryUse,
    /// Launches that waited for others.
    pub waits: Waits,
}

/// Launches that waited before they were made, where launches [overlap](super::Launches).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// For room: all arenas were full.
    pub for_room: u64,
    /// For the first launch of a kernel, of which nobody knows before it has ended how much it records.
    pub for_first: u64,
    /// How long all of them waited.
    pub time: Duration,
}

/// Device memory that a session may take, has taken, and has filled, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// What it may take: [`SessionOptions::memory_bytes`], or the default.
    pub limit: u64,
    /// The most that was allocated at once. A session allocates all that it will have when it starts.
    pub peak: u64,
    /// Of that, the most that held accounts, logs, merged runs and chunks at once. A first segment counts as
    /// filled.
    pub filled: u64,
}

impl LaunchReport {
    /// Takes over what the writer counts; the rest is counted where launches are made.
    pub(super) fn written(&mut self, writer: &Self) {
        let Self { launches, recorded_launches, kernel, encoding, copy, memory, waits, .. } = *self;
        *self = Self { launches, recorded_launches, kernel, encoding, copy, memory, waits, ..*writer };
    }
}
