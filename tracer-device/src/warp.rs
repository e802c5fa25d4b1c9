//! A warp's state while its kernel runs, in block shared memory.
//!
//! ```text
//! offset  size  field
//!      0     4  live mask: lanes that have not left the kernel
//!      4     4  linear index of the warp in the launch
//!      8     4  1 while recording is on
//!     12     4  zero
//!     16     8  address of the encoder's work memory (or its shared-memory address)
//!     24     8  events attempted
//!     32    48  lock, held while a group smaller than the live mask is in the tracer
//!     80     …  track 0, then in a dual recording track 1 (see `stream`)
//! ```

use warptrace_format::Memory;
#[cfg(target_arch = "nvptx64")]
use warptrace_format::codec::EclParams;
use warptrace_format::codec::ecl::EclState;
use warptrace_format::codec::raw::RawState;
#[cfg(not(target_arch = "nvptx64"))]
use warptrace_format::codec::{CodecSpec, EclParams};
use warptrace_format::{Event, pool::PoolDescriptor};

use crate::lock::{LOCK_BYTES, Lock, SKIPPED};
use crate::pool;
use crate::recorder::{Tables, WARP_STATE_BYTES};
use crate::simt;
use crate::space::{SharedMemory, WarpWords};
use crate::stream::{self, Track, get64, set64};

const LIVE: u32 = 0;
const WORK: u32 = 16;
const ATTEMPTED: u32 = 24;
const LOCK: u32 = 32;

/// Stands in the work address of a warp that found no work slot.
const NO_WORK: u64 = 1;
const MAX_WARPS_PER_BLOCK: u32 = 32;
/// How often a group claims a chunk for one event.
const ROUNDS_OF_CLAIMS: u32 = 2;

/// What this launch records: fixed at compile time on the device, chosen by the simulator on the host.
#[derive(Clone, Copy)]
struct Plan {
    ecl: Option<EclParams>,
    dual: bool,
}

#[inline(always)]
fn plan() -> Plan {
    #[cfg(target_arch = "nvptx64")]
    {
        let ecl = if cfg!(feature = "codec-ecl") { Some(crate::DEVICE_ECL) } else { None };
        Plan { ecl, dual: cfg!(feature = "dual") }
    }
    #[cfg(not(target_arch = "nvptx64"))]
    simt::host::with_lane(|lane| {
        let recording = lane.recording();
        let ecl = match recording.codec {
            CodecSpec::Ecl(params) => Some(params),
            _ => None,
        };
        Plan { ecl, dual: recording.dual }
    })
}

#[cfg(target_arch = "nvptx64")]
const STATE_BYTES_OF_A_BLOCK: usize = (MAX_WARPS_PER_BLOCK * WARP_STATE_BYTES) as usize;

// Static, so that it never overlaps a kernel's dynamic shared memory; sized for the largest block.
#[cfg(target_arch = "nvptx64")]
core::arch::global_asm!(".shared .align 16 .b8 warptrace_state[{}];", const STATE_BYTES_OF_A_BLOCK);

/// This warp's state.
#[inline(always)]
fn state(leader: bool) -> SharedMemory {
    #[cfg(target_arch = "nvptx64")]
    {
        let base: u32;
        // SAFETY: reads the address of the array above.
        unsafe {
            core::arch::asm!("mov.u32 {}, warptrace_state;", out(reg32) base,
                options(pure, nomem, nostack, preserves_flags));
        }
        SharedMemory { address: base + simt::warp_in_block() * WARP_STATE_BYTES, leader }
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        static KEY: u8 = 0;
        let bytes = (MAX_WARPS_PER_BLOCK * WARP_STATE_BYTES) as usize;
        let base = simt::host::with_lane(|lane| lane.shared(&raw const KEY as usize, bytes));
        let at = u64::from(simt::warp_in_block() * WARP_STATE_BYTES);
        SharedMemory::new(base.expose_provenance() as u64 + at, leader)
    }
}

/// Address of this warp's tables at the end of the block's dynamic shared memory, where the host has added
/// room for them.
#[cfg(all(target_arch = "nvptx64", feature = "work-shared"))]
mod tail {
    use warptrace_format::Memory;

    use crate::simt;
    use crate::space::SharedMemory;

    core::arch::global_asm!(".extern .shared .align 16 .b8 warptrace_dynamic[];");

    /// Zeroes the tables, all lanes together: shared memory starts as it was left.
    #[inline(always)]
    pub(super) fn clear(live: u32) {
        let mut work = SharedMemory { address: work_address(), leader: true };
        let mut at = simt::lane() * 16;
        while at < crate::DEVICE_ECL.work_bytes() {
            work.set128(at, [0; 4]);
            at += live.count_ones() * 16;
        }
    }

    #[inline(always)]
    pub(super) fn work_address() -> u32 {
        let (base, bytes): (u32, u32);
        // SAFETY: reads an address and a special register.
        unsafe {
            core::arch::asm!("mov.u32 {}, warptrace_dynamic;", "mov.u32 {}, %dynamic_smem_size;", out(reg32) base,
                out(reg32) bytes, options(pure, nomem, nostack, preserves_flags));
        }
        let warps = simt::block_threads().div_ceil(simt::WARP_LANES);
        let work_bytes = crate::DEVICE_ECL.work_bytes();
        base + bytes - (warps - simt::warp_in_block()) * work_bytes
    }
}

/// Prepares the warp's state. Every lane of the warp calls it at the start of the kernel.
#[inline(always)]
pub(crate) fn open() {
    let live = simt::starting_lanes();
    #[cfg(all(target_arch = "nvptx64", feature = "work-shared"))]
    tail::clear(live);
    // On the simulator lanes come one after another, and the first does it for all.
    if cfg!(target_arch = "nvptx64") || simt::lane() == 0 {
        initialise(live, simt::lane() == 0);
    }
    // A real barrier, once: what follows reads what lane 0 wrote.
    if live == u32::MAX {
        simt::sync_warp(u32::MAX);
    } else {
        simt::sync_warp(live);
    }
}

#[inline(always)]
fn initialise(live: u32, leader: bool) {
    let pool = pool::descriptor();
    let plan = plan();
    let mut state = state(leader);
    let warps_per_block = simt::block_threads().div_ceil(simt::WARP_LANES);
    let warp = simt::linear_block().wrapping_mul(warps_per_block).wrapping_add(simt::warp_in_block());
    // A launch whose shape differs from what the host prepared has no place for this warp's account.
    let on = pool.enabled != 0 && warp < pool.warps;
    state.set128(LIVE, [live, warp, u32::from(on), 0]);
    for at in (LOCK..LOCK + LOCK_BYTES).step_by(16) {
        state.set128(at, [0; 4]);
    }
    if !on {
        return;
    }
    let work = claim_work(&pool, plan, warp, leader);
    set64(&mut state, WORK, work);
    set64(&mut state, ATTEMPTED, 0);
    match plan.ecl {
        Some(_) => Track::new(state, 0, warp).open(&EclState::new(), &pool, work == NO_WORK),
        None => Track::new(state, 0, warp).open(&RawState::new(), &pool, false),
    }
    if plan.dual {
        Track::new(state, 1, warp).open(&RawState::new(), &pool, false);
    }
}

/// The address of the encoder's tables, to the leader; [`NO_WORK`] if there are none left.
#[inline(always)]
fn claim_work(pool: &PoolDescriptor, plan: Plan, warp: u32, leader: bool) -> u64 {
    let Some(params) = plan.ecl else { return 0 };
    #[cfg(global_work)]
    {
        match pool::claim_work_slot(pool, simt::resident_slot(warp), leader) {
            u32::MAX => NO_WORK,
            slot => pool.work + u64::from(slot) * u64::from(params.work_bytes()),
        }
    }
    #[cfg(not(global_work))]
    {
        let _ = (pool, params, warp, leader);
        #[cfg(feature = "work-shared")]
        return u64::from(tail::work_address());
        #[cfg(not(feature = "work-shared"))]
        0
    }
}

fn release_work(pool: &PoolDescriptor, plan: Plan, work: u64) {
    #[cfg(global_work)]
    if let Some(params) = plan.ecl
        && work != NO_WORK
    {
        pool::release_work_slot(pool, ((work - pool.work) / u64::from(params.work_bytes())) as u32);
    }
    #[cfg(not(global_work))]
    let _ = (pool, plan, work);
}

#[inline(always)]
fn tables(plan: Plan, address: u64, leader: bool) -> Tables {
    let _ = plan;
    Tables {
        address,
        leader,
        #[cfg(not(target_arch = "nvptx64"))]
        params: plan.ecl.unwrap_or(EclParams::DEFAULT),
    }
}

/// Records an event. On the GPU every lane of the event's mask calls it, so that the group stays together; what
/// the leader writes is what counts. On the simulator only the leader calls it.
#[inline(always)]
pub(crate) fn record(event: Event, leader: bool) {
    let head = state(leader);
    let [live, warp, on, zero] = head.get128(LIVE);
    if on == 0 {
        return;
    }
    // The same place. To ptxas it is another one that may or may not overlap `head`, which keeps the accesses below
    // between those of the lock, and those of the lock in order.
    let mut state = head.displaced(zero);
    // See the crate's documentation for why the whole live mask needs no lock.
    let shared = event.mask != live;
    let lock = Lock::new(head, state, LOCK, event.mask);
    if shared && !lock.enter() {
        return;
    }
    let plan = plan();
    let (first, second) = (Track::new(state, 0, warp), Track::new(state, 1, warp));
    let needs = (first.needs_chunk(), plan.dual && second.needs_chunk());
    if (needs.0 || needs.1) && !change_chunks(state, warp, plan, needs, shared, lock, leader) {
        return;
    }
    let [work_low, work_high, attempted_low, attempted_high] = state.get128(WORK);
    let attempted = (u64::from(attempted_low) | u64::from(attempted_high) << 32) + 1;
    set64(&mut state, ATTEMPTED, attempted);
    let work = u64::from(work_low) | u64::from(work_high) << 32;
    match plan.ecl {
        Some(_) => append_ecl(state, warp, tables(plan, work, leader), event),
        None => first.append::<RawState>(Tables::none(leader), event),
    }
    if plan.dual {
        second.append::<RawState>(Tables::none(leader), event);
    }
    if shared {
        lock.leave();
    }
}

/// Gives the tracks in `needs` new chunks. Answers whether the group is inside the lock again; if not, the event has been
/// counted as lost. Not a function of its own on the device: one with an atomic in it begins with a YIELD.
#[inline(always)]
fn change_chunks(
    state: SharedMemory,
    warp: u32,
    plan: Plan,
    mut needs: (bool, bool),
    shared: bool,
    lock: Lock,
    leader: bool,
) -> bool {
    let tables = tables(plan, get64(&state, WORK), leader);
    if needs.0 {
        match plan.ecl {
            Some(_) => stream::close_apart::<EclState, _>(state, 0, warp, tables),
            None => stream::close_apart::<RawState, _>(state, 0, warp, tables),
        }
    }
    if needs.1 {
        stream::close_apart::<RawState, _>(state, 1, warp, tables);
    }
    if shared {
        lock.leave();
    }
    // A second round is for a chunk that came too late to be used (see `Track::install`); an event that finds none after
    // the last round is lost.
    for _ in 0..ROUNDS_OF_CLAIMS {
        let first = if needs.0 { stream::claim(warp, 0, leader) } else { 0 };
        let second = if needs.1 { stream::claim(warp, 1, leader) } else { 0 };
        if shared && !lock.enter() {
            return false;
        }
        if needs.0 {
            match plan.ecl {
                Some(_) => stream::install_apart::<EclState, _>(state, 0, warp, tables, first),
                None => stream::install_apart::<RawState, _>(state, 0, warp, tables, first),
            }
        }
        if needs.1 {
            stream::install_apart::<RawState, _>(state, 1, warp, tables, second);
        }
        needs = (needs.0 && track_needs(state, 0, warp), needs.1 && track_needs(state, 1, warp));
        if !(needs.0 || needs.1) {
            return true;
        }
        if shared {
            lock.leave();
        }
    }
    !shared || lock.enter()
}

#[inline(always)]
fn track_needs(state: SharedMemory, number: u32, warp: u32) -> bool {
    Track::new(state, number, warp).needs_chunk()
}

// Too large to stand at every trace point.
#[inline(never)]
fn append_ecl(state: SharedMemory, warp: u32, tables: Tables, event: Event) {
    Track::new(state, 0, warp).append::<EclState>(tables, event);
}

/// Takes this lane out of the live mask; the last one flushes the stream.
#[inline(always)]
pub(crate) fn leave() {
    let bit = 1 << simt::lane();
    let mut state = state(true);
    if state.fetch_clear(LIVE, bit) == bit {
        finish(state);
    }
}

#[cold]
#[inline(never)]
fn finish(state: SharedMemory) {
    let [_, warp, on, _] = state.get128(LIVE);
    if on == 0 {
        return;
    }
    let plan = plan();
    let pool = pool::descriptor();
    let attempted = get64(&state, ATTEMPTED);
    let skipped = u64::from(state.get32(LOCK + SKIPPED));
    let work = get64(&state, WORK);
    match plan.ecl {
        Some(_) => {
            Track::new(state, 0, warp).finish::<EclState>(
                tables(plan, work, true),
                &pool,
                attempted,
                skipped,
            );
            release_work(&pool, plan, work);
        }
        None => Track::new(state, 0, warp).finish::<RawState>(Tables::none(true), &pool, attempted, skipped),
    }
    if plan.dual {
        Track::new(state, 1, warp).finish::<RawState>(Tables::none(true), &pool, attempted, skipped);
    }
}
