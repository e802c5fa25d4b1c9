//! What host and kernel share while a traced kernel runs.
//!
//! The host fills one [`PoolDescriptor`] in the module's global `WARPTRACE_POOL` before each launch; every
//! address in it is a device address (on the simulator, a host address).

/// Name of the device global that holds the [`PoolDescriptor`].
pub const POOL_SYMBOL: &str = "WARPTRACE_POOL";
/// Tracks a launch can record at once: the trace, and its raw twin in a dual recording.
pub const MAX_TRACKS: usize = 2;

/// The pool of chunks, the memory of the logs, and the tables beside them. Size 80 bytes, alignment 16 (the kernel reads 16 bytes at a time).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct PoolDescriptor {
    /// First chunk; chunks follow each other, [`chunk_bytes`](Self::chunk_bytes) apart. 8-byte aligned.
    pub chunks: u64,
    /// Address of a [`Claims`].
    pub claims: u64,
    /// Array of [`WarpAccount`], one per warp of the launch and track: `accounts[track * warps + warp]`.
    pub accounts: u64,
    /// Memory of the logs, in units of [`LOG_UNIT_BYTES`]. 256-byte aligned.
    pub logs: u64,
    /// Chunks in the pool.
    pub chunk_count: u32,
    /// Bytes of a chunk, header included.
    pub chunk_bytes: u32,
    /// Warps of the launch.
    pub warps: u32,
    /// Number of the launch, copied into each chunk.
    pub launch: u32,
    /// 1 while tracing; with 0 the kernel records nothing and touches no other field.
    pub enabled: u32,
    /// Units of log memory that may be claimed.
    pub log_units: u32,
    /// Units that are reserved: unit 0 and the slices of this and earlier launches. A claim gets the units from that of the claim plus this on.
    pub log_reserved: u32,
    /// First unit of the launch's slices: each warp's share of log memory, in the order of `accounts`.
    pub slices: u32,
    /// Units of a slice, a multiple of 8.
    pub slice_units: u32,
    /// Fills up to a multiple of 8 bytes.
    pub unused: u32,
    /// Array of the states of the launch's warps, in the order of `accounts`, for kernels that keep them in global memory; 0 for those that keep them in
    /// shared memory. 128-byte aligned.
    pub states: u64,
}

/// Bytes of a unit of log memory: a run.
pub const LOG_UNIT_BYTES: u32 = 16;

/// What was claimed since the host set it to 0. Both go on counting when there is no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Claims {
    /// Chunks of the pool.
    pub chunks: u32,
    /// Units of log memory, by kernels.
    pub log_units: u32,
    /// Units of log memory, for what is merged.
    pub merged_units: u32,
    /// Stretches of merged runs that one thread has to encode each (see `warptrace_device`).
    pub alone: u32,
}

/// A launch whose warps have left logs, for those who merge and encode them. Size 32 bytes, alignment 16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct LeftLaunch {
    /// As in the launch's [`PoolDescriptor`].
    pub accounts: u64,
    /// As in the launch's [`PoolDescriptor`].
    pub slices: u32,
    /// As in the launch's [`PoolDescriptor`].
    pub slice_units: u32,
    /// As in the launch's [`PoolDescriptor`].
    pub warps: u32,
    /// As in the launch's [`PoolDescriptor`].
    pub launch: u32,
    /// Streams of the launches before this one in the table: one for each warp and track.
    pub first_stream: u32,
    /// Tracks that the launch records.
    pub tracks: u32,
}

impl PoolDescriptor {
    /// Address of the account of a warp's track.
    #[inline(always)]
    pub const fn account(&self, track: u32, warp: u32) -> u64 {
        let index = track as u64 * self.warps as u64 + warp as u64;
        self.accounts + size_of::<WarpAccount>() as u64 * index
    }

    /// First unit of the slice of a warp's track.
    #[inline(always)]
    pub const fn slice(&self, track: u32, warp: u32) -> u32 {
        self.slices + (track * self.warps + warp) * self.slice_units
    }
}

/// One warp's accounting for one launch and track: every event is either recorded or lost.
/// Size 32 bytes, alignment 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct WarpAccount {
    /// Events that reached `trace_loc`, counted apart from the two below.
    pub attempted: u64,
    /// Events that are in a chunk.
    pub recorded: u64,
    /// Events that found no room.
    pub lost: u64,
    /// Chunks written.
    pub chunks: u32,
    /// 1 when the warp's last lane left the kernel and the stream was flushed; 0 if that never happened.
    pub finished: u32,
}

const _: () = {
    assert!(size_of::<PoolDescriptor>() == 80);
    assert!(size_of::<LeftLaunch>() == 32);
    assert!(size_of::<Claims>() == 16);
    assert!(size_of::<WarpAccount>() == 32);
    assert!(size_of::<crate::chunk::ChunkHeader>() == crate::chunk::CHUNK_HEADER_BYTES as usize);
};
