//! Merged runs, and upper bounds for their encoded size.

use warptrace_abi::log::{ENTRY_BYTES, Entry};
use warptrace_abi::pool::PoolDescriptor;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;

use crate::codec::Codec;

/// Bytes of a merged run. Equal to a log entry, because both use the same memory.
pub(crate) const RUN_BYTES: u32 = ENTRY_BYTES;
const _: () = assert!(RUN_BYTES == 16);

/// Payload bytes that a stretch leaves free for data that an encoder holds back, and for padding.
const SLACK: u32 = 64;
/// Bytes of an event with `raw`.
const RAW_BYTES: u32 = 6;
/// Maximum bytes that an event adds with `ecl`.
const ECL_BYTES: u32 = 11;
/// Maximum bytes of a run with `predict`, if the counts of a chunk sum to less than 2^24.
const PREDICT_RUN_BYTES: u32 = 12;
/// Size of a run that may be too long for any chunk.
const ANY_LENGTH: u32 = u32::MAX;

#[inline(always)]
pub(crate) const fn merged_words(entry: Entry) -> [u32; 4] {
    [entry.mask, entry.location as u32, entry.count, entry.time]
}

pub(crate) const COUNT_AT: u32 = 8;

/// Returns true if two consecutive runs have the same event.
#[inline(always)]
pub(crate) const fn are_split(run: [u32; 4], next: [u32; 4]) -> bool {
    next[0] == run[0] && next[1] == run[1]
}

/// Returns the time of a run as stored in a chunk with split runs. `next` is the following run in the same
/// chunk, if any.
#[inline(always)]
pub(crate) const fn time_words(run: [u32; 4], next: Option<[u32; 4]>) -> [u32; 2] {
    let is_split = matches!(next, Some(next) if are_split(run, next));
    [run[3], if is_split { run[2] } else { 0 }]
}

#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub(crate) codec: Codec,
    time_bytes: u32,
    pub(crate) bytes: u32,
}

impl Room {
    #[inline(always)]
    pub(crate) const fn new(pool: &PoolDescriptor, codec: Codec, track: u32) -> Self {
        let bytes = pool.chunk_bytes - CHUNK_HEADER_BYTES - SLACK;
        Self { codec, time_bytes: pool.time_bytes(track), bytes }
    }

    /// Returns the maximum bytes of a run, or [`ANY_LENGTH`] if no bound is known.
    #[inline(always)]
    pub(crate) const fn max_bytes(self, count: u32) -> u32 {
        match self.codec {
            Codec::Raw if count < 1 << 20 => RAW_BYTES * count + self.time_bytes,
            Codec::Ecl if count < 1 << 20 => ECL_BYTES * count + self.time_bytes,
            Codec::Predict if count < (1 << 24) / (self.bytes / PREDICT_RUN_BYTES + 1) => {
                PREDICT_RUN_BYTES + self.time_bytes
            }
            _ => ANY_LENGTH,
        }
    }

    #[inline(always)]
    pub(crate) const fn fits(self, count: u32) -> bool {
        self.max_bytes(count) <= self.bytes
    }

    /// Returns the runs per stretch with `predict`, if each run fits into a chunk.
    #[inline(always)]
    pub(crate) const fn predict_runs(self) -> u32 {
        self.bytes / (PREDICT_RUN_BYTES + self.time_bytes)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct RunSums {
    pub(crate) attempted: u64,
    pub(crate) lost: u64,
    /// Whether each kept run fits into a chunk.
    pub(crate) fits: bool,
}

#[derive(Clone, Copy)]
pub(crate) struct Share {
    pub(crate) kept: u32,
    pub(crate) sums: RunSums,
}

impl Share {
    pub(crate) const NOTHING: Self = Self { kept: 0, sums: RunSums { attempted: 0, lost: 0, fits: true } };

    #[inline(always)]
    pub(crate) fn count(&mut self, entry: Entry, kept: bool, room: Room) {
        self.sums.attempted = self.sums.attempted.wrapping_add(u64::from(entry.count));
        if kept {
            self.kept += 1;
            self.sums.fits &= room.fits(entry.count);
        } else {
            self.sums.lost = self.sums.lost.wrapping_add(u64::from(entry.count));
        }
    }

    #[inline(always)]
    pub(crate) fn with_lost(mut self, events: u64) -> Self {
        self.sums.attempted = self.sums.attempted.wrapping_add(events);
        self.sums.lost = self.sums.lost.wrapping_add(events);
        self
    }
}
