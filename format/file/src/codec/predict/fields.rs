//! Field-by-field decoding, which defines the code and its errors. [`fast`](super::fast) rarely needs it.

use super::Slot;
use super::bits::Bits;
use super::code::{FAR, FULL_RUN_BITS, NEAR};
use super::lanes;
use super::stack::{Relation, Stack};
use crate::codec::error::CodecError;

/// Decoder context: the previous event and the stack of masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) stack: Stack,
    pub(super) last: u32,
    pub(super) mask: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Miss {
    pub(super) location: u32,
    pub(super) mask: u32,
    pub(super) slot: Slot,
}

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

#[cold]
#[inline(never)]
pub(super) fn read_head(mut input: Bits<'_>) -> Result<(Bits<'_>, u32, bool), CodecError> {
    let bits = input.window();
    let (hits, before) = head_form(bits as u32);
    input.skip(before + 1)?;
    Ok((input, hits, is_located(bits, hits, before)))
}

/// Returns the hits of a head, and the number of bits before its last bit (the location was expected).
pub(super) const fn head_form(bits: u32) -> (u32, u32) {
    match bits.trailing_zeros() {
        0 => (0, 0),
        1 => (0, 1),
        2 => (1, 3),
        3 => (2 + (bits >> 4 & 1), 5),
        _ => match bits >> 4 & 15 {
            15 => (bits >> 8, 8 + FULL_RUN_BITS),
            width => (3 + (1 << width) + (bits >> 8 & ((1 << width) - 1)), 8 + width),
        },
    }
}

/// Returns true if the head says that the location was expected. Without hits its length says so.
pub(super) const fn is_located(bits: u64, hits: u32, before: u32) -> bool {
    if hits == 0 { before == 1 } else { bits >> before & 1 != 0 }
}

fn read_location(input: &mut Bits<'_>, last: u32) -> Result<u32, CodecError> {
    let start = input.at;
    let bits = input.window() as u32;
    let (difference, length) = location_form(bits);
    input.skip(length)?;
    if length > LONGEST_DIFFERENCE {
        return Ok(bits >> 5 & ((1 << (length - 5)) - 1));
    }
    match u16::try_from(last as i32 + difference) {
        Ok(location) => Ok(u32::from(location)),
        Err(_) => Err(input.bad(start, "location")),
    }
}

pub(super) const LONGEST_DIFFERENCE: u32 = 9;

/// Returns a location's difference and its bits. After five bits of longer ones, the location itself follows.
pub(super) const fn location_form(bits: u32) -> (i32, u32) {
    match bits.trailing_zeros() {
        0 => (1, 1),
        1 => ((bits as i32 >> 2 & 1) * 2, 3),
        2 => {
            let index = bits as i32 >> 3 & 15;
            (if index < -NEAR.0 { NEAR.0 + index } else { NEAR.0 + 3 + index }, 7)
        }
        3 => {
            let index = bits as i32 >> 4 & 31;
            (if index < 16 { FAR.0 + index } else { FAR.1 - 31 + index }, LONGEST_DIFFERENCE)
        }
        4 => (0, 5 + 8),
        _ => (0, 5 + 16),
    }
}

fn read_relation(input: &mut Bits<'_>) -> Result<Relation, CodecError> {
    let (number, length) = relation_form(input.window() as u32);
    input.skip(length)?;
    Ok(Relation::from_low_bits(number))
}

pub(super) const fn relation_form(bits: u32) -> (u32, u32) {
    match bits & 3 {
        1 | 3 => (0, 1),
        2 => (2 + (bits >> 2 & 1), 3),
        _ => (4 + (bits >> 2 & 7), 5),
    }
}

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

/// Like [`lanes::lane`], with a shortcut for full warps.
fn lane(rank: u32, base: u32) -> Option<u32> {
    if base == u32::MAX && rank < 32 { Some(1 << rank) } else { lanes::lane(rank, base) }
}
