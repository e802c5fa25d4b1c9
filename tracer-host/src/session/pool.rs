//! The session's device memory: chunks, logs and accounts.

use warptrace_format::chunk::{MAX_CHUNK_BYTES, MIN_CHUNK_BYTES};
use warptrace_format::file::LaunchInfo;
use warptrace_format::log::{
    ENTRY_BYTES, Fixed, LANES, LOG_ALIGNMENT, LaunchLogs, LoggedLaunch, MAX_FIRST_ENTRIES,
    MAX_SEGMENT_ENTRIES, RESERVED_ENTRIES, SEGMENT_MULTIPLE,
};
use warptrace_format::pool::{Claims, PoolDescriptor, WarpAccount};

use super::worker::Account;
use super::{SessionError, SessionOptions};
use crate::{Allocation, Device};

/// Accounts are kept in a block of at least so many bytes: 524,288 of them.
const MIN_ACCOUNT_BYTES: u64 = 16 << 20;
/// Minimum of log memory: a small pool is no reason for short logs.
const MIN_LOG_BYTES: u64 = 16 << 20;
/// Maximum to which log memory grows for first segments that need not be so long.
const MAX_ROOMY_LOG_BYTES: u64 = 4 << 30;
/// Entries of first segments for which log memory grows, if that is not too much.
const ROOMY_FIRST_ENTRIES: u32 = 16;
/// Part of log memory that a launch's first segments take at most: they are as long as fits into that. Long ones get less, for
/// all of them counts as taken, whatever is written: a program of many small launches would be drained after a few of them.
const FIRST_SHARE: u64 = 4;
const LONG_FIRST_SHARE: u64 = 64;
/// Entries of a first segment from which on it is long.
const LONG_FIRST_ENTRIES: u32 = 64;
/// Each lane may leave this part of its share of log memory unused, in its last segment.
const SEGMENT_SHARE: u64 = 4;
/// Maximum of log memory: what the index of an entry can say.
const MAX_LOG_BYTES: u64 = u32::MAX as u64 * ENTRY_BYTES as u64;

/// Device memory of a session: chunks, logs and accounts of the launches since the last drain. Logs and accounts grow with the
/// launches that need more, and never shrink.
pub(super) struct Pool {
    pub(super) chunks: Allocation,
    pub(super) chunk_bytes: u32,
    pub(super) chunk_count: u32,
    /// The counters of claims.
    claims: Allocation,
    /// Log memory, and what its alignment takes. Kernels have half of it; the other half is for the runs that are merged out of it.
    logs: Allocation,
    /// Entries that were claimed up to the last launch.
    claimed_entries: u64,
    /// Entries that were reserved, for heads and first segments.
    reserved_entries: u32,
    /// The largest number of entries that a launch of each kernel has claimed.
    max_claimed: Vec<u64>,
    /// All zero behind `accounts_used`.
    accounts: Option<Allocation>,
    accounts_used: u64,
    tracks: u32,
    /// Launches since the last drain.
    logged: Vec<LoggedLaunch>,
    streams: u32,
    /// Chunks that a stream is taken to need.
    chunks_per_stream: u32,
}

/// Chunks that the options ask for.
pub(super) fn chunk_count(options: &SessionOptions) -> Result<u32, SessionError> {
    let chunk = options.chunk_bytes;
    if !chunk.is_power_of_two() || !(MIN_CHUNK_BYTES..=MAX_CHUNK_BYTES).contains(&chunk) {
        return Err(SessionError::Pool {
            problem: format!(
                "chunks of {chunk} bytes: the size is a power of two from {MIN_CHUNK_BYTES} to {MAX_CHUNK_BYTES}"
            ),
        });
    }
    let count = options.pool_bytes / u64::from(chunk);
    match u32::try_from(count) {
        Ok(count @ 1..) => Ok(count),
        _ => Err(SessionError::Pool {
            problem: format!(
                "a pool of {} bytes holds {count} chunks of {chunk} bytes: it must hold 1 to 4,294,967,295",
                options.pool_bytes
            ),
        }),
    }
}

impl Pool {
    pub(super) fn new(
        device: &mut dyn Device,
        options: &SessionOptions,
        chunk_count: u32,
        kernels: usize,
    ) -> Result<Self, SessionError> {
        let chunk_bytes = options.chunk_bytes;
        // Beside a twin each event is an entry of its own, of 16 bytes in the log and as many when it is merged.
        let times = if options.dual { 8 } else { 4 };
        let claims = device.allocate(size_of::<Claims>() as u64)?;
        device.fill(claims.address, claims.bytes, 0)?;
        // What most programs need is there before the first launch, which then does not wait for it.
        let accounts = device.allocate(MIN_ACCOUNT_BYTES)?;
        device.fill(accounts.address, accounts.bytes, 0)?;
        Ok(Self {
            chunks: device.allocate(u64::from(chunk_count) * u64::from(chunk_bytes))?,
            chunk_bytes,
            chunk_count,
            claims,
            logs: device
                .allocate((times * options.pool_bytes).clamp(MIN_LOG_BYTES, MAX_LOG_BYTES) + LOG_ALIGNMENT)?,
            claimed_entries: 0,
            reserved_entries: RESERVED_ENTRIES,
            max_claimed: vec![0; kernels],
            accounts: Some(accounts),
            accounts_used: 0,
            tracks: if options.dual { 2 } else { 1 },
            logged: Vec::new(),
            streams: 0,
            chunks_per_stream: 2,
        })
    }

    fn account_bytes(&self, info: &LaunchInfo) -> u64 {
        self.streams_of(info) * size_of::<WarpAccount>() as u64
    }

    fn streams_of(&self, info: &LaunchInfo) -> u64 {
        u64::from(self.tracks) * u64::from(info.chosen().count())
    }

    /// Entries of log memory that kernels may have.
    fn log_entries(&self) -> u32 {
        // The index of an entry is a `u32`, as `MAX_LOG_BYTES` says.
        ((self.logs.bytes - LOG_ALIGNMENT) / 2 / u64::from(ENTRY_BYTES)) as u32 / MAX_SEGMENT_ENTRIES
            * MAX_SEGMENT_ENTRIES
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
        let fits = |first: u32| {
            let share = if first < LONG_FIRST_ENTRIES { FIRST_SHARE } else { LONG_FIRST_SHARE };
            streams * u64::from(LANES * first) <= u64::from(self.log_entries()) / share
        };
        longest_first_entries(fits)
    }

    /// The same with what is free now.
    fn first_entries(&self, streams: u64) -> u32 {
        let (wanted, taken) = (self.wanted_first_entries(streams), self.taken_entries());
        longest_first_entries(|first| {
            first <= wanted && Fixed::place(taken, streams, first).end <= u64::from(self.log_entries())
        })
    }

    /// Entries of the other segments, where so many are free for a launch with so many streams.
    fn segment_entries(streams: u64, free: u64) -> u32 {
        let share = free / (streams * u64::from(LANES)).max(1) / SEGMENT_SHARE;
        let entries = share.clamp(u64::from(SEGMENT_MULTIPLE), u64::from(MAX_SEGMENT_ENTRIES)) as u32;
        // The largest power of two of at most so many.
        1 << entries.ilog2()
    }

    /// Whether a launch should find room behind those before it. (How much a launch needs is known only afterwards; launches of the
    /// same kernel are taken to need up to twice as much as one before.)
    pub(super) fn has_room(&self, info: &LaunchInfo) -> bool {
        let most = self.max_claimed.get(info.kernel() as usize).copied().unwrap_or(0);
        let streams = self.streams_of(info);
        let first = self.wanted_first_entries(streams);
        let fixed = Fixed::place(self.taken_entries(), streams, first);
        let entries = fixed.end + 2 * most <= u64::from(self.log_entries());
        let chunks = (u64::from(self.streams) + streams) * u64::from(self.chunks_per_stream);
        let chunks = chunks <= u64::from(self.chunk_count);
        let accounts = self
            .accounts
            .is_some_and(|accounts| self.accounts_used + self.account_bytes(info) <= accounts.bytes);
        entries && chunks && accounts
    }

    /// Takes note of a launch that left the counters of claims so.
    pub(super) fn launched(&mut self, info: &LaunchInfo, claims: Claims) {
        if let Some(most) = self.max_claimed.get_mut(info.kernel() as usize) {
            *most = (*most).max(claims.log_entries.saturating_sub(self.claimed_entries));
        }
        self.claimed_entries = claims.log_entries;
        self.accounts_used += self.account_bytes(info);
        self.streams += self.streams_of(info) as u32;
    }

    /// Takes note of a launch that failed: what it has logged is passed over.
    pub(super) fn failed(&mut self) {
        self.logged.pop();
    }

    /// Whether the pool should be drained now: there is enough for it to be worth a drain, and it is written while the program
    /// goes on.
    pub(super) fn should_drain(&self) -> bool {
        let chunks = u64::from(self.streams) * u64::from(self.chunks_per_stream);
        4 * self.taken_entries() >= 3 * u64::from(self.log_entries())
            || 4 * chunks >= 3 * u64::from(self.chunk_count)
    }

    /// What merging and encoding need: the pool, and the launches that have left logs.
    pub(super) fn logged(&self) -> (PoolDescriptor, &[LoggedLaunch]) {
        let pool = PoolDescriptor {
            chunks: self.chunks.address,
            claims: self.claims.address,
            logs: self.log_address(),
            chunk_count: self.chunk_count,
            chunk_bytes: self.chunk_bytes,
            merged_from: self.log_entries(),
            merged_end: 2 * self.log_entries(),
        };
        (pool, &self.logged)
    }

    /// Takes note of how many chunks were claimed for the streams since the last drain: others may need as many and one.
    pub(super) fn encoded(&mut self, chunks: u32) {
        let each = chunks.div_ceil(self.streams.max(1)).saturating_add(1);
        self.chunks_per_stream = self.chunks_per_stream.max(each);
    }

    /// Reads the accounts of all launches since the last drain, and nothing else.
    pub(super) fn read_accounts(
        &self,
        device: &mut dyn Device,
        to: &mut Vec<Account>,
    ) -> Result<(), SessionError> {
        // What is there already need not be set: all of it is read.
        to.resize(self.accounts_used as usize / size_of::<Account>(), Account::default());
        if let Some(accounts) = self.accounts {
            device.read(accounts.address, bytemuck::cast_slice_mut(to))?;
        }
        Ok(())
    }

    /// Makes the pool empty.
    pub(super) fn reset(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        device.fill(self.claims.address, self.claims.bytes, 0)?;
        if let Some(accounts) = self.accounts {
            device.fill(accounts.address, self.accounts_used, 0)?;
        }
        (self.claimed_entries, self.reserved_entries) = (0, RESERVED_ENTRIES);
        (self.accounts_used, self.streams) = (0, 0);
        self.logged.clear();
        Ok(())
    }

    /// Makes log memory so large that heads and first segments of so many streams fit, and half of it is left for what is merged and
    /// as much again for what they cannot hold: roomy ones, if that is not too much.
    fn grow_logs(&mut self, device: &mut dyn Device, streams: u64) -> Result<(), SessionError> {
        let needed = |first: u32| {
            let entries = Fixed::place(RESERVED_ENTRIES.into(), streams, first).end;
            LOG_ALIGNMENT + entries * 2 * u64::from(ENTRY_BYTES) * 5 / 4
        };
        let [roomy, small] = [ROOMY_FIRST_ENTRIES, SEGMENT_MULTIPLE].map(needed);
        if roomy <= MAX_ROOMY_LOG_BYTES {
            if roomy <= self.logs.bytes {
                return Ok(());
            }
            // If the device has not so much, small ones will do.
            if let Ok(logs) = device.allocate(roomy) {
                device.free(std::mem::replace(&mut self.logs, logs))?;
                return Ok(());
            }
        }
        if small <= self.logs.bytes {
            return Ok(());
        }
        if small > MAX_LOG_BYTES {
            return Err(SessionError::Pool {
                problem: format!(
                    "a launch of {streams} warps and tracks needs {small} bytes of log memory, of which there can be {MAX_LOG_BYTES}: launch smaller grids"
                ),
            });
        }
        let logs = device.allocate(small)?;
        device.free(std::mem::replace(&mut self.logs, logs))?;
        Ok(())
    }

    /// Makes the pool ready for a launch. Unless it [has room](Self::has_room), it has been drained.
    pub(super) fn prepare(
        &mut self,
        device: &mut dyn Device,
        info: &LaunchInfo,
    ) -> Result<LaunchLogs, SessionError> {
        // Warps that do not record have neither logs nor accounts.
        let chosen = info.chosen();
        let warps = chosen.count();
        let account_bytes = self.account_bytes(info);
        if self.accounts.is_none_or(|accounts| self.accounts_used + account_bytes > accounts.bytes) {
            if let Some(small) = self.accounts.take() {
                device.free(small)?;
            }
            let accounts = device.allocate(account_bytes.max(MIN_ACCOUNT_BYTES))?;
            self.accounts = Some(accounts);
            device.fill(accounts.address, accounts.bytes, 0)?;
        }
        let accounts = self.accounts.map_or(0, |accounts| accounts.address) + self.accounts_used;
        let streams = self.streams_of(info);
        if self.logged.is_empty() {
            self.grow_logs(device, streams)?;
        }
        let first_entries = self.first_entries(streams);
        let fixed = Fixed::place(self.taken_entries(), streams, first_entries);
        // All below `log_entries`: the launch has room, or log memory has grown for it.
        let (heads, first_segments) = (fixed.heads as u32, fixed.first_segments as u32);
        self.reserved_entries = (fixed.end - self.claimed_entries) as u32;
        let free = u64::from(self.log_entries()).saturating_sub(self.taken_entries());
        let segment_entries = Self::segment_entries(streams, free);
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
            reserved: 0,
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
            claims_end: self.log_entries(),
            launch: info.number(),
            first_segments,
            reserved: [0; 2],
            chosen,
            unused: 0,
        })
    }

    /// Gives the memory back.
    pub(super) fn free(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        device.free(self.chunks)?;
        device.free(self.claims)?;
        device.free(self.logs)?;
        if let Some(accounts) = self.accounts.take() {
            device.free(accounts)?;
        }
        Ok(())
    }
}

/// The longest first segments that fit; the shortest where none do.
fn longest_first_entries(fits: impl Fn(u32) -> bool) -> u32 {
    let mut entries = MAX_FIRST_ENTRIES;
    while entries > SEGMENT_MULTIPLE && !fits(entries) {
        entries /= 2;
    }
    entries
}
