//! The stack of masks before each run, for all lanes of a group at once.
//!
//! As long as nothing falls out of it at the bottom, the stack before a run holds just those masks of runs before, each but the last, that hold every mask
//! since strictly: a mask is pushed when the next lies strictly inside, and taken out by the first that does not. So for each mask a vote tells which lanes
//! have one strictly inside of it, and it is in the stack of those lanes that are reached from its own without a gap. The stack with which the runs
//! began counts as four more masks before.
//!
//! A mask falls out when there are four more above it. With *depth* the number of masks that were found so, and *lost* how many of them, the lowest, have fallen out,
//! each step keeps *lost* between depth - 4 and depth. Such steps, one after the other, come to one of the same kind; so the lanes find theirs by
//! putting steps together, in as many rounds as the logarithm of their number.
//!
//! All lanes as a mask stand at the bottom, and below everything; as there are always enough of them, they are not counted.

use warptrace_format::Memory;
use warptrace_format::codec::predict::stack::{DEPTH, Stack};

use super::{GROUP_LANES, Place};
use crate::after::warp_ops::ALL;
use crate::simt;
use crate::space::SharedMemory;

/// Masks of a group: the stack before the first, the innermost last, then those before each lane's run; 0 for all lanes.
const MASKS: u32 = DEPTH as u32 + GROUP_LANES;
pub(super) const MASKS_BYTES: u32 = 4 * MASKS;
const _: () = assert!(MASKS < 32 && MASKS_BYTES.is_multiple_of(16));

/// What stands for a mask, so that nothing lies inside of all lanes.
#[inline(always)]
const fn written(mask: u32) -> u32 {
    if mask == u32::MAX { 0 } else { mask }
}

/// The lanes of any group that come behind the one with which a mask ends.
const fn behind(number: u32) -> u32 {
    let lanes = (1 << GROUP_LANES) - 1;
    if number < DEPTH as u32 {
        return u32::MAX;
    }
    let lanes = (lanes << (number - DEPTH as u32 + 1)) & lanes;
    lanes | lanes << GROUP_LANES
}

/// The lane's stack after the mask `mask`. The masks of a group are at `at`; its first `here` lanes have one.
#[inline(always)]
pub(super) fn stack(mut memory: SharedMemory, at: u32, mask: u32, place: Place, here: u32) -> Stack {
    memory.set32(at + 4 * (DEPTH as u32 + place.index), written(mask));
    simt::sync_warp(ALL);
    let up_to = place.up_to();
    let (mut around, mut number) = (0_u32, 0);
    while number < MASKS {
        let four = memory.get128(at + 4 * number);
        let mut i = 0;
        while i < 4 {
            let other = four[i as usize];
            let inside = simt::ballot(ALL, (mask & !other == 0) & (mask != other));
            around |= if !inside & up_to & behind(number + i) == 0 { 1 << (number + i) } else { 0 };
            i += 1;
        }
        number += 4;
    }
    // Only those before.
    around &= (1 << (DEPTH as u32 + place.index)) - 1;
    let depth = around.count_ones();
    let mut valid = depth;
    if simt::ballot(ALL, (place.index < here) & (depth > DEPTH as u32)) != 0 {
        valid -= lost(depth, place);
    }
    let mut stack = Stack::EMPTY;
    let mut level = 0;
    while level < DEPTH {
        // If there is none, some word before or behind is read in vain.
        let number = 31_u32.wrapping_sub(around.leading_zeros());
        let mask = memory.get32(at.wrapping_add(4_u32.wrapping_mul(number)));
        stack.0[level] = if valid > level as u32 { mask } else { u32::MAX };
        around &= !1_u32.wrapping_shl(number);
        level += 1;
    }
    stack
}

/// How many masks have fallen out.
#[inline(always)]
fn lost(depth: u32, place: Place) -> u32 {
    let (mut least, mut most) = (depth.saturating_sub(DEPTH as u32), depth);
    let mut step = 1;
    while step < GROUP_LANES {
        let (least_before, most_before) =
            (simt::shuffle_up_all(least, step), simt::shuffle_up_all(most, step));
        if place.index >= step {
            (least, most) = (least_before.max(least).min(most), most_before.max(least).min(most));
        }
        step *= 2;
    }
    least
}

/// Leaves the stack behind the last lane's run for the next runs. Nobody reads masks any more.
#[inline(always)]
pub(super) fn leave(mut memory: SharedMemory, at: u32, stack: Stack) {
    let [a, b, c, d] = stack.0;
    memory.set128(at, [written(d), written(c), written(b), written(a)]);
}
