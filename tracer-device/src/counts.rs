//! The end of a counted loop whose lanes went through it differently often.
//!
//! Each distinct number of iterations ends a run: of the lanes that iterated as often or more often, as long as the step from the next smaller number.
//! The lanes leave their numbers for each other in shared memory, find out by comparing which run is theirs and how many runs come before it, and
//! the lowest lane of each run keeps it, in its own log. All runs of a loop have the same time, that of the group's keeper; how many come before it
//! tells their order.

use warptrace_format::Memory;

use crate::event::Next;
use crate::log::{RANK_BITS, UNREPEATABLE, append_to_twin, begin_run};
use crate::simt;
use crate::space::SharedMemory;
use crate::state::counts as places;

/// What a lane contributes: the run that its number of iterations ends.
struct Run {
    mask: u32,
    count: u32,
    /// How many runs come before it.
    rank: u32,
    /// Whether this lane writes it.
    writes: bool,
    time: u32,
}

impl Run {
    /// As it stands in a log.
    #[inline(always)]
    fn words(&self, location: u32) -> [u32; 4] {
        [self.mask, location | self.rank << RANK_BITS | UNREPEATABLE, self.count, self.time]
    }
}

/// Finds the runs. All lanes of `group`.
#[inline(always)]
fn find(state: SharedMemory, iterations: u32, group: u32) -> Run {
    let places = places();
    let own = simt::own_lane();
    let mut place = places;
    place.set32(8 * own, iterations);
    // Each lane its own, for another group may be here too.
    place.set32(TIMES_AT + 4 * own, simt::now(state));
    simt::settle(group);
    let time = places.get32(TIMES_AT + 4 * simt::highest(group));
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
    let mut rank = 0;
    let mut left = group;
    while left != 0 {
        let lane = left.trailing_zeros();
        let [number, is_one] = places.get64(8 * lane);
        rank += if number < iterations { is_one } else { 0 };
        left &= left - 1;
    }
    // Nobody writes over a place that another lane still has to read.
    simt::settle(group);
    Run { mask, count: iterations - smaller, rank, writes, time }
}

/// What comes after a loop. The logs are not emptied here: several lanes have just begun runs of the same time.
#[inline(always)]
fn next(full: bool) -> Next {
    if full { Next::Further } else { Next::Done }
}

/// Where each lane's time is.
const TIMES_AT: u32 = 8 * simt::WARP_LANES;

/// Records the loop in the trace. All lanes of `group`.
#[inline(always)]
pub(crate) fn counts(state: SharedMemory, location: u32, iterations: u32, group: u32) -> Next {
    let run = find(state, iterations, group);
    let own = simt::own_lane();
    // Nobody repeats these runs: what a lane was in last is of no importance, as long as it is a record.
    next(begin_run(state, own, own, run.writes, run.words(location)))
}

/// The same for the twin's log.
#[inline(always)]
pub(crate) fn twin_counts(state: SharedMemory, location: u32, iterations: u32, group: u32) -> Next {
    let run = find(state, iterations, group);
    next(append_to_twin(state, simt::own_lane(), run.writes, run.words(location)))
}
