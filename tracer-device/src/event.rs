//! From an event to the encoder.
//!
//! An event that repeats the warp's last one only counts: its group looks whether the *pending run* is of this location and these very
//! lanes, and then each lane adds one to a word of its own. Any other event, a *miss*, enters the tracer, puts the pending run into
//! the queue (or adds to it) and becomes the pending run itself. A group that leaves 16 runs or more in the queue hands them to
//! the encoder first, each in one step however often its event repeats.
//!
//! # Groups that interleave
//! Two groups of a warp may be switched at any instruction (on an H200 it is rare away from branches and barriers, but a kernel
//! that diverges for long sees it). What has all live lanes is alone. Any other group takes the lock before it enters; if it is
//! taken, the group leaves its event in the mailbox and goes on. In the tracer all lanes of the group go the same way, so that it
//! stays together, and only what the leader writes counts, so that nothing is done twice should it come apart.
//!
//! Repeats take no lock. What a lane counts nobody else writes, and that the pending run is theirs only these lanes can make true: so
//! between the look and the count, the worst is that another group takes the run out, and then the count comes late (see `late`). A
//! group that leaves its event in the mailbox ends the counting of the pending run first if any of its lanes are in it: its next
//! event must not be counted before the one in the mailbox. For the same reason an event from the mailbox becomes a pending run that
//! nobody counts repeats of. To end the counting too often is harmless: it costs a miss.
//!
//! ptxas may move the look: to it, it is a load of one thread, and it was seen (for an H200) to move such loads up over loops of the
//! program, where groups change. Here that does no harm. Over the same lane's last trace point it cannot move it (that ends with a store
//! or a call), and the lanes that look, and find themselves in the pending run, count for it whenever they come to; what matters is only
//! that no lane of theirs was in the tracer in between.
//!
//! A run counts to 2^32 - 1; a warp needs more than a minute to repeat one event so often.

use warptrace_format::Memory;
use warptrace_format::codec::ecl::EclState;
use warptrace_format::codec::predict::PredictState;
use warptrace_format::codec::raw::RawState;

use crate::apart;
use crate::late::{self, Noted};
use crate::lock::{Entry, Lock};
use crate::mail::Mail;
use crate::queue::{FULL, Queue};
use crate::recorder::{Codec, DUAL_QUEUE_AT, ENTRIES, TWIN_TAKEN, Tables};
use crate::simt;
use crate::space::SharedMemory;
#[cfg(target_arch = "nvptx64")]
use crate::state::IS_FULL;
use crate::state::{
    BEHIND, COUNTED, DRAINED, ENTRIES_AT, LIVE, LOCK, OFF, PENDING, QUEUE, TAKEN, TWIN_PUT, WAITING, WORK,
    plan, state, tables, with_recorder,
};
use crate::stream::{Track, set64};

/// Records that the lanes of `mask` came to `location` `count` times in a row, at least once. On the GPU every lane of the mask
/// calls it. On the simulator only the leader does.
#[inline(always)]
pub(crate) fn record(location: u16, mask: u32, count: u32) {
    let state = state(true);
    // In a dual recording each event goes to the raw twin one by one, past the counting that is to be proved.
    if !plan().dual {
        let number = u32::from(location);
        let repeated = if number < ENTRIES {
            state.get32(ENTRIES_AT + 4 * number) == mask
        } else {
            let [counting, at, _, _] = state.get128(PENDING);
            (counting == mask) & (at == number)
        };
        state.count_if(repeated, COUNTED + 4 * simt::own_lane(), count);
        if repeated {
            return;
        }
    }
    apart::miss(state, location, mask, count, mask);
}

/// Records a run: the lanes of `mask` came to `location` `count` times in a row, at least once. On the GPU all lanes of `group`,
/// which holds `mask`, call it; on the simulator only the mask's leader.
#[inline(always)]
pub(crate) fn record_run(location: u16, mask: u32, count: u32, group: u32) {
    apart::miss(state(true), location, mask, count, group);
}

/// Records the runs of a list, as the lanes of a group have left it at `places`, 16 bytes a lane, from lane `first` on: a number that is
/// 0 if there is no run, its mask, its count, the lane of the next one or once more the same. All lanes of `group` call it.
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
#[inline(always)]
pub(crate) fn record_list(location: u16, places: SharedMemory, first: u32, group: u32) {
    let location = u32::from(location);
    let leader = simt::is_leader(group);
    let head = state(leader);
    let [live, off] = head.get64(LIVE);
    if off & OFF != 0 {
        return;
    }
    let state = head.displaced(off);
    let shared = group != live;
    let lock = Lock::new(head, state, LOCK, group);
    let entry = if shared { lock.enter() } else { Entry::INSIDE };
    // One lane for all, to the end of the list.
    if leader & (entry == Entry::INSIDE) {
        sort_mail(state);
        walk(places, first, |mask, count| {
            let queued = put(state, location, mask, count, true).wrapping_sub(state.get32(TAKEN));
            if queued.max(twin_queued(state)) >= FULL {
                empty(state, 1 << simt::own_lane());
            }
        });
        lock.leave();
    } else if leader {
        let mut entry = entry;
        walk(places, first, |mask, count| {
            meet(head, location, mask, count, group, entry);
            entry = Entry::NONE;
        });
    }
    // No lane runs ahead of its events.
    simt::settle(group);
}

/// Hands the runs of a list to `take`: mask, count.
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
#[inline(always)]
fn walk(places: SharedMemory, first: u32, mut take: impl FnMut(u32, u32)) {
    let mut lane = first;
    loop {
        let [number, mask, count, next] = places.get128(16 * lane);
        if number != 0 {
            take(mask, count);
        }
        if next == lane {
            break;
        }
        lane = next;
    }
}

/// Everything but the repetition of the last event.
///
/// This is the way that most misses go. Where it becomes longer, the rest is a call at the end, behind which nothing is needed any
/// more, so that the way itself saves no registers: they would be as many memory accesses again.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[cfg_attr(not(target_arch = "nvptx64"), inline(never))]
pub(crate) fn miss(state: SharedMemory, location: u32, mask: u32, count: u32, group: u32) {
    #[cfg(target_arch = "nvptx64")]
    let leader = simt::is_leader(group);
    #[cfg(not(target_arch = "nvptx64"))]
    let leader = true;
    let head = state.led_by(leader);
    let [live, off] = head.get64(LIVE);
    if off & OFF != 0 {
        return;
    }
    // The same place, for the rest of `off` is 0. To ptxas it is another one that may or may not overlap `head`, which keeps the
    // accesses below between those of the lock, and those of the lock in order.
    let state = head.displaced(off);
    // See the crate's documentation for why the whole live mask needs no lock.
    let shared = cfg!(target_arch = "nvptx64") && group != live;
    let lock = Lock::new(head, state, LOCK, group);
    let entry = if shared { lock.enter() } else { Entry::INSIDE };
    let [sorted, posted] = state.get64(WAITING);
    if entry != Entry::INSIDE {
        apart::slow(state, location, mask, count, group, entry);
        return;
    }
    if sorted != posted {
        apart::sort(state, location, mask, count, group);
        return;
    }
    let queued = put(state, location, mask, count, true).wrapping_sub(state.get32(TAKEN));
    if queued.max(twin_queued(state)) >= FULL {
        apart::full(state, group);
        return;
    }
    if shared {
        lock.leave();
    }
    // No lane runs ahead of its event.
    simt::settle(group);
}

/// Runs in the twin's queue.
#[inline(always)]
fn twin_queued(state: SharedMemory) -> u32 {
    if plan().dual { state.get32(TWIN_PUT).wrapping_sub(state.get32(TWIN_TAKEN)) } else { 0 }
}

/// The rest of a miss where the lock was not to be had at once.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn slow(state: SharedMemory, location: u32, mask: u32, count: u32, group: u32, entry: Entry) {
    // One lane for all.
    if state.leader {
        meet(state, location, mask, count, group, entry);
    }
    // No lane runs ahead of its event.
    simt::sync_warp(group);
}

/// Enters the tracer, or leaves the event in the mailbox, whichever is possible first. From one lane.
///
/// `entry` says how its last attempt to enter ended.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn meet(state: SharedMemory, location: u32, mask: u32, count: u32, group: u32, entry: Entry) {
    // A tracer must not be able to stop the program that it looks at. Whoever is inside goes on, and comes out long before.
    const NAPS: u32 = 1 << 20;
    let zero = state.get32(LIVE + 12);
    let lock = Lock::new(state, state.displaced(zero), LOCK, group);
    let mut entry = entry;
    let mut naps = NAPS;
    loop {
        if lock.insist(entry) {
            // As a call, so that the loops here put no YIELD into what is done inside.
            return apart::sort(state, location, mask, count, 1 << simt::own_lane());
        }
        end_counting(state, group);
        if Mail(state).post(mask, location, count) {
            return;
        }
        if naps == 0 {
            return Mail(state).skip(count);
        }
        naps -= 1;
        simt::pause(NAP_NANOSECONDS);
        entry = lock.enter();
    }
}

/// The rest of a miss with events in the mailbox, inside the lock.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn sort(head: SharedMemory, location: u32, mask: u32, count: u32, group: u32) {
    let mut state = head.displaced(head.get32(LIVE + 12));
    // One lane for all.
    if head.leader {
        sort_mail(state);
        let queued = put(state, location, mask, count, true).wrapping_sub(state.get32(TAKEN));
        state.set32(IS_FULL, u32::from(queued.max(twin_queued(state)) >= FULL));
    }
    simt::settle(group);
    if state.get32(IS_FULL) != 0 {
        empty(state, group);
    }
    leave_together(head, state, group);
}

/// The rest of a miss with which the queue has become full, inside the lock.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn full(head: SharedMemory, group: u32) {
    let state = head.displaced(head.get32(LIVE + 12));
    empty(state, group);
    leave_together(head, state, group);
}

/// Leaves the lock when all lanes of `group` have come: what they read inside to go the same way is not another group's then.
///
/// Who did not need the lock is alone, and leaves it as it is.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn leave_together(head: SharedMemory, state: SharedMemory, group: u32) {
    // And no lane runs ahead of its event.
    simt::settle(group);
    Lock::new(head, state, LOCK, group).leave();
}

/// Ends the counting of the pending run, if lanes of `group` are in it. Outside the lock: the group inside may have made another
/// run of other lanes pending meanwhile, and ends up counting it by misses.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn end_counting(mut state: SharedMemory, group: u32) {
    let [counting, location] = state.get64(PENDING);
    if counting & group != 0 {
        state.set32(entry_at(location), 0);
        state.set32(PENDING, 0);
    }
}

/// How long a group sleeps between two attempts.
#[cfg(target_arch = "nvptx64")]
pub(crate) const NAP_NANOSECONDS: u32 = 200;

/// Puts the events from the mailbox into the queue; there is room.
#[inline(always)]
pub(crate) fn sort_mail(state: SharedMemory) {
    Mail(state).take_out(|mask, location, count| {
        put(state, location, mask, count, false);
    });
}

/// Where the location's entry is. Those without one share the entry of 0, which is no location.
#[inline(always)]
fn entry_at(location: u32) -> u32 {
    ENTRIES_AT + if location < ENTRIES { 4 * location } else { 0 }
}

/// Puts the pending run into the queue and makes the event the pending run, or adds to it if it is the same. `present`: the
/// event's lanes are here, so they may count repeats of it when they have left. Answers how many runs were put into the queue.
#[inline(always)]
fn put(mut state: SharedMemory, location: u32, mask: u32, count: u32, present: bool) -> u32 {
    let (at, [known, number]) = (state.get32(PENDING + 4), state.get64(PENDING + 8));
    let ([before, base], [names, wide]) = (state.get64(BEHIND), state.get64(BEHIND + 8));
    let mut noted = Noted { names, wide };
    // First of all, for groups that end the counting meanwhile: what is pending says which entry is not 0.
    state.set32(entry_at(at), 0);
    // Before the first event there is no such lane, and `counted` some other word of the header, which nothing depends on.
    let (lane, lane_before) = (simt::lowest(mask), simt::lowest(before));
    let counted = late::counted(state, lane_before);
    let own_counted = late::counted(state, lane);
    let repeats = known.wrapping_add(counted.wrapping_sub(base));
    let sum = repeats.wrapping_add(count);
    // A longer run, as far as the counter goes.
    let longer = (before == mask) & (at == location) & (sum >= repeats);
    // Before the first event there is no run to put away either. Then the place is free, and is written again later.
    let stays = longer | (before == 0);
    Queue::new(state, QUEUE, TAKEN).put(number, before, at, repeats);
    let mut next = number.wrapping_add(u32::from(!stays));
    // No lane is in two runs that are pending or noted, so with a longer run there is nothing to settle.
    if (before & mask == 0) & !stays {
        noted = late::note(state, noted, lane_before, before, at, counted);
    }
    if (noted.names & mask) | (noted.wide & mask) != 0 {
        noted = late::settle(state, noted, mask, |lanes, location, count| {
            Queue::new(state, QUEUE, TAKEN).put(next, lanes, location, count);
            next = next.wrapping_add(1);
        });
    }
    let counting = if present & !plan().dual { mask } else { 0 };
    // For a longer run what was read first: it may be counted on.
    state.set128(BEHIND, [mask, if longer { counted } else { own_counted }, noted.names, noted.wide]);
    state.set128(PENDING, [counting, location, if longer { sum } else { count }, next]);
    state.set32(entry_at(location), if location < ENTRIES { counting } else { 0 });
    if plan().dual {
        let number = state.get32(TWIN_PUT);
        Queue::new(state, DUAL_QUEUE_AT, TWIN_TAKEN).put(number, mask, location, count);
        state.set32(TWIN_PUT, number.wrapping_add(1));
    }
    next
}

/// Puts the last run into the queue, and what came late of those before. Nobody is left.
#[inline(always)]
pub(crate) fn put_rest(mut state: SharedMemory) {
    let [_, at, known, mut next] = state.get128(PENDING);
    let [before, base, names, wide] = state.get128(BEHIND);
    if before != 0 {
        let counted = late::counted(state, simt::lowest(before));
        let repeats = known.wrapping_add(counted.wrapping_sub(base));
        Queue::new(state, QUEUE, TAKEN).put(next, before, at, repeats);
        next = next.wrapping_add(1);
    }
    late::settle(state, Noted { names, wide }, u32::MAX, |lanes, location, count| {
        Queue::new(state, QUEUE, TAKEN).put(next, lanes, location, count);
        next = next.wrapping_add(1);
    });
    state.set32(PENDING + 12, next);
}

/// Empties the queue, inside the lock or alone: the leader encodes, and wherever a chunk is full all lanes of `group` claim another.
#[inline(always)]
pub(crate) fn empty(state: SharedMemory, group: u32) {
    let leader = cfg!(not(target_arch = "nvptx64")) || simt::is_leader(group);
    loop {
        if leader {
            apart::drain(state);
        }
        // Who was apart reads what the leader has left, and the leader changes it only behind the next meeting. So all lanes meet
        // equally often: one that met once too few would leave the others standing here.
        simt::settle(group);
        let twin_wants = plan().dual && Track::new(state, 1, 0).wants_chunk();
        if !Track::new(state, 0, 0).wants_chunk() & !twin_wants {
            return;
        }
        apart::renew(state, group);
        simt::settle(group);
    }
}

/// Claims chunks for the tracks that want one. All lanes of a group do the same, and what the leader writes counts.
#[inline(always)]
pub(crate) fn renew(state: SharedMemory) {
    let plan = plan();
    let (warp, [low, high]) = (state.get32(LIVE + 8), state.get64(WORK));
    let track = Track::new(state, 0, warp);
    if track.wants_chunk() {
        let tables = tables(state, plan, u64::from(low) | u64::from(high) << 32);
        with_recorder!(plan, R => track.renew::<R>(tables));
    }
    let twin = Track::new(state, 1, warp);
    if plan.dual && twin.wants_chunk() {
        twin.renew::<RawState>(Tables::none(tables(state, plan, 0).leader));
    }
}

/// Hands the queue's runs to the encoder, and the twin's to the twin, as far as their chunks have room. From one lane, inside the lock or
/// alone.
#[inline(always)]
pub(crate) fn encode(mut state: SharedMemory) {
    let plan = plan();
    let warp = state.get32(LIVE + 8);
    let [low, high, drained_low, drained_high] = state.get128(WORK);
    let tables = tables(state, plan, u64::from(low) | u64::from(high) << 32);
    let (queue, put) = (Queue::new(state, QUEUE, TAKEN), state.get32(PENDING + 12));
    let drained = with_recorder!(plan, R => Track::new(state, 0, warp).drain::<R>(tables, queue, put));
    set64(&mut state, DRAINED, (u64::from(drained_low) | u64::from(drained_high) << 32) + drained);
    if plan.dual {
        let (queue, put) = (Queue::new(state, DUAL_QUEUE_AT, TWIN_TAKEN), state.get32(TWIN_PUT));
        Track::new(state, 1, warp).drain::<RawState>(Tables::none(true), queue, put);
    }
}
