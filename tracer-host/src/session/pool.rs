//! The session's device memory: chunks, accounts, and work memory for the encoders.

use warptrace_format::chunk::{MAX_CHUNK_BYTES, MIN_CHUNK_BYTES};
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::LaunchInfo;
use warptrace_format::pool::{PoolDescriptor, WarpAccount};

use super::{SessionError, SessionOptions};
use crate::{Allocation, Device, Placement};

/// Device memory of a session. Grows with the launches that need more, never shrinks.
pub(super) struct Pool {
    pub(super) chunks: Allocation,
    pub(super) chunk_bytes: u32,
    pub(super) chunk_count: u32,
    /// The counter of claimed chunks.
    pub(super) next_chunk: Allocation,
    pub(super) accounts: Option<Allocation>,
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
    if !chunk.is_power_of_two() || !(MIN_CHUNK_BYTES..=MAX_CHUNK_BYTES).contains(&chunk) {
        return Err(SessionError::Pool {
            problem: format!(
                "chunks of {chunk} bytes: the size is a power of two from {MIN_CHUNK_BYTES} to {MAX_CHUNK_BYTES}"
            ),
        });
    }
    let count = options.pool_bytes / u64::from(chunk);
    match u32::try_from(count) {
        // Failed claims count on from the pool's size, one a warp: leave them room.
        Ok(count @ 1..=0x7fff_ffff) => Ok(count),
        _ => Err(SessionError::Pool {
            problem: format!(
                "a pool of {} bytes holds {count} chunks of {chunk} bytes: it must hold 1 to 2^31 - 1",
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
    ) -> Result<Self, SessionError> {
        let chunk_bytes = options.chunk_bytes;
        let work_bytes = match (options.codec, options.placement) {
            (CodecSpec::Raw, _) | (_, Placement::Shared) => 0,
            (codec, Placement::Global) => codec.work_bytes(),
        };
        Ok(Self {
            chunks: device.allocate(u64::from(chunk_count) * u64::from(chunk_bytes))?,
            chunk_bytes,
            chunk_count,
            next_chunk: device.allocate(size_of::<u32>() as u64)?,
            accounts: None,
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

    /// Makes the pool ready for a launch with at most `resident` warps on the device at once.
    pub(super) fn prepare(
        &mut self,
        device: &mut dyn Device,
        info: &LaunchInfo,
        resident: u32,
    ) -> Result<PoolDescriptor, SessionError> {
        let warps = info.warps();
        let account_bytes = u64::from(self.tracks) * u64::from(warps) * size_of::<WarpAccount>() as u64;
        let accounts = grow(device, &mut self.accounts, account_bytes)?;
        device.fill(accounts.address, account_bytes, 0)?;
        device.fill(self.next_chunk.address, self.next_chunk.bytes, 0)?;
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
        Ok(PoolDescriptor {
            chunks: self.chunks.address,
            next_chunk: self.next_chunk.address,
            accounts: accounts.address,
            work: self.work.map_or(0, |(tables, _)| tables.address),
            work_slots: self.work.map_or(0, |(_, bitmap)| bitmap.address),
            work_slot_count: self.work_slots,
            chunk_count: self.chunk_count,
            chunk_bytes: self.chunk_bytes,
            warps,
            launch: info.number(),
            enabled: 1,
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

fn grow(
    device: &mut dyn Device,
    allocation: &mut Option<Allocation>,
    bytes: u64,
) -> Result<Allocation, SessionError> {
    if let Some(enough) = allocation.filter(|found| found.bytes >= bytes) {
        return Ok(enough);
    }
    if let Some(small) = allocation.take() {
        device.free(small)?;
    }
    Ok(*allocation.insert(device.allocate(bytes)?))
}
