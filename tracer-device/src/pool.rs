//! The pool: chunks and log memory by atomic bumps, and the warps' accounts.

use warptrace_format::Memory;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::pool::{PoolDescriptor, WarpAccount};

use crate::space::GlobalMemory;
use crate::stream::{get64, set64};

/// Filled by the host after it has loaded the module; zero, and so switched off, until then.
#[cfg(target_arch = "nvptx64")]
#[expect(unreachable_pub, reason = "the host finds it by its name in the PTX")]
#[unsafe(no_mangle)]
pub static mut WARPTRACE_POOL: PoolDescriptor = PoolDescriptor {
    chunks: 0,
    claims: 0,
    accounts: 0,
    logs: 0,
    chunk_count: 0,
    chunk_bytes: 0,
    warps: 0,
    launch: 0,
    enabled: 0,
    log_units: 0,
    log_reserved: 0,
    slices: 0,
    slice_units: 0,
    unused: 0,
    states: 0,
};

/// The launch's descriptor.
#[inline(always)]
pub(crate) fn descriptor() -> PoolDescriptor {
    #[cfg(target_arch = "nvptx64")]
    {
        // Plain loads that the compiler cannot see through: it would assume the initial zeros, and of volatile ones ptxas
        // would think that they wait for another thread (see `area`).
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

/// Where the states of the launch's warps are, and how many warps that is.
///
/// Asked at every trace point. So the compilers are told that the answer is always the same, which it is while a kernel runs: they ask once, at its start.
#[cfg(all(target_arch = "nvptx64", not(feature = "state-shared")))]
#[inline(always)]
pub(crate) fn states() -> (u64, u32) {
    let (states, warps): (u64, u32);
    // SAFETY: two fields of the descriptor, which the host wrote before the launch and leaves alone until the launch ends.
    unsafe {
        core::arch::asm!("ld.global.nc.u64 {states}, [{pool}+{states_at}];", "ld.global.nc.u32 {warps}, [{pool}+{warps_at}];",
            states = out(reg64) states, warps = out(reg32) warps,
            pool = in(reg64) (&raw const WARPTRACE_POOL).expose_provenance() as u64,
            states_at = const core::mem::offset_of!(PoolDescriptor, states),
            warps_at = const core::mem::offset_of!(PoolDescriptor, warps),
            options(pure, nomem, nostack, preserves_flags));
    }
    (states, warps)
}

/// Claims a chunk and writes its header; answers the address of its payload, or 0 when the pool is full.
#[inline(always)]
pub(crate) fn claim_chunk(pool: &PoolDescriptor, launch: u32, warp: u32, track: u32) -> u64 {
    start_chunk(pool, claim(pool), [warp, launch, track])
}

/// The number of the next chunk that is free. There is none with that number if there are no more.
#[inline(always)]
pub(crate) fn claim(pool: &PoolDescriptor) -> u32 {
    GlobalMemory::new(pool.claims, true).fetch_add(0, 1)
}

/// Claims units of log memory for a kernel, if `condition` holds; answers the first, or 0 if there are no more. (Without a branch: see `area`.)
#[inline(always)]
pub(crate) fn claim_units_if(condition: bool, pool: &PoolDescriptor, units: u32) -> u32 {
    claim_units_at(condition, pool, 4, units)
}

/// Units of log memory that kernels can still claim, if `condition` holds.
#[inline(always)]
pub(crate) fn units_left_if(condition: bool, pool: &PoolDescriptor) -> u32 {
    let left = pool.log_units.saturating_sub(pool.log_reserved);
    left.saturating_sub(GlobalMemory::new(pool.claims, condition).fetch_add(4, 0))
}

/// Claims units of log memory for what is merged; answers the first, or 0 if there are no more.
#[inline(always)]
pub(crate) fn claim_merged(pool: &PoolDescriptor, units: u32) -> u32 {
    claim_units_at(true, pool, 8, units)
}

#[inline(always)]
fn claim_units_at(condition: bool, pool: &PoolDescriptor, counter: u32, units: u32) -> u32 {
    let mut claims = GlobalMemory::new(pool.claims, condition);
    let left = pool.log_units.saturating_sub(pool.log_reserved);
    // Looked at first, so that the counter does not go round.
    let before = claims.fetch_add(counter, 0);
    let fits = condition & (units <= left) & (before <= left.wrapping_sub(units));
    let claim = claims.fetch_add(counter, if fits { units } else { 0 });
    if fits & (claim <= left.wrapping_sub(units)) { pool.log_reserved + claim } else { 0 }
}

/// Bytes of an account.
pub(crate) const ACCOUNT_BYTES: u32 = size_of::<WarpAccount>() as u32;
/// In the place of `finished` while the warp is on its way.
const STARTED: u32 = 2;

/// Writes into an account that the warp has started. (A launch that has ended has brought all its warps to their ends.)
#[inline(always)]
pub(crate) fn start_account(account: u64, leader: bool) {
    GlobalMemory::new(account, leader).set32(28, STARTED);
}

/// Writes into an account that the warp has finished; answers whether it had started.
#[inline(always)]
pub(crate) fn finish_account(account: u64) -> bool {
    let mut account = GlobalMemory::new(account, true);
    let started = account.get32(28) == STARTED;
    account.set32_if(started, 28, 1);
    started
}

/// How many chunks an account has.
#[inline(always)]
pub(crate) fn account_chunks(account: u64) -> u32 {
    // By an atomic, for so it was counted: a plain load may find what a cache has kept from before.
    GlobalMemory::new(account, true).fetch_add(24, 0)
}

/// Adds to a warp's attempted, recorded and lost events, and its chunks, in its account. Others may do so at the same time.
#[inline(always)]
pub(crate) fn add_to_account(account: u64, events: [u64; 3], chunks: u32) {
    let at = |offset: u64| core::ptr::with_exposed_provenance_mut::<u64>((account + offset) as usize);
    let mut number = 0;
    while number < 3 {
        if events[number] != 0 {
            // SAFETY: the account of a warp of the launch, in a table that the host has zeroed.
            unsafe { crate::atomic::add_u64(at(8 * number as u64), events[number]) };
        }
        number += 1;
    }
    if chunks != 0 {
        // SAFETY: as above.
        unsafe { crate::atomic::add_u32(at(24).cast(), chunks) };
    }
}

/// Adds to a warp's attempted and lost events, where nobody else does.
#[inline(always)]
pub(crate) fn add_to_own_account(account: u64, attempted: u64, lost: u64) {
    let mut memory = GlobalMemory::new(account, true);
    let attempted = get64(&memory, 0) + attempted;
    set64(&mut memory, 0, attempted);
    if lost != 0 {
        let lost = get64(&memory, 16) + lost;
        set64(&mut memory, 16, lost);
    }
}

/// Memory of the chunk with this number.
#[inline(always)]
pub(crate) fn chunk(pool: &PoolDescriptor, index: u32) -> GlobalMemory {
    GlobalMemory::new(pool.chunks + u64::from(index) * u64::from(pool.chunk_bytes), true)
}

/// Writes the header of the chunk with this number; answers the address of its payload, or 0 if there is no such chunk.
#[inline(always)]
pub(crate) fn start_chunk(pool: &PoolDescriptor, index: u32, [warp, launch, track]: [u32; 3]) -> u64 {
    if index >= pool.chunk_count {
        return 0;
    }
    let mut header = chunk(pool, index);
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
