//! Shared memory layout of the merging kernel, through which its steps and threads exchange data.
//!
//! For the block:
//! ```text
//! offset  size  field
//!      0    40  the pool, without classes
//!     40     4  number of the codec
//!     44     4  bit 0: times; the other bits: the track of addresses and values
//! ```
//! For each warp:
//! ```text
//! offset  size  field
//!      0   512  while logs are read: the slots; while one lane merges: its heads
//!    512   144  start positions of the lists of keys
//!    656    16  the merged runs
//!    672    48  the stream
//!    720    16  the next step; whether all runs fit into chunks; whether a list of keys was not sorted
//!    736    16  attempted and lost events
//!    752    16  which runs are kept; skipped events
//! ```
//! The keys of all warps follow.

use warptrace_abi::pool::PoolDescriptor;
use warptrace_device::simt::WARP_LANES;
use warptrace_format::Memory;

use super::serial::HEADS_BYTES;
use super::sort::KEY_BYTES;
use crate::codec::Codec;
use crate::lane_log::{Layout, StreamLogs};
use crate::memory::{SharedMemory, block_memory};
use crate::merged::RunSums;
use crate::warp;

pub(crate) const MAX_WARPS: u32 = 4;
/// Maximum runs of a stream whose keys are in shared memory: enough for most, with room for eight blocks.
pub(super) const MAX_SHARED_KEYS: u32 = 384;
/// Bytes of the slots for the pieces that a warp reads.
pub(super) const SLOTS_BYTES: u32 = 16 * WARP_LANES;

const BLOCK_BYTES: u32 = 48;
const STARTS: u32 = SLOTS_BYTES;
const MERGED: u32 = STARTS + 144;
const STREAM: u32 = MERGED + 16;
const STEP: u32 = STREAM + 48;
const FITS: u32 = STEP + 4;
const UNSORTED: u32 = STEP + 8;
const EVENTS: u32 = STEP + 16;
const KEPT: u32 = EVENTS + 16;
const WARP_BYTES: u32 = KEPT + 16;
const KEYS: u32 = BLOCK_BYTES + MAX_WARPS * WARP_BYTES;
const KEYS_BYTES: u32 = 2 * KEY_BYTES * MAX_SHARED_KEYS;
const ALL_BYTES: u32 = KEYS + MAX_WARPS * KEYS_BYTES;
const _: () = assert!(HEADS_BYTES <= STARTS && STARTS + 4 * (WARP_LANES + 1) <= MERGED);
const _: () = assert!(size_of::<PoolDescriptor>() == 64);

#[derive(Clone, Copy)]
pub(super) struct MergedRuns {
    /// Index of the first reserved entry of log memory; [`NEVER`](crate::warp::NEVER) without a reservation.
    pub(super) first: u32,
    /// Number of keys, including keys of entries without a run.
    pub(super) keys: u32,
    pub(super) lists: u32,
    /// Number of recorded runs, which come first.
    pub(super) kept: u32,
}

/// The kept runs of a stream: all that began less than `before` after `base`, the start of the first run.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    pub(super) base: u32,
    pub(super) before: u32,
    /// Skipped events of rings. Their runs are neither kept nor among the keys.
    pub(super) passed_over: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Stream {
    pub(super) account: u64,
    pub(super) logs: StreamLogs,
    /// Sequence number of its next chunk.
    pub(super) sequence: u32,
    pub(super) warp: u32,
    pub(super) launch: u32,
    pub(super) track: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Step {
    /// None: the stream does not exist or has no runs.
    Nothing,
    /// Copy its logs of addresses and values.
    Copy,
    Read,
    Cut,
    SortByWarp,
    SortByBlock,
    /// Merge its logs with one lane. Also done when a list was not sorted.
    MergeSerially,
}

/// Stores the pool and the codec for all threads of the block. All of them call it first.
#[inline(always)]
pub(super) fn share(pool: &PoolDescriptor, codec: Codec) {
    let mut memory = memory(0);
    if warptrace_device::simt::linear_thread() == 0 {
        let halves = |word: u64| [word as u32, (word >> 32) as u32];
        let ([a, b], [c, d], [e, f]) = (halves(pool.chunks), halves(pool.claims), halves(pool.logs));
        memory.set128(0, [a, b, c, d]);
        memory.set128(16, [e, f, pool.chunk_count, pool.chunk_bytes]);
        memory
            .set128(32, [pool.merged_from, pool.merged_end, codec as u32, pool.times | pool.data_track << 1]);
    }
    warp::sync_threads();
}

/// Returns the pool that [`share`] has stored, without classes.
#[inline(always)]
pub(super) fn pool() -> PoolDescriptor {
    let memory = memory(0);
    let [a, b, c, d] = memory.get128(0);
    let [e, f, chunk_count, chunk_bytes] = memory.get128(16);
    let [merged_from, merged_end, _, last] = memory.get128(32);
    let whole = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let (chunks, claims, logs) = (whole(a, b), whole(c, d), whole(e, f));
    PoolDescriptor {
        chunks,
        claims,
        logs,
        chunk_count,
        chunk_bytes,
        merged_from,
        merged_end,
        times: last & 1,
        data_track: last >> 1,
        // Only `take_stream` uses classes.
        classes: 0,
        class_slots: 0,
        reserved: 0,
    }
}

#[inline(always)]
pub(super) fn codec() -> Codec {
    Codec::from_number(memory(40).get32(0))
}

#[derive(Clone, Copy)]
pub(super) struct WarpShared {
    memory: SharedMemory,
    /// Keys of its stream, if they fit.
    pub(super) keys: SharedMemory,
}

impl WarpShared {
    #[inline(always)]
    pub(super) fn new(warp: u32) -> Self {
        let warp = warp % MAX_WARPS;
        Self { memory: memory(BLOCK_BYTES + WARP_BYTES * warp), keys: memory(KEYS + KEYS_BYTES * warp) }
    }

    /// Returns [`SLOTS_BYTES`] of memory for reading logs, or for serial merging.
    #[inline(always)]
    pub(super) fn slots(self) -> SharedMemory {
        self.memory
    }

    #[inline(always)]
    pub(super) fn kept(self) -> Kept {
        let [base, before, low, high] = self.memory.get128(KEPT);
        Kept { base, before, passed_over: u64::from(low) | u64::from(high) << 32 }
    }

    #[inline(always)]
    pub(super) fn set_kept(mut self, kept: Kept) {
        let Kept { base, before, passed_over } = kept;
        self.memory.set128(KEPT, [base, before, passed_over as u32, (passed_over >> 32) as u32]);
    }

    /// Returns the start position of a list of keys. Missing lists are empty and come last.
    #[inline(always)]
    pub(super) fn start(self, list: u32) -> u32 {
        self.memory.get32(STARTS + 4 * list)
    }

    #[inline(always)]
    pub(super) fn set_start(mut self, list: u32, position: u32) {
        self.memory.set32(STARTS + 4 * list, position);
    }

    #[inline(always)]
    pub(super) fn merged(self) -> MergedRuns {
        let [first, keys, lists, kept] = self.memory.get128(MERGED);
        MergedRuns { first, keys, lists, kept }
    }

    #[inline(always)]
    pub(super) fn set_merged(mut self, merged: &MergedRuns) {
        self.memory.set128(MERGED, [merged.first, merged.keys, merged.lists, merged.kept]);
    }

    #[inline(always)]
    pub(super) fn stream(self) -> Stream {
        let [low, high, sequence, warp] = self.memory.get128(STREAM);
        let [launch, track, first, lanes] = self.memory.get128(STREAM + 16);
        let [first_entries, segment_entries, first_lanes, layout] = self.memory.get128(STREAM + 32);
        let account = u64::from(low) | u64::from(high) << 32;
        let logs = StreamLogs {
            first,
            first_lanes,
            first_entries,
            segment_entries,
            lanes,
            layout: Layout::from_number(layout),
        };
        Stream { account, logs, sequence, warp, launch, track }
    }

    #[inline(always)]
    pub(super) fn set_stream(mut self, stream: &Stream) {
        let Stream { account, logs, sequence, warp, launch, track } = *stream;
        self.memory.set128(STREAM, [account as u32, (account >> 32) as u32, sequence, warp]);
        self.memory.set128(STREAM + 16, [launch, track, logs.first, logs.lanes]);
        let layout = logs.layout as u32;
        let words = [logs.first_entries, logs.segment_entries, logs.first_lanes, layout];
        self.memory.set128(STREAM + 32, words);
    }

    #[inline(always)]
    pub(super) fn next_is(self, step: Step) -> bool {
        self.memory.get32(STEP) == step as u32
    }

    #[inline(always)]
    pub(super) fn set_next(mut self, step: Step) {
        self.memory.set32(STEP, step as u32);
    }

    #[inline(always)]
    pub(super) fn sums(self) -> RunSums {
        let [a, b, c, d] = self.memory.get128(EVENTS);
        RunSums {
            attempted: u64::from(a) | u64::from(b) << 32,
            lost: u64::from(c) | u64::from(d) << 32,
            fits: self.memory.get32(FITS) != 0,
        }
    }

    /// Stores the sums, and resets the flag for unsorted lists.
    #[inline(always)]
    pub(super) fn set_sums(mut self, sums: &RunSums) {
        let RunSums { attempted, lost, fits } = *sums;
        let words = [attempted as u32, (attempted >> 32) as u32, lost as u32, (lost >> 32) as u32];
        self.memory.set128(EVENTS, words);
        self.memory.set32(FITS, u32::from(fits));
        self.memory.set32(UNSORTED, 0);
    }

    /// Notes that a list of keys was not sorted. Keeps the next step, which other warps may still read.
    #[inline(always)]
    pub(super) fn set_unsorted(mut self) {
        self.memory.set32(UNSORTED, 1);
    }

    #[inline(always)]
    pub(super) fn is_unsorted(self) -> bool {
        self.memory.get32(UNSORTED) != 0
    }
}

block_memory! {
    /// Returns the block's memory from `at` onward. Only the merging kernel calls it.
    fn memory(at) = "warptrace_merging", ALL_BYTES;
}
