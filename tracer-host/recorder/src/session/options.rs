use std::time::Duration;

use warptrace_device::KernelModule;
use warptrace_format::file::LocationInfo;

/// The program that a session traces, for the file's metadata.
#[derive(Clone, Copy, Debug)]
pub struct TracedProgram<'a> {
    /// Name and source file of each kernel that belongs to no module.
    pub kernels: &'a [(&'a str, &'a str)],
    /// The modules of the other kernels. Location IDs are unique in the program.
    pub modules: &'a [KernelModule],
    /// PTX of the kernels of modules without PTX; empty if unavailable.
    pub ptx: &'a str,
}

impl<'a> TracedProgram<'a> {
    /// Returns name and source file of each kernel, in the order of the file.
    pub fn kernels(&self) -> Vec<(&'a str, &'a str)> {
        let of_module = |module: &'a KernelModule| module.kernels.iter().map(|name| (*name, module.file));
        self.kernels.iter().copied().chain(self.modules.iter().flat_map(of_module)).collect()
    }

    /// Returns all locations of the program, in the form of the file.
    pub fn locations(&self) -> Vec<LocationInfo> {
        let of_module = |module: &'a KernelModule| {
            module.locations.iter().map(|location| LocationInfo::from_source(location, module.file))
        };
        self.modules.iter().flat_map(of_module).collect()
    }
}

/// Counts, times and memory of traced launches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchReport {
    /// Launches of the program.
    pub launches: u64,
    /// Launches with warps selected for recording.
    pub recorded_launches: u64,
    /// Events at trace points.
    pub attempted: u64,
    /// Events in the trace.
    pub recorded: u64,
    /// Events lost because device memory was full.
    pub lost: u64,
    /// In a dual recording: lost events of the raw track.
    pub twin_lost: u64,
    /// Accesses at recorded sites in the trace. Derived accesses are not counted.
    pub accesses: u64,
    /// Accesses lost because device memory was full. Derived accesses are not counted.
    pub lost_accesses: u64,
    /// Chunks of all warps and tracks. Warps with the same behavior share encoded chunks.
    pub chunks: u64,
    /// Payload bytes of track 0, as encoded by the codec, counted for each warp.
    pub payload_bytes: u64,
    /// Bytes of device times: start times of runs in chunks of track 0, and the spans of warps.
    pub time_bytes: u64,
    /// Time of the program's kernels alone; zero if other code launches them ([`Launches`](super::Launches)).
    pub kernel: Duration,
    /// Time of the encode kernels, which run between the program's kernels (see `warptrace_device`).
    pub encoding: Duration,
    /// Time of copies from the device while the program waits.
    pub copy: Duration,
    /// Time of sorting, compressing and writing, on separate threads while the program continues. Several drains
    /// are encoded at once, and this is the sum of their times.
    pub write: Duration,
    /// Device memory of the session.
    pub memory: MemoryUse,
    /// Launches that waited for other launches.
    pub waits: Waits,
}

/// Waits of launches before they were made, where launches [overlap](super::Launches).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Waits for log memory: all arenas were full.
    pub for_room: u64,
    /// Waits for the first launch of a kernel: the amount that it records is unknown until it has ended.
    pub for_first: u64,
    /// Total waiting time.
    pub time: Duration,
}

/// Device memory of a session, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// The limit: [`RecordingSpec::memory_bytes`](crate::RecordingSpec::memory_bytes).
    pub limit: u64,
    /// Maximum allocated at once. A session allocates all of its memory when it starts.
    pub peak: u64,
    /// Maximum used at once by accounts, logs, merged runs and chunks. A first segment counts as used.
    pub filled: u64,
}

impl LaunchReport {
    /// Adds the writer's counts of a drain.
    pub(super) fn add(&mut self, more: &Self) {
        let sums = [
            (&mut self.attempted, more.attempted),
            (&mut self.recorded, more.recorded),
            (&mut self.lost, more.lost),
            (&mut self.twin_lost, more.twin_lost),
            (&mut self.accesses, more.accesses),
            (&mut self.lost_accesses, more.lost_accesses),
            (&mut self.chunks, more.chunks),
            (&mut self.payload_bytes, more.payload_bytes),
            (&mut self.time_bytes, more.time_bytes),
        ];
        // Accounts in damaged memory may have any value.
        sums.into_iter().for_each(|(sum, more)| *sum = sum.wrapping_add(more));
    }

    /// Takes the counters of the writer's report. The other counters belong to the recorder.
    pub(super) fn written(&mut self, writer: &Self) {
        let Self { launches, recorded_launches, kernel, encoding, copy, memory, waits, .. } = *self;
        *self = Self { launches, recorded_launches, kernel, encoding, copy, memory, waits, ..*writer };
    }
}
