//! The session's device memory: chunks, logs and accounts.

use warptrace_format::file::LaunchInfo;
use warptrace_format::log::{
    ENTRY_BYTES, Fixed, LANES, LOG_ALIGNMENT, LaunchLogs, LoggedLaunch, MAX_FIRST_ENTRIES,
    MAX_SEGMENT_ENTRIES, RESERVED_ENTRIES, SEGMENT_MULTIPLE,
};
use warptrace_format::pool::{Claims, PoolDescriptor, WarpAccount};

use super::memory::{Division, Memory};
use super::worker::Account;
use super::{MemoryUse, SessionError};
use crate::{Allocation, Device, Encoded};

/// Part of log memory that a launch's first segments take at most: they are as long as fits into that. Long
/// ones get less, for all of them counts as taken, whatever is written: a program of many small launches
/// would be drained after a few of them.
const FIRST_SHARE: u64 = 4;
const LONG_FIRST_SHARE: u64 = 64;
/// Entries of a first segment from which on it is long.
const LONG_FIRST_ENTRIES: u32 = 64;
/// Each lane may leave this part of its share of log memory unused, in its last segment.
const SEGMENT_SHARE: u64 = 4;

/// Device memory of a session: chunks, logs and accounts of the launches since the last drain.
pub(super) struct Pool {
    memory: Memory,
    division: Division,
    chunks: Allocation,
    /// The counters of claims.
    claims: Allocation,
    /// What merging is told of the launches.
    table: Allocation,
    /// Where chunks are packed.
    scratch: Allocation,
    /// Log memory, and what its alignment takes.
    logs: Allocation,
    /// Entries that were claimed up to the last launch.
    claimed_entries: u64,
    /// Entries that were reserved, for heads and first segments.
    reserved_entries: u32,
    /// The largest number of entries that a launch of each kernel has claimed.
    max_claimed: Vec<u64>,
    /// All zero behind `accounts_used`.
    accounts: Allocation,
    accounts_used: u64,
    tracks: u32,
    /// Whether logs are rings.
    ring: bool,
    /// Launches since the last drain, and the index of the entry after the last one that their logs may take.
    logged: Vec<LoggedLaunch>,
    logs_end: u32,
    streams: u32,
    /// Bytes that held something, at most at once.
    filled: u64,
}

impl Pool {
    /// Takes all memory that the session will have. Logs are rings if `ring`; then first segments are long
    /// enough in `division`.
    pub(super) fn new(
        device: &mut dyn Device,
        division: Division,
        tracks: u32,
        ring: bool,
    ) -> Result<Self, SessionError> {
        let mut memory = Memory::new(division.limit);
        let [claims, table, scratch, accounts, chunks, logs] =
            memory.allocate_all(device, division.parts())?;
        for zeroed in [claims, accounts] {
            device.fill(zeroed.address, zeroed.bytes, 0)?;
        }
        Ok(Self {
            memory,
            division,
            chunks,
            claims,
            table,
            scratch,
            logs,
            claimed_entries: 0,
            reserved_entries: RESERVED_ENTRIES,
            max_claimed: Vec::new(),
            accounts,
            accounts_used: 0,
            tracks,
            ring,
            logged: Vec::new(),
            logs_end: 0,
            streams: 0,
            filled: 0,
        })
    }

    /// What the session has taken of its limit, and filled of that.
    pub(super) fn memory_use(&self) -> MemoryUse {
        MemoryUse { limit: self.division.limit, peak: self.memory.peak(), filled: self.filled }
    }

    fn account_bytes(&self, info: &LaunchInfo) -> u64 {
        self.streams_of(info) * size_of::<WarpAccount>() as u64
    }

    fn streams_of(&self, info: &LaunchInfo) -> u64 {
        u64::from(self.tracks) * u64::from(info.chosen().count())
    }

    /// Address of log memory.
    fn log_address(&self) -> u64 {
        self.logs.address.next_multiple_of(LOG_ALIGNMENT)
    }

    /// Entries that are taken.
    fn taken_entries(&self) -> u64 {
        u64::from(self.reserved_entries) + self.claimed_entries
    }

    /// Entries of first segments of a launch with so many streams, if all of log memory were free.
    fn wanted_first_entries(&self, streams: u64) -> u32 {
        let end = u64::from(self.division.logs_end(streams));
        self.longest_first_entries(|first| {
            if self.ring {
                return Fixed::place(RESERVED_ENTRIES.into(), streams, first).end <= end;
            }
            let share = if first < LONG_FIRST_ENTRIES { FIRST_SHARE } else { LONG_FIRST_SHARE };
            streams * u64::from(LANES * first) <= end / share
        })
    }

    /// The same with what is free now.
    fn first_entries(&self, streams: u64) -> u32 {
        let (wanted, end) = (self.wanted_first_entries(streams), u64::from(self.division.logs_end(streams)));
        self.longest_first_entries(|first| {
            first <= wanted && Fixed::place(self.taken_entries(), streams, first).end <= end
        })
    }

    /// Entries of the other segments, where so many are free for a launch with so many streams.
    fn segment_entries(streams: u64, free: u64) -> u32 {
        let share = free / (streams * u64::from(LANES)).max(1) / SEGMENT_SHARE;
        let entries = share.clamp(u64::from(SEGMENT_MULTIPLE), u64::from(MAX_SEGMENT_ENTRIES)) as u32;
        // The largest power of two of at most so many.
        1 << entries.ilog2()
    }

    /// Whether a launch should find room behind those before it. (How much a launch needs is known only
    /// afterwards; launches of the same kernel are taken to need up to twice as much as one before.)
    pub(super) fn has_room(&self, info: &LaunchInfo) -> bool {
        let most = self.max_claimed.get(info.kernel() as usize).copied().unwrap_or(0);
        let streams = self.streams_of(info);
        let wanted = self.wanted_first_entries(streams);
        let fixed = Fixed::place(self.taken_entries(), streams, wanted);
        let entries = fixed.end + 2 * most <= u64::from(self.division.logs_end(streams))
            && (!self.ring || self.can_merge(fixed.end, wanted));
        let accounts = self.accounts_used + self.account_bytes(info) <= self.accounts.bytes;
        entries && accounts && self.logged.len() < self.division.launches()
    }

    /// Whether behind logs that end there each stream can be merged, whose logs are rings of so many entries
    /// or those of the launches before.
    fn can_merge(&self, end: u64, first_entries: u32) -> bool {
        let rings = self.logged.iter().map(|launch| launch.first_entries);
        let longest = rings.fold(first_entries, u32::max);
        end + u64::from(LANES * longest) <= u64::from(self.division.log_entries)
    }

    /// Takes note of a launch that left the counters of claims so.
    pub(super) fn launched(&mut self, info: &LaunchInfo, claims: Claims) {
        let kernel = info.kernel() as usize;
        if self.max_claimed.len() <= kernel {
            self.max_claimed.resize(kernel + 1, 0);
        }
        let most = &mut self.max_claimed[kernel];
        *most = (*most).max(claims.log_entries.saturating_sub(self.claimed_entries));
        self.claimed_entries = claims.log_entries;
        self.accounts_used += self.account_bytes(info);
        self.streams += self.streams_of(info) as u32;
    }

    /// Takes note of a launch that failed: what it has logged is passed over.
    pub(super) fn failed(&mut self) {
        self.logged.pop();
    }

    /// Whether the pool should be drained now: there is enough for it to be worth a drain, and it is written
    /// while the program goes on.
    pub(super) fn should_drain(&self) -> bool {
        4 * self.taken_entries() >= 3 * u64::from(self.logs_end)
    }

    /// Whether no launch has left logs.
    pub(super) fn is_empty(&self) -> bool {
        self.logged.is_empty()
    }

    /// What merging and encoding need: the pool, the launches that have left logs, and memory for a table of
    /// them. Merged runs have all of log memory in which there are no logs.
    pub(super) fn logged(&self) -> (PoolDescriptor, &[LoggedLaunch], Allocation) {
        let pool = PoolDescriptor {
            chunks: self.chunks.address,
            claims: self.claims.address,
            logs: self.log_address(),
            chunk_count: self.division.chunk_count,
            chunk_bytes: self.division.chunk_bytes,
            merged_from: self.taken_entries().min(self.logs_end.into()) as u32,
            merged_end: self.division.log_entries,
        };
        (pool, &self.logged, self.table)
    }

    /// Takes note of what a round of encoding has made; answers the chunks that hold something.
    pub(super) fn encoded(&mut self, encoded: &Encoded) -> u32 {
        let Claims { merged_entries, chunks, .. } = encoded.claims;
        let (pool, ..) = self.logged();
        let merged = merged_entries.min((pool.merged_end - pool.merged_from).into());
        let chunks = chunks.min(pool.chunk_count);
        let entries = u64::from(pool.merged_from) + merged;
        let filled = self.accounts_used
            + entries * u64::from(ENTRY_BYTES)
            + u64::from(chunks) * u64::from(pool.chunk_bytes);
        self.filled = self.filled.max(filled);
        chunks
    }

    /// Appends the used ones of the chunks from `first` to `end` to `to`; answers how many it has gone
    /// through.
    pub(super) fn collect(
        &self,
        device: &mut dyn Device,
        [first, end]: [u32; 2],
        to: &mut Vec<u8>,
    ) -> Result<u32, SessionError> {
        let bytes = self.division.chunk_bytes;
        let address = self.chunks.address + u64::from(first) * u64::from(bytes);
        Ok(device.collect(address, bytes, end - first, self.scratch, to)?)
    }

    /// Makes chunks, and memory for merged runs, empty: what they held is on the host.
    pub(super) fn begin_round(&self, device: &mut dyn Device) -> Result<(), SessionError> {
        let kept = std::mem::offset_of!(Claims, merged_entries) as u64;
        Ok(device.fill(self.claims.address + kept, self.claims.bytes - kept, 0)?)
    }

    /// Reads the accounts of all launches since the last drain, and nothing else.
    pub(super) fn read_accounts(
        &self,
        device: &mut dyn Device,
        to: &mut Vec<Account>,
    ) -> Result<(), SessionError> {
        // What is there already need not be set: all of it is read.
        to.resize(self.accounts_used as usize / size_of::<Account>(), Account::default());
        Ok(device.read(self.accounts.address, bytemuck::cast_slice_mut(to))?)
    }

    /// Makes the pool empty.
    pub(super) fn reset(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        device.fill(self.claims.address, self.claims.bytes, 0)?;
        device.fill(self.accounts.address, self.accounts_used, 0)?;
        (self.claimed_entries, self.reserved_entries) = (0, RESERVED_ENTRIES);
        (self.accounts_used, self.streams, self.logs_end) = (0, 0, 0);
        self.logged.clear();
        Ok(())
    }

    /// Makes the pool ready for a launch. Unless it [has room](Self::has_room), it has been drained.
    ///
    /// # Errors
    /// If what the launch needs at least is not there even so.
    pub(super) fn prepare(&mut self, info: &LaunchInfo) -> Result<LaunchLogs, SessionError> {
        // Warps that do not record have neither logs nor accounts.
        let chosen = info.chosen();
        let (warps, streams) = (chosen.count(), self.streams_of(info));
        let first_entries = self.first_entries(streams);
        let fixed = Fixed::place(self.taken_entries(), streams, first_entries);
        let logs_end = self.division.logs_end(streams);
        let account_bytes = self.account_bytes(info);
        if fixed.end > u64::from(logs_end) || self.accounts_used + account_bytes > self.accounts.bytes {
            let Division { limit, chunk_bytes, min_first_entries, .. } = self.division;
            let needed = Division::least(streams, chunk_bytes, min_first_entries);
            return Err(SessionError::Memory { streams, needed, limit });
        }
        // All below `logs_end`.
        let (heads, first_segments) = (fixed.heads as u32, fixed.first_segments as u32);
        self.reserved_entries = (fixed.end - self.claimed_entries) as u32;
        self.logs_end = self.logs_end.max(logs_end);
        let ring = u32::from(self.ring);
        let segment_entries = if self.ring {
            first_entries / 2
        } else {
            Self::segment_entries(streams, u64::from(logs_end) - fixed.end)
        };
        let accounts = self.accounts.address + self.accounts_used;
        self.logged.push(LoggedLaunch {
            accounts,
            heads,
            first_entries,
            segment_entries,
            warps,
            block_threads: chosen.block_threads(info.threads_per_block()),
            launch: info.number(),
            first_stream: self.streams,
            tracks: self.tracks,
            first_segments,
            ring,
        });
        Ok(LaunchLogs {
            logs: self.log_address(),
            claims: self.claims.address,
            accounts,
            heads,
            warps,
            first_entries,
            segment_entries,
            claims_from: self.reserved_entries,
            claims_end: logs_end,
            launch: info.number(),
            first_segments,
            ring,
            reserved: 0,
            chosen,
            unused: 0,
        })
    }

    /// Gives the memory back.
    pub(super) fn free(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        for part in [self.claims, self.table, self.scratch, self.accounts, self.chunks, self.logs] {
            self.memory.free(device, part)?;
        }
        Ok(())
    }

    /// The longest first segments that fit; the shortest where none do.
    fn longest_first_entries(&self, fits: impl Fn(u32) -> bool) -> u32 {
        let mut entries = MAX_FIRST_ENTRIES;
        while entries > self.division.min_first_entries && !fits(entries) {
            entries /= 2;
        }
        entries
    }
}
