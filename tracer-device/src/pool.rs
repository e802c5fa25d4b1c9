//! The pool: chunks by an atomic bump, and work memory for the encoders of resident warps by a bitmap.

use warptrace_format::Memory;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::pool::PoolDescriptor;

use crate::space::GlobalMemory;

/// Filled by the host after it has loaded the module; zero, and so switched off, until then.
#[cfg(target_arch = "nvptx64")]
#[expect(unreachable_pub, reason = "the host finds it by its name in the PTX")]
#[unsafe(no_mangle)]
pub static mut WARPTRACE_POOL: PoolDescriptor = PoolDescriptor {
    chunks: 0,
    next_chunk: 0,
    accounts: 0,
    work: 0,
    work_slots: 0,
    work_slot_count: 0,
    chunk_count: 0,
    chunk_bytes: 0,
    warps: 0,
    launch: 0,
    enabled: 0,
    reserved: 0,
    reserved_count: 0,
    logs: 0,
    unused: 0,
};

/// The launch's descriptor.
#[inline(always)]
pub(crate) fn descriptor() -> PoolDescriptor {
    #[cfg(target_arch = "nvptx64")]
    {
        // Plain loads that the compiler cannot see through: it would assume the initial zeros, and of volatile ones ptxas
        // would think that they wait for another thread (see `lock`).
        let at = GlobalMemory::new((&raw const WARPTRACE_POOL).expose_provenance() as u64, false);
        let mut words = [0; size_of::<PoolDescriptor>() / 4];
        let mut i = 0;
        while i < words.len() {
            let four = at.get128(4 * i as u32);
            (words[i], words[i + 1], words[i + 2], words[i + 3]) = (four[0], four[1], four[2], four[3]);
            i += 4;
        }
        // SAFETY: plain words, `#[repr(C)]`, and of the same size. The host wrote a whole descriptor before the launch and
        // leaves it alone until the launch ends.
        unsafe { core::mem::transmute::<[u32; size_of::<PoolDescriptor>() / 4], PoolDescriptor>(words) }
    }
    #[cfg(not(target_arch = "nvptx64"))]
    crate::simt::host::with_lane(|lane| match lane.pool() {
        pool if pool.is_null() => PoolDescriptor::default(),
        // SAFETY: the simulator's launch holds the descriptor for as long as lanes run.
        pool => unsafe { pool.read() },
    })
}

/// Takes the first chunk of a stream of this launch, reserved or claimed; else as [`claim_chunk`].
#[inline(always)]
pub(crate) fn first_chunk(pool: &PoolDescriptor, warp: u32, track: u32) -> u64 {
    match pool.first_chunk(track, warp) {
        Some(index) => start_chunk(pool, index, [warp, pool.launch, track]),
        None => claim_chunk(pool, pool.launch, warp, track),
    }
}

/// Claims a chunk and writes its header; answers the address of its payload, or 0 when the pool is full.
#[inline(always)]
pub(crate) fn claim_chunk(pool: &PoolDescriptor, launch: u32, warp: u32, track: u32) -> u64 {
    start_chunk(pool, claim(pool, true), [warp, launch, track])
}

/// The number of the next chunk that is free, if there is one. Only a `leader` claims.
#[inline(always)]
fn claim(pool: &PoolDescriptor, leader: bool) -> u32 {
    let claim = GlobalMemory::new(pool.next_chunk, leader).fetch_add(0, 1);
    claim.saturating_add(pool.reserved_count)
}

/// Adds a warp's attempted, recorded and lost events, and its chunks, to its account. Its parts may come from several threads.
#[inline(always)]
pub(crate) fn add_to_account(account: u64, events: [u64; 3], chunks: u32) {
    let at = |offset: u64| core::ptr::with_exposed_provenance_mut::<u64>((account + offset) as usize);
    // SAFETY: the account of a warp of the launch, in a table that the host has zeroed.
    unsafe {
        crate::atomic::add_u64(at(0), events[0]);
        crate::atomic::add_u64(at(8), events[1]);
        crate::atomic::add_u64(at(16), events[2]);
        crate::atomic::add_u32(at(24).cast(), chunks);
        crate::atomic::store_u32(at(24).cast::<u32>().add(1), 1);
    }
}

/// Number of the first segment of a log, which is reserved or claimed; `u32::MAX` to the leader when the pool is full.
#[inline(always)]
pub(crate) fn first_segment(pool: &PoolDescriptor, warp: u32, track: u32, leader: bool) -> u32 {
    match pool.first_segment(track, warp) {
        Some(index) => {
            clear_header(pool, index, leader);
            // What is encoded after the kernel is found by its header, so none may hold what was there before.
            if let Some(output) = pool.first_chunk(track, warp) {
                clear_header(pool, output, leader);
            }
            index
        }
        None => claim_segment_by(pool, leader),
    }
}

/// Claims a chunk for a log; answers its number, or `u32::MAX` when the pool is full.
#[inline(always)]
pub(crate) fn claim_segment(pool: &PoolDescriptor) -> u32 {
    claim_segment_by(pool, true)
}

#[inline(always)]
fn claim_segment_by(pool: &PoolDescriptor, leader: bool) -> u32 {
    // Two: one for what the runs of the segment become, so that these lie in the pool in the order of the segments.
    let claim = GlobalMemory::new(pool.next_chunk, leader).fetch_add(0, 2);
    let output = claim.saturating_add(pool.reserved_count);
    let there = output < pool.chunk_count.saturating_sub(1);
    clear_header(pool, output, leader & there);
    clear_header(pool, output.wrapping_add(1), leader & there);
    if !there & leader & (output < pool.chunk_count) {
        // The last one: nobody else gets it.
        clear_header(pool, output, true);
    }
    if there { output + 1 } else { u32::MAX }
}

/// Makes the chunk with this number one in which nothing has come to lie, if the lane is a `leader`.
#[inline(always)]
fn clear_header(pool: &PoolDescriptor, index: u32, leader: bool) {
    if cfg!(target_arch = "nvptx64") || leader {
        chunk(pool, index, leader).set128(0, [0; 4]);
    }
}

/// Memory of the chunk with this number.
#[inline(always)]
pub(crate) fn chunk(pool: &PoolDescriptor, index: u32, leader: bool) -> GlobalMemory {
    GlobalMemory::new(pool.chunks + u64::from(index) * u64::from(pool.chunk_bytes), leader)
}

/// Writes the header of the chunk with this number; answers the address of its payload, or 0 if there is no such chunk.
#[inline(always)]
pub(crate) fn start_chunk(pool: &PoolDescriptor, index: u32, [warp, launch, track]: [u32; 3]) -> u64 {
    if index >= pool.chunk_count {
        return 0;
    }
    let mut header = chunk(pool, index, true);
    // Length 0: if nothing comes to lie in it, the host passes it over.
    header.set128(0, [warp, 0, 0, 0]);
    header.set128(16, [launch, track, 0, 0]);
    header.address() + u64::from(CHUNK_HEADER_BYTES)
}

/// Writes a chunk's place in its stream into its header; nothing if `payload` is 0, for no chunk.
#[inline(always)]
pub(crate) fn name_chunk(payload: u64, sequence: u32) {
    if payload != 0 {
        GlobalMemory::new(payload - u64::from(CHUNK_HEADER_BYTES), true).set32(4, sequence);
    }
}

/// Writes into a chunk's header what it holds.
#[inline(always)]
pub(crate) fn close_chunk(payload: u64, events: u32, length: u32) {
    let mut header = GlobalMemory::new(payload - u64::from(CHUNK_HEADER_BYTES), true);
    header.set32(8, events);
    header.set32(12, length);
}

/// Takes a free slot of work memory, or answers `u32::MAX` when all are taken (the host provides one for each warp
/// that can be resident, so that never happens on a sound set-up; the warp's events then count as lost).
///
/// `hint` is a slot that is probably free: one attempt at it, without a loop, is all that a warp normally needs.
#[cfg(global_work)]
#[inline(always)]
pub(crate) fn claim_work_slot(pool: &PoolDescriptor, hint: u32, live: u32, leader: bool) -> u32 {
    if pool.work_slot_count == 0 {
        return u32::MAX;
    }
    let slot = told(live, hint % pool.work_slot_count);
    let bit = 1 << (slot % 32);
    let mut slots = GlobalMemory::new(pool.work_slots, leader);
    if told(live, slots.fetch_or(slot / 32 * 4, bit)) & bit == 0 {
        slot
    } else {
        search_work_slot(pool.work_slots, pool.work_slot_count, slot, live, leader)
    }
}

/// What the warp's lowest lane has, to all its `live` lanes: they go the same way, so that none comes apart from the others before
/// the kernel has begun. (On the simulator it is alone here.)
#[cfg(global_work)]
#[inline(always)]
fn told(live: u32, value: u32) -> u32 {
    if cfg!(target_arch = "nvptx64") { crate::simt::shuffle(live, value, 0) } else { value }
}

#[cfg(global_work)]
#[cold]
#[inline(never)]
// Takes the descriptor's parts, because a reference would put all of it into local memory.
fn search_work_slot(work_slots: u64, work_slot_count: u32, hint: u32, live: u32, leader: bool) -> u32 {
    let words = work_slot_count / 32;
    let mut slots = GlobalMemory::new(work_slots, leader);
    let mut word = hint / 32;
    // Twice around: a slot freed behind the scan is found in the second round.
    for _ in 0..2 * words {
        word = if word + 1 >= words { 0 } else { word + 1 };
        loop {
            let taken = told(live, slots.fetch_or(4 * word, 0));
            if taken == u32::MAX {
                break;
            }
            let bit = !taken & taken.wrapping_add(1);
            if told(live, slots.fetch_or(4 * word, bit)) & bit == 0 {
                return 32 * word + bit.trailing_zeros();
            }
        }
    }
    u32::MAX
}

/// Gives a slot back. The caller is the warp's last lane.
#[cfg(global_work)]
pub(crate) fn release_work_slot(pool: &PoolDescriptor, slot: u32) {
    let word: *mut u32 =
        core::ptr::with_exposed_provenance_mut((pool.work_slots + 4 * u64::from(slot / 32)) as usize);
    // The next owner, on whatever multiprocessor, finds the tables as they were left.
    crate::atomic::fence_device();
    // SAFETY: the slot came from `claim_work_slot` of the same pool.
    unsafe { crate::atomic::and_u32(word, !(1 << (slot % 32))) };
}
