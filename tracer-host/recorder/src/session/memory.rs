//! The limit of device memory, and how it is divided.
//!
//! All that a session takes is allocated when it starts, and nothing grows:
//! ```text
//! part       bytes                              holds
//! claims     32 for each arena                  counters
//! table      32 KiB                             what merging is told of each launch since the last drain
//! scratch    a 16th, at most 64 MiB             chunks that are packed for the way to the host
//! accounts   a 16th of the rest, at most 128 MiB or a 128th: an account for each warp and track of these launches
//! classes    half as much                       which of these have the same runs, and a table to find them in
//! chunks     an eighth of that                  encoded events, until they are copied
//! logs       what remains                       runs, and what is merged of them
//! ```
//! Runs have most of it, since only they must be there all at once: what is merged and encoded is copied away
//! in as many rounds as it takes. A launch's logs may take up to 5/7 of log memory. If it has few streams,
//! one of them may be almost all there is, and must fit once more when it is merged: half.
//!
//! Rings are as long as fits into that part if no other launch has logs: all that a launch has is there from
//! the start. So most launches are drained before the next one; of small ones, whose rings are as long as
//! they can be, several fit.

use warptrace_abi::log::{
    ENTRY_BYTES, FirstSegments, Fixed, LOG_ALIGNMENT, LoggedLaunch, MAX_ENTRIES, MAX_SEGMENT_ENTRIES,
    RESERVED_ENTRIES,
};
use warptrace_abi::pool::Claims;
use warptrace_format::account::WarpAccount;

use super::SessionError;
use crate::{Allocation, Device, MemorySize, MemoryType};

/// Maximum of any limit: so that sums do not overflow.
const MAX_BYTES: u64 = 1 << 48;
const TABLE_BYTES: u64 = 32 << 10;
/// Part of the limit for scratch, and its maximum.
const SCRATCH_SHARE: u64 = 16;
const MAX_SCRATCH_BYTES: u64 = 64 << 20;
/// Scratch next to the packed chunks.
const SCRATCH_HEAD_BYTES: u64 = 256;
/// Part of what remains for accounts: the shortest log of a warp and track takes four times its account,
/// longer ones and what is merged and encoded of them more. At most so many bytes: what is drained at once
/// stays small enough for buffers on the host that are used again.
const ACCOUNT_SHARE: u64 = 16;
const MAX_ACCOUNT_BYTES: u64 = 128 << 20;
/// Part for accounts where each lane has a log from the start, and the least part of much memory.
const LANES_ACCOUNT_SHARE: u64 = 128;
const CHUNK_SHARE: u64 = 8;
/// Parts of log memory, and those of them that a launch's logs may take.
const LOG_PARTS: u32 = 7;
const LAUNCH_PARTS: u32 = 5;
/// Part of what launches' logs may take, for first segments of launches that begin while others
/// run.
const RESERVE_SHARE: u32 = 4;
/// Streams of a launch whose logs may take half.
const FEW_STREAMS: u64 = 8;

/// Memory of a session, as it is taken.
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

    /// The most that was taken at once, in bytes.
    pub(super) fn peak(&self) -> u64 {
        self.peak
    }

    /// Allocates.
    ///
    /// # Errors
    /// If the device has not so much, or the limit does not leave so much.
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
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
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
                    // The first error is the one to tell.
                    taken[..number].iter().for_each(|piece| drop(self.free(device, *piece)));
                    return Err(error);
                }
            }
        }
        Ok(taken)
    }

    /// Gives memory back.
    ///
    /// # Errors
    /// The device's.
    pub(super) fn free(
        &mut self,
        device: &mut dyn Device,
        allocation: Allocation,
    ) -> Result<(), SessionError> {
        self.taken -= allocation.bytes;
        Ok(device.free(allocation)?)
    }
}

/// How a limit is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Division {
    pub(super) limit: u64,
    /// Where the memory lies.
    pub(super) place: MemoryType,
    pub(super) chunk_bytes: u32,
    /// As in [`PoolDescriptor`](warptrace_abi::pool::PoolDescriptor).
    pub(super) times: u32,
    /// As there.
    pub(super) data_track: u32,
    /// Bytes that a warp's span takes, beside its accounts; 0 if none is recorded.
    pub(super) span_bytes: u64,
    /// Into how many parts of log memory launches record in turns.
    pub(super) arenas: u32,
    /// The shortest first segments, of the fewest lanes.
    pub(super) shortest: FirstSegments,
    pub(super) table_bytes: u64,
    pub(super) scratch_bytes: u64,
    pub(super) account_bytes: u64,
    pub(super) class_bytes: u64,
    pub(super) chunk_count: u32,
    /// Bytes for log memory, and what its alignment takes.
    pub(super) log_bytes: u64,
    /// Entries of log memory.
    pub(super) log_entries: u32,
}

impl Division {
    /// Divides what a session may take: `limit` bytes. First segments are `shortest` at least.
    ///
    /// # Errors
    /// If the limit is too small for anything.
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
        let scratch = (limit / SCRATCH_SHARE).clamp(chunk, MAX_SCRATCH_BYTES) + SCRATCH_HEAD_BYTES;
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
        // More than entries can be numbered is not taken.
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

    /// Bytes of all parts: what a session takes.
    pub(super) fn total(&self) -> u64 {
        self.parts().iter().sum()
    }

    /// Bytes of the parts, in the order of the table above.
    pub(super) fn parts(&self) -> [u64; 7] {
        let chunks = u64::from(self.chunk_count) * u64::from(self.chunk_bytes);
        let claims = u64::from(self.arenas) * size_of::<Claims>() as u64;
        let [accounts, classes] = [self.account_bytes, self.class_bytes];
        [claims, self.table_bytes, self.scratch_bytes, accounts, classes, chunks, self.log_bytes]
    }

    /// Index of the entry after the last one that the logs of a launch with this many streams may take.
    pub(super) fn logs_end(&self, streams: u64) -> u32 {
        let end = if streams <= FEW_STREAMS {
            self.log_entries / 2
        } else {
            self.log_entries / LOG_PARTS * LAUNCH_PARTS
        };
        end / MAX_SEGMENT_ENTRIES * MAX_SEGMENT_ENTRIES
    }

    /// Index of the first entry that is for first segments of launches that begin while others run.
    pub(super) fn reserve(&self) -> u32 {
        let end = self.logs_end(u64::MAX);
        (end - end / RESERVE_SHARE) / MAX_SEGMENT_ENTRIES * MAX_SEGMENT_ENTRIES
    }

    /// Bytes of the accounts, and spans, of a launch of which this many warps record on this many tracks.
    pub(super) const fn accounts_of(&self, tracks: u32, warps: u32) -> u64 {
        warps as u64 * (tracks as u64 * ACCOUNT_BYTES + self.span_bytes)
    }

    /// Launches that the table has room for.
    pub(super) fn launches(&self) -> usize {
        self.table_bytes as usize / size_of::<LoggedLaunch>()
    }

    /// Whether a launch with this many streams can be recorded: its accounts and shortest first
    /// segments fit.
    pub(super) fn has_room(&self, streams: u64) -> bool {
        let fixed = Fixed::place(RESERVED_ENTRIES.into(), streams, self.shortest);
        // In a dual recording a span is counted for each of the two tracks.
        streams * (ACCOUNT_BYTES + self.span_bytes) <= self.account_bytes
            && fixed.end <= u64::from(self.logs_end(streams))
    }

    /// The smallest limit, in whole KiB, with which a launch with this many streams can be recorded; `None`
    /// if none is large enough.
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

/// Bytes of an account.
const ACCOUNT_BYTES: u64 = size_of::<WarpAccount>() as u64;
