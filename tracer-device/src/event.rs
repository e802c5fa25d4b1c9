//! From a trace point to a log.
//!
//! Events of one location and mask that follow each other are a *run*. Each lane has a *record* of the run that it is in: its mask and its key, which holds
//! location and count (see `unit`). The run's *keeper*, the lowest lane of the mask, will append it to its log.
//!
//! - An event of which the records of all lanes say that it is one more of their run repeats it: each lane counts in its own record.
//! - Any other is a *miss*: each lane's record becomes that of a new run, and a lane that keeps the run that it was in appends that to its log.
//!
//! Logs are merged and encoded after the kernel (see `merge`, `after`). Only if log memory gets short, they are handed to the encoder as soon as all live
//! lanes of the warp come to a miss together at which one of the logs is full.
//!
//! # Groups that interleave
//! Two groups of a warp may be switched at any instruction, and nothing keeps them apart. Nothing need be, for they share no lane, and a lane writes only
//! what is its own:
//!
//! - A run is made by all of its lanes together, and counted by all of them together. If one has come to another event since, its record says so, and
//!   the vote fails for all. So the keeper's count is complete when it leaves the run, whoever has left it before.
//! - The votes that answer the mask and whether the event repeats a run are taken by the same lanes: there is no branch in between.
//! - The time of a run is read by each lane while all are together.
//!
//! # The order
//! For each lane, the trace has its events in the order in which it executed them. Events of disjoint groups of a warp stand in the order in which
//! their runs began. Which group the hardware ran first in between, a trace does not tell.
//!
//! A run counts to 2^21, then another begins.

use crate::log::{append_to_twin, begin_run};
use crate::space::StateMemory;
#[cfg(any(not(target_arch = "nvptx64"), feature = "counted"))]
use crate::state::RECORDS;
use crate::state::{DRAIN, log, plan, state, twin_log};
use crate::unit::{MOST_AT_ONCE, ONE, Run, key};
use crate::{apart, drain, simt};
use warptrace_format::Memory;

/// Records that the lanes of `mask` came to `location` `count` times in a row, at least once and at most [`MOST_AT_ONCE`] times. On the GPU every lane of
/// the mask calls it. On the simulator only the leader does.
#[inline(always)]
fn record(location: u16, mask: u32, count: u32) {
    let state = state(true);
    let location = u32::from(location);
    // Between the vote that has answered the mask and this there is no branch at which the lanes could part.
    let (repeats, old) = repeat(state, mask, location, count);
    let time = if plan().dual { simt::now(state) } else { 0 };
    if !repeats {
        apart::miss(state, old, mask, key(location, count));
    }
    if plan().dual {
        apart::twin(state, Run { mask, location, count, time });
    }
}

/// If this event is one more of the run that all lanes of `mask` are in, counts it. Answers whether it is, and on the device what this lane's record was.
#[inline(always)]
fn repeat(state: StateMemory, mask: u32, location: u32, count: u32) -> (bool, [u32; 2]) {
    #[cfg(target_arch = "nvptx64")]
    return StateMemory::repeat(state.own(), mask, location, count * ONE);
    #[cfg(not(target_arch = "nvptx64"))]
    {
        use crate::unit::COMPARED;
        let mut state = state;
        let mut repeats = true;
        simt::for_own_lanes(mask, |lane| {
            let [own_mask, own_key] = state.get64(RECORDS + 8 * lane);
            repeats &= own_mask == mask && (own_key ^ location) & COMPARED == 0;
        });
        if repeats {
            simt::for_own_lanes(mask, |lane| {
                let own_key = state.get32(RECORDS + 8 * lane + 4);
                state.set32(RECORDS + 8 * lane + 4, own_key + count * ONE);
            });
        }
        (repeats, [0; 2])
    }
}

/// Records that the lanes that are here came to `location` `count` times in a row, at least once. They are asked anew, so that there is no branch between
/// that and the vote.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn record_here(location: u16, count: u32) {
    in_pieces(count, |piece| record(location, simt::active_mask(), piece));
}

/// Records that the lanes of `mask` came to `location` `count` times in a row, at least once. Only their leader calls it.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn record_run(location: u16, mask: u32, count: u32) {
    in_pieces(count, |piece| record(location, mask, piece));
}

/// Does something for so many events, of which it can take [`MOST_AT_ONCE`] at once.
#[inline(always)]
fn in_pieces(count: u32, mut act: impl FnMut(u32)) {
    let mut left = count;
    // More are a rare thing, and known not to come where `count` is a constant.
    loop {
        let piece = if left < MOST_AT_ONCE { left } else { MOST_AT_ONCE };
        act(piece);
        left -= piece;
        if left == 0 {
            return;
        }
    }
}

/// This lane's record.
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
#[inline(always)]
pub(crate) fn own_record(state: StateMemory) -> [u32; 2] {
    state.get64(RECORDS + 8 * simt::own_lane())
}

/// Records a counted loop: the lanes of `group` all call it, each with its own number of iterations.
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
#[inline(always)]
pub(crate) fn record_counts(location: u16, iterations: u32, group: u32) {
    let (state, location) = (state(true), u32::from(location));
    apart::counts(state, location, iterations, group);
    if plan().dual {
        apart::twin_counts(state, location, iterations, group);
    }
}

/// Makes another run the one that the lanes of `mask` are in, with this key. Answers whether any of their logs is full.
#[inline(always)]
pub(crate) fn miss(state: StateMemory, old: [u32; 2], mask: u32, key: u32) -> bool {
    let time = simt::now(state);
    // With counted loops the keeper is not always the lowest lane; here it is.
    #[cfg(all(target_arch = "nvptx64", feature = "counted"))]
    let key = if simt::is_leader(mask) { key | crate::unit::KEEPS } else { key };
    let mut is_full = false;
    simt::for_own_lanes(mask, |lane| is_full |= begin_run(state, lane, old, [mask, key, 0, time]));
    is_full
}

/// Whether the logs are to be emptied now: memory is short, and all live lanes are here. From the lanes of `mask`.
#[inline(always)]
pub(crate) fn is_to_drain(state: StateMemory, mask: u32) -> bool {
    // Where the lanes have come apart, some may have found another answer.
    simt::is_any(state.get32(DRAIN) == mask) && simt::is_together(mask)
}

/// Records an event of a dual recording in the twin's log, which has every event of its own. Its time is that at which the group was together. Answers
/// whether that is full.
#[inline(always)]
pub(crate) fn twin(state: StateMemory, run: Run) -> bool {
    let keeper = run.mask.trailing_zeros();
    let lane = if cfg!(target_arch = "nvptx64") { simt::own_lane() } else { keeper };
    simt::is_any(append_to_twin(state, lane, lane == keeper, run))
}

/// Empties the logs. The run that has just begun goes on. All live lanes of the warp, together: `group`, which is its mask.
#[inline(always)]
pub(crate) fn drain(state: StateMemory, group: u32) {
    simt::for_own_lanes(group, |lane| {
        // In a log that has been stopped there is a place for what is lost, and it must be free.
        log(state).lose_if_full(lane);
        log(state).close(lane);
        if plan().dual {
            twin_log(state).lose_if_full(lane);
            twin_log(state).close(lane);
        }
    });
    drain::drain(state, group);
    simt::for_own_lanes(group, |lane| {
        log(state).rewind(lane);
        if plan().dual {
            twin_log(state).rewind(lane);
        }
    });
    simt::sync_group(group);
}
