//! Decoding of a whole miss at once, with branches only for rare cases.
//!
//! Branches on the fields of a miss are often mispredicted, at a high cost. A table lookup gives each field's
//! form instead, and all forms share the same instructions.

use std::hint::select_unpredictable as select;

use super::Slot;
use super::bits::Bits;
use super::fields::{Context, Miss};
use super::stack::{Relation, Stack};
use super::tables::{FORMS, HEAD_BITS, HEADS, Head, LANES, LOCATED, LOCATIONS, RANKS};

const WINDOW_BITS: u32 = 57;
const MASK_BITS: u32 = 7 + 1 + 32;

/// Operation with a special instruction on some processors.
pub(super) trait Expand {
    /// Equivalent to [`lanes::expand`](super::lanes::expand).
    fn expand(bits: u32, base: u32) -> u32;
}

pub(super) struct Portable;

impl Expand for Portable {
    /// Runs the steps of [`lanes::compress`](super::lanes::compress) backwards, for all 32 bits. Source:
    /// Warren, "Hacker's Delight", 2nd edition, section 7-5.
    #[inline(always)]
    fn expand(bits: u32, base: u32) -> u32 {
        let mut moves = [0; 5];
        let (mut places, mut absent) = (base, !base << 1);
        for (step, moving) in moves.iter_mut().enumerate() {
            let mut odd = absent ^ (absent << 1);
            odd ^= odd << 2;
            odd ^= odd << 4;
            odd ^= odd << 8;
            odd ^= odd << 16;
            *moving = odd & places;
            places = (places ^ *moving) | (*moving >> (1 << step));
            absent &= !odd;
        }
        let mut bits = bits;
        for (step, moving) in moves.iter().enumerate().rev() {
            let moved = bits << (1 << step);
            bits = (bits & !moving) | (moved & moving);
        }
        bits & base
    }
}

/// Processors with BMI2. Undefined behaviour on others.
#[cfg(target_arch = "x86_64")]
pub(super) struct Bmi2;

#[cfg(target_arch = "x86_64")]
impl Expand for Bmi2 {
    #[inline(always)]
    fn expand(bits: u32, base: u32) -> u32 {
        // SAFETY: the decoder selects this type only after it has detected the instruction on this processor.
        unsafe { std::arch::x86_64::_pdep_u32(bits, base) }
    }
}

/// Looks up the head of a miss. Its length is 0 if it is longer than the table's bits.
#[inline(always)]
pub(super) fn head(window: u64) -> Head {
    HEADS[(window & ((1 << HEAD_BITS) - 1)) as usize]
}

/// Decodes a miss of `slot` after its head. Returns the miss and its bits without the head; `None` if a field
/// is invalid. Does not check the payload's length.
#[inline(always)]
pub(super) fn miss<E: Expand>(
    input: &Bits<'_>,
    context: &Context,
    slot: Slot,
    located: bool,
) -> Option<(Miss, u32)> {
    let Context { stack, last, mask: before } = *context;
    let mut bits = input.window();
    let said = LOCATIONS[select(located, LOCATED, bits as usize & (LOCATED - 1))];
    let step = select(said.step, slot.step(), 0);
    let location = ((last & u32::from(said.last)) ^ step)
        .wrapping_add_signed(i32::from(said.difference))
        .wrapping_add((bits >> 5) as u32 & u32::from(said.number));
    let mut length = u32::from(said.length);
    bits >>= length;
    if length + MASK_BITS > WINDOW_BITS {
        bits = Bits { at: input.at + length as usize, ..*input }.window();
    }

    let form = FORMS[(bits & 0x7f) as usize | usize::from(located) << 7];
    length += u32::from(form.length);
    bits >>= form.length;
    let relation =
        Relation::from_low_bits((slot.expected >> 16 & u32::from(form.of_slot)) | u32::from(form.relation));
    let base = stack.base(relation, before);

    let lanes = LANES[usize::from((bits as u8 & form.lanes) | form.no_lanes) & 63];
    bits >>= lanes.length;
    let count = base.count_ones();
    let ranks = RANKS[count as usize & 63];
    let rank_mask = (1 << ranks.width) - 1;
    let low = 1_u32 << (bits as u32 & rank_mask);
    let high = (1_u32 << ((bits >> ranks.width) as u32 & rank_mask)) & lanes.second;
    let few = (low & lanes.first) | high;
    let which = ((bits as u32 & lanes.each) | few) ^ lanes.others;
    let found = E::expand(which & ranks.all, base);
    let mask = select(form.by_seen, slot.seen, found);
    length += u32::from(lanes.length)
        + (ranks.width & lanes.first)
        + (ranks.width & lanes.second)
        + (count & lanes.each);

    let unordered = (lanes.second != 0) & (low >= high);
    if (location > 0xffff) | (few & !ranks.all != 0) | unordered {
        return None;
    }
    Some((
        Miss { location, mask, slot: Slot::learned(last ^ location, relation, form.by_seen, mask) },
        length,
    ))
}

/// Equivalent to [`Stack::after`]. Each mask of the stack strictly contains `last` or has all lanes, so a
/// strict subset of `last` pops nothing, and an equal mask pops only masks with all lanes.
#[inline(always)]
pub(super) fn after(stack: Stack, last: u32, mask: u32) -> Stack {
    const ALL: u32 = u32::MAX;
    let [a, b, c, d] = stack.0;
    let leaves = |outside: u32| u32::from((mask & !outside != 0) | (mask == outside));
    let out = leaves(a) + leaves(b) + leaves(c) + leaves(d);
    let one = out & 1 != 0;
    let (a, b, c, d) = (select(one, b, a), select(one, c, b), select(one, d, c), select(one, ALL, d));
    let two = out & 2 != 0;
    let (a, b, c, d) = (select(two, c, a), select(two, d, b), select(two, ALL, c), select(two, ALL, d));
    let four = out & 4 != 0;
    let (a, b, c, d) =
        (select(four, ALL, a), select(four, ALL, b), select(four, ALL, c), select(four, ALL, d));
    let inside = (mask & !last == 0) & (mask != last);
    Stack([select(inside, last, a), select(inside, a, b), select(inside, b, c), select(inside, c, d)])
}

/// Advances to the event that a slot expects. Programs repeat their paths, so a branch here, unlike in a
/// miss, is mostly predicted. For the most frequent relations, the relation alone determines the new stack.
#[inline(always)]
pub(super) fn expected(context: &mut Context, slot: Slot) {
    context.last ^= slot.step();
    let kind = slot.expected >> 16;
    if kind == 0 {
        return;
    }
    let before = context.mask;
    let [a, b, c, d] = context.stack.0;
    if kind == 2 {
        context.mask = a;
        context.stack = Stack([b, c, d, u32::MAX]);
        return;
    }
    let mask = slot.mask(context.stack.base(slot.relation(), before));
    context.mask = mask;
    // The other side leaves the stack unchanged, if both sides have lanes.
    if kind != 3 || before == 0 || mask == 0 {
        context.stack = context.stack.after(before, mask);
    }
}
