//! The session's device memory: chunks, logs and accounts.

use warptrace_device::{SLICE_UNITS, warp_state_bytes};
use warptrace_format::chunk::{MAX_CHUNK_BYTES, MIN_CHUNK_BYTES};
use warptrace_format::file::LaunchInfo;
use warptrace_format::pool::{Claims, LOG_UNIT_BYTES, LeftLaunch, PoolDescriptor, WarpAccount};

use super::worker::Account;
use super::{SessionError, SessionOptions};
use crate::{Allocation, Device, Placement};

/// Accounts are kept in a block of at least so many bytes: 524,288 of them.
const LEAST_ACCOUNT_BYTES: u64 = 16 << 20;
/// The warps' states are kept in a block of at least so many bytes.
const LEAST_STATE_BYTES: u64 = 8 << 20;
/// The table of launches has at least so many bytes: 1,024 launches.
const LEAST_TABLE_BYTES: u64 = 32 << 10;
/// Least log memory: a small pool is no reason for short logs.
const LEAST_LOG_BYTES: u64 = 16 << 20;
/// Most to which log memory grows for slices that need not be so large.
const MOST_COMFORT_BYTES: u64 = 4 << 30;
/// Which part of what kernels have of log memory the slices of one launch may take if they are to be roomy.
const SHARE_OF_ROOMY_SLICES: u32 = 4;
/// Most log memory: what 31 bits of a unit's number can say.
const MOST_LOG_BYTES: u64 = (i32::MAX as u64) * LOG_UNIT_BYTES as u64;
/// Units of log memory that are nobody's: unit 0 stands for none.
const FIRST_UNITS: u32 = 16;

/// Device memory of a session: chunks, logs and accounts of the launches since the last drain. Logs and accounts grow with the launches that
/// need more, and never shrink.
pub(super) struct Pool {
    pub(super) chunks: Allocation,
    pub(super) chunk_bytes: u32,
    pub(super) chunk_count: u32,
    /// The counters of claims.
    claims: Allocation,
    /// Log memory. Kernels have half of it; the other half is for what is merged out of it.
    logs: Allocation,
    /// Units that were claimed up to the last launch.
    claimed_units: u32,
    /// Units that were reserved, for slices.
    reserved_units: u32,
    /// Most units that a launch of each kernel has claimed.
    most_claimed: Vec<u32>,
    /// All zero behind `accounts_used`.
    accounts: Option<Allocation>,
    accounts_used: u64,
    /// Bytes of a warp's state in global memory; 0 if states are in shared memory.
    state_bytes: u32,
    /// The states of one launch, which those of the next write over.
    pub(super) states: Option<Allocation>,
    tracks: u32,
    /// Launches since the last drain, and where the encoder finds them.
    left: Vec<LeftLaunch>,
    table: Option<Allocation>,
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

/// Log memory of so many bytes, zero or not.
fn allocate_logs(device: &mut dyn Device, bytes: u64) -> Result<Allocation, SessionError> {
    let logs = device.allocate(bytes)?;
    // A cursor whose high word is 0 says that nothing is recorded.
    if logs.address >> 32 == 0 {
        device.free(logs)?;
        return Err(SessionError::Pool {
            problem: format!("log memory lies at {:#x}, but must lie above the first 4 GiB", logs.address),
        });
    }
    Ok(logs)
}

impl Pool {
    pub(super) fn new(
        device: &mut dyn Device,
        options: &SessionOptions,
        chunk_count: u32,
        kernels: usize,
    ) -> Result<Self, SessionError> {
        let chunk_bytes = options.chunk_bytes;
        // Beside raw each event is a run of its own, of 16 bytes in the log and as many when it is merged, and then takes 5 in a chunk.
        let times = if options.dual { 8 } else { 4 };
        let claims = device.allocate(size_of::<Claims>() as u64)?;
        device.fill(claims.address, claims.bytes, 0)?;
        // What most programs need is there before the first launch, which then does not wait for it.
        let accounts = device.allocate(LEAST_ACCOUNT_BYTES)?;
        device.fill(accounts.address, accounts.bytes, 0)?;
        let state_bytes = match options.placement {
            Placement::Shared => 0,
            Placement::Global => warp_state_bytes(options.dual, options.counted),
        };
        let states = if state_bytes == 0 { None } else { Some(device.allocate(LEAST_STATE_BYTES)?) };
        Ok(Self {
            chunks: device.allocate(u64::from(chunk_count) * u64::from(chunk_bytes))?,
            chunk_bytes,
            chunk_count,
            claims,
            logs: allocate_logs(device, (times * options.pool_bytes).clamp(LEAST_LOG_BYTES, MOST_LOG_BYTES))?,
            claimed_units: 0,
            reserved_units: FIRST_UNITS,
            most_claimed: vec![0; kernels],
            accounts: Some(accounts),
            accounts_used: 0,
            state_bytes,
            states,
            tracks: if options.dual { 2 } else { 1 },
            left: Vec::new(),
            table: Some(device.allocate(LEAST_TABLE_BYTES)?),
            streams: 0,
            chunks_per_stream: 2,
        })
    }

    fn account_bytes(&self, info: &LaunchInfo) -> u64 {
        self.streams_of(info) * size_of::<WarpAccount>() as u64
    }

    fn streams_of(&self, info: &LaunchInfo) -> u64 {
        u64::from(self.tracks) * u64::from(info.warps())
    }

    /// Units of log memory that kernels may have.
    fn log_units(&self) -> u32 {
        // The number of a unit is a `u32`, as `MOST_LOG_BYTES` says.
        (self.logs.bytes / 2 / u64::from(LOG_UNIT_BYTES)) as u32
    }

    /// Units that are taken.
    fn taken_units(&self) -> u32 {
        self.reserved_units.saturating_add(self.claimed_units)
    }

    /// Units of a slice of a launch with so many streams, if there is room for them: of the large ones the largest that take a small part of log memory.
    fn wanted_slice_units(&self, streams: u64) -> u32 {
        let most = u64::from(self.log_units() / SHARE_OF_ROOMY_SLICES);
        let [roomy @ .., large, _] = SLICE_UNITS;
        roomy.into_iter().find(|&units| streams * u64::from(units) <= most).unwrap_or(large)
    }

    /// Units of a slice of a launch with so many streams: as many as can be, so that logs need fewer areas.
    fn slice_units(&self, streams: u64) -> u32 {
        let [.., large, small] = SLICE_UNITS;
        let left = u64::from(self.log_units().saturating_sub(self.taken_units()));
        let choices = [self.wanted_slice_units(streams), large];
        choices.into_iter().find(|&units| streams * u64::from(units) <= left).unwrap_or(small)
    }

    /// Whether a launch should find room behind those before it. (How much a launch needs is known only afterwards; launches of the same
    /// kernel are taken to need up to twice as much as one before.)
    pub(super) fn has_room(&self, info: &LaunchInfo) -> bool {
        let most = self.most_claimed.get(info.kernel() as usize).copied().unwrap_or(0);
        let streams = self.streams_of(info);
        let slices = streams * u64::from(self.wanted_slice_units(streams));
        let units =
            u64::from(self.taken_units()) + slices + 2 * u64::from(most) <= u64::from(self.log_units());
        let chunks = (u64::from(self.streams) + streams) * u64::from(self.chunks_per_stream);
        let chunks = chunks <= u64::from(self.chunk_count);
        let accounts = self
            .accounts
            .is_some_and(|accounts| self.accounts_used + self.account_bytes(info) <= accounts.bytes);
        units && chunks && accounts
    }

    /// Takes note of a launch that left the counters of claims so.
    pub(super) fn launched(&mut self, info: &LaunchInfo, claims: Claims) {
        if let Some(most) = self.most_claimed.get_mut(info.kernel() as usize) {
            *most = (*most).max(claims.log_units.saturating_sub(self.claimed_units));
        }
        self.claimed_units = claims.log_units;
        self.accounts_used += self.account_bytes(info);
        self.streams += self.streams_of(info) as u32;
    }

    /// Takes note of a launch that failed: what it has left is passed over.
    pub(super) fn failed(&mut self) {
        self.left.pop();
    }

    /// Whether the pool should be drained now: there is enough for it to be worth a drain, and it is written while the program goes on.
    pub(super) fn should_drain(&self) -> bool {
        let chunks = u64::from(self.streams) * u64::from(self.chunks_per_stream);
        4 * u64::from(self.taken_units()) >= 3 * u64::from(self.log_units())
            || 4 * chunks >= 3 * u64::from(self.chunk_count)
    }

    /// What those who merge and encode the logs that warps have left need to know: nothing of a launch. And the launches: the address of their
    /// table, how many they are, and the streams that they have together.
    pub(super) fn left(
        &mut self,
        device: &mut dyn Device,
    ) -> Result<(PoolDescriptor, u64, u32, u32), SessionError> {
        let bytes: Vec<u8> = self.left.iter().flat_map(left_bytes).collect();
        let table = match self.table {
            Some(table) if table.bytes >= bytes.len() as u64 => table,
            small => {
                if let Some(small) = small {
                    device.free(small)?;
                }
                self.table = None;
                *self.table.insert(device.allocate((2 * bytes.len() as u64).max(LEAST_TABLE_BYTES))?)
            }
        };
        device.write(table.address, &bytes)?;
        let pool = PoolDescriptor {
            chunks: self.chunks.address,
            claims: self.claims.address,
            logs: self.logs.address,
            chunk_count: self.chunk_count,
            chunk_bytes: self.chunk_bytes,
            log_units: 2 * self.log_units(),
            log_reserved: self.log_units(),
            ..PoolDescriptor::default()
        };
        Ok((pool, table.address, self.left.len() as u32, self.streams))
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
        (self.claimed_units, self.reserved_units) = (0, FIRST_UNITS);
        (self.accounts_used, self.streams) = (0, 0);
        self.left.clear();
        Ok(())
    }

    /// Launches since the last drain.
    fn pending(&self) -> usize {
        self.left.len()
    }

    /// Makes log memory so large that so many slices fit, and half of it is left for what is merged and as much again for what they cannot hold:
    /// large ones, if that is not too much.
    fn grow_logs(&mut self, device: &mut dyn Device, streams: u64) -> Result<(), SessionError> {
        let needed = |slice: u32| {
            (u64::from(FIRST_UNITS) + streams * u64::from(slice)) * 2 * u64::from(LOG_UNIT_BYTES) * 5 / 4
        };
        let [.., large, small] = SLICE_UNITS.map(needed);
        if large <= MOST_COMFORT_BYTES {
            if large <= self.logs.bytes {
                return Ok(());
            }
            // If the device has not so much, small ones will do.
            if let Ok(logs) = allocate_logs(device, large) {
                device.free(std::mem::replace(&mut self.logs, logs))?;
                return Ok(());
            }
        }
        if small <= self.logs.bytes {
            return Ok(());
        }
        if small > MOST_LOG_BYTES {
            return Err(SessionError::Pool {
                problem: format!(
                    "a launch of {streams} warps and tracks needs {small} bytes of log memory, of which there can be {MOST_LOG_BYTES}: launch smaller grids"
                ),
            });
        }
        let logs = allocate_logs(device, small)?;
        device.free(std::mem::replace(&mut self.logs, logs))?;
        Ok(())
    }

    /// Address of memory for the states of so many warps, with any content; 0 if they are in shared memory.
    fn states(&mut self, device: &mut dyn Device, warps: u32) -> Result<u64, SessionError> {
        let bytes = u64::from(self.state_bytes) * u64::from(warps);
        if bytes == 0 {
            return Ok(0);
        }
        if self.states.is_none_or(|states| states.bytes < bytes) {
            if let Some(small) = self.states.take() {
                device.free(small)?;
            }
            self.states = Some(device.allocate(bytes.max(LEAST_STATE_BYTES))?);
        }
        Ok(self.states.map_or(0, |states| states.address))
    }

    /// Makes the pool ready for a launch. Unless it [has room](Self::has_room), it has been drained.
    pub(super) fn prepare(
        &mut self,
        device: &mut dyn Device,
        info: &LaunchInfo,
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
        let states = self.states(device, warps)?;
        let streams = self.streams_of(info);
        if self.pending() == 0 {
            self.grow_logs(device, streams)?;
        }
        let slice_units = self.slice_units(streams);
        let slices = streams * u64::from(slice_units);
        let first = self.taken_units();
        // Both are below `log_units`.
        self.reserved_units += slices as u32;
        self.left.push(LeftLaunch {
            accounts,
            slices: first,
            slice_units,
            warps,
            launch: info.number(),
            first_stream: self.streams,
            tracks: self.tracks,
        });
        Ok(PoolDescriptor {
            chunks: self.chunks.address,
            claims: self.claims.address,
            accounts,
            logs: self.logs.address,
            chunk_count: self.chunk_count,
            chunk_bytes: self.chunk_bytes,
            warps,
            launch: info.number(),
            enabled: 1,
            log_units: self.log_units(),
            log_reserved: self.reserved_units,
            slices: first,
            slice_units,
            unused: 0,
            states,
        })
    }

    /// Gives the memory back.
    pub(super) fn free(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        device.free(self.chunks)?;
        device.free(self.claims)?;
        device.free(self.logs)?;
        for allocation in [self.accounts.take(), self.states.take(), self.table.take()].into_iter().flatten()
        {
            device.free(allocation)?;
        }
        Ok(())
    }
}

/// A launch as it stands in the table.
fn left_bytes(launch: &LeftLaunch) -> [u8; size_of::<LeftLaunch>()] {
    let mut bytes = [0; size_of::<LeftLaunch>()];
    let LeftLaunch { accounts, slices, slice_units, warps, launch, first_stream, tracks } = *launch;
    let (words, _) = bytes[8..].as_chunks_mut();
    for (word, value) in words.iter_mut().zip([slices, slice_units, warps, launch, first_stream, tracks]) {
        *word = value.to_le_bytes();
    }
    bytes[..8].copy_from_slice(&accounts.to_le_bytes());
    bytes
}
