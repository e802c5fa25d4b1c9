//! Tables in device memory that host, traced kernels and encoders share: the pool of chunks and the counters.
//! Addresses are device addresses; on the simulator, host addresses.

use warptrace_format::chunk::{CHUNK_HEADER_BYTES, TIME_BYTES};
use warptrace_format::data::tile::DEVICE_TILE_ENTRIES;

/// Parameters of merging and encoding, passed by value. Size 64 bytes, alignment 8. Log memory holds logs up
/// to [`merged_from`](Self::merged_from) and merged runs from there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PoolDescriptor {
    /// Address of the contiguous chunks, a multiple of 16.
    pub chunks: u64,
    /// Address of a [`Claims`].
    pub claims: u64,
    /// Address of log memory, as in [`LaunchLogs`](crate::log::LaunchLogs).
    pub logs: u64,
    /// Number of chunks in the pool.
    pub chunk_count: u32,
    /// Bytes of a chunk, header included.
    pub chunk_bytes: u32,
    /// Index of the first entry of log memory for merged runs. All logs lie before it.
    pub merged_from: u32,
    /// Index after the last entry for merged runs: the length of log memory, in entries.
    pub merged_end: u32,
    /// 1 if chunks of the trace hold start times of runs ([`chunk`](warptrace_format::chunk)); otherwise 0.
    pub times: u32,
    /// The track of addresses and values, whose chunks hold entries unencoded ([`crate::data`]); 0 if none.
    pub data_track: u32,
    /// Address of the classes; 0 if each stream is its own class. First, an array of `u32` has an element for
    /// each stream of the launches in the table: the stream that represents its class, with [`PARTED`] set if
    /// several lanes of the stream have logs. Then the hash table of classes has
    /// [`class_slots`](Self::class_slots) elements of `u32`, initially [`NO_STREAM`].
    pub classes: u64,
    /// Slots of the table of classes, a power of two.
    pub class_slots: u32,
    /// Unused; 0.
    pub reserved: u32,
}

/// Flag in the array of classes: several lanes of the stream have logs.
pub const PARTED: u32 = 1 << 31;
/// Marks an empty slot in the table of classes.
pub const NO_STREAM: u32 = u32::MAX;

impl PoolDescriptor {
    /// Returns true for the track of addresses and values.
    #[inline(always)]
    pub const fn is_data(&self, track: u32) -> bool {
        track != 0 && track == self.data_track
    }

    /// Returns the number of entries of addresses and values in a chunk.
    #[inline(always)]
    pub const fn data_entries(&self) -> u32 {
        let entries = self.chunk_bytes.saturating_sub(CHUNK_HEADER_BYTES) / crate::log::ENTRY_BYTES;
        if entries < DEVICE_TILE_ENTRIES { entries } else { DEVICE_TILE_ENTRIES }
    }

    /// Returns the maximum bytes for the start time of each run in chunks of a track.
    #[inline(always)]
    pub const fn time_bytes(&self, track: u32) -> u32 {
        if self.times != 0 && track == 0 { TIME_BYTES } else { 0 }
    }
}

/// Counters of reserved memory, initially 0. They may exceed the available amounts. Size 32 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Claims {
    /// Entries of log memory that traced kernels reserved.
    pub log_entries: u64,
    /// Entries of log memory reserved for merged runs.
    pub merged_entries: u64,
    /// Chunks reserved from the pool.
    pub chunks: u32,
    /// Stretches of merged runs that must each be encoded by one thread.
    pub serial: u32,
    /// Streams that are not complete, because memory for merged runs or chunks is used up. They continue in
    /// another round, after the host has collected the chunks.
    pub waiting: u32,
    /// Unused; 0.
    pub reserved: u32,
}

const _: () = {
    assert!(size_of::<PoolDescriptor>() == 64 && align_of::<PoolDescriptor>() == 8);
    assert!(size_of::<Claims>() == 32);
};
