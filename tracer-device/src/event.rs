//! From an event to the encoder.
//!
//! An event that repeats the warp's last one only counts: its group looks whether the *pending run* is of this location and these very
//! lanes, and then each lane adds one to a word of its own. Any other event, a *miss*, enters the tracer, puts the pending run into
//! the queue (or adds to it) and becomes the pending run itself. A group that finds 16 runs in the queue or more hands them to
//! the encoder, each in one step however often its event repeats.
//!
//! # Groups that interleave
//! Two groups of a warp may be switched at any instruction (on an H200 it is rare away from branches and barriers, but a kernel
//! that diverges for long sees it). What has all live lanes is alone. Any other group takes the lock before it enters; if it is
//! taken, the group leaves its event in the mailbox and goes on. In the tracer all lanes of the group go the same way, so that it stays
//! together, and only what the leader writes counts, so that nothing is done twice should it come apart.
//!
//! Repeats take no lock. What a lane counts nobody else writes, and that the pending run is theirs only these lanes can make true: so
//! between the look and the count, the worst is that another group takes the run out, and then the count comes late (see `late`). A
//! group that leaves its event in the mailbox ends the counting of the pending run first if any of its lanes are in it: its next
//! event must not be counted before the one in the mailbox. For the same reason an event from the mailbox becomes a pending run that
//! nobody counts repeats of. To end the counting too often is harmless: it costs a miss.
//!
//! All lanes of the group must find the same, or some would count and others wait for them in the tracer, for ever. So they must look together,
//! when their mask is known. To ptxas the look is a load of one thread, and it moved such loads up over loops of the program, to where the
//! lanes were apart; therefore its address depends on the mask (see `SharedMemory::seen_with`).
//!
//! A run counts to 2^32 - 1; a warp needs more than a minute to repeat one event so often.

use warptrace_format::Memory;
use warptrace_format::codec::ecl::EclState;
use warptrace_format::codec::predict::PredictState;
use warptrace_format::codec::raw::RawState;

use crate::apart;
use crate::late::{self, Noted};
#[cfg(target_arch = "nvptx64")]
use crate::lock::Entry;
use crate::lock::Lock;
use crate::mail::Mail;
use crate::queue::{FULL, Queue, Waiting};
use crate::recorder::{Codec, DUAL_QUEUE_AT, ENTRIES, TWIN_TAKEN, Tables};
use crate::simt;
use crate::space::SharedMemory;
use crate::state::{
    BEHIND, COUNTED, DRAINED, ENTRIES_AT, LIVE, LOCK, OFF, PENDING, QUEUE, TAKEN, TWIN_PUT, WORK, plan,
    state, tables, with_recorder,
};
#[cfg(target_arch = "nvptx64")]
use crate::state::{IS_FULL, WAITING};
use crate::stream::{Track, set64};

/// Records that the lanes of `mask` came to `location` `count` times in a row, at least once. On the GPU every lane of the mask
/// calls it. On the simulator only the leader does.
#[inline(always)]
pub(crate) fn record(location: u16, mask: u32, count: u32) {
    let state = state(true);
    // In a dual recording each event goes to the raw twin one by one, past the counting that is to be proved.
    if !plan().dual {
        let number = u32::from(location);
        let now = state.seen_with(mask);
        let repeated = if number < ENTRIES {
            now.get32(ENTRIES_AT + 4 * number) == mask
        } else {
            let [counting, at, _, _] = now.get128(PENDING);
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

/// What a group that came with an event does next: nothing, or one of the longer ways, which are functions of their own.
///
/// They are not called from here but from the trace point: see `apart`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The event is recorded.
    Done,
    /// The lock is not to be had at once, or the lanes of the group are apart: [`meet`].
    #[cfg(target_arch = "nvptx64")]
    Meet,
    /// There are events in the mailbox: [`sort`], inside the lock.
    #[cfg(target_arch = "nvptx64")]
    Sort,
    /// The queue is full: [`drain`], inside the lock.
    Drain,
    /// The chunk is full: [`renew`], inside the lock.
    Renew,
}

/// Everything but the repetition of the last event.
#[inline(always)]
pub(crate) fn miss(state: SharedMemory, location: u32, mask: u32, count: u32, group: u32) -> Next {
    #[cfg(target_arch = "nvptx64")]
    let leader = simt::is_leader(group);
    #[cfg(not(target_arch = "nvptx64"))]
    let leader = true;
    let head = state.led_by(leader);
    let [live, off] = head.get64(LIVE);
    if off & OFF != 0 {
        return Next::Done;
    }
    // Lanes that are apart would see different things below, and go different ways.
    #[cfg(target_arch = "nvptx64")]
    if !simt::is_together(group) {
        return Next::Meet;
    }
    // The same place, for the rest of `off` is 0. To ptxas it is another one that may or may not overlap `head`, which keeps the
    // accesses below between those of the lock, and those of the lock in order.
    let state = head.displaced(off);
    // See the crate's documentation for why the whole live mask needs no lock.
    let shared = cfg!(target_arch = "nvptx64") && group != live;
    let lock = Lock::new(head, state, LOCK, group);
    #[cfg(target_arch = "nvptx64")]
    if shared && lock.enter() != Entry::INSIDE {
        return Next::Meet;
    }
    #[cfg(target_arch = "nvptx64")]
    {
        let [sorted, posted] = state.get64(WAITING);
        if sorted != posted {
            return Next::Sort;
        }
    }
    if put(state, location, mask, count, true) >= FULL {
        return Next::Drain;
    }
    if shared {
        lock.leave();
    }
    // No lane runs ahead of its event.
    simt::settle(group);
    Next::Done
}

/// The rest of a miss where the lock was not to be had at once, or where the lanes of the group are apart: enters the tracer, or leaves the
/// event in the mailbox, whichever is possible first.
///
/// The leader does it, and tells the others what came of it: the lanes come apart here, because there are `YIELD`s, and what they would see
/// for themselves is not the same.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn meet(head: SharedMemory, location: u32, mask: u32, count: u32, group: u32) -> Next {
    let state = opaque(head);
    let mut inside = 0;
    if head.leader {
        inside = u32::from(enter_or_post(head, state, location, mask, count, group));
    }
    // No lane runs ahead of its event.
    if simt::shuffle(group, inside, simt::lowest(group)) != 0 { Next::Sort } else { Next::Done }
}

/// Answers whether the group is inside; else its event is in the mailbox, or counted as lost. From the leader.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn enter_or_post(
    head: SharedMemory,
    state: SharedMemory,
    location: u32,
    mask: u32,
    count: u32,
    group: u32,
) -> bool {
    let lock = Lock::new(head, state, LOCK, group);
    // A tracer must not be able to stop the program that it looks at. Whoever is inside goes on, and comes out long before.
    let mut naps = NAPS;
    loop {
        if lock.insist(&mut naps) {
            return true;
        }
        end_counting(state, group);
        if Mail(state).post(mask, location, count) {
            return false;
        }
        if naps == 0 {
            Mail(state).skip(count);
            return false;
        }
        naps -= 1;
        simt::pause(NAP_NANOSECONDS);
    }
}

/// The rest of a miss with events in the mailbox, inside the lock.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn sort(head: SharedMemory, location: u32, mask: u32, count: u32, group: u32) -> Next {
    let mut state = opaque(head);
    if state.leads() | simt::is_together(group) {
        sort_mail(state);
        let queued = put(state, location, mask, count, true);
        state.set32(IS_FULL, u32::from(queued >= FULL));
    }
    simt::settle(group);
    let full = state.get32(IS_FULL) != 0;
    // No lane runs ahead of its event, and none reads what the next group inside writes.
    simt::settle(group);
    if full {
        return Next::Drain;
    }
    Lock::new(head, state, LOCK, group).leave();
    Next::Done
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

/// Puts the events from the mailbox into the queue; there is room.
#[inline(always)]
pub(crate) fn sort_mail(state: SharedMemory) {
    Mail(state).take_out(|mask, location, count| {
        put(state, location, mask, count, false);
    });
}

/// Empties the queue, inside the lock or alone, as far as the chunk has room.
#[inline(always)]
pub(crate) fn drain(head: SharedMemory, group: u32) -> Next {
    let state = opaque(head);
    encode(state, state.leads() | simt::is_together(group));
    simt::settle(group);
    // What decides the leader has written.
    let twin_wants = plan().dual && Track::new(state, 1, 0).wants_chunk();
    let wants = Track::new(state, 0, 0).wants_chunk() | twin_wants;
    // No lane runs ahead of its event, and none reads what the next group inside writes.
    simt::settle(group);
    if wants {
        return Next::Renew;
    }
    // Who did not need the lock is alone, and leaves it as it is.
    Lock::new(head, state, LOCK, group).leave();
    Next::Done
}

/// Claims chunks for the tracks that want one, inside the lock or alone. All lanes of a group do the same, and what the leader writes
/// counts.
#[inline(always)]
pub(crate) fn renew(head: SharedMemory, group: u32) -> Next {
    let state = opaque(head);
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
    simt::settle(group);
    Next::Drain
}

/// The same place as `head`, in a form of which the assembler cannot tell that it is the same: see `lock`.
#[inline(always)]
fn opaque(head: SharedMemory) -> SharedMemory {
    head.displaced(head.get32(LIVE + 12))
}

/// Attempts to get the lock before an event is given up.
#[cfg(target_arch = "nvptx64")]
const NAPS: u32 = 1 << 20;
/// How long a group sleeps between two attempts.
#[cfg(target_arch = "nvptx64")]
pub(crate) const NAP_NANOSECONDS: u32 = 200;

/// Where the location's entry is. Those without one share the entry of 0, which is no location.
#[inline(always)]
fn entry_at(location: u32) -> u32 {
    ENTRIES_AT + if location < ENTRIES { 4 * location } else { 0 }
}

/// Puts the pending run into the queue and makes the event the pending run, or adds to it if it is the same. `present`: the
/// event's lanes are here, so they may count repeats of it when they have left. Answers how many runs are in the queue.
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
    Queue::new(state, QUEUE).put(number, before, at, repeats);
    let mut next = number.wrapping_add(u32::from(!stays));
    // No lane is in two runs that are pending or noted, so with a longer run there is nothing to settle.
    if (before & mask == 0) & !stays {
        noted = late::note(state, noted, lane_before, before, at, counted);
    }
    if (noted.names & mask) | (noted.wide & mask) != 0 {
        noted = late::settle(state, noted, mask, |lanes, location, count| {
            Queue::new(state, QUEUE).put(next, lanes, location, count);
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
        Queue::new(state, DUAL_QUEUE_AT).put(number, mask, location, count);
        state.set32(TWIN_PUT, number.wrapping_add(1));
        return next.max(number.wrapping_add(1));
    }
    next
}

/// Puts into the queue what is in the mailbox, the last run, and what came late of those before. All lanes of `group`, the last ones.
#[cold]
#[inline(never)]
pub(crate) fn flush(state: SharedMemory, group: u32) {
    if state.leads() {
        sort_mail(state);
        put_rest(state);
    }
    simt::settle(group);
}

#[inline(always)]
fn put_rest(mut state: SharedMemory) {
    let [_, at, known, mut next] = state.get128(PENDING);
    let [before, base, names, wide] = state.get128(BEHIND);
    if before != 0 {
        let counted = late::counted(state, simt::lowest(before));
        let repeats = known.wrapping_add(counted.wrapping_sub(base));
        Queue::new(state, QUEUE).put(next, before, at, repeats);
        next = next.wrapping_add(1);
    }
    late::settle(state, Noted { names, wide }, u32::MAX, |lanes, location, count| {
        Queue::new(state, QUEUE).put(next, lanes, location, count);
        next = next.wrapping_add(1);
    });
    state.set32(PENDING + 12, next);
}

/// Hands the queue's runs to the encoder, and the twin's to the twin, as far as their chunks have room. All lanes of a
/// group do the same; what the leader writes counts. Those that are not `here` because the group is apart do nothing.
#[inline(always)]
fn encode(mut state: SharedMemory, here: bool) {
    let plan = plan();
    let warp = state.get32(LIVE + 8);
    let [low, high, drained_low, drained_high] = state.get128(WORK);
    let tables = tables(state, plan, u64::from(low) | u64::from(high) << 32);
    let waiting = Waiting { taken: state.get32(TAKEN), put: state.get32(PENDING + 12) };
    let queue = Queue::new(state, QUEUE);
    let (left, events) =
        with_recorder!(plan, R => Track::new(state, 0, warp).drain::<R>(tables, queue, waiting, here));
    set64(&mut state, DRAINED, (u64::from(drained_low) | u64::from(drained_high) << 32) + events);
    state.set32(TAKEN, left.taken);
    state.set32(PENDING + 12, left.put);
    if plan.dual {
        let waiting = Waiting { taken: state.get32(TWIN_TAKEN), put: state.get32(TWIN_PUT) };
        let queue = Queue::new(state, DUAL_QUEUE_AT);
        let (left, _) =
            Track::new(state, 1, warp).drain::<RawState>(Tables::none(tables.leader), queue, waiting, here);
        state.set32(TWIN_TAKEN, left.taken);
        state.set32(TWIN_PUT, left.put);
    }
}
