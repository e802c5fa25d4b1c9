//! Tables in device memory that host, traced kernels and encoders share: the pool of chunks, counters.
//!
//! Every address is a device address; on the simulator, a host address. What a traced kernel is told is in
//! [`log`](crate::log).

use warptrace_format::chunk::{CHUNK_HEADER_BYTES, TIME_BYTES};

/// What merging and encoding are told, by value: the pool of chunks, and log memory. Size 64 bytes, alignment
/// 8.
///
/// Log memory holds the logs up to [`merged_from`](Self::merged_from), and merged runs from there on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PoolDescriptor {
    /// Address of the first chunk, a multiple of 16; chunks follow each other,
    /// [`chunk_bytes`](Self::chunk_bytes) from start to start.
    pub chunks: u64,
    /// Address of a [`Claims`].
    pub claims: u64,
    /// Address of log memory, as in [`LaunchLogs`](crate::log::LaunchLogs).
    pub logs: u64,
    /// Chunks in the pool.
    pub chunk_count: u32,
    /// Bytes of a chunk, header included.
    pub chunk_bytes: u32,
    /// Index of the first entry of log memory in which merged runs are put. All logs lie before it.
    pub merged_from: u32,
    /// Index of the entry after the last one for merged runs: the length of log memory, in entries.
    pub merged_end: u32,
    /// 1 if chunks of the trace hold when their runs began, see [`chunk`](warptrace_format::chunk); else 0.
    pub times: u32,
    /// The track of addresses and values, whose chunks hold entries as they are ([`crate::data`]); 0 if there
    /// is none.
    pub data_track: u32,
    /// Address of the classes: an array of `u32`, for each stream of the launches in the table which stream stands for
    /// its class, and [`PARTED`] if several of its lanes have logs; and behind it the table in which classes are found,
    /// [`class_slots`](Self::class_slots) times `u32`, all [`NO_STREAM`] before. 0: each stream is a class.
    pub classes: u64,
    /// Slots of the table of classes, a power of two.
    pub class_slots: u32,
    /// Not used; 0.
    pub reserved: u32,
}

/// Says of a stream in the array of classes that several of its lanes have logs.
pub const PARTED: u32 = 1 << 31;
/// Stands for no stream in the table of classes.
pub const NO_STREAM: u32 = u32::MAX;

impl PoolDescriptor {
    /// Returns whether a track is that of addresses and values.
    #[inline(always)]
    pub const fn is_data(&self, track: u32) -> bool {
        track != 0 && track == self.data_track
    }

    /// Returns how many entries of addresses and values a chunk holds.
    #[inline(always)]
    pub const fn data_entries(&self) -> u32 {
        self.chunk_bytes.saturating_sub(CHUNK_HEADER_BYTES) / crate::log::ENTRY_BYTES
    }

    /// Returns how many bytes of a track's chunks each run takes for when it began.
    #[inline(always)]
    pub const fn time_bytes(&self, track: u32) -> u32 {
        if self.times != 0 && track == 0 { TIME_BYTES } else { 0 }
    }
}

/// What was claimed since the host set it to 0. The counters may exceed what there is. Size 32 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Claims {
    /// Entries of log memory, by traced kernels.
    pub log_entries: u64,
    /// Entries of log memory for merged runs.
    pub merged_entries: u64,
    /// Chunks of the pool.
    pub chunks: u32,
    /// Stretches of merged runs that one thread has to encode each.
    pub serial: u32,
    /// Streams of which something is left to merge and encode, because merged runs or chunks took all that
    /// there is: in another round, when the host has collected the chunks.
    pub waiting: u32,
    /// Not used; 0.
    pub reserved: u32,
}

const _: () = {
    assert!(size_of::<PoolDescriptor>() == 64 && align_of::<PoolDescriptor>() == 8);
    assert!(size_of::<Claims>() == 32);
};
