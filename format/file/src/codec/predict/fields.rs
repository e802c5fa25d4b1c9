//! The fields of an event, read one by one: the definition of what a payload says, and of where it goes
//! wrong.
//!
//! [`fast`](super::fast) reads a whole miss at once, and comes back here for what is not as usual.

use super::Slot;
use super::bits::Bits;
use super::code::{FAR, FULL_RUN_BITS, NEAR};
use super::lanes;
use super::stack::{Relation, Stack};
use crate::codec::error::CodecError;

/// Where a warp is: the event before, and the masks around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) stack: Stack,
    pub(super) last: u32,
    pub(super) mask: u32,
}

/// What a miss says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Miss {
    pub(super) location: u32,
    pub(super) mask: u32,
    /// What the slot learns.
    pub(super) slot: Slot,
}

/// The location and the mask of a chunk's first event.
pub(super) fn read_first(input: &mut Bits<'_>, context: Context) -> Result<(u32, u32), CodecError> {
    if input.bit()? {
        return Ok((1, u32::MAX));
    }
    if input.bit()? {
        return Ok((2 + input.read(5)?, u32::MAX));
    }
    let location = read_location(input, 0)?;
    let (mask, _, _) = read_unlocated_mask(input, context)?;
    Ok((location, mask))
}

/// An event that `slot` did not expect, but for its head.
#[cold]
#[inline(never)]
pub(super) fn read_miss<'a>(
    mut input: Bits<'a>,
    context: Context,
    slot: Slot,
    located: bool,
) -> Result<(Bits<'a>, Miss), CodecError> {
    let (location, (mask, relation, by_seen)) = if located {
        (context.last ^ slot.step(), read_located_mask(&mut input, context, slot)?)
    } else {
        (read_location(&mut input, context.last)?, read_unlocated_mask(&mut input, context)?)
    };
    let slot = Slot::learned(context.last ^ location, relation, by_seen, mask);
    Ok((input, Miss { location, mask, slot }))
}

fn read_unlocated_mask(input: &mut Bits<'_>, context: Context) -> Result<(u32, Relation, bool), CodecError> {
    if input.bit()? { Ok((context.mask, Relation::SAME, false)) } else { read_related_mask(input, context) }
}

fn read_located_mask(
    input: &mut Bits<'_>,
    context: Context,
    slot: Slot,
) -> Result<(u32, Relation, bool), CodecError> {
    if input.bit()? {
        let relation = slot.relation();
        return Ok((read_lanes(input, context.stack.base(relation, context.mask))?, relation, false));
    }
    if input.bit()? { Ok((slot.seen, slot.relation(), true)) } else { read_related_mask(input, context) }
}

fn read_related_mask(input: &mut Bits<'_>, context: Context) -> Result<(u32, Relation, bool), CodecError> {
    let relation = read_relation(input)?;
    Ok((read_lanes(input, context.stack.base(relation, context.mask))?, relation, false))
}

/// See [`code::head`](super::code::head). Hits, and whether the location was the expected one.
#[cold]
#[inline(never)]
pub(super) fn read_head(mut input: Bits<'_>) -> Result<(Bits<'_>, u32, bool), CodecError> {
    let bits = input.window();
    if bits & 0b11 != 0 {
        let located = bits & 1 == 0;
        input.skip(1 + u32::from(located))?;
        return Ok((input, 0, located));
    }
    let low = bits as u32;
    let (hits, length) = if low & 0b100 != 0 {
        (1, 3)
    } else if low & 0b1000 != 0 {
        (2 + (low >> 4 & 1), 5)
    } else {
        match low >> 4 & 15 {
            15 => (low >> 8, 8 + FULL_RUN_BITS),
            width => (3 + (1 << width) + (low >> 8 & ((1 << width) - 1)), 8 + width),
        }
    };
    input.skip(length + 1)?;
    Ok((input, hits, bits >> length & 1 != 0))
}

/// See [`code::location`](super::code::location).
fn read_location(input: &mut Bits<'_>, last: u32) -> Result<u32, CodecError> {
    let start = input.at;
    let bits = input.window() as u32;
    let (difference, length) = match bits.trailing_zeros() {
        0 => (1, 1),
        1 => ((bits as i32 >> 2 & 1) * 2, 3),
        2 => {
            let index = bits as i32 >> 3 & 15;
            (if index < -NEAR.0 { NEAR.0 + index } else { NEAR.0 + 3 + index }, 7)
        }
        3 => {
            let index = bits as i32 >> 4 & 31;
            (if index < 16 { FAR.0 + index } else { FAR.1 - 31 + index }, 9)
        }
        zeros => {
            let width = if zeros == 4 { 8 } else { 16 };
            input.skip(5 + width)?;
            return Ok(bits >> 5 & ((1 << width) - 1));
        }
    };
    input.skip(length)?;
    match u16::try_from(last as i32 + difference) {
        Ok(location) => Ok(u32::from(location)),
        Err(_) => Err(input.bad(start, "location")),
    }
}

/// See [`code::relation`](super::code::relation).
fn read_relation(input: &mut Bits<'_>) -> Result<Relation, CodecError> {
    let bits = input.window() as u32;
    let (number, length) = if bits & 1 != 0 {
        (0, 1)
    } else if bits & 2 != 0 {
        (2 + (bits >> 2 & 1), 3)
    } else {
        (4 + (bits >> 2 & 7), 5)
    };
    input.skip(length)?;
    Ok(Relation::from_low_bits(number))
}

/// See [`lanes`].
fn read_lanes(input: &mut Bits<'_>, base: u32) -> Result<u32, CodecError> {
    let start = input.at;
    let bits = input.window();
    let count = base.count_ones();
    if bits & 1 != 0 {
        input.skip(1 + count)?;
        let subset = (bits >> 1 & ((1 << count) - 1)) as u32;
        return Ok(if base == u32::MAX { subset } else { lanes::expand(subset, base) });
    }
    let bits = bits as u32;
    if bits & 2 != 0 {
        input.skip(2)?;
        return Ok(base);
    }
    let (without, two, prefix) = match bits.trailing_zeros() {
        2 => (true, false, 3),
        3 => (false, false, 4),
        zeros => (zeros == 4, true, 5),
    };
    let width = lanes::rank_bits(count);
    let rank = |at: u32| bits >> at & ((1 << width) - 1);
    let low = rank(prefix);
    let high = if two { rank(prefix + width) } else { low };
    input.skip(prefix + if two { 2 * width } else { width })?;
    let found = match (lane(low, base), lane(high, base)) {
        (Some(a), Some(b)) if !two || low < high => a | b,
        _ => return Err(input.bad(start, "lane")),
    };
    Ok(if without { base & !found } else { found })
}

/// Does what [`lanes::lane`] does; full warps are worth a short cut.
fn lane(rank: u32, base: u32) -> Option<u32> {
    if base == u32::MAX && rank < 32 { Some(1 << rank) } else { lanes::lane(rank, base) }
}
