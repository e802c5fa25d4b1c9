//! What is recorded, and what came of it.

use std::time::Duration;

use warptrace_device::KernelModule;
use warptrace_format::file::LocationInfo;

/// The program that a session traces, for the file's metadata.
#[derive(Clone, Copy, Debug)]
pub struct TracedProgram<'a> {
    /// Name and source file of each kernel that no module has.
    pub kernels: &'a [(&'a str, &'a str)],
    /// The modules of the others; ids of locations are unique in the program.
    pub modules: &'a [KernelModule],
    /// PTX of the kernels of modules that have none; empty where it is not at hand.
    pub ptx: &'a str,
}

impl<'a> TracedProgram<'a> {
    /// Name and source file of each kernel, in the order in which a file has them.
    pub fn kernels(&self) -> Vec<(&'a str, &'a str)> {
        let of_module = |module: &'a KernelModule| module.kernels.iter().map(|name| (*name, module.file));
        self.kernels.iter().copied().chain(self.modules.iter().flat_map(of_module)).collect()
    }

    /// All locations of the program, as a file has them.
    pub fn locations(&self) -> Vec<LocationInfo> {
        let of_module = |module: &'a KernelModule| {
            module.locations.iter().map(|location| LocationInfo::from_source(location, module.file))
        };
        self.modules.iter().flat_map(of_module).collect()
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
    /// In a dual recording: events without room in device memory on the raw shadow's track.
    pub twin_lost: u64,
    /// Accesses at recorded sites in the trace, and those without room in device memory; what follows from
    /// them is not counted.
    pub accesses: u64,
    /// See [`accesses`](Self::accesses).
    pub lost_accesses: u64,
    /// Chunks of all warps and tracks. Warps that did the same have the same chunks, which are made and written once.
    pub chunks: u64,
    /// Payload bytes of track 0: what the codec made of the events, counted for each warp.
    pub payload_bytes: u64,
    /// Bytes of times on the device beside them: in chunks of track 0 when runs began, and where and when
    /// warps ran.
    pub time_bytes: u64,
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
    /// For the first launch of a kernel, of which it is not known before it has ended how much it records.
    pub for_first: u64,
    /// How long all of them waited.
    pub time: Duration,
}

/// Device memory that a session may take, has taken, and has filled, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// What it may take: [`RecordingSpec::memory_bytes`](crate::RecordingSpec::memory_bytes).
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
