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
/// So many launches of a size should find room at the same time, if they may run so.
const OVERLAPPING: u64 = 4;
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
    max_claimed: Vec<Option<u64>>,
    /// All zero behind `accounts_used`.
    accounts: Allocation,
    accounts_used: u64,
    tracks: u32,
    /// Whether logs are rings.
    ring: bool,
    /// Where claimed segments begin if launches may run at the same time: heads and first segments of all lie
    /// before, so that a launch finds its place while others still claim. 0: behind those of the last launch,
    /// which has ended before the next one begins.
    overlap: u32,
    /// Whether the launch in the pool took all of it, as one does that is too large for that.
    is_exclusive: bool,
    /// Launches since the last drain, and the index of the entry after the last one that their logs may take.
    logged: Vec<LoggedLaunch>,
    logs_end: u32,
    streams: u32,
    /// Bytes that held something, at most at once.
    filled: u64,
}

/// Whether there is room for launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// As far as can be told.
    Enough,
    /// There is, unless a kernel that runs, and has never ended before, takes it.
    Unknown,
    /// Not before something is drained.
    Short,
}

/// What launches that are being prepared change of a pool, as it was before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    launches: usize,
    reserved_entries: u32,
    accounts_used: u64,
    streams: u32,
    logs_end: u32,
    is_exclusive: bool,
}

impl Pool {
    /// Takes all memory that the session will have. Logs are rings if `ring`; then first segments are long
    /// enough in `division`. Launches may run at the same time if `overlap`.
    pub(super) fn new(
        device: &mut dyn Device,
        division: Division,
        tracks: u32,
        ring: bool,
        overlap: bool,
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
            // Rings claim nothing.
            overlap: if overlap && !ring { division.overlap_end() } else { 0 },
            is_exclusive: false,
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

    /// Entries that are taken, before those that no log has.
    fn taken_entries(&self) -> u64 {
        self.claims_from() + self.claimed_entries
    }

    /// The entry with which claimed segments begin.
    fn claims_from(&self) -> u64 {
        let overlap = if self.is_exclusive { 0 } else { self.overlap };
        overlap.max(self.reserved_entries).into()
    }

    /// Where a launch with so many streams finds its heads and first segments, and where these must end.
    fn places(&self, streams: u64) -> (u64, u64) {
        let end = u64::from(self.division.logs_end(streams));
        if self.overlap == 0 || self.is_exclusive {
            return (self.taken_entries(), end);
        }
        (self.reserved_entries.into(), end.min(self.overlap.into()))
    }

    /// Whether a launch with so many streams has a place only if it is alone.
    fn is_large(&self, streams: u64) -> bool {
        let least = self.division.min_first_entries;
        self.overlap != 0
            && Fixed::place(RESERVED_ENTRIES.into(), streams, least).end > u64::from(self.overlap)
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
                && (self.overlap == 0
                    || Fixed::place(RESERVED_ENTRIES.into(), streams, first).end
                        <= u64::from(self.overlap) / OVERLAPPING)
        })
    }

    /// The same with what is free now.
    fn first_entries(&self, streams: u64) -> u32 {
        let (wanted, (from, end)) = (self.wanted_first_entries(streams), self.places(streams));
        self.longest_first_entries(|first| first <= wanted && Fixed::place(from, streams, first).end <= end)
    }

    /// Entries of the other segments, where so many are free for a launch with so many streams.
    fn segment_entries(streams: u64, free: u64) -> u32 {
        let share = free / (streams * u64::from(LANES)).max(1) / SEGMENT_SHARE;
        let entries = share.clamp(u64::from(SEGMENT_MULTIPLE), u64::from(MAX_SEGMENT_ENTRIES)) as u32;
        // The largest power of two of at most so many.
        1 << entries.ilog2()
    }

    /// Whether launches should find room beside those before them, of which `running` still run, named by their
    /// kernels. (How much a launch needs is known only afterwards; launches of the same kernel are taken to
    /// need up to twice as much as one before.)
    pub(super) fn has_room(&self, infos: &[LaunchInfo], running: &[u32]) -> Room {
        if self.has_surely_room(infos, running) {
            return Room::Enough;
        }
        // If nothing is known of what runs, it may need nothing.
        let unknown = running.iter().any(|kernel| self.most_claimed(*kernel).is_none());
        if unknown && self.has_surely_room(infos, &[]) { Room::Unknown } else { Room::Short }
    }

    /// The largest number of entries that a launch of a kernel has claimed; `None` if none has ended.
    fn most_claimed(&self, kernel: u32) -> Option<u64> {
        self.max_claimed.get(kernel as usize).copied().flatten()
    }

    fn has_surely_room(&self, infos: &[LaunchInfo], running: &[u32]) -> bool {
        if self.is_exclusive || infos.iter().any(|info| self.is_large(self.streams_of(info))) {
            return self.logged.is_empty() && infos.len() == 1;
        }
        // What running launches need is not known before one of their kernel has ended. Rings claim nothing.
        let known =
            running.iter().try_fold(0, |sum, kernel| self.most_claimed(*kernel).map(|most| sum + 2 * most));
        let Some(mut claimed) = known.or(self.ring.then_some(0)) else { return false };
        let (mut accounts, mut fixed_end) = (self.accounts_used, None);
        for info in infos {
            let streams = self.streams_of(info);
            let wanted = self.wanted_first_entries(streams);
            let (from, end) = self.places(streams);
            let fixed = Fixed::place(fixed_end.unwrap_or(from), streams, wanted);
            claimed += 2 * self.most_claimed(info.kernel()).unwrap_or(0);
            accounts += self.account_bytes(info);
            fixed_end = Some(fixed.end);
            let claims_from = fixed.end.max(self.taken_entries());
            let fits = fixed.end <= end
                && claims_from + claimed <= u64::from(self.division.logs_end(streams))
                && (!self.ring || self.can_merge(fixed.end, wanted));
            if !fits {
                return false;
            }
        }
        accounts <= self.accounts.bytes && self.logged.len() + infos.len() <= self.division.launches()
    }

    /// Whether behind logs that end there each stream can be merged, whose logs are rings of so many entries
    /// or those of the launches before.
    fn can_merge(&self, end: u64, first_entries: u32) -> bool {
        let rings = self.logged.iter().map(|launch| launch.first_entries);
        let longest = rings.fold(first_entries, u32::max);
        end + u64::from(LANES * longest) <= u64::from(self.division.log_entries)
    }

    /// Takes note of launches of these kernels that have ended since the last call, after which the counters of
    /// claims are so.
    pub(super) fn ended(&mut self, kernels: &[u32], claims: Claims) {
        let claimed = claims.log_entries.saturating_sub(self.claimed_entries);
        self.claimed_entries = self.claimed_entries.max(claims.log_entries);
        for &kernel in kernels {
            let kernel = kernel as usize;
            if self.max_claimed.len() <= kernel {
                self.max_claimed.resize(kernel + 1, None);
            }
            self.max_claimed[kernel] = self.max_claimed[kernel].max(Some(claimed));
        }
    }

    /// Reads the counters of claims, of launches that may still run.
    pub(super) fn read_claims(&self, device: &mut dyn Device) -> Result<Claims, SessionError> {
        let mut log_entries = 0_u64;
        device.read(self.claims.address, bytemuck::bytes_of_mut(&mut log_entries))?;
        Ok(Claims { log_entries, ..Claims::default() })
    }

    /// What launches that are prepared from now on change.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            launches: self.logged.len(),
            reserved_entries: self.reserved_entries,
            accounts_used: self.accounts_used,
            streams: self.streams,
            logs_end: self.logs_end,
            is_exclusive: self.is_exclusive,
        }
    }

    /// Passes over what the launches since then have logged: they failed.
    pub(super) fn pass_over(&mut self, mark: &Mark) {
        self.logged.truncate(mark.launches);
        (self.accounts_used, self.streams) = (mark.accounts_used, mark.streams);
    }

    /// Takes back the launches since then, which have not begun.
    pub(super) fn take_back(&mut self, mark: &Mark) {
        self.pass_over(mark);
        let Mark { reserved_entries, logs_end, is_exclusive, .. } = *mark;
        (self.reserved_entries, self.logs_end, self.is_exclusive) =
            (reserved_entries, logs_end, is_exclusive);
    }

    /// Whether the pool should be drained now: there is enough for it to be worth a drain, and it is written
    /// while the program goes on.
    pub(super) fn should_drain(&self) -> bool {
        let is_full = |taken: u64, end: u32| 4 * taken >= 3 * u64::from(end);
        match self.overlap {
            0 => is_full(self.taken_entries(), self.logs_end),
            end => {
                let claims = self.logs_end.saturating_sub(end);
                is_full(self.reserved_entries.into(), end) || is_full(self.claimed_entries, claims)
            }
        }
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
        self.is_exclusive = false;
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
        let was_exclusive = self.is_exclusive;
        self.is_exclusive |= self.logged.is_empty() && self.is_large(streams);
        let first_entries = self.first_entries(streams);
        let (from, end) = self.places(streams);
        let fixed = Fixed::place(from, streams, first_entries);
        let logs_end = self.division.logs_end(streams);
        let account_bytes = self.account_bytes(info);
        let has_place = fixed.end <= end && self.logged.len() < self.division.launches();
        if !has_place || self.accounts_used + account_bytes > self.accounts.bytes {
            self.is_exclusive = was_exclusive;
            let Division { limit, chunk_bytes, min_first_entries, .. } = self.division;
            let needed = Division::least(streams, chunk_bytes, min_first_entries);
            return Err(SessionError::Memory { streams, needed, limit });
        }
        // All below `logs_end`.
        let (heads, first_segments) = (fixed.heads as u32, fixed.first_segments as u32);
        self.reserved_entries = if self.overlap == 0 || self.is_exclusive {
            (fixed.end - self.claimed_entries) as u32
        } else {
            fixed.end as u32
        };
        self.logs_end = self.logs_end.max(logs_end);
        let claims_from = self.claims_from() as u32;
        let ring = u32::from(self.ring);
        let segment_entries = if self.ring {
            first_entries / 2
        } else {
            Self::segment_entries(
                streams,
                u64::from(logs_end).saturating_sub(fixed.end.max(self.taken_entries())),
            )
        };
        let accounts = self.accounts.address + self.accounts_used;
        let first_stream = self.streams;
        self.accounts_used += account_bytes;
        self.streams += streams as u32;
        self.logged.push(LoggedLaunch {
            accounts,
            heads,
            first_entries,
            segment_entries,
            warps,
            block_threads: chosen.block_threads(info.threads_per_block()),
            launch: info.number(),
            first_stream,
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
            claims_from,
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
