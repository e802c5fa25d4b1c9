//! Computes the stack of masks before each run, for all lanes of a group at once. Unless masks fall out at
//! the bottom, the stack before a run holds exactly those masks of earlier runs, except the last one, that
//! strictly contain every mask since. A mask is pushed when the next mask is strictly inside it, and popped
//! by the first mask that is not. For each mask, a vote finds the lanes whose mask is strictly inside it. The
//! mask is in the stack of a lane if these lanes extend without a gap from the mask's own lane to that lane.
//! The stack at the beginning counts as four earlier masks.
//!
//! A mask falls out when four more are above it. Let *depth* be the number of masks found, and *lost* the
//! number of lowest masks that have fallen out. Each step clamps *lost* to the range from depth - 4 to depth.
//! A sequence of clamps is a clamp, so the lanes find their values by a scan over clamps, in log2(lanes)
//! rounds. A mask of all lanes, always below everything, is not counted: the bottom of the stack has enough
//! of them.

use warptrace_format::Memory;
use warptrace_format::codec::predict::stack::{DEPTH, Stack};

use super::{GROUP_LANES, Member};
use crate::memory::SharedMemory;
use crate::warp::{self, shuffle_up};

/// A group's masks; 0: all lanes. The stack before the first run, innermost last, then the masks before runs.
const MASKS: u32 = DEPTH as u32 + GROUP_LANES;
pub(super) const MASKS_BYTES: u32 = 4 * MASKS;
const _: () = assert!(MASKS < 32 && MASKS_BYTES.is_multiple_of(16));

/// Returns the stored form of a mask. A mask of all lanes becomes 0, so that nothing is inside it.
#[inline(always)]
const fn written(mask: u32) -> u32 {
    if mask == u32::MAX { 0 } else { mask }
}

/// Returns the lanes of all groups that follow the mask with this number.
const fn later_lanes(number: u32) -> u32 {
    let lanes = (1 << GROUP_LANES) - 1;
    if number < DEPTH as u32 {
        return u32::MAX;
    }
    let lanes = (lanes << (number - DEPTH as u32 + 1)) & lanes;
    lanes | lanes << GROUP_LANES
}

/// Returns the lane's stack after `mask`. The group's masks are at `at`. The first `here` lanes have one.
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
    // Only earlier masks.
    enclosing &= (1 << (DEPTH as u32 + member.index)) - 1;
    let depth = enclosing.count_ones();
    let mut valid = depth;
    if warp::ballot((member.index < here) & (depth > DEPTH as u32)) != 0 {
        valid -= lost(depth, member);
    }
    let mut stack = Stack::EMPTY;
    let mut level = 0;
    while level < DEPTH {
        // If no mask remains, the first one is read and not used.
        let number = 31 - (enclosing | 1).leading_zeros();
        let mask = memory.get32(at + 4 * number);
        stack.0[level] = if valid > level as u32 { mask } else { u32::MAX };
        enclosing &= !(1 << number);
        level += 1;
    }
    stack
}

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

/// Writes the stack after the last lane's run, for the next runs. No lane reads the masks after this point.
#[inline(always)]
pub(super) fn carry_over(mut memory: SharedMemory, at: u32, stack: Stack) {
    let [a, b, c, d] = stack.0;
    memory.set128(at, [written(d), written(c), written(b), written(a)]);
}
