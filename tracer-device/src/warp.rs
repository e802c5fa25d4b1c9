//! A warp's way through its kernel: it opens its state, and its last lane flushes the stream.

use warptrace_format::Memory;
use warptrace_format::pool::PoolDescriptor;

#[cfg(global_work)]
use crate::drain::NO_WORK;
use crate::log::{self, OFF};
use crate::recorder::{TWIN_TAKEN, track_at};
use crate::space::{SharedMemory, WarpWords};
use crate::state::{self, CLEARED_BYTES, LIVE, ORIGIN, Plan, WARP, WORK, plan};
#[cfg(global_work)]
use crate::stream::get64;
use crate::{after, apart, drain, event, pool, simt};

/// Prepares the warp's state. Every lane of the warp calls it at the start of the kernel.
#[inline(always)]
pub(crate) fn open() {
    let live = simt::starting_lanes();
    // On the simulator lanes come one after another, and the first does it for all.
    if cfg!(target_arch = "nvptx64") || simt::lane() == 0 {
        initialise(live, simt::lane() == 0);
    }
    // What follows reads what was written here.
    meet(live);
}

#[inline(always)]
fn initialise(live: u32, leader: bool) {
    let pool = pool::descriptor();
    let plan = plan();
    let mut state = state::state(leader);
    let warps_per_block = simt::block_threads().div_ceil(simt::WARP_LANES);
    let warp = simt::linear_block().wrapping_mul(warps_per_block).wrapping_add(simt::warp_in_block());
    // A launch whose shape differs from what the host prepared has no place for this warp's account.
    let on = pool.enabled != 0 && warp < pool.warps;
    #[cfg(target_arch = "nvptx64")]
    let on = on && state::place::state().1;
    // All lanes together: shared memory starts as it was left.
    #[cfg(target_arch = "nvptx64")]
    clear(state, live);
    #[cfg(not(target_arch = "nvptx64"))]
    for at in (0..CLEARED_BYTES).step_by(16) {
        state.set128(at, [0; 4]);
    }
    if !on {
        state.set128(LIVE, [live, 0, 0, OFF]);
        state.set128(WARP, [warp, 0, 0, OFF]);
        return;
    }
    state.set128(ORIGIN, log::origin(&pool));
    state::log(state).open(&pool, warp, live, leader);
    if plan.dual {
        state::twin_log(state).open(&pool, warp, warp, leader);
        state.set128(track_at(1), [0; 4]);
        state.set128(TWIN_TAKEN, [0; 4]);
    } else {
        state.set128(WARP, [warp, 0, 0, OFF]);
    }
    let work = claim_work(&pool, plan, warp, live, leader);
    state.set128(WORK, [work as u32, (work >> 32) as u32, 0, 0]);
}

/// Zeroes what is zero when a warp starts, the `live` lanes together.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn clear(state: SharedMemory, live: u32) {
    let mut memory = SharedMemory::new(state.address, true);
    let mut at = simt::lane() * 16;
    while at < CLEARED_BYTES {
        memory.set128(at, [0; 4]);
        at += live.count_ones() * 16;
    }
    meet(live);
}

/// Waits for the lanes with which the warp has started. For all 32 the mask is a constant, which costs one instruction.
#[inline(always)]
fn meet(live: u32) {
    if live == u32::MAX {
        simt::sync_warp(u32::MAX);
    } else {
        simt::sync_warp(live);
    }
}

/// The address of the encoder's tables in global memory; [`NO_WORK`] if there are none left, 0 where they are
/// elsewhere.
#[inline(always)]
fn claim_work(pool: &PoolDescriptor, plan: Plan, warp: u32, live: u32, leader: bool) -> u64 {
    #[cfg(global_work)]
    if let bytes @ 1.. = work_bytes(plan) {
        return match pool::claim_work_slot(pool, simt::resident_slot(warp), live, leader) {
            u32::MAX => NO_WORK,
            slot => pool.work + u64::from(slot) * u64::from(bytes),
        };
    }
    let _ = (pool, plan, warp, live, leader);
    0
}

/// Gives back what [`claim_work`] has claimed.
#[inline(always)]
fn release_work(state: SharedMemory) {
    #[cfg(global_work)]
    if let bytes @ 1.. = work_bytes(plan()) {
        let work = get64(&state, WORK);
        if work != NO_WORK {
            let pool = pool::descriptor();
            pool::release_work_slot(&pool, ((work - pool.work) / u64::from(bytes)) as u32);
        }
    }
    #[cfg(not(global_work))]
    let _ = state;
}

/// Bytes of the encoder's tables.
#[cfg(global_work)]
#[inline(always)]
fn work_bytes(plan: Plan) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    return plan.codec.table_bytes();
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = plan;
        simt::host::with_lane(|lane| lane.recording().codec.work_bytes())
    }
}

/// Takes these lanes out of the live mask; the last ones flush the stream.
#[inline(always)]
pub(crate) fn leave() {
    #[cfg(target_arch = "nvptx64")]
    let leaving = simt::active_mask();
    #[cfg(not(target_arch = "nvptx64"))]
    let leaving = 1 << simt::lane();
    let leads = simt::leads(leaving);
    let mut state = state::state(true);
    if state::log(state).head().is_off() {
        return;
    }
    simt::for_own_lanes(leaving, |lane| event::end_own_run(state, lane));
    // Who sees nobody else is alone, for nobody comes back. Others find out by an atomic who is the last.
    let mut last = state.get32(LIVE) == leaving;
    if !last {
        let mut before = 0;
        if leads {
            before = state.fetch_clear(LIVE, leaving);
        }
        #[cfg(target_arch = "nvptx64")]
        {
            before = simt::shuffle(leaving, before, simt::highest(leaving));
        }
        last = before == leaving;
    }
    if last {
        if !after::leave_logs(state, leads) {
            apart::empty(state, leaving);
            if leads {
                drain::account(state);
            }
        }
        if leads {
            release_work(state);
        }
    }
}
