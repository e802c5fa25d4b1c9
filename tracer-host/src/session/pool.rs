//! The session's device memory: chunks, accounts, and work memory for the encoders.

use warptrace_format::chunk::MAX_CHUNK_BYTES;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::LaunchInfo;
use warptrace_format::pool::{PoolDescriptor, WarpAccount};

use super::{SessionError, SessionOptions};
use crate::{Allocation, Device, Placement};

/// Accounts are kept in a block of at least so many bytes: 524,288 of them.
const LEAST_ACCOUNT_BYTES: u64 = 16 << 20;
/// Claimed chunks, in bytes of the pool, from which on it is drained: a launch as large as that is worth a drain of its own,
/// and its trace is written while the program goes on. Smaller launches share one.
const DRAIN_BYTES: u64 = 128 << 20;

/// Smallest chunks: a segment of a log has room for what all lanes of a warp bring at once.
const LEAST_CHUNK_BYTES: u32 = 1024;
/// Most chunks of a pool: a warp's log names those that it is made of by 24 bits.
const MOST_CHUNKS: u32 = (1 << 24) - 1;

/// Device memory of a session: chunks and accounts of the launches since the last drain. Grows with the launches that
/// need more, never shrinks.
pub(super) struct Pool {
    pub(super) chunks: Allocation,
    pub(super) chunk_bytes: u32,
    pub(super) chunk_count: u32,
    /// The counter of claims.
    next_chunk: Allocation,
    /// Chunks that were reserved or claimed up to the last launch.
    counter: u32,
    /// Those that were reserved.
    reserved: u32,
    /// Those that were reserved for the last launch.
    reserved_last: u32,
    /// Most chunks that a launch of each kernel has claimed.
    most_claimed: Vec<u32>,
    /// All zero behind `accounts_used`.
    accounts: Option<Allocation>,
    accounts_used: u64,
    tracks: u32,
    /// Bytes of tables a resident warp needs in global memory; 0 for none.
    work_bytes: u32,
    /// The tables and the bitmap of their slots.
    work: Option<(Allocation, Allocation)>,
    work_slots: u32,
}

/// Chunks that the options ask for.
pub(super) fn chunk_count(options: &SessionOptions) -> Result<u32, SessionError> {
    let chunk = options.chunk_bytes;
    if !chunk.is_power_of_two() || !(LEAST_CHUNK_BYTES..=MAX_CHUNK_BYTES).contains(&chunk) {
        return Err(SessionError::Pool {
            problem: format!(
                "chunks of {chunk} bytes: the size is a power of two from {LEAST_CHUNK_BYTES} to {MAX_CHUNK_BYTES}"
            ),
        });
    }
    let count = options.pool_bytes / u64::from(chunk);
    match u32::try_from(count) {
        Ok(count @ 1..=MOST_CHUNKS) => Ok(count),
        _ => Err(SessionError::Pool {
            problem: format!(
                "a pool of {} bytes holds {count} chunks of {chunk} bytes: it must hold 1 to {MOST_CHUNKS}",
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
        let work_bytes = match (options.codec, options.placement) {
            (CodecSpec::Raw, _) | (_, Placement::Shared) => 0,
            (codec, Placement::Global) => codec.work_bytes(),
        };
        let next_chunk = device.allocate(size_of::<u32>() as u64)?;
        device.fill(next_chunk.address, next_chunk.bytes, 0)?;
        Ok(Self {
            chunks: device.allocate(u64::from(chunk_count) * u64::from(chunk_bytes))?,
            chunk_bytes,
            chunk_count,
            next_chunk,
            counter: 0,
            reserved: 0,
            reserved_last: 0,
            most_claimed: vec![0; kernels],
            accounts: None,
            accounts_used: 0,
            tracks: if options.dual { 2 } else { 1 },
            // The simulator keeps all tables in its one kind of memory.
            work_bytes: if work_bytes == 0 && device.info().compute_capability.is_none() {
                options.codec.work_bytes()
            } else {
                work_bytes
            },
            work: None,
            work_slots: 0,
        })
    }

    fn account_bytes(&self, info: &LaunchInfo) -> u64 {
        u64::from(self.tracks) * u64::from(info.warps()) * size_of::<WarpAccount>() as u64
    }

    /// Whether a launch should find room behind those before it. (How many chunks a launch needs is known only
    /// afterwards; launches of the same kernel are taken to need up to twice as many as one before.)
    pub(super) fn has_room(&self, info: &LaunchInfo) -> bool {
        let most = self.most_claimed.get(info.kernel() as usize).copied().unwrap_or(0);
        // And a launch whose first chunks and logs can be reserved has to ask less.
        let needed = 2 * u64::from(most).max(u64::from(self.tracks) * u64::from(info.warps()));
        let chunks = u64::from(self.counter) + needed <= u64::from(self.chunk_count);
        let accounts = self
            .accounts
            .is_some_and(|accounts| self.accounts_used + self.account_bytes(info) <= accounts.bytes);
        chunks && accounts
    }

    /// Takes note of a launch that left the counter of claims at `claims`.
    pub(super) fn launched(&mut self, info: &LaunchInfo, claims: u32) {
        let counter = claims.saturating_add(self.reserved);
        if let Some(most) = self.most_claimed.get_mut(info.kernel() as usize) {
            *most = (*most).max(counter.saturating_sub(self.counter));
        }
        self.counter = counter;
        self.accounts_used += self.account_bytes(info);
    }

    /// Takes note of a launch that failed. What it has left in the pool is passed over: the chunks that were reserved for it may
    /// hold anything.
    pub(super) fn failed(&mut self) {
        self.reserved -= self.reserved_last;
    }

    /// Chunks that were claimed since the last drain.
    pub(super) fn claimed(&self) -> u32 {
        self.counter.min(self.chunk_count)
    }

    /// Whether the pool should be drained before another launch.
    pub(super) fn should_drain(&self) -> bool {
        let bytes = u64::from(self.chunk_bytes);
        u64::from(self.claimed()) * bytes >= (u64::from(self.chunk_count) * bytes / 4).min(DRAIN_BYTES)
    }

    /// What the encoder of the logs that warps have left needs to know: nothing of a launch.
    pub(super) fn descriptor(&self) -> PoolDescriptor {
        PoolDescriptor {
            chunks: self.chunks.address,
            next_chunk: self.next_chunk.address,
            chunk_count: self.chunk_count,
            chunk_bytes: self.chunk_bytes,
            reserved_count: self.reserved,
            ..PoolDescriptor::default()
        }
    }

    /// Takes note of an encoding that left the counter of claims at `claims`.
    pub(super) fn encoded(&mut self, claims: u32) {
        self.counter = claims.saturating_add(self.reserved);
    }

    /// The accounts of all launches since the last drain.
    pub(super) fn read_accounts(&self, device: &mut dyn Device) -> Result<Vec<u8>, SessionError> {
        let mut bytes = vec![0; usize::try_from(self.accounts_used).unwrap_or(0)];
        if let Some(accounts) = self.accounts {
            device.read(accounts.address, &mut bytes)?;
        }
        Ok(bytes)
    }

    /// Makes the pool empty.
    pub(super) fn reset(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        device.fill(self.next_chunk.address, self.next_chunk.bytes, 0)?;
        if let Some(accounts) = self.accounts {
            device.fill(accounts.address, self.accounts_used, 0)?;
        }
        (self.counter, self.accounts_used, self.reserved) = (0, 0, 0);
        Ok(())
    }

    /// Makes the pool ready for a launch with at most `resident` warps on the device at once. Unless it
    /// [has room](Self::has_room), it has been drained.
    pub(super) fn prepare(
        &mut self,
        device: &mut dyn Device,
        info: &LaunchInfo,
        resident: u32,
    ) -> Result<PoolDescriptor, SessionError> {
        let warps = info.warps();
        let account_bytes = self.account_bytes(info);
        if self.accounts.is_none_or(|accounts| self.accounts_used + account_bytes > accounts.bytes) {
            if let Some(small) = self.accounts.take() {
                device.free(small)?;
            }
            let accounts = device.allocate(account_bytes.max(LEAST_ACCOUNT_BYTES))?;
            self.accounts = Some(accounts);
            device.fill(accounts.address, accounts.bytes, 0)?;
        }
        let accounts = self.accounts.map_or(0, |accounts| accounts.address) + self.accounts_used;
        if self.work_bytes != 0 && self.work_slots < resident {
            let slots = resident.div_ceil(32) * 32;
            if let Some((tables, bitmap)) = self.work.take() {
                device.free(tables)?;
                device.free(bitmap)?;
            }
            let tables = device.allocate(u64::from(slots) * u64::from(self.work_bytes))?;
            let bitmap = device.allocate(u64::from(slots / 8))?;
            device.fill(tables.address, tables.bytes, 0)?;
            device.fill(bitmap.address, bitmap.bytes, 0)?;
            self.work = Some((tables, bitmap));
            self.work_slots = slots;
        }
        // For each stream its first chunk and its log's first segment, if the pool has so many. Those that are claimed follow.
        let streams = u64::from(self.tracks) * u64::from(warps);
        let reserves = u64::from(self.counter) + 2 * streams <= u64::from(self.chunk_count);
        // No more than the pool has, which is a `u32`.
        let streams = if reserves { streams as u32 } else { 0 };
        self.reserved_last = 2 * streams;
        self.reserved += self.reserved_last;
        Ok(PoolDescriptor {
            chunks: self.chunks.address,
            next_chunk: self.next_chunk.address,
            accounts,
            work: self.work.map_or(0, |(tables, _)| tables.address),
            work_slots: self.work.map_or(0, |(_, bitmap)| bitmap.address),
            work_slot_count: self.work_slots,
            chunk_count: self.chunk_count,
            chunk_bytes: self.chunk_bytes,
            warps,
            launch: info.number(),
            enabled: 1,
            reserved: if reserves { 1 + self.counter } else { 0 },
            reserved_count: self.reserved,
            logs: if reserves { 1 + self.counter + streams } else { 0 },
            unused: 0,
        })
    }

    /// Gives the memory back.
    pub(super) fn free(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        device.free(self.chunks)?;
        device.free(self.next_chunk)?;
        if let Some(accounts) = self.accounts.take() {
            device.free(accounts)?;
        }
        if let Some((tables, bitmap)) = self.work.take() {
            device.free(tables)?;
            device.free(bitmap)?;
        }
        Ok(())
    }
}
