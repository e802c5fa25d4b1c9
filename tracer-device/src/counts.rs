//! The end of a counted loop whose lanes went through it differently often.
//!
//! Each distinct number of iterations ends a run: of the lanes that iterated as often or more often, as long as the step from the next smaller number.
//! The lanes leave their numbers for each other in shared memory, find out by comparing which run is theirs and how many runs come before it, and
//! the lowest lane of each run writes it to the log. So all runs of a loop cost one way to the log, and no run waits for another.
//!
//! (One call for each run, in a loop, cost the kernels convergence barriers that they do not have; see `apart`.)

use warptrace_format::Memory;

use crate::after::most_count;
use crate::event::{Next, end_common_run, end_own_run, told};
use crate::log::{Log, NO_SPOT};
use crate::simt;
use crate::space::SharedMemory;
use crate::state::{KEEPERS, LARGE, RECORDS, counts as places, log, plan};

/// What a lane contributes: the run that its number of iterations ends.
struct Run {
    mask: u32,
    count: u32,
    /// How many runs come before it.
    rank: u32,
    /// Whether this lane writes it.
    writes: bool,
    /// How many runs there are.
    total: u32,
}

/// Finds the runs. All lanes of `group`.
#[inline(always)]
fn find(iterations: u32, group: u32) -> Run {
    let places = places();
    let own = simt::own_lane();
    let mut place = places;
    place.set32(8 * own, iterations);
    simt::settle(group);
    let (mut mask, mut smaller, mut below) = (0, 0, 0);
    let mut left = group;
    while left != 0 {
        let lane = left.trailing_zeros();
        let number = places.get32(8 * lane);
        mask |= u32::from(number >= iterations) << lane;
        smaller = if (number < iterations) & (number > smaller) { number } else { smaller };
        below |= u32::from((number == iterations) & (lane < own));
        left &= left - 1;
    }
    let writes = (iterations != 0) & (below == 0);
    place.set32(8 * own + 4, u32::from(writes));
    simt::settle(group);
    let (mut rank, mut total) = (0, 0);
    let mut left = group;
    while left != 0 {
        let lane = left.trailing_zeros();
        let [number, is_one] = places.get64(8 * lane);
        rank += if number < iterations { is_one } else { 0 };
        total += is_one;
        left &= left - 1;
    }
    // Nobody writes over a place that another lane still has to read.
    simt::settle(group);
    Run { mask, count: iterations - smaller, rank, writes, total }
}

/// Records the loop in the trace. All lanes of `group`.
#[inline(always)]
pub(crate) fn counts(state: SharedMemory, location: u32, iterations: u32, group: u32) -> Next {
    let log = log(state);
    let head = log.head();
    if head.is_off() {
        return Next::Done;
    }
    let own = simt::own_lane();
    end_own_run(state, own);
    end_common_run(state, own);
    let alone = head.before == group;
    record(state, log, location, iterations, group, |runs, keeper| {
        log.reserve(head, runs, keeper, alone, state.seen_with(group))
    })
}

/// The same for the twin's log.
#[inline(always)]
pub(crate) fn twin_counts(
    mut state: SharedMemory,
    twin_log: Log,
    location: u32,
    iterations: u32,
    group: u32,
) -> Next {
    let head = twin_log.head();
    if head.is_off() {
        return Next::Done;
    }
    // The records are used below to tell the group where its runs lie.
    let own = simt::own_lane();
    end_own_run(state, own);
    end_common_run(state, own);
    state.set32(KEEPERS + 4 * own, 0);
    let alone = log(state).head().before == group;
    record(state, twin_log, location, iterations, group, |runs, keeper| {
        twin_log.reserve(head, runs, keeper, alone, state.seen_with(group))
    })
}

/// The same where the log's segment has no room, or another group is at it.
#[inline(always)]
pub(crate) fn counts_further(state: SharedMemory, log: Log, location: u32, iterations: u32, group: u32) {
    let found = record(state, log, location, iterations, group, |runs, keeper| {
        log.reserve_further(runs, keeper, state.seen_with(group))
    });
    if found != Next::Done {
        // The pool is used up.
        let run = find(iterations, group);
        if run.writes {
            log.lose(run.count);
        }
    }
    simt::sync_group(group);
}

/// Writes the runs to the places that `reserve` answers for so many.
#[inline(always)]
fn record(
    mut state: SharedMemory,
    log: Log,
    location: u32,
    iterations: u32,
    group: u32,
    reserve: impl FnOnce(u32, u32) -> u32,
) -> Next {
    let run = find(iterations, group);
    let keeper = simt::highest(group);
    let mut spot = 0;
    if simt::is_own(keeper) & (run.total != 0) {
        spot = reserve(run.total, keeper);
    }
    // Nobody repeats these runs.
    let own = simt::own_lane();
    state.set128(RECORDS + 16 * own, [0, 0, 0, spot]);
    state.set32(KEEPERS + 4 * own, 16 * keeper);
    let spot = told(state, RECORDS + 16 * keeper + 12, group);
    if spot == NO_SPOT {
        return Next::Further;
    }
    if run.writes {
        log.put(spot + run.rank, [run.mask, location, run.count]);
        state.set32_if(run.count > most_count(plan()), LARGE, 1);
    }
    Next::Done
}
