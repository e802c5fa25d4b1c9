//! The limit of device memory, and its division.
//!
//! A session allocates everything when it starts, and nothing grows:
//! ```text
//! part       bytes                              contents
//! claims     32 for each arena                  counters
//! table      32 KiB                             launches since the last drain, for merging
//! scratch    a 16th, at most 64 MiB             chunks, then accounts, packed for the copy to the host
//! accounts   a 16th of the rest, at most 128 MiB or a 128th: an account for each warp and track of these
//! classes    half as much                       the class of each of these streams, and a table to find it
//! chunks     an eighth of the rest              encoded events, until they are copied
//! logs       what remains                       runs, and merged runs
//! ```
//! Logs get most of the memory: all runs must be present at once, but merged and encoded data is copied away
//! in as many rounds as needed. A launch's logs may take up to 5/7 of log memory. The limit is half for a
//! launch with few streams, because a single stream may take almost all of it, and merging needs the same
//! space again. Rings are as long as possible with no other launch in log memory, because a launch gets all
//! of its log memory at the start. So most launches are drained before the next one; several fit only if they
//! are small and their rings have the maximum length.

use warptrace_abi::log::{
    ENTRY_BYTES, FirstSegments, Fixed, LOG_ALIGNMENT, LoggedLaunch, MAX_ENTRIES, MAX_SEGMENT_ENTRIES,
    RESERVED_ENTRIES,
};
use warptrace_abi::pool::Claims;
use warptrace_format::account::WarpAccount;

use super::SessionError;
use crate::{Allocation, Device, MemorySize, MemoryType, packed};

/// Maximum limit, so that sums do not overflow.
const MAX_BYTES: u64 = 1 << 48;
const TABLE_BYTES: u64 = 32 << 10;
/// Share of the limit for scratch, and its maximum.
const SCRATCH_SHARE: u64 = 16;
const MAX_SCRATCH_BYTES: u64 = 64 << 20;
/// Scratch in addition to the packed chunks.
const SCRATCH_HEAD_BYTES: u64 = 256;
/// Share of the remaining memory for accounts, and its maximum. Even the shortest log of a warp and track
/// takes four times its account. The maximum keeps each drain small enough for reusable host buffers.
const ACCOUNT_SHARE: u64 = 16;
const MAX_ACCOUNT_BYTES: u64 = 128 << 20;
/// Share for accounts if each lane has a log from the start, and minimum share in general.
const LANES_ACCOUNT_SHARE: u64 = 128;
const CHUNK_SHARE: u64 = 8;
/// Parts of log memory, and the parts that a launch's logs may take.
const LOG_PARTS: u32 = 7;
const LAUNCH_PARTS: u32 = 5;
/// Share of the logs for first segments of launches that begin while others run.
const RESERVE_SHARE: u32 = 4;
/// Maximum streams of a launch whose logs may take half of log memory.
const FEW_STREAMS: u64 = 8;

#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    limit: u64,
    place: MemoryType,
    taken: u64,
    peak: u64,
}

impl Memory {
    pub(super) fn new(limit: u64, place: MemoryType) -> Self {
        Self { limit, place, taken: 0, peak: 0 }
    }

    pub(super) fn peak(&self) -> u64 {
        self.peak
    }

    /// Allocates memory. Fails if the device has too little memory, or the limit would be exceeded.
    pub(super) fn allocate(
        &mut self,
        device: &mut dyn Device,
        bytes: u64,
    ) -> Result<Allocation, SessionError> {
        if bytes > self.limit - self.taken {
            return Err(SessionError::Pool {
                problem: format!("{bytes} bytes are beyond the limit of {}", MemorySize(self.limit)),
            });
        }
        let allocation = device.allocate(bytes, self.place)?;
        self.taken += bytes;
        self.peak = self.peak.max(self.taken);
        Ok(allocation)
    }

    /// Allocates several pieces, or none.
    pub(super) fn allocate_all<const N: usize>(
        &mut self,
        device: &mut dyn Device,
        sizes: [u64; N],
    ) -> Result<[Allocation; N], SessionError> {
        let mut taken = [Allocation { address: 0, bytes: 0 }; N];
        for (number, bytes) in sizes.into_iter().enumerate() {
            match self.allocate(device, bytes) {
                Ok(allocation) => taken[number] = allocation,
                Err(error) => {
                    // Only the first error is returned.
                    taken[..number].iter().for_each(|piece| drop(self.free(device, *piece)));
                    return Err(error);
                }
            }
        }
        Ok(taken)
    }

    pub(super) fn free(
        &mut self,
        device: &mut dyn Device,
        allocation: Allocation,
    ) -> Result<(), SessionError> {
        self.taken -= allocation.bytes;
        Ok(device.free(allocation)?)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Division {
    pub(super) limit: u64,
    pub(super) place: MemoryType,
    pub(super) chunk_bytes: u32,
    /// See [`PoolDescriptor`](warptrace_abi::pool::PoolDescriptor).
    pub(super) times: u32,
    pub(super) data_track: u32,
    /// Bytes of a warp's span, in addition to its accounts; 0 if spans are not recorded.
    pub(super) span_bytes: u64,
    /// Number of parts of log memory that launches fill in turns.
    pub(super) arenas: u32,
    /// The shortest first segments, for the smallest number of lanes.
    pub(super) shortest: FirstSegments,
    pub(super) table_bytes: u64,
    pub(super) scratch_bytes: u64,
    pub(super) account_bytes: u64,
    pub(super) class_bytes: u64,
    pub(super) chunk_count: u32,
    /// Bytes of log memory, including alignment.
    pub(super) log_bytes: u64,
    pub(super) log_entries: u32,
}

impl Division {
    /// Divides `limit` bytes, with first segments of at least `shortest`. Fails if the limit is too small.
    pub(super) fn new(
        limit: u64,
        chunk_bytes: u32,
        arenas: u32,
        shortest: FirstSegments,
    ) -> Result<Self, SessionError> {
        let limit = limit.min(MAX_BYTES);
        Self::divide(limit, chunk_bytes, arenas, shortest).filter(|division| division.has_room(1)).ok_or_else(
            || {
                let needed = Self::least(1, 0, chunk_bytes, arenas, shortest);
                SessionError::Memory { streams: 1, needed, limit }
            },
        )
    }

    fn divide(limit: u64, chunk_bytes: u32, arenas: u32, shortest: FirstSegments) -> Option<Self> {
        let chunk = u64::from(chunk_bytes);
        let packed = packed::most_bytes(chunk_bytes).into();
        let scratch = (limit / SCRATCH_SHARE).clamp(packed, MAX_SCRATCH_BYTES) + SCRATCH_HEAD_BYTES;
        let small = u64::from(arenas) * size_of::<Claims>() as u64 + TABLE_BYTES + scratch + LOG_ALIGNMENT;
        let mut rest = limit.checked_sub(small)?;
        let least = rest / LANES_ACCOUNT_SHARE;
        let accounts = if shortest.lanes == 1 {
            (rest / ACCOUNT_SHARE).min(MAX_ACCOUNT_BYTES.max(least))
        } else {
            least
        };
        let account_bytes = accounts / ACCOUNT_BYTES * ACCOUNT_BYTES;
        let class_bytes = account_bytes / 2;
        rest -= account_bytes + class_bytes;
        let chunk_count = u32::try_from((rest / CHUNK_SHARE / chunk).max(1)).unwrap_or(u32::MAX);
        rest = rest.checked_sub(u64::from(chunk_count) * chunk)?;
        // At most as many bytes as entries can be numbered.
        let rest = rest.min(u64::from(u32::MAX) * u64::from(ENTRY_BYTES));
        let entries = (rest / u64::from(ENTRY_BYTES)).min(MAX_ENTRIES.into()) as u32;
        Some(Self {
            limit,
            place: MemoryType::Device,
            chunk_bytes,
            times: 0,
            data_track: 0,
            span_bytes: 0,
            arenas,
            shortest,
            table_bytes: TABLE_BYTES,
            scratch_bytes: scratch,
            account_bytes,
            class_bytes,
            chunk_count,
            log_bytes: rest + LOG_ALIGNMENT,
            log_entries: entries / MAX_SEGMENT_ENTRIES * MAX_SEGMENT_ENTRIES,
        })
    }

    pub(super) fn total(&self) -> u64 {
        self.parts().iter().sum()
    }

    /// Returns the bytes of the parts, in the order of the table above.
    pub(super) fn parts(&self) -> [u64; 7] {
        let chunks = u64::from(self.chunk_count) * u64::from(self.chunk_bytes);
        let claims = u64::from(self.arenas) * size_of::<Claims>() as u64;
        let [accounts, classes] = [self.account_bytes, self.class_bytes];
        [claims, self.table_bytes, self.scratch_bytes, accounts, classes, chunks, self.log_bytes]
    }

    /// Returns the end, as an entry index, of the logs of a launch with this many streams.
    pub(super) fn logs_end(&self, streams: u64) -> u32 {
        let end = if streams <= FEW_STREAMS {
            self.log_entries / 2
        } else {
            self.log_entries / LOG_PARTS * LAUNCH_PARTS
        };
        end / MAX_SEGMENT_ENTRIES * MAX_SEGMENT_ENTRIES
    }

    /// Returns the index of the first entry for first segments of launches that begin while others run.
    pub(super) fn reserve(&self) -> u32 {
        let end = self.logs_end(u64::MAX);
        (end - end / RESERVE_SHARE) / MAX_SEGMENT_ENTRIES * MAX_SEGMENT_ENTRIES
    }

    /// Returns the bytes of accounts and spans of a launch with `warps` recorded warps on `tracks` tracks.
    pub(super) const fn accounts_of(&self, tracks: u32, warps: u32) -> u64 {
        warps as u64 * (tracks as u64 * ACCOUNT_BYTES + self.span_bytes)
    }

    /// Returns the number of launches in a full table.
    pub(super) fn launches(&self) -> usize {
        self.table_bytes as usize / size_of::<LoggedLaunch>()
    }

    /// Returns true if the accounts and shortest first segments of a launch with this many streams fit.
    pub(super) fn has_room(&self, streams: u64) -> bool {
        let fixed = Fixed::place(RESERVED_ENTRIES.into(), streams, self.shortest);
        // In a dual recording this counts a span for each of the two tracks.
        streams * (ACCOUNT_BYTES + self.span_bytes) <= self.account_bytes
            && fixed.end <= u64::from(self.logs_end(streams))
    }

    /// Returns the lowest limit, in bytes and whole KiB, with which a launch with this many streams can be
    /// recorded; `None` if no limit is sufficient.
    pub(super) fn least(
        streams: u64,
        span_bytes: u64,
        chunk_bytes: u32,
        arenas: u32,
        shortest: FirstSegments,
    ) -> Option<u64> {
        let fits = |kib: &u64| {
            Self::divide(kib << 10, chunk_bytes, arenas, shortest)
                .is_some_and(|division| Self { span_bytes, ..division }.has_room(streams))
        };
        let mut enough = (0..=(MAX_BYTES >> 10).ilog2()).map(|bit| 1 << bit).find(fits)?;
        let mut step = enough / 2;
        while step != 0 {
            if fits(&(enough - step)) {
                enough -= step;
            }
            step /= 2;
        }
        Some(enough << 10)
    }
}

const ACCOUNT_BYTES: u64 = size_of::<WarpAccount>() as u64;
