//! From a trace point to a log.
//!
//! Events of one location and mask that follow each other are a *run*. Its *keeper*, the highest lane of the mask, has the run's *record* in shared
//! memory, while it is the keeper's last: mask, location, how often, when it began.
//!
//! - An event whose keeper's record has this very location and mask repeats its lanes' last event. It adds one to the record.
//! - Any other is a *miss*: each of its lanes makes the run that it was in unrepeatable; the keeper appends the run that it has kept to its log, and
//!   keeps the new one.
//!
//! Logs are merged and encoded after the kernel (see `merge`, `after`). Only if log memory gets short, they are handed to the encoder as soon as all live
//! lanes of the warp come to a miss together.
//!
//! # Groups that interleave
//! Two groups of a warp may be switched at any instruction, and nothing keeps them apart. Nothing need be, for they share no lane:
//!
//! - A record and a log are written by their own lane alone; others only mark a record as unrepeatable, which costs the next event of that
//!   mask a miss and is always allowed.
//! - A lane that misses marks the record of the last run that it was in before it comes to any other event. So an unmarked record is found only by
//!   lanes whose last event it is, all of them. Nobody else can change that before they have counted.
//! - The time of a run is read by its keeper while all lanes of the group are together.
//! - Between the vote that answers the mask and the end of a miss there is no branch at which the lanes of a group could part, and nothing that they
//!   wait for. (A keeper that came later than its group would write a record that nobody marks any more.)
//!
//! All lanes of the group find the same record, for its address depends on their mask: so they look when they are together, not before (ptxas moves
//! loads up over loops, if it can). In a miss no lane waits for another.
//!
//! # The order
//! For each lane, the trace has its events in the order in which it executed them. Events of disjoint groups of a warp stand in the order in which
//! their runs began. Which group the hardware ran first in between, a trace does not tell.
//!
//! A run counts to 2^31 and further; a warp needs more than half a minute to repeat one event so often.

use warptrace_format::Memory;

use crate::log::{self, append_to_twin, begin_run, end_own_run};
use crate::space::SharedMemory;
use crate::state::{DRAIN, RECORDS, log, plan, state, twin_log};
use crate::{apart, drain, simt};

/// Bytes of a record.
const RECORD_BYTES: u32 = 16;

/// Records that the lanes of `mask` came to `location` `count` times in a row, at least once. On the GPU every lane of the mask
/// calls it. On the simulator only the leader does.
#[inline(always)]
pub(crate) fn record(location: u16, mask: u32, count: u32) {
    let state = state(true);
    let record = RECORD_BYTES * simt::highest(mask);
    // All lanes write the same. Between the vote that has answered the mask and this there is no branch at which they could part.
    let repeats = state.repeat::<RECORDS>(record, mask, u32::from(location), count);
    let time = if plan().dual { simt::now(state) } else { 0 };
    if !repeats {
        apart::miss(state, location, mask, count, mask);
    }
    // Afterwards, for there they may; with the time from before.
    if plan().dual {
        apart::twin(state, location, mask, count, time);
    }
}

/// Records a run: the lanes of `mask` came to `location` `count` times in a row, at least once. On the GPU all lanes of `group`,
/// which is the mask, call it; on the simulator only the mask's leader, and `group` holds the mask.
#[inline(always)]
pub(crate) fn record_run(location: u16, mask: u32, count: u32, group: u32) {
    let state = state(true);
    let time = if plan().dual { simt::now(state) } else { 0 };
    apart::miss(state, location, mask, count, group);
    if plan().dual {
        apart::twin(state, location, mask, count, time);
    }
}

/// Records a counted loop: the lanes of `group` all call it, each with its own number of iterations.
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
#[inline(always)]
pub(crate) fn record_counts(location: u16, iterations: u32, group: u32) {
    let state = state(true);
    apart::counts(state, location, iterations, group);
    if plan().dual {
        apart::twin_counts(state, location, iterations, group);
    }
}

/// What a lane that came with an event does next: nothing, or one of the longer ways, which are functions of their own.
///
/// They are not called from here but from the trace point: see `apart`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The event is recorded.
    Done,
    /// The lane's log is full.
    Further,
    /// Memory is short, and all live lanes are here: [`drain`].
    Drain,
}

/// Everything but the repetition of the last event. `group` is the mask, or, where a counted loop has ended, holds it.
#[inline(always)]
pub(crate) fn miss(state: SharedMemory, location: u32, mask: u32, count: u32, group: u32) -> Next {
    let time = simt::now(state);
    let keeper = simt::highest(mask);
    // One of some lanes of the group only is one of a counted loop, and complete.
    let location = if mask == group { location } else { location | log::UNREPEATABLE };
    let mut full = false;
    simt::for_own_lanes(group, |lane| {
        full |= begin_run(state, lane, keeper, lane == keeper, [mask, location, count, time]);
    });
    next(state, mask, full)
}

/// What comes after an event of `mask`.
#[inline(always)]
fn next(state: SharedMemory, mask: u32, full: bool) -> Next {
    let together = state.get32(DRAIN) == mask;
    if !(together | full) {
        Next::Done
    } else if together && simt::is_together(mask) {
        // Where the lanes have come apart (as in a dual recording, once the keeper has claimed memory), some may have found another answer.
        Next::Drain
    } else if full {
        Next::Further
    } else {
        Next::Done
    }
}

/// Records an event of a dual recording in the twin's log, which has every event of its own. `time` is that at which the group was together.
#[inline(always)]
pub(crate) fn twin(state: SharedMemory, location: u32, mask: u32, count: u32, time: u32) -> Next {
    let keeper = simt::highest(mask);
    let lane = if cfg!(target_arch = "nvptx64") { simt::own_lane() } else { keeper };
    let full = append_to_twin(state, lane, lane == keeper, [mask, location, count, time]);
    next(state, mask, full)
}

/// Empties the logs, but for the run that has just begun: its keeper goes on with it. All live lanes of the warp, together: `group`, which is its mask.
#[inline(always)]
pub(crate) fn drain(state: SharedMemory, group: u32) {
    let keeper = simt::highest(group);
    simt::for_own_lanes(group, |lane| {
        // In a log that has been stopped there is a place for what is lost, and it must be free.
        log(state).lose_if_full(lane);
        if plan().dual {
            twin_log(state).lose_if_full(lane);
            twin_log(state).close(lane);
        }
        if lane != keeper {
            if end_own_run(state, lane) {
                log(state).lose(lane);
            }
            let mut state = state;
            state.set128(RECORDS + RECORD_BYTES * lane, [0; 4]);
        }
        log(state).close(lane);
    });
    drain::drain(state, group);
    simt::for_own_lanes(group, |lane| {
        log(state).rewind(lane, lane == keeper);
        if plan().dual {
            twin_log(state).rewind(lane, true);
        }
    });
    simt::sync_group(group);
}
