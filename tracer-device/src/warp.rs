//! A warp's way through its kernel: it opens its state, and its last lane flushes the stream.

use warptrace_format::Memory;
use warptrace_format::codec::ecl::EclState;
use warptrace_format::codec::predict::PredictState;
use warptrace_format::codec::raw::RawState;
use warptrace_format::pool::PoolDescriptor;

use crate::event;
use crate::mail::Mail;
use crate::pool;
#[cfg(target_arch = "nvptx64")]
use crate::recorder::TWIN_TAKEN;
use crate::recorder::{Codec, Tables};
use crate::simt;
use crate::space::{SharedMemory, WarpWords};
#[cfg(target_arch = "nvptx64")]
use crate::state::CLEARED_BYTES;
#[cfg(not(target_arch = "nvptx64"))]
use crate::state::STATE_BYTES;
use crate::state::{self, LIVE, OFF, Plan, WORK, plan, tables, with_recorder};
use crate::stream::Track;

/// Stands in the work address of a warp that found no work slot.
const NO_WORK: u64 = 1;

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
    clear(state, plan, live, on);
    #[cfg(not(target_arch = "nvptx64"))]
    for at in (0..STATE_BYTES).step_by(16) {
        state.set128(at, [0; 4]);
    }
    state.set128(LIVE, [live, if on { 0 } else { OFF }, warp, 0]);
    if !on {
        return;
    }
    let work = claim_work(&pool, plan, warp, live, leader);
    state.set128(WORK, [work as u32, (work >> 32) as u32, 0, 0]);
    let tables = tables(state, plan, work);
    let stopped = work == NO_WORK;
    let zeroed = cfg!(all(target_arch = "nvptx64", feature = "work-shared"));
    with_recorder!(plan, R => Track::new(state, 0, warp).open::<R>(tables, &pool, stopped, zeroed));
    if plan.dual {
        Track::new(state, 1, warp).open::<RawState>(Tables::none(leader), &pool, false, false);
    }
}

/// Zeroes what is zero when a warp starts, the `live` lanes together: the header, and tables in shared memory. A state that is not `on`
/// may have no room for more than its header.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn clear(state: SharedMemory, plan: Plan, live: u32, on: bool) {
    let zero = |from: u32, bytes: u32| {
        let mut memory = SharedMemory::new(state.address, true);
        let mut at = simt::lane() * 16;
        while at < bytes {
            memory.set128(from + at, [0; 4]);
            at += live.count_ones() * 16;
        }
    };
    zero(0, CLEARED_BYTES);
    if on && plan.dual {
        zero(TWIN_TAKEN, 16);
    }
    #[cfg(feature = "work-shared")]
    if on {
        zero(state::tables_address(state) - state.address, plan.codec.table_bytes());
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

fn release_work(pool: &PoolDescriptor, plan: Plan, work: u64) {
    #[cfg(global_work)]
    if let bytes @ 1.. = work_bytes(plan)
        && work != NO_WORK
    {
        pool::release_work_slot(pool, ((work - pool.work) / u64::from(bytes)) as u32);
    }
    #[cfg(not(global_work))]
    let _ = (pool, plan, work);
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
    let mut state = state::state(cfg!(not(target_arch = "nvptx64")) || simt::is_leader(leaving));
    // Who sees nobody else is alone, for nobody comes back. Others find out by an atomic who is the last.
    let mut last = state.get32(LIVE) == leaving;
    if !last {
        let mut before = 0;
        if state.leads() {
            before = state.fetch_clear(LIVE, leaving);
        }
        #[cfg(target_arch = "nvptx64")]
        {
            before = simt::shuffle(leaving, before, simt::lowest(leaving));
        }
        last = before == leaving;
    }
    if last {
        finish(state, leaving);
    }
}

/// Flushes the stream: all lanes of `group`, which are the last.
#[inline(always)]
fn finish(state: SharedMemory, group: u32) {
    if state.get32(LIVE + 4) & OFF != 0 {
        return;
    }
    // Nobody else is left, so everything that has a place in the mailbox is there.
    event::flush(state, group);
    crate::apart::drain(state, group);
    account(state);
}

#[cold]
#[inline(never)]
fn account(state: SharedMemory) {
    let warp = state.get32(LIVE + 8);
    let plan = plan();
    let pool = pool::descriptor();
    let [low, high, drained_low, drained_high] = state.get128(WORK);
    let drained = u64::from(drained_low) | u64::from(drained_high) << 32;
    let work = u64::from(low) | u64::from(high) << 32;
    let tables = tables(state, plan, work);
    let skipped = Mail(state).skipped();
    with_recorder!(plan, R => Track::new(state, 0, warp).finish::<R>(tables, &pool, drained, skipped));
    if plan.dual {
        Track::new(state, 1, warp).finish::<RawState>(Tables::none(tables.leader), &pool, drained, skipped);
    }
    if tables.leader {
        release_work(&pool, plan, work);
    }
}
