//! The session's device memory: chunks, logs and accounts.

mod room;

use warptrace_format::file::LaunchInfo;
use warptrace_format::log::{ENTRY_BYTES, LOG_ALIGNMENT, LoggedLaunch, RESERVED_ENTRIES};
use warptrace_format::pool::{Claims, PoolDescriptor, WarpAccount};

pub(super) use self::room::Room;
use super::memory::{Division, Memory};
use super::worker::Account;
use super::{MemoryUse, SessionError};
use crate::{Allocation, Device, Encoded};

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
    /// Where the reserve begins: heads and first segments of launches that are begun while others run, and
    /// claim. 0 if each launch has ended before the next one begins, or nothing is claimed.
    reserve: u32,
    /// The first entry of the reserve that is free.
    reserve_next: u32,
    /// Whether the launch in the pool took the reserve, too, as one does that is too large for the rest.
    is_exclusive: bool,
    /// Launches since the last drain, and the index of the entry after the last one that their logs may take.
    logged: Vec<LoggedLaunch>,
    logs_end: u32,
    streams: u32,
    /// Bytes that held something, at most at once.
    filled: u64,
}

/// What launches that are being prepared change of a pool, as it was before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    launches: usize,
    reserved_entries: u32,
    reserve_next: u32,
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
            reserve: if overlap && !ring { division.reserve() } else { 0 },
            reserve_next: 0,
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
        u64::from(self.reserved_entries) + self.claimed_entries
    }

    /// Takes note of launches of these kernels that have ended since the last call, after which the counters
    /// of claims are so.
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
            reserve_next: self.reserve_next,
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
        let Mark { reserved_entries, reserve_next, logs_end, is_exclusive, .. } = *mark;
        (self.reserved_entries, self.reserve_next) = (reserved_entries, reserve_next);
        (self.logs_end, self.is_exclusive) = (logs_end, is_exclusive);
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
            merged_from: self.merged_from(),
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
        (self.reserve_next, self.is_exclusive) = (0, false);
        self.logged.clear();
        Ok(())
    }

    /// Gives the memory back.
    pub(super) fn free(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        for part in [self.claims, self.table, self.scratch, self.accounts, self.chunks, self.logs] {
            self.memory.free(device, part)?;
        }
        Ok(())
    }
}
