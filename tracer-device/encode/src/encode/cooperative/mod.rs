//! Encoding stretches with `predict`, each by half a warp.
//!
//! A group of lanes takes as many runs of its stretch at a time, one each, and writes the bits that
//! `PredictState` writes for one run after the other. What passes from run to run there is found for all
//! lanes at once, or in few rounds:
//!
//! 1. The stack of masks before each run (`masks`): it consists of masks of earlier runs, and which, votes
//!    tell.
//! 2. The slots (`slots`): lanes with different slots do not concern each other, so the lanes that are the
//!    first, second, ... with their slot take their turns at the same time.
//! 3. Hits since the last miss: sums of counts, and the number of the last miss from the highest lane below
//!    that has one.
//! 4. The code of each lane, and by sums of lengths its position. All write it into a buffer (`bits`), whose
//!    whole words are copied to the chunk.
//!
//! A run is an event, and if it is repeated, the same event again; all others of it are hits, for certain.
//! Both are in the same slot as the event of the next run: the second is looked up by its own location, and
//! that is the last one for the next run. So what a lane has to do, its *item*, is: the run before again, if
//! it was repeated; then the event of its own run. A stretch has one more item than runs.
//!
//! Runs whose counts may be too many for a chunk are encoded by one thread instead.

mod bits;
mod masks;
mod slots;

use warptrace_abi::pool::PoolDescriptor;
use warptrace_format::Memory;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::codec::PredictParams;
use warptrace_format::codec::predict::code::{self, Code};
use warptrace_format::codec::predict::encoder::NOWHERE;

use warptrace_device::simt::{self, WARP_LANES};

use self::bits::{BUFFER_BYTES, Buffer};
use self::masks::MASKS_BYTES;
use self::slots::Item;
use super::times;
use crate::chunks::{self, Waiting};
use crate::launches::{Launches, account};
use crate::memory::{GlobalMemory, SharedMemory, block_memory};
use crate::merged::RUN_BYTES;
use crate::warp::{self, shuffle_up};

/// Lanes that encode a stretch.
pub(crate) const GROUP_LANES: u32 = 16;
/// Groups of a block, at most.
pub(crate) const MAX_GROUPS: u32 = 8;

/// Bytes of a group's memory: slots, masks, bits. The groups of a warp have the same in different banks.
const fn group_bytes(params: PredictParams) -> u32 {
    let bytes = params.tail_at() + MASKS_BYTES + BUFFER_BYTES;
    (bytes - 64).div_ceil(128) * 128 + 64
}

/// A lane of a group.
#[derive(Clone, Copy)]
struct Member {
    /// Its number in the group.
    index: u32,
    /// The group's first lane.
    first: u32,
}

impl Member {
    /// The lanes of the group below this one.
    #[inline(always)]
    fn below(self) -> u32 {
        ((1 << self.index) - 1) << self.first
    }

    /// The lanes of the group up to this one.
    #[inline(always)]
    fn up_to(self) -> u32 {
        ((2 << self.index) - 1) << self.first
    }

    /// Broadcasts what the lane `index` of the group has.
    #[inline(always)]
    fn from(self, value: u32, index: u32) -> u32 {
        warp::shuffle(value, self.first + index)
    }

    /// Sums over the lane and all below it in the group.
    #[inline(always)]
    fn sum_up_to(self, mut value: u32) -> u32 {
        let mut step = 1;
        while step < GROUP_LANES {
            let before = shuffle_up(value, step);
            value += if self.index >= step { before } else { 0 };
            step *= 2;
        }
        value
    }

    /// Takes what the lane below has; the first one, what the last one had `before`.
    #[inline(always)]
    fn rotate(self, value: u32, before: u32) -> u32 {
        let last = GROUP_LANES - 1;
        // Without a branch, which ptxas would take the shuffle into.
        let is_last = u32::from(self.index == last).wrapping_neg();
        self.from(before & is_last | value & !is_last, (self.index + last) % GROUP_LANES)
    }
}

/// A run.
#[derive(Clone, Copy)]
struct MaskRun {
    mask: u32,
    location: u32,
    count: u32,
}

impl MaskRun {
    /// Where there is none.
    const NONE: Self = Self { mask: u32::MAX, location: 0, count: 0 };
    /// Before the first.
    const BEFORE: Self = Self { mask: u32::MAX, location: NOWHERE, count: 0 };

    #[inline(always)]
    fn read(address: u64) -> Self {
        let [mask, location, count, _] = GlobalMemory::new(address).get128(0);
        Self { mask, location, count }
    }
}

/// How far a group has come in its stretch. But for `next`, `before` and `at`, all of its lanes have the
/// same.
#[derive(Clone, Copy)]
struct Work {
    /// Items that remain: 0 if there is no stretch.
    remaining: u32,
    /// The lane's next run.
    next: MaskRun,
    /// Its address.
    at: u64,
    /// The lane's run before.
    before: MaskRun,
    /// Address of the chunk's payload.
    payload: u64,
    /// Address of the first run, and how many there are, if their times are recorded; else 0.
    first: u64,
    runs: u32,
    /// Events so far, and up to and with the last miss.
    events: u32,
    mark: u32,
    /// Bits so far.
    bits: u32,
}

impl Work {
    const NONE: Self = Self {
        remaining: 0,
        next: MaskRun::NONE,
        at: 0,
        before: MaskRun::BEFORE,
        payload: 0,
        first: 0,
        runs: 0,
        events: 0,
        mark: 0,
        bits: 0,
    };
}

/// Encodes the stretches that wait for it in the first `count` chunks. From all threads of blocks of up to
/// [`MAX_GROUPS`] groups, whole warps.
#[inline(always)]
pub(crate) fn encode_cooperatively(
    pool: &PoolDescriptor,
    launches: Launches,
    count: u32,
    params: PredictParams,
) {
    let lane = simt::lane();
    let member = Member { index: lane % GROUP_LANES, first: lane / GROUP_LANES * GROUP_LANES };
    let memory = memory(simt::linear_thread() / GROUP_LANES % MAX_GROUPS * group_bytes(params), params);
    let mut number = simt::global_thread_x() / GROUP_LANES;
    let mut work = Work::NONE;
    // A group without a stretch takes part all the same, and finds no miss.
    clear(memory, member, 0, params.tail_at() + MASKS_BYTES + BUFFER_BYTES);
    loop {
        while work.remaining == 0 && number < count {
            work = open(pool, launches, number, member);
            if work.remaining != 0 {
                begin(memory, member, params);
            }
            number += simt::grid_threads_x() / GROUP_LANES;
        }
        if warp::ballot(work.remaining != 0) == 0 {
            break;
        }
        warp::sync_warp();
        let was_open = work.remaining != 0;
        step(memory, member, params, &mut work);
        if was_open && work.remaining == 0 {
            close(memory, launches, params, &work, member);
        }
    }
}

/// Opens the stretch that waits in the chunk with this index, if one does that is to be encoded so.
#[inline(always)]
fn open(pool: &PoolDescriptor, launches: Launches, number: u32, member: Member) -> Work {
    let header = chunks::chunk(pool, number);
    let [_, _, runs, waiting] = header.get128(0);
    let [launch, track, low, high] = header.get128(16);
    let mut work = Work::NONE;
    if waiting == Waiting::PredictCooperative as u32 && launch < launches.count {
        work.remaining = runs + 1;
        work.payload = header.address() + u64::from(CHUNK_HEADER_BYTES);
        let first = u64::from(low) | u64::from(high) << 32;
        if pool.time_bytes(track) != 0 {
            (work.first, work.runs) = (first, runs);
        }
        work.at = first + u64::from(RUN_BYTES * member.index);
        if member.index < runs {
            work.next = MaskRun::read(work.at);
        }
    }
    work
}

/// Makes a group's memory zero from `at` up to `end`. From the group.
#[inline(always)]
fn clear(mut memory: SharedMemory, member: Member, at: u32, end: u32) {
    let mut at = at + 16 * member.index;
    while at < end {
        memory.set128(at, [0; 4]);
        at += 16 * GROUP_LANES;
    }
}

/// Makes a group's memory as it is before a stretch, whatever another stretch has written. From the group.
#[inline(always)]
fn begin(mut memory: SharedMemory, member: Member, params: PredictParams) {
    clear(memory, member, 0, params.tail_at());
    if member.index == 0 {
        // No enclosing mask, and no bit that waits for its word to be full.
        memory.set128(params.tail_at(), [0; 4]);
        memory.set32(params.tail_at() + MASKS_BYTES, 0);
    }
}

/// Encodes the next items. From all lanes of the warp.
#[inline(always)]
fn step(memory: SharedMemory, member: Member, params: PredictParams, work: &mut Work) {
    let own = work.next;
    let here = work.remaining.min(GROUP_LANES);
    let is_run = member.index + 1 < work.remaining;
    // The next one is on its way meanwhile.
    work.next = MaskRun::NONE;
    if member.index + GROUP_LANES + 1 < work.remaining {
        work.at += u64::from(RUN_BYTES * GROUP_LANES);
        work.next = MaskRun::read(work.at);
    }
    let mask_before = member.rotate(own.mask, work.before.mask);
    let last = member.rotate(own.location, work.before.location);
    let count_before = member.rotate(own.count, work.before.count);
    work.before = own;

    let masks = params.tail_at();
    let stack = masks::stack(memory, masks, mask_before, member, here);
    let is_again = (member.index < here) & (count_before > 1);
    let item = Item::new(stack, mask_before, last, own, is_again, is_run);
    // All have read the masks now: for the first lane this was the last.
    let outcome = slots::outcome(memory, params, &item, member, || {
        // For the next runs, if there are any.
        if member.index == GROUP_LANES - 1 && work.remaining > GROUP_LANES {
            masks::carry_over(memory, masks, stack.after(mask_before, own.mask));
        }
    });

    let up_to = member.sum_up_to(own.count);
    let event = work.events + up_to - own.count;
    // The number of the event that is the run before again.
    let again = event - count_before + 1;
    let misses = item.misses(outcome.slot);
    let mark = if misses { event + 1 } else { again + 1 };
    let missing = warp::ballot(misses | outcome.misses_again);
    if missing != 0 {
        let below = missing & member.below();
        let mark_below = warp::shuffle(mark, 31 - (below | 1).leading_zeros());
        let mark_below = if below == 0 { work.mark } else { mark_below };
        let of_group = missing & ((1 << GROUP_LANES) - 1) << member.first;
        let mark_all = warp::shuffle(mark, 31 - (of_group | 1).leading_zeros());
        work.mark = if of_group == 0 { work.mark } else { mark_all };

        let before_again = if outcome.misses_again {
            code::again(again - mark_below, outcome.located_again)
        } else {
            Code::NONE
        };
        let (mut head, mut rest) = (Code::NONE, Code::NONE);
        if misses {
            let run = event - if outcome.misses_again { again + 1 } else { mark_below };
            (head, rest) = item.codes(outcome.slot, run);
        }
        let length = before_again.length + head.length + rest.length;
        let end = member.sum_up_to(length);
        let buffer = Buffer { memory, at: masks + MASKS_BYTES, member };
        let mut at = work.bits % 32 + end - length;
        if warp::ballot(outcome.misses_again) != 0 {
            buffer.put(at, before_again);
            at += before_again.length;
        }
        if head.length + rest.length <= 64 {
            buffer.put(at, head.then(rest));
        } else {
            buffer.put(at, head);
            buffer.put(at + head.length, rest);
        }
        let bits = member.from(end, GROUP_LANES - 1);
        buffer.flush(work.payload, work.bits, bits);
        work.bits += bits;
    }
    work.events += member.from(up_to, GROUP_LANES - 1);
    work.remaining -= here;
}

/// Writes into the chunk of a stretch the times of its runs and what it holds, and into the account of its
/// warp. From the group.
#[inline(always)]
fn close(memory: SharedMemory, launches: Launches, params: PredictParams, work: &Work, member: Member) {
    let (mut length, mut times) = (work.bits.div_ceil(8), [0; 2]);
    if work.runs != 0 {
        times = [work.runs, times::padding(length)];
        length = times::write(work.payload, length, work.first, work.runs, member.index, GROUP_LANES);
    }
    if member.index != 0 {
        return;
    }
    let rest = memory.get32(params.tail_at() + MASKS_BYTES);
    GlobalMemory::new(work.payload).set32_if(!work.bits.is_multiple_of(32), work.bits / 32 * 4, rest);
    let mut header = GlobalMemory::new(work.payload - u64::from(CHUNK_HEADER_BYTES));
    let [warp, sequence, _, _] = header.get128(0);
    let [index, track, _, _] = header.get128(16);
    header.set128(0, [warp, sequence, work.events, length]);
    let launch = launches.get(index);
    header.set128(16, [launch.launch, track, times[0], times[1]]);
    let account = account(&launch, track * launch.warps + warp);
    chunks::add_to_account(account, [0, u64::from(work.events), 0], 1);
}

block_memory! {
    /// The block's memory from `at` on. Only the kernel that encodes so takes it.
    fn memory(at, params: PredictParams = crate::codec::DEVICE_PREDICT) = "warptrace_encoding", MAX_GROUPS * group_bytes(params);
}

const _: () = assert!(WARP_LANES.is_multiple_of(GROUP_LANES));
