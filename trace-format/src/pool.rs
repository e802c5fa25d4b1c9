//! What host and kernel share while a traced kernel runs.
//!
//! The host fills one [`PoolDescriptor`] in the module's global `WARPTRACE_POOL` before each launch; every
//! address in it is a device address (on the simulator, a host address).

/// Name of the device global that holds the [`PoolDescriptor`].
pub const POOL_SYMBOL: &str = "WARPTRACE_POOL";
/// Tracks a launch can record at once: the trace, and its raw twin in a dual recording.
pub const MAX_TRACKS: usize = 2;

/// The pool of chunks and the tables beside it. Size 80 bytes, alignment 16 (the kernel reads 16 bytes at a time).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct PoolDescriptor {
    /// First chunk; chunks follow each other, [`chunk_bytes`](Self::chunk_bytes) apart. 8-byte aligned.
    pub chunks: u64,
    /// Address of the `u32` that counts claims (it goes on counting when the pool is exhausted; a track that was refused asks no
    /// more).
    pub next_chunk: u64,
    /// Array of [`WarpAccount`], one per warp of the launch and track: `accounts[track * warps + warp]`.
    pub accounts: u64,
    /// Codec memory of resident warps in global memory (the encoder's tables), or 0.
    pub work: u64,
    /// Bitmap of work slots in use, one bit a slot, 32 to a word, or 0.
    pub work_slots: u64,
    /// Number of work slots.
    pub work_slot_count: u32,
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
    /// 0, or 1 + the number of the first of the chunks that are reserved for this launch: the first chunk of each warp and track,
    /// in the order of `accounts`. So warps need not all ask for one when they start.
    pub reserved: u32,
    /// Chunks that were reserved since the counter was 0, those for this launch included. A claim gets the chunk with the number of
    /// the claim plus this.
    pub reserved_count: u32,
    /// 0, or 1 + the number of the first of the chunks that are reserved for the logs of this launch: the first segment of each warp and track,
    /// in the order of `accounts`.
    pub logs: u32,
    /// Fills up to a multiple of 16 bytes.
    pub unused: u32,
}

impl PoolDescriptor {
    /// The reserved chunk for the start of a stream, or `None` if there are none.
    #[inline(always)]
    pub const fn first_chunk(&self, track: u32, warp: u32) -> Option<u32> {
        if self.reserved == 0 { None } else { Some(self.reserved - 1 + track * self.warps + warp) }
    }

    /// Address of the account of a warp's track.
    #[inline(always)]
    pub const fn account(&self, track: u32, warp: u32) -> u64 {
        let index = track as u64 * self.warps as u64 + warp as u64;
        self.accounts + size_of::<WarpAccount>() as u64 * index
    }

    /// The reserved first segment of a log, or `None` if there are none.
    #[inline(always)]
    pub const fn first_segment(&self, track: u32, warp: u32) -> Option<u32> {
        if self.logs == 0 { None } else { Some(self.logs - 1 + track * self.warps + warp) }
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
    assert!(size_of::<WarpAccount>() == 32);
    assert!(size_of::<crate::chunk::ChunkHeader>() == crate::chunk::CHUNK_HEADER_BYTES as usize);
};
