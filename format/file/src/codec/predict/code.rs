//! The code's tables, except for [`lanes`]. Bits are written lowest first; in tables the leftmost is first.

use super::lanes;
use super::stack::Relation;

/// Bits to write, the first one lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// The bits; those from `length` on are 0.
    pub bits: u64,
    /// Number of bits, at most 64.
    pub length: u32,
}

impl Code {
    /// The empty code.
    pub const NONE: Self = Self { bits: 0, length: 0 };

    /// Creates a code of the low `length` bits of `bits`. The other bits must be 0.
    #[inline(always)]
    pub const fn new(bits: u32, length: u32) -> Self {
        Self { bits: bits as u64, length }
    }

    /// Returns this code followed by `next`.
    #[inline(always)]
    pub const fn then(self, next: Self) -> Self {
        Self { bits: self.bits | (next.bits << self.length), length: self.length + next.length }
    }
}

/// Bits of a run written in full, which the largest width of a long run announces.
pub const FULL_RUN_BITS: u32 = 24;

/// Encodes the head of a miss: the number of hits before it (below 2^24), and if the location was expected.
///
/// ```text
/// 1               no hit, another location
/// 01              no hit, the expected location
/// 00 1 e          1 hit; e: 1 if the location was the expected one
/// 00 01 x e       2 + x hits, x one bit
/// 00 00 n x e     3 + 2^n + x hits, n (4 bits) up to 14, x n bits
/// 00 00 1111 x e  x hits, x 24 bits
/// ```
#[inline(always)]
pub const fn head(run: u32, located: bool) -> Code {
    // Selects: lanes of a GPU wait for each other at each branch.
    let located = located as u32;
    let over = run.wrapping_sub(3);
    let width = 31_u32.wrapping_sub(over.leading_zeros());
    let is_full = over >> 15 != 0;
    let rest = if is_full { run } else { over.wrapping_sub(1_u32.wrapping_shl(width)) };
    let (number, bits) = if is_full { (15, FULL_RUN_BITS) } else { (width, width) };
    let (bits, length) =
        if run < 4 { (0b1000 | run << 4 & 0x10, 5) } else { (number << 4 | rest << 8, 8 + bits) };
    let (bits, length) = if run == 1 { (0b100, 3) } else { (bits, length) };
    if run == 0 {
        Code::new(1 + located, 1 + located)
    } else {
        Code::new(bits, length).then(Code::new(located, 1))
    }
}

/// Lowest and highest difference of the 4-bit (`NEAR`) and the 5-bit form (`FAR`) of [`location`].
pub(crate) const NEAR: (i32, i32) = (-6, 12);
pub(crate) const FAR: (i32, i32) = (-22, 28);

/// Encodes an unexpected location after `last`.
///
/// ```text
/// 1         last + 1
/// 010       last
/// 011       last + 2
/// 001 x     x 4 bits: last - 6 to last - 1, then last + 3 to last + 12
/// 0001 x    x 5 bits: last - 22 to last - 7, then last + 13 to last + 28
/// 00001 x   x, 8 bits
/// 00000 x   x, 16 bits
/// ```
#[inline(always)]
pub const fn location(last: u32, location: u32) -> Code {
    let difference = location as i32 - last as i32;
    // Selects and arithmetic, because a GPU would have to load a table.
    let (is_before, number) = (difference < 0, difference as u32);
    let (near, far) =
        (if is_before { NEAR.0 } else { NEAR.0 + 3 }, if is_before { FAR.0 } else { FAR.0 + 19 });
    let code = if location < 256 { (0b1_0000 | location << 5, 13) } else { (location << 5, 21) };
    let is_far = (difference >= FAR.0) & (difference <= FAR.1);
    let code = if is_far { (0b1000 | number.wrapping_sub(far as u32) << 4, 9) } else { code };
    let is_near = (difference >= NEAR.0) & (difference <= NEAR.1);
    let code = if is_near { (0b100 | number.wrapping_sub(near as u32) << 3, 7) } else { code };
    let odd = number & 1;
    let (bits, length) = if number < 3 { (2 + 2 * number - 3 * odd, 3 - 2 * odd) } else { code };
    Code::new(bits, length)
}

/// Encodes a relation.
///
/// ```text
/// 1      the last mask
/// 01 d   level 1, disjoint if d
/// 00 x   x, 3 bits: level 2 + x / 2, disjoint if x is odd
/// ```
#[inline(always)]
pub const fn relation(relation: Relation) -> Code {
    let number = relation.number();
    if number == 0 {
        Code::new(1, 1)
    } else if number < 4 {
        Code::new(0b10 | ((number & 1) << 2), 3)
    } else {
        Code::new((number - 4) << 2, 5)
    }
}

/// Encodes an unexpected repetition of the previous event, after `run` hits. Its nearest relation is `SAME`.
#[inline(always)]
pub const fn again(run: u32, located: bool) -> Code {
    let rest = if located {
        Code::new(0, 2).then(relation(Relation::SAME)).then(lanes::encode(u32::MAX, u32::MAX))
    } else {
        location(0, 0).then(Code::new(1, 1))
    };
    head(run, located).then(rest)
}

/// First location without a short form at the start of a chunk; see [`first`].
pub const FIRST_SHORT_END: u32 = 34;

/// Encodes a chunk's first event in its short form. Returns `None` if it has none.
///
/// ```text
/// 1      location 1, all lanes
/// 01 x   location 2 + x (x 5 bits), all lanes
/// 00     other events: a location after 0, then a mask as after an unexpected location
/// ```
#[inline(always)]
pub const fn first(location: u32, mask: u32) -> Option<Code> {
    if mask != u32::MAX || location == 0 || location >= FIRST_SHORT_END {
        None
    } else if location == 1 {
        Some(Code::new(1, 1))
    } else {
        Some(Code::new(0b10 | ((location - 2) << 2), 7))
    }
}
