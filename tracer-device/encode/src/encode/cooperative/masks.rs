//! The stack of masks before each run, for all lanes of a group at once.
//!
//! As long as nothing falls out of it at the bottom, the stack before a run holds just those masks of earlier
//! runs, each but the last, that hold every mask since strictly: a mask is pushed when the next lies strictly
//! inside, and taken out by the first that does not. So for each mask a vote tells which lanes have one
//! strictly inside of it, and it is in the stack of the lanes that are reached from its own without a gap.
//! The stack with which the runs began counts as four more masks before.
//!
//! A mask falls out when there are four more above it. With *depth* the number of masks that were found so,
//! and *lost* how many of them, the lowest, have fallen out, each step keeps *lost* between depth - 4 and
//! depth. Such steps, one after the other, come to one of the same kind; so the lanes find theirs by
//! combining steps, in as many rounds as the logarithm of their number.
//!
//! All lanes as a mask stand at the bottom, and below everything; as there are always enough of them, they
//! are not counted.

use warptrace_format::Memory;
use warptrace_format::codec::predict::stack::{DEPTH, Stack};

use super::{GROUP_LANES, Member};
use crate::memory::SharedMemory;
use crate::warp::{self, shuffle_up};

/// Masks of a group: the stack before the first, the innermost last, then the masks before each lane's run; 0
/// for all lanes.
const MASKS: u32 = DEPTH as u32 + GROUP_LANES;
pub(super) const MASKS_BYTES: u32 = 4 * MASKS;
const _: () = assert!(MASKS < 32 && MASKS_BYTES.is_multiple_of(16));

/// What stands for a mask, so that nothing lies inside of all lanes.
#[inline(always)]
const fn written(mask: u32) -> u32 {
    if mask == u32::MAX { 0 } else { mask }
}

/// The lanes of any group that come after the one with which a mask ends.
const fn later_lanes(number: u32) -> u32 {
    let lanes = (1 << GROUP_LANES) - 1;
    if number < DEPTH as u32 {
        return u32::MAX;
    }
    let lanes = (lanes << (number - DEPTH as u32 + 1)) & lanes;
    lanes | lanes << GROUP_LANES
}

/// The lane's stack after the mask `mask`. The masks of a group are at `at`; its first `here` lanes have one.
#[inline(always)]
pub(super) fn stack(mut memory: SharedMemory, at: u32, mask: u32, member: Member, here: u32) -> Stack {
    memory.set32(at + 4 * (DEPTH as u32 + member.index), written(mask));
    warp::sync_warp();
    let up_to = member.up_to();
    let (mut enclosing, mut number) = (0_u32, 0);
    while number < MASKS {
        let four = memory.get128(at + 4 * number);
        let mut i = 0;
        while i < 4 {
            let other = four[i as usize];
            let inside = warp::ballot((mask & !other == 0) & (mask != other));
            enclosing |= if !inside & up_to & later_lanes(number + i) == 0 { 1 << (number + i) } else { 0 };
            i += 1;
        }
        number += 4;
    }
    // Only those before.
    enclosing &= (1 << (DEPTH as u32 + member.index)) - 1;
    let depth = enclosing.count_ones();
    let mut valid = depth;
    if warp::ballot((member.index < here) & (depth > DEPTH as u32)) != 0 {
        valid -= lost(depth, member);
    }
    let mut stack = Stack::EMPTY;
    let mut level = 0;
    while level < DEPTH {
        // If there is none, the first is read and not used.
        let number = 31 - (enclosing | 1).leading_zeros();
        let mask = memory.get32(at + 4 * number);
        stack.0[level] = if valid > level as u32 { mask } else { u32::MAX };
        enclosing &= !(1 << number);
        level += 1;
    }
    stack
}

/// How many masks have fallen out.
#[inline(always)]
fn lost(depth: u32, member: Member) -> u32 {
    let (mut minimum, mut maximum) = (depth.saturating_sub(DEPTH as u32), depth);
    let mut step = 1;
    while step < GROUP_LANES {
        let (minimum_before, maximum_before) = (shuffle_up(minimum, step), shuffle_up(maximum, step));
        if member.index >= step {
            (minimum, maximum) =
                (minimum_before.max(minimum).min(maximum), maximum_before.max(minimum).min(maximum));
        }
        step *= 2;
    }
    minimum
}

/// Writes the stack after the last lane's run for the next runs. Nothing reads masks any more.
#[inline(always)]
pub(super) fn carry_over(mut memory: SharedMemory, at: u32, stack: Stack) {
    let [a, b, c, d] = stack.0;
    memory.set128(at, [written(d), written(c), written(b), written(a)]);
}
