//! What a recording counts for each warp.

/// Tracks a launch can record at once: the trace, and its raw twin in a dual recording.
pub const MAX_TRACKS: usize = 2;

/// One warp's accounting for one launch and track: every event is either recorded or lost.
/// Size 32 bytes, alignment 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct WarpAccount {
    /// Events that reached a trace point, counted separately from the two below.
    pub attempted: u64,
    /// Events that are in a chunk.
    pub recorded: u64,
    /// Events that found no room.
    pub lost: u64,
    /// Chunks written.
    pub chunks: u32,
    /// 1 when the warp's logs were merged and encoded after the launch had ended; 0 if something of them is
    /// left.
    pub finished: u32,
}

const _: () = assert!(size_of::<WarpAccount>() == 32);
