//! From a trace point to the log.
//!
//! Events of one location and mask that follow each other are a *run*, one entry of the warp's log. It stands where it has begun. Its *keeper*, the
//! highest lane of the mask, has the run's record in shared memory: mask, location, how often, its spot in the log.
//!
//! - An event whose keeper's record has this very location and mask repeats its lanes' last event. It adds one to the record.
//! - Any other is a *miss*: its lanes end their runs (what they keep, they write to the log; what they are in, they make unrepeatable), and the
//!   new run's keeper appends it to the log.
//!
//! Logs are encoded after the kernel (see `after`). Only if the pool gets short, a log is handed to the encoder as soon as all live lanes of the warp
//! come to a trace point together.
//!
//! # Groups that interleave
//! Two groups of a warp may be switched at any instruction, and only the log's cursor is behind a lock. More need not be, for groups share no lane:
//!
//! - A record is written by its keeper alone; others only set its mask to 0, which costs the keeper's group a miss and is always allowed.
//! - A lane that misses makes its last run unrepeatable before its event goes to the log. So a record is found only by lanes whose last event it
//!   is, all of them. Nobody else can change that before they have counted.
//! - Each run has a place of its own in the log. The lanes of a group wait for their keeper before they go on, so the places of a lane's
//!   events are in the order in which it executed them.
//! - The encoder runs when nobody else is left, and all runs have ended.
//!
//! All lanes of the group find the same record, for its address depends on their mask: so they look when they are together, not before (ptxas moves
//! loads up over loops, if it can). What decides later in a miss is a word that the keeper has written, read between two meetings of the group.
//!
//! # The order
//! For each lane, the trace has its events in the order in which it executed them. Events of disjoint groups of a warp stand in the order in which
//! their runs began. Which group the hardware ran first in between, a trace does not tell.
//!
//! A run counts to 2^31 and further; a warp needs more than half a minute to repeat one event so often.

use warptrace_format::Memory;

use crate::after::most_count;
use crate::log::{Head, NO_SPOT, set_count};
use crate::recorder::TWIN_SPOTS;
use crate::simt;
use crate::space::SharedMemory;
use crate::state::{KEEPERS, LARGE, RECORDS, log, plan, state, twin_log};
use crate::{apart, drain};

/// Bytes of a record: mask, or 0 if nobody may count repeats; location; count; spot in the log.
const RECORD_BYTES: u32 = 16;

/// Counts from which on a run is not repeated.
const LONG: u32 = 1 << 31;

/// Records that the lanes of `mask` came to `location` `count` times in a row, at least once. On the GPU every lane of the mask
/// calls it. On the simulator only the leader does.
#[inline(always)]
pub(crate) fn record(location: u16, mask: u32, count: u32) {
    let state = state(true);
    let record = RECORD_BYTES * simt::highest(mask);
    // All lanes write the same. Between the vote that has answered the mask and this there is no branch at which they could part.
    let repeats = state.repeat::<RECORDS>(record, mask, u32::from(location), count);
    // Afterwards, for there they may.
    if plan().dual {
        apart::twin(state, location, mask, count, mask);
    }
    if !repeats {
        apart::miss(state, location, mask, count);
    }
}

/// Records a run: the lanes of `mask` came to `location` `count` times in a row, at least once. On the GPU all lanes of `group`,
/// which is the mask, call it; on the simulator only the mask's leader, and `group` holds the mask.
#[inline(always)]
pub(crate) fn record_run(location: u16, mask: u32, count: u32, group: u32) {
    let state = state(true);
    if plan().dual {
        apart::twin(state, location, mask, count, group);
    }
    // On the GPU the runs of some lanes only go another way: see `counts`.
    #[cfg(target_arch = "nvptx64")]
    apart::miss(state, location, mask, count);
    #[cfg(not(target_arch = "nvptx64"))]
    apart::run(state, location, mask, count, group);
}

/// Records a counted loop: the lanes of `group` all call it, each with its own number of iterations.
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
#[inline(always)]
pub(crate) fn record_counts(location: u16, iterations: u32, group: u32) {
    let state = state(true);
    if plan().dual {
        apart::twin_counts(state, location, iterations, group);
    }
    apart::counts(state, location, iterations, group);
}

/// What a group that came with an event does next: nothing, or one of the longer ways, which are functions of their own.
///
/// They are not called from here but from the trace point: see `apart`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The event is recorded.
    Done,
    /// There is no room in the log's segment, or another group is at it: [`further`].
    Further,
    /// The log is long, and all live lanes are here: [`drain`].
    Drain,
}

/// Everything but the repetition of the last event. `group` is the mask, or, where a counted loop has ended, holds it.
#[inline(always)]
pub(crate) fn miss(state: SharedMemory, location: u32, mask: u32, count: u32, group: u32) -> Next {
    let head = log(state).head();
    if head.is_off() {
        return Next::Done;
    }
    simt::for_own_lanes(group, |lane| {
        end_own_run(state, lane);
        end_common_run(state, lane);
    });
    if (head.before == group) & head.is_long() && simt::is_together(group) {
        return Next::Drain;
    }
    append(state, head, [mask, location, count], group)
}

/// Appends a run to the log and writes the records of the lanes of `group`.
#[inline(always)]
fn append(mut state: SharedMemory, head: Head, run: [u32; 3], group: u32) -> Next {
    let [mask, location, count] = run;
    let keeper = simt::highest(mask);
    let record = RECORDS + RECORD_BYTES * keeper;
    let mut own = [0; 4];
    if simt::is_own(keeper) {
        let alone = head.before == group;
        let spot = log(state).append(head, run, keeper, alone, state.seen_with(mask));
        own = record_of(location, mask, count, group, spot);
    }
    simt::for_own_lanes(group, |lane| {
        let words = if cfg!(target_arch = "nvptx64") || lane == keeper { own } else { [0; 4] };
        state.set128(RECORDS + RECORD_BYTES * lane, words);
        state.set32(KEEPERS + 4 * lane, RECORD_BYTES * keeper);
    });
    if told(state, record + 12, group) == NO_SPOT { Next::Further } else { Next::Done }
}

/// The record of a run. One that has no spot is not repeated. One of some lanes of the group only is one of a counted loop, and complete.
#[inline(always)]
fn record_of(location: u32, mask: u32, count: u32, group: u32, spot: u32) -> [u32; 4] {
    let good = spot != NO_SPOT;
    let repeatable = (mask == group) & good & (count < LONG);
    [if repeatable { mask } else { 0 }, location, if good { count } else { 0 }, spot]
}

/// The word at `at`, which the group's keeper has written, to all its lanes. No lane runs ahead of its event, and none reads what the keeper writes
/// next.
#[inline(always)]
pub(crate) fn told(state: SharedMemory, at: u32, group: u32) -> u32 {
    // No volatile load: of that ptxas would think that it waits for another thread, and put a YIELD there (see `apart`).
    let word = state.seen_with(simt::settle(group)).get32(at);
    simt::settle(group);
    word
}

/// Appends the event where [`miss`] could not. All lanes of `group`.
#[inline(always)]
pub(crate) fn further(mut state: SharedMemory, location: u32, mask: u32, count: u32, group: u32) {
    let keeper = simt::highest(mask);
    if simt::is_own(keeper) {
        let spot = log(state).append_further([mask, location, count], keeper, state.seen_with(mask));
        state.set128(RECORDS + RECORD_BYTES * keeper, record_of(location, mask, count, group, spot));
    }
    // No lane runs ahead of its event.
    simt::sync_group(group);
}

/// Writes the count of the run that `lane` keeps to the log, unless it stands there.
#[inline(always)]
pub(crate) fn end_own_run(mut state: SharedMemory, lane: u32) {
    let [count, spot] = state.get64(RECORDS + RECORD_BYTES * lane + 8);
    if count > 1 {
        set_count(state, spot, count);
        state.set32_if(count > most_count(plan()), LARGE, 1);
    }
}

/// Makes the run unrepeatable that `lane` was in last, if nobody else has.
#[inline(always)]
pub(crate) fn end_common_run(mut state: SharedMemory, lane: u32) {
    // Before the lane's first run it is the first record, in which no lane is.
    let record = RECORDS + state.get32(KEEPERS + 4 * lane);
    let mask = state.get32(record);
    state.set32_if(mask >> lane & 1 != 0, record, 0);
}

/// Empties the logs, and records the event. All live lanes of the warp, together: `group`.
#[inline(always)]
pub(crate) fn drain(state: SharedMemory, location: u32, mask: u32, count: u32, group: u32) {
    empty(state, group);
    let log = log(state);
    if append(state, log.head(), [mask, location, count], group) != Next::Done
        && simt::is_own(simt::highest(mask))
    {
        log.lose(count);
    }
}

/// Empties the logs, and records the event in the twin's. All live lanes of the warp, together: `group`.
#[inline(always)]
pub(crate) fn twin_drain(state: SharedMemory, location: u32, mask: u32, count: u32, group: u32) {
    empty(state, group);
    let log = twin_log(state);
    let keeper = simt::highest(mask);
    if simt::is_own(keeper) {
        let run = [mask, location, count];
        if log.append(log.head(), run, keeper, true, state.seen_with(mask)) == NO_SPOT {
            log.lose(count);
        }
    }
    simt::sync_group(group);
}

/// Ends all runs and empties the logs. All live lanes of the warp, together; on the simulator one for all of `group`.
#[inline(always)]
pub(crate) fn empty(mut state: SharedMemory, group: u32) {
    simt::for_own_lanes(group, |lane| {
        end_own_run(state, lane);
        state.set128(RECORDS + RECORD_BYTES * lane, [0; 4]);
    });
    drain::drain(state, group);
}

/// Records an event of a dual recording in the twin's log, which has every event of its own.
#[inline(always)]
pub(crate) fn twin(mut state: SharedMemory, location: u32, mask: u32, count: u32, group: u32) -> Next {
    let twin_log = twin_log(state);
    let head = twin_log.head();
    if head.is_off() {
        return Next::Done;
    }
    let live = log(state).head().before;
    if (live == group) & head.is_long() && simt::is_together(group) {
        return Next::Drain;
    }
    let keeper = simt::highest(mask);
    let at = TWIN_SPOTS + 4 * keeper;
    if simt::is_own(keeper) {
        let alone = live == group;
        let spot = twin_log.append(head, [mask, location, count], keeper, alone, state.seen_with(mask));
        state.set32(at, spot);
    }
    if told(state, at, group) == NO_SPOT { Next::Further } else { Next::Done }
}

/// Appends the event to the twin's log where [`twin`] could not. All lanes of `group`.
#[inline(always)]
pub(crate) fn twin_further(state: SharedMemory, location: u32, mask: u32, count: u32, group: u32) {
    let keeper = simt::highest(mask);
    if simt::is_own(keeper) {
        twin_log(state).append_further([mask, location, count], keeper, state.seen_with(mask));
    }
    simt::sync_group(group);
}
