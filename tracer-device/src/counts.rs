//! The end of a counted loop whose lanes went through it differently often.
//!
//! Each distinct number of iterations ends a run: of the lanes that iterated as often or more often, as long as the step from the next smaller number.
//! The lanes leave their numbers for each other in shared memory, find out by comparing which run is theirs and how many runs come before it, and
//! the lowest lane whose number it is keeps it, in its own log. The time of a run is that of the group's highest lane, and later by as many units as runs come
//! before it: to find them takes longer than that, so the lanes' next events are later still.

use warptrace_format::Memory;

use crate::event::own_record;
use crate::log::{append_to_twin, begin_run};
use crate::simt;
use crate::space::StateMemory;
use crate::state::{MORES, NUMBERS};
use crate::unit::{KEEPS, Run, key_apart};

/// Finds the run that this lane's number of iterations ends, and whether it keeps it. All lanes of `group`.
#[inline(always)]
fn find(state: StateMemory, location: u32, iterations: u32, group: u32) -> (Run, bool) {
    let own = simt::own_lane();
    let mut place = state;
    place.set32(NUMBERS + 8 * own, iterations);
    // Each lane its own, for another group may be here too.
    place.set32(TIMES + 8 * own, simt::now(state));
    simt::settle(group);
    let time = state.get32(TIMES + 8 * simt::highest(group));
    let (mut mask, mut smaller, mut below) = (0, 0, 0);
    let mut left = group;
    while left != 0 {
        let lane = left.trailing_zeros();
        let number = state.get32(NUMBERS + 8 * lane);
        mask |= u32::from(number >= iterations) << lane;
        smaller = if (number < iterations) & (number > smaller) { number } else { smaller };
        below |= u32::from((number == iterations) & (lane < own));
        left &= left - 1;
    }
    let keeps = (iterations != 0) & (below == 0);
    place.set32(NUMBERS + 8 * own + 4, u32::from(keeps));
    simt::settle(group);
    let mut rank = 0;
    let mut left = group;
    while left != 0 {
        let lane = left.trailing_zeros();
        let [number, is_one] = state.get64(NUMBERS + 8 * lane);
        rank += if number < iterations { is_one } else { 0 };
        left &= left - 1;
    }
    // Nobody writes over a place that another lane still has to read.
    simt::settle(group);
    (Run { mask, location, count: iterations - smaller, time: time + rank }, keeps)
}

/// Where each lane's time is.
const TIMES: u32 = MORES + 4;

/// Records the loop in the trace. All lanes of `group`. Logs may be full then. (The logs are not emptied here: the lanes' runs have different
/// masks, so that not all would find that they are to.)
#[inline(always)]
pub(crate) fn counts(state: StateMemory, location: u32, iterations: u32, group: u32) {
    let (run, keeps) = find(state, location, iterations, group);
    let own = simt::own_lane();
    // Nobody counts further in these runs.
    let key = key_apart(location) | if keeps { KEEPS } else { 0 };
    begin_run(state, own, own_record(state), [run.mask, key, run.count, run.time]);
}

/// The same for the twin's log.
#[inline(always)]
pub(crate) fn twin_counts(state: StateMemory, location: u32, iterations: u32, group: u32) {
    let (run, keeps) = find(state, location, iterations, group);
    append_to_twin(state, simt::own_lane(), keeps, run);
}
