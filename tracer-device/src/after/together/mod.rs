//! Encoding stretches with `predict`, each by half a warp.
//!
//! A group of lanes takes as many runs of its stretch at a time, one each, and writes the bits that `PredictState` writes for one run after the
//! other. What goes from run to run there is found for all lanes at once, or in few rounds:
//!
//! 1. The stack of masks before each run (`masks`): it consists of masks of runs before, and which, votes tell.
//! 2. The slots (`slots`): lanes with different slots do not concern each other, so those that are the first, second, ... with their slot take
//!    their turns together.
//! 3. Hits since the last miss: sums of counts, and the number of the last miss from the highest lane below that has one.
//! 4. The code of each lane, and by sums of lengths its place. All write it into a buffer (`bits`), whose whole words go to the chunk.
//!
//! A run is an event, and if it is repeated, the same event again; all others of it are hits, for certain. Both are in the same slot as the event of the
//! next run: the second goes to slots by its own location, and that is the last one for the next run. So what a lane has to do, its *item*, is: the run before
//! again, if it was repeated; then the event of its own run. A stretch has one more item than runs.
//!
//! Runs whose counts may be too many for a chunk are encoded by one thread instead; see `cut`.

mod bits;
mod masks;
mod slots;

use warptrace_format::Memory;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::codec::PredictParams;
use warptrace_format::codec::predict::code::{self, Code};
use warptrace_format::codec::predict::encoder::NOWHERE;
use warptrace_format::pool::PoolDescriptor;

use self::bits::{BUFFER_BYTES, Buffer};
use self::masks::MASKS_BYTES;
use self::slots::Item;
use super::warp_ops::ALL;
use super::{Launches, TOGETHER, account};
use crate::merge::RUN_BYTES;
use crate::pool;
use crate::simt::{self, WARP_LANES};
use crate::space::{GlobalMemory, SharedMemory};

/// Lanes that encode a stretch.
pub(super) const GROUP_LANES: u32 = 16;
/// Most groups of a block.
pub(super) const MOST_GROUPS: u32 = 8;

/// Bytes of a group's memory: slots, masks, bits. The groups of a warp have the same in different banks.
const fn group_bytes(params: PredictParams) -> u32 {
    let bytes = params.tail_at() + MASKS_BYTES + BUFFER_BYTES;
    (bytes - 64).div_ceil(128) * 128 + 64
}

/// A lane of a group.
#[derive(Clone, Copy)]
struct Place {
    /// Its number in the group.
    index: u32,
    /// The group's first lane.
    first: u32,
}

impl Place {
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

    /// What the lane `index` of the group has.
    #[inline(always)]
    fn from(self, value: u32, index: u32) -> u32 {
        simt::shuffle(ALL, value, self.first + index)
    }

    /// What the lane and those below it in the group have together.
    #[inline(always)]
    fn sum_up_to(self, mut value: u32) -> u32 {
        let mut step = 1;
        while step < GROUP_LANES {
            let before = simt::shuffle_up_all(value, step);
            value += if self.index >= step { before } else { 0 };
            step *= 2;
        }
        value
    }

    /// What the lane below has; for the first one what the last one had `before`.
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
struct Run {
    mask: u32,
    location: u32,
    count: u32,
}

impl Run {
    /// Where there is none.
    const NONE: Self = Self { mask: u32::MAX, location: 0, count: 0 };
    /// Before the first.
    const BEFORE: Self = Self { mask: u32::MAX, location: NOWHERE, count: 0 };

    #[inline(always)]
    fn read(address: u64) -> Self {
        let [mask, location, count, _] = GlobalMemory::new(address, true).get128(0);
        Self { mask, location, count }
    }
}

/// How far a group has come in its stretch. But for `next`, `before` and `at`, all of its lanes have the same.
#[derive(Clone, Copy)]
struct Work {
    /// Items that are left: 0 if there is no stretch.
    left: u32,
    /// The lane's next run.
    next: Run,
    /// Its address.
    at: u64,
    /// The lane's run before.
    before: Run,
    /// Address of the chunk's payload.
    payload: u64,
    /// Events so far, and up to and with the last miss.
    events: u32,
    mark: u32,
    /// Bits so far.
    bits: u32,
}

impl Work {
    const NONE: Self = Self {
        left: 0,
        next: Run::NONE,
        at: 0,
        before: Run::BEFORE,
        payload: 0,
        events: 0,
        mark: 0,
        bits: 0,
    };
}

/// Encodes the stretches that are to be encoded so, among the first `count` chunks. From all threads of blocks of up to [`MOST_GROUPS`] groups,
/// whole warps.
#[inline(always)]
pub(super) fn encode_together(launches: Launches, count: u32, params: PredictParams) {
    let pool = pool::descriptor();
    let lane = simt::lane();
    let place = Place { index: lane % GROUP_LANES, first: lane / GROUP_LANES * GROUP_LANES };
    let memory = memory(simt::linear_thread() / GROUP_LANES % MOST_GROUPS * group_bytes(params), params);
    let mut number = simt::global_thread_x() / GROUP_LANES;
    let mut work = Work::NONE;
    // A group without a stretch goes along, and finds no miss.
    clear(memory, place, 0, params.tail_at() + MASKS_BYTES + BUFFER_BYTES);
    loop {
        while work.left == 0 && number < count {
            work = open(&pool, launches, number, place);
            if work.left != 0 {
                begin(memory, place, params);
            }
            number += simt::grid_threads_x() / GROUP_LANES;
        }
        if simt::ballot(ALL, work.left != 0) == 0 {
            break;
        }
        simt::sync_warp(ALL);
        let was_open = work.left != 0;
        step(memory, place, params, &mut work);
        if was_open && work.left == 0 && place.index == 0 {
            close(memory, launches, params, &work);
        }
    }
}

/// The stretch that waits in the chunk with this number, if one does that is to be encoded so.
#[inline(always)]
fn open(pool: &PoolDescriptor, launches: Launches, number: u32, place: Place) -> Work {
    let header = pool::chunk(pool, number);
    let [_, _, runs, left] = header.get128(0);
    let [launch, _, low, high] = header.get128(16);
    let launch = launch.wrapping_sub(launches.get(0).launch);
    let mut work = Work::NONE;
    if left == TOGETHER && launch < launches.count {
        work.left = runs + 1;
        work.payload = header.address() + u64::from(CHUNK_HEADER_BYTES);
        work.at = (u64::from(low) | u64::from(high) << 32) + u64::from(RUN_BYTES * place.index);
        if place.index < runs {
            work.next = Run::read(work.at);
        }
    }
    work
}

/// Makes a group's memory zero from `at` up to `end`. From the group.
#[inline(always)]
fn clear(mut memory: SharedMemory, place: Place, at: u32, end: u32) {
    let mut at = at + 16 * place.index;
    while at < end {
        memory.set128(at, [0; 4]);
        at += 16 * GROUP_LANES;
    }
}

/// Makes a group's memory as it is before a stretch, where another has left it. From the group.
#[inline(always)]
fn begin(mut memory: SharedMemory, place: Place, params: PredictParams) {
    clear(memory, place, 0, params.tail_at());
    if place.index == 0 {
        // No mask around, and no bit that waits for its word to be full.
        memory.set128(params.tail_at(), [0; 4]);
        memory.set32(params.tail_at() + MASKS_BYTES, 0);
    }
}

/// Encodes the next items. From all lanes of the warp.
#[inline(always)]
fn step(memory: SharedMemory, place: Place, params: PredictParams, work: &mut Work) {
    let own = work.next;
    let here = work.left.min(GROUP_LANES);
    let is_run = place.index + 1 < work.left;
    // The next one is on its way meanwhile.
    work.next = Run::NONE;
    if place.index + GROUP_LANES + 1 < work.left {
        work.at += u64::from(RUN_BYTES * GROUP_LANES);
        work.next = Run::read(work.at);
    }
    let mask_before = place.rotate(own.mask, work.before.mask);
    let last = place.rotate(own.location, work.before.location);
    let count_before = place.rotate(own.count, work.before.count);
    work.before = own;

    let masks = params.tail_at();
    let stack = masks::stack(memory, masks, mask_before, place, here);
    let is_again = (place.index < here) & (count_before > 1);
    let item = Item::new(stack, mask_before, last, own, is_again, is_run);
    // All have read the masks now: for the first lane this was the last.
    let outcome = slots::outcome(memory, params, &item, place, || {
        // For the next runs, if there are any.
        if place.index == GROUP_LANES - 1 && work.left > GROUP_LANES {
            masks::leave(memory, masks, stack.after(mask_before, own.mask));
        }
    });

    let up_to = place.sum_up_to(own.count);
    let event = work.events + up_to - own.count;
    // The number of the event that is the run before again.
    let again = event - count_before + 1;
    let misses = item.misses(outcome.slot);
    let mark = if misses { event + 1 } else { again + 1 };
    let missing = simt::ballot(ALL, misses | outcome.misses_again);
    if missing != 0 {
        let below = missing & place.below();
        let mark_below = simt::shuffle(ALL, mark, 31 - (below | 1).leading_zeros());
        let mark_below = if below == 0 { work.mark } else { mark_below };
        let of_group = missing & ((1 << GROUP_LANES) - 1) << place.first;
        let mark_all = simt::shuffle(ALL, mark, 31 - (of_group | 1).leading_zeros());
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
        let end = place.sum_up_to(length);
        let buffer = Buffer { memory, at: masks + MASKS_BYTES, place };
        let mut at = work.bits % 32 + end - length;
        if simt::ballot(ALL, outcome.misses_again) != 0 {
            buffer.put(at, before_again);
            at += before_again.length;
        }
        if head.length + rest.length <= 64 {
            buffer.put(at, head.then(rest));
        } else {
            buffer.put(at, head);
            buffer.put(at + head.length, rest);
        }
        let bits = place.from(end, GROUP_LANES - 1);
        buffer.flush(work.payload, work.bits, bits);
        work.bits += bits;
    }
    work.events += place.from(up_to, GROUP_LANES - 1);
    work.left -= here;
}

/// Writes into the chunk of a stretch what it holds, and into the account of its warp. From one lane.
#[inline(always)]
fn close(memory: SharedMemory, launches: Launches, params: PredictParams, work: &Work) {
    let rest = memory.get32(params.tail_at() + MASKS_BYTES);
    GlobalMemory::new(work.payload, true).set32_if(!work.bits.is_multiple_of(32), work.bits / 32 * 4, rest);
    let mut header = GlobalMemory::new(work.payload - u64::from(CHUNK_HEADER_BYTES), true);
    let [warp, sequence, _, _] = header.get128(0);
    let [number, track, _, _] = header.get128(16);
    header.set128(0, [warp, sequence, work.events, work.bits.div_ceil(8)]);
    header.set128(16, [number, track, 0, 0]);
    let launch = launches.get(number - launches.get(0).launch);
    pool::add_to_account(account(&launch, track, warp), [0, u64::from(work.events), 0], 1);
}

/// The block's memory from `at` on.
#[inline(always)]
fn memory(at: u32, params: PredictParams) -> SharedMemory {
    #[cfg(target_arch = "nvptx64")]
    {
        let _ = params;
        let base: u32;
        // SAFETY: reads the address of an array that the module declares.
        unsafe {
            core::arch::asm!("mov.u32 {}, warptrace_encoding;", out(reg32) base,
                options(pure, nomem, nostack, preserves_flags));
        }
        SharedMemory::new(base + at, true)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        static KEY: u8 = 0;
        let bytes = (MOST_GROUPS * group_bytes(params)) as usize;
        let base = simt::host::with_lane(|lane| lane.shared(&raw const KEY as usize, bytes));
        SharedMemory::new(base.expose_provenance() as u64 + u64::from(at), true)
    }
}

// Only the kernel that encodes so takes it.
#[cfg(target_arch = "nvptx64")]
core::arch::global_asm!(
    ".shared .align 16 .b8 warptrace_encoding[{}];",
    const MOST_GROUPS * group_bytes(crate::recorder::DEVICE_PREDICT)
);

const _: () = assert!(WARP_LANES.is_multiple_of(GROUP_LANES));
