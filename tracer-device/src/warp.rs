//! A warp's way through its kernel: it opens its state, and its lanes close their logs.

use warptrace_format::Memory;

use crate::area::Area;
use crate::log::{self, end_own_run, live_lanes};
use crate::state::{self, DRAIN, LOGS, RECORDS, log, plan, twin_log};
use crate::{apart, pool, simt};

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
    let warp = simt::warp_in_launch();
    // A launch whose shape differs from what the host prepared has no place for this warp's account.
    let on = pool.enabled != 0 && warp < pool.warps;
    #[cfg(target_arch = "nvptx64")]
    let on = on && state::place::state().1;
    let (slice, twin_slice) = if on { (pool.slice(0, warp), pool.slice(1, warp)) } else { (0, 0) };
    state.set128(DRAIN, [0, warp, slice, twin_slice]);
    state.set128(LOGS, [pool.logs as u32, (pool.logs >> 32) as u32, pool.slice_units, 0]);
    #[cfg(not(target_arch = "nvptx64"))]
    state.set32(state::CLOCK, 0);
    // Nobody reads what another lane writes here: one meeting at the end is enough.
    each_lane(live, |lane, is_live| {
        let mut state = state::state(true);
        state.set64(RECORDS + 8 * lane, log::NOTHING);
        log(state).open_or_not(lane, on && is_live, pool.logs, slice);
        if plan.dual {
            twin_log(state).open_or_not(lane, on && is_live, pool.logs, twin_slice);
        }
        if on && !is_live {
            log::set_absent(pool.logs, slice, lane);
            if plan.dual {
                log::set_absent(pool.logs, twin_slice, lane);
            }
        }
    });
    if on {
        Area::open(leader, pool.logs, slice, pool.slice_units);
        pool::start_account(pool.account(0, warp), leader);
        if plan.dual {
            pool::start_account(pool.account(1, warp), leader);
        }
    }
}

/// Does something for each lane of a warp, also for those that a partial warp does not have, from its `live` lanes together: lane, whether it is live.
#[inline(always)]
fn each_lane(live: u32, mut each: impl FnMut(u32, bool)) {
    if cfg!(target_arch = "nvptx64") && live == u32::MAX {
        return each(simt::lane(), true);
    }
    let step = if cfg!(target_arch = "nvptx64") { live.count_ones() } else { 1 };
    let mut lane = simt::lane();
    while lane < simt::WARP_LANES {
        each(lane, live >> lane & 1 != 0);
        lane += step;
    }
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

/// Closes the lane's logs.
#[inline(always)]
pub(crate) fn leave() {
    let mut state = state::state(true);
    let lane = simt::own_lane();
    if !log(state).is_on(lane) {
        return;
    }
    if end_own_run(state, lane) && log(state).has_stopped(lane) {
        apart::lose(state);
    }
    log(state).close(lane);
    if plan().dual {
        twin_log(state).close(lane);
    }
    // It is no longer one of those who can come together.
    log(state).switch_off(lane);
    if state.get32(DRAIN) != 0 {
        state.set32(DRAIN, live_lanes(state));
    }
}
