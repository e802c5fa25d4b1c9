//! Encodes stretches with `predict`, half a warp per stretch. A group takes one run per lane at a time, and
//! writes the same bits that `PredictState` writes for the runs in sequence. The state that `PredictState`
//! carries from run to run is computed for all lanes at once, or in few rounds:
//!
//! 1. The stack of masks before each run (`masks`): votes find which masks of earlier runs it consists of.
//! 2. The slots (`slots`): lanes with different slots are independent. Lanes with the same slot take turns.
//! 3. Hits since the last miss: sums of counts, and the event number from the highest lower lane with a miss.
//! 4. The code of each lane, and its position by sums of lengths. All lanes write into a buffer (`bits`),
//!    whose complete words are copied to the chunk.
//!
//! A run is an event and its repeats. The first repeat may miss; all later ones are certain hits. This repeat
//! and the event of the next run use the same slot: the repeat is looked up by its own location, which is
//! also the last location for the next run. So the *item* of a lane is the first repeat of the previous run,
//! if it has one, and then the event of the lane's run. A stretch has one more item than runs. One thread
//! encodes runs whose counts may be too large for a chunk.

mod bits;
mod masks;
mod slots;

use warptrace_abi::pool::PoolDescriptor;
use warptrace_format::Memory;
use warptrace_format::chunk::{CHUNK_HEADER_BYTES, SPLIT};
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

pub(crate) const GROUP_LANES: u32 = 16;
/// Maximum groups per block.
pub(crate) const MAX_GROUPS: u32 = 8;

/// Returns the bytes of a group's slots, masks and bits, such that a warp's groups use different banks.
const fn group_bytes(params: PredictParams) -> u32 {
    let bytes = params.tail_at() + MASKS_BYTES + BUFFER_BYTES;
    (bytes - 64).div_ceil(128) * 128 + 64
}

#[derive(Clone, Copy)]
struct Member {
    index: u32,
    first: u32,
}

impl Member {
    #[inline(always)]
    fn below(self) -> u32 {
        ((1 << self.index) - 1) << self.first
    }

    #[inline(always)]
    fn up_to(self) -> u32 {
        ((2 << self.index) - 1) << self.first
    }

    #[inline(always)]
    fn from(self, value: u32, index: u32) -> u32 {
        warp::shuffle(value, self.first + index)
    }

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

    /// Returns the value of the lane below. The first lane receives the last lane's `before`.
    #[inline(always)]
    fn rotate(self, value: u32, before: u32) -> u32 {
        let last = GROUP_LANES - 1;
        // Without a branch, because ptxas would move the shuffle into it.
        let is_last = u32::from(self.index == last).wrapping_neg();
        self.from(before & is_last | value & !is_last, (self.index + last) % GROUP_LANES)
    }
}

#[derive(Clone, Copy)]
struct MaskRun {
    mask: u32,
    location: u32,
    count: u32,
}

impl MaskRun {
    /// The run of a lane without one.
    const NONE: Self = Self { mask: u32::MAX, location: 0, count: 0 };
    /// The run before the first.
    const BEFORE: Self = Self { mask: u32::MAX, location: NOWHERE, count: 0 };

    #[inline(always)]
    fn read(address: u64) -> Self {
        let [mask, location, count, _] = GlobalMemory::new(address).get128(0);
        Self { mask, location, count }
    }
}

/// Progress of a group in its stretch. Uniform across the group, except `next`, `before` and `at`.
#[derive(Clone, Copy)]
struct Work {
    /// Items that remain; 0 without a stretch.
    remaining: u32,
    next: MaskRun,
    at: u64,
    before: MaskRun,
    payload: u64,
    /// Address of the first run and number of runs, plus [`SPLIT`] if one is split, if their times are
    /// recorded; otherwise 0.
    first: u64,
    runs: u32,
    /// Events so far, and events up to and including the last miss.
    events: u32,
    mark: u32,
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

/// Encodes the stretches that wait for half a warp in the first `count` chunks. All threads of blocks of up
/// to [`MAX_GROUPS`] groups, in whole warps, call it.
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
    // A group without a stretch still takes part in votes and shuffles, and finds no miss.
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

/// Opens the stretch in the chunk with this index, if it waits for half a warp.
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

/// Clears a group's memory from `at` up to `end`. The whole group calls it.
#[inline(always)]
fn clear(mut memory: SharedMemory, member: Member, at: u32, end: u32) {
    let mut at = at + 16 * member.index;
    while at < end {
        memory.set128(at, [0; 4]);
        at += 16 * GROUP_LANES;
    }
}

/// Initializes a group's memory for a stretch. The whole group calls it.
#[inline(always)]
fn begin(mut memory: SharedMemory, member: Member, params: PredictParams) {
    clear(memory, member, 0, params.tail_at());
    if member.index == 0 {
        // No enclosing mask, and no bits of an incomplete word.
        memory.set128(params.tail_at(), [0; 4]);
        memory.set32(params.tail_at() + MASKS_BYTES, 0);
    }
}

/// Encodes the next items. All lanes of the warp call it.
#[inline(always)]
fn step(memory: SharedMemory, member: Member, params: PredictParams, work: &mut Work) {
    let own = work.next;
    let here = work.remaining.min(GROUP_LANES);
    let is_run = member.index + 1 < work.remaining;
    // Prefetches the next run.
    work.next = MaskRun::NONE;
    if member.index + GROUP_LANES + 1 < work.remaining {
        work.at += u64::from(RUN_BYTES * GROUP_LANES);
        work.next = MaskRun::read(work.at);
    }
    let mask_before = member.rotate(own.mask, work.before.mask);
    let last = member.rotate(own.location, work.before.location);
    let count_before = member.rotate(own.count, work.before.count);
    work.before = own;
    let of_group = ((1 << GROUP_LANES) - 1) << member.first;
    let split = warp::ballot(is_run & (own.mask == mask_before) & (own.location == last));
    work.runs |= if (split & of_group != 0) & (work.runs != 0) { SPLIT } else { 0 };

    let masks = params.tail_at();
    let stack = masks::stack(memory, masks, mask_before, member, here);
    let is_again = (member.index < here) & (count_before > 1);
    let item = Item::new(stack, mask_before, last, own, is_again, is_run);
    // All lanes have read the masks.
    let outcome = slots::outcome(memory, params, &item, member, || {
        if member.index == GROUP_LANES - 1 && work.remaining > GROUP_LANES {
            masks::carry_over(memory, masks, stack.after(mask_before, own.mask));
        }
    });

    let up_to = member.sum_up_to(own.count);
    let event = work.events + up_to - own.count;
    // Event number of the first repeat of the previous run.
    let again = event - count_before + 1;
    let misses = item.misses(outcome.slot);
    let mark = if misses { event + 1 } else { again + 1 };
    let missing = warp::ballot(misses | outcome.misses_again);
    if missing != 0 {
        let below = missing & member.below();
        let mark_below = warp::shuffle(mark, 31 - (below | 1).leading_zeros());
        let mark_below = if below == 0 { work.mark } else { mark_below };
        let missing = missing & of_group;
        let mark_all = warp::shuffle(mark, 31 - (missing | 1).leading_zeros());
        work.mark = if missing == 0 { work.mark } else { mark_all };

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

/// Writes a stretch's times and chunk header, and updates its warp's account. The whole group calls it.
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
    /// Returns the block's memory from `at` onward. Only the cooperative encoder calls it.
    fn memory(at, params: PredictParams = crate::codec::DEVICE_PREDICT) = "warptrace_encoding", MAX_GROUPS * group_bytes(params);
}

const _: () = assert!(WARP_LANES.is_multiple_of(GROUP_LANES));
