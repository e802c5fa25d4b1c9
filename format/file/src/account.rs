//! Event counts of one warp.

/// Maximum number of tracks in one launch: the trace, and its raw twin in a dual recording.
pub const MAX_TRACKS: usize = 2;

/// Event counts of a warp for one launch and track. Every event is recorded or lost. 32 bytes, alignment 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct WarpAccount {
    /// Events that reached a trace point, counted separately from the next two fields.
    pub attempted: u64,
    /// Events stored in a chunk.
    pub recorded: u64,
    /// Events that are not in a chunk.
    pub lost: u64,
    /// Chunks written.
    pub chunks: u32,
    /// 1 if the warp's logs were merged and encoded after the launch ended; 0 if log entries remain.
    pub finished: u32,
}

const _: () = assert!(size_of::<WarpAccount>() == 32);
