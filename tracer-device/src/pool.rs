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
};

/// The launch's descriptor.
#[inline(always)]
pub(crate) fn descriptor() -> PoolDescriptor {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: the host wrote a whole descriptor before the launch and leaves it alone until the launch ends.
    // Volatile, because the compiler would otherwise assume the initial zeros.
    unsafe {
        (&raw const WARPTRACE_POOL).read_volatile()
    }
    #[cfg(not(target_arch = "nvptx64"))]
    // SAFETY: the simulator's launch holds the descriptor for as long as lanes run.
    crate::simt::host::with_lane(|lane| match lane.pool() {
        pool if pool.is_null() => PoolDescriptor::default(),
        pool => unsafe { pool.read() },
    })
}

#[inline(always)]
fn fetch_add(address: u64, value: u32) -> u32 {
    let word: *mut u32 = core::ptr::with_exposed_provenance_mut(address as usize);
    // SAFETY: the descriptor's counters are aligned words that live as long as the launch.
    unsafe { crate::atomic::add_u32(word, value) }
}

/// Claims a chunk and writes its header; answers the address of its payload, or 0 when the pool is full.
pub(crate) fn claim_chunk(pool: &PoolDescriptor, warp: u32, sequence: u32, track: u32) -> u64 {
    let index = fetch_add(pool.next_chunk, 1);
    if index >= pool.chunk_count {
        return 0;
    }
    let chunk = pool.chunks + u64::from(index) * u64::from(pool.chunk_bytes);
    let mut header = GlobalMemory(chunk);
    header.set128(0, [warp, sequence, 0, 0]);
    header.set128(16, [pool.launch, track, 0, 0]);
    chunk + u64::from(CHUNK_HEADER_BYTES)
}

/// Writes into a chunk's header what it holds.
pub(crate) fn close_chunk(payload: u64, events: u32, length: u32) {
    let mut header = GlobalMemory(payload - u64::from(CHUNK_HEADER_BYTES));
    header.set32(8, events);
    header.set32(12, length);
}

/// Takes a free slot of work memory, or `None` when all are taken (the host provides one for each warp that can
/// be resident, so that never happens on a sound set-up; the warp's events then count as lost).
pub(crate) fn claim_work_slot(pool: &PoolDescriptor, hint: u32) -> Option<u32> {
    let words = pool.work_slot_count / 32;
    let mut at = if words == 0 { return None } else { hint % words };
    // Twice around: a slot freed behind the scan is found in the second round.
    for _ in 0..2 * words {
        let word: *mut u32 =
            core::ptr::with_exposed_provenance_mut((pool.work_slots + 4 * u64::from(at)) as usize);
        loop {
            // SAFETY: the bitmap has `words` aligned words and lives as long as the launch.
            let taken = unsafe { crate::atomic::load_u32(word) };
            if taken == u32::MAX {
                break;
            }
            let bit = 1 << (!taken).trailing_zeros();
            // SAFETY: as above.
            if unsafe { crate::atomic::or_u32(word, bit) } & bit == 0 {
                // The slot's last owner wrote its tables before it gave the slot back.
                crate::atomic::fence_device();
                return Some(at * 32 + bit.trailing_zeros());
            }
        }
        at = if at + 1 == words { 0 } else { at + 1 };
    }
    None
}

/// Gives a slot back.
pub(crate) fn release_work_slot(pool: &PoolDescriptor, slot: u32) {
    let word: *mut u32 =
        core::ptr::with_exposed_provenance_mut((pool.work_slots + 4 * u64::from(slot / 32)) as usize);
    crate::atomic::fence_device();
    // SAFETY: the slot came from `claim_work_slot` of the same pool.
    unsafe { crate::atomic::and_u32(word, !(1 << (slot % 32))) };
}
