//! A set of lanes inside a larger one, in few bits.
//!
//! With n lanes in the base and w = ceil(log2 n), whichever is shortest of (the first one if equal, in this order):
//!
//! ```text
//! 01           all
//! 001 r        all but one: its rank in the base, w bits
//! 0001 r       one only: its rank
//! 00001 r s    all but two: their ranks, r < s
//! 00000 r s    two only: their ranks
//! 1 x          a bit for each lane of the base, lowest first: n bits
//! ```

use super::code::Code;

/// Bits of a rank among `lanes` lanes.
#[inline(always)]
pub const fn rank_bits(lanes: u32) -> u32 {
    if lanes < 2 { 0 } else { 32 - (lanes - 1).leading_zeros() }
}

/// The code of `mask`, a subset of `base`.
#[inline(always)]
pub const fn encode(mask: u32, base: u32) -> Code {
    let missing = base & !mask;
    if missing == 0 {
        return Code::new(0b10, 2);
    }
    let lanes = base.count_ones();
    let width = rank_bits(lanes);
    let (gone, here) = (missing.count_ones(), mask.count_ones());
    let (prefix, few) = if gone == 1 && width + 3 < lanes + 1 {
        (Code::new(0b100, 3), missing)
    } else if here == 1 && width + 4 < lanes + 1 {
        (Code::new(0b1000, 4), mask)
    } else if gone == 2 && 2 * width + 5 < lanes + 1 {
        (Code::new(0b1_0000, 5), missing)
    } else if here == 2 && 2 * width + 5 < lanes + 1 {
        (Code::new(0, 5), mask)
    } else {
        return Code::new(1, 1).then(Code::new(compress(mask, base), lanes));
    };
    let code = prefix.then(Code::new(rank(few.trailing_zeros(), base), width));
    if few & (few - 1) == 0 {
        return code;
    }
    code.then(Code::new(rank(31 - few.leading_zeros(), base), width))
}

/// Lanes of `base` below `lane`.
#[inline(always)]
const fn rank(lane: u32, base: u32) -> u32 {
    (base & ((1 << lane) - 1)).count_ones()
}

/// The bits of `mask` at the lanes of `base`, moved together to the low end.
///
/// In five steps, for there is no such instruction on a GPU: each moves the bits that have an odd number of groups of
/// absent lanes still below them. Source: Warren, "Hacker's Delight", 2nd edition, section 7-4.
#[inline(always)]
pub const fn compress(mask: u32, base: u32) -> u32 {
    if base == u32::MAX {
        return mask;
    }
    let mut bits = mask & base;
    let mut places = base;
    // Bit i: parity of the absent lanes below i that are still to be skipped.
    let mut absent = !base << 1;
    let mut step = 0;
    while step < 5 {
        let mut odd = absent ^ (absent << 1);
        odd ^= odd << 2;
        odd ^= odd << 4;
        odd ^= odd << 8;
        odd ^= odd << 16;
        let moving = odd & places;
        places = (places ^ moving) | (moving >> (1 << step));
        let moved = bits & moving;
        bits = (bits ^ moved) | (moved >> (1 << step));
        absent &= !odd;
        step += 1;
    }
    bits
}

/// The inverse of [`compress`]: the low bits of `bits` at the lanes of `base`.
pub const fn expand(bits: u32, base: u32) -> u32 {
    let (mut bits, mut places, mut mask) = (bits, base, 0);
    while places != 0 {
        let lane = places & places.wrapping_neg();
        if bits & 1 != 0 {
            mask |= lane;
        }
        bits >>= 1;
        places ^= lane;
    }
    mask
}

/// The lane of `base` with this rank, as a mask; `None` if `base` has not so many lanes.
pub const fn lane(rank: u32, base: u32) -> Option<u32> {
    if rank >= base.count_ones() { None } else { Some(expand(1 << rank, base)) }
}
