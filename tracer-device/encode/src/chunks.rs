//! The pool's counters and chunks, and the accounts of warps.

use core::mem::offset_of;
use core::ptr::with_exposed_provenance_mut;

use warptrace_abi::pool::{Claims, PoolDescriptor};
use warptrace_device::atomic;
use warptrace_format::Memory;
use warptrace_format::account::WarpAccount;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;

use crate::memory::GlobalMemory;
use crate::warp::NEVER;

/// The encoder that a waiting stretch needs. A chunk's header holds this value in place of the length.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Waiting {
    RawSerial = u32::MAX,
    EclSerial = u32::MAX - 1,
    PredictSerial = u32::MAX - 2,
    /// Half a warp, with `predict`.
    PredictCooperative = u32::MAX - 3,
}

/// Reserves chunks and returns the index of the first. The indices may exceed the pool.
#[inline(always)]
pub(crate) fn claim_chunks(pool: &PoolDescriptor, count: u32) -> u32 {
    let counter = with_exposed_provenance_mut(pool.claims as usize + offset_of!(Claims, chunks));
    // SAFETY: `pool.claims` is the address of the pool's claims.
    unsafe { atomic::add_u32(counter, count) }
}

#[inline(always)]
pub(crate) fn are_used_up(pool: &PoolDescriptor) -> bool {
    let counter = with_exposed_provenance_mut::<u32>(pool.claims as usize + offset_of!(Claims, chunks));
    // SAFETY: `pool.claims` is the address of the pool's claims.
    unsafe { atomic::load_u32(counter) >= pool.chunk_count }
}

#[inline(always)]
pub(crate) fn count_waiting(pool: &PoolDescriptor) {
    let counter = with_exposed_provenance_mut(pool.claims as usize + offset_of!(Claims, waiting));
    // SAFETY: `pool.claims` is the address of the pool's claims.
    unsafe { atomic::add_u32(counter, 1) };
}

#[inline(always)]
pub(crate) fn count_serial(pool: &PoolDescriptor, count: u32) {
    let counter = with_exposed_provenance_mut(pool.claims as usize + offset_of!(Claims, serial));
    // SAFETY: `pool.claims` is the address of the pool's claims.
    unsafe { atomic::add_u32(counter, count) };
}

/// Reserves entries of log memory for merged runs. Returns the index of the first, or [`NEVER`] if too few
/// remain. Entries are wasted only if other threads reserve at the same time.
#[inline(always)]
pub(crate) fn claim_merged(pool: &PoolDescriptor, entries: u32) -> u32 {
    let counter = with_exposed_provenance_mut(pool.claims as usize + offset_of!(Claims, merged_entries));
    let there_are = u64::from(pool.merged_end.saturating_sub(pool.merged_from));
    let fits = |before: u64| before.saturating_add(u64::from(entries)) <= there_are;
    // SAFETY: `pool.claims` is the address of the pool's claims.
    unsafe {
        if !fits(atomic::load_u64(counter)) {
            return NEVER;
        }
        let before = atomic::add_u64(counter, u64::from(entries));
        if fits(before) { pool.merged_from + before as u32 } else { NEVER }
    }
}

#[inline(always)]
pub(crate) fn chunk(pool: &PoolDescriptor, index: u32) -> GlobalMemory {
    GlobalMemory::new(pool.chunks + u64::from(index) * u64::from(pool.chunk_bytes))
}

#[derive(Clone, Copy)]
pub(crate) struct ChunkName {
    pub(crate) warp: u32,
    pub(crate) launch: u32,
    pub(crate) track: u32,
}

/// Writes the header of an empty chunk. Returns its payload's address, or 0 if the pool has no such chunk.
#[inline(always)]
pub(crate) fn start_chunk(pool: &PoolDescriptor, index: u32, name: ChunkName, sequence: u32) -> u64 {
    if index >= pool.chunk_count {
        return 0;
    }
    let mut header = chunk(pool, index);
    // The host skips chunks of length 0.
    header.set128(0, [name.warp, sequence, 0, 0]);
    header.set128(16, [name.launch, name.track, 0, 0]);
    header.address() + u64::from(CHUNK_HEADER_BYTES)
}

/// Completes a chunk's header. `times`: number of times, plus `SPLIT` if a run is split, and bytes of padding
/// before them.
#[inline(always)]
pub(crate) fn close_chunk(payload: u64, events: u32, length: u32, times: [u32; 2]) {
    let mut header = GlobalMemory::new(payload - u64::from(CHUNK_HEADER_BYTES));
    header.set32(8, events);
    header.set32(12, length);
    header.set64(24, times);
}

#[inline(always)]
pub(crate) fn account_chunks(account: u64) -> u32 {
    let at = with_exposed_provenance_mut::<u32>(account as usize + offset_of!(WarpAccount, chunks));
    // SAFETY: `account` is the address of an account of a launch. The load is strong, because encoders have
    // added to the value with atomics.
    unsafe { atomic::load_u32(at) }
}

#[inline(always)]
pub(crate) fn account_recorded(account: u64) -> u64 {
    let at = with_exposed_provenance_mut::<u64>(account as usize + offset_of!(WarpAccount, recorded));
    // SAFETY: `account` is the address of an account of a launch.
    unsafe { atomic::load_u64(at) }
}

#[inline(always)]
pub(crate) fn is_finished(account: u64) -> bool {
    GlobalMemory::new(account).get32(offset_of!(WarpAccount, finished) as u32) != 0
}

#[inline(always)]
pub(crate) fn set_finished(account: u64, finished: bool) {
    GlobalMemory::new(account).set32(offset_of!(WarpAccount, finished) as u32, u32::from(finished));
}

/// Adds to a warp's attempted, recorded and lost events, and to its chunks. Concurrent calls are safe.
#[inline(always)]
pub(crate) fn add_to_account(account: u64, events: [u64; 3], chunks: u32) {
    let at = |offset: u64| with_exposed_provenance_mut::<u64>((account + offset) as usize);
    let mut number = 0;
    while number < 3 {
        if events[number] != 0 {
            // SAFETY: `account` is the address of an account of a launch.
            unsafe { atomic::add_u64(at(8 * number as u64), events[number]) };
        }
        number += 1;
    }
    if chunks != 0 {
        // SAFETY: `account` is the address of an account of a launch.
        unsafe { atomic::add_u32(at(offset_of!(WarpAccount, chunks) as u64).cast(), chunks) };
    }
}
