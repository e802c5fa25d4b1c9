//! Code of a set of lanes inside a larger set, the base.
//!
//! With n lanes in the base and w = ceil(log2 n), the encoder uses the first of the shortest codes:
//! ```text
//! 01           all
//! 001 r        all but one: its rank in the base, w bits
//! 0001 r       one only: its rank
//! 00001 r s    all but two: their ranks, r < s
//! 00000 r s    two only: their ranks
//! 1 x          a bit for each lane of the base, lowest first: n bits
//! ```

use super::code::Code;

/// Returns the number of bits of a rank among `lanes` lanes.
#[inline(always)]
pub const fn rank_bits(lanes: u32) -> u32 {
    if lanes < 2 { 0 } else { 32 - (lanes - 1).leading_zeros() }
}

/// Encodes `mask`, a subset of `base`.
#[inline(always)]
pub const fn encode(mask: u32, base: u32) -> Code {
    // Selects and one branch: lanes of a GPU may wait for each other at each nested branch.
    let missing = base & !mask;
    let lanes = base.count_ones();
    let width = rank_bits(lanes);
    let (gone, here) = (missing.count_ones(), mask.count_ones());
    let one_gone = (gone == 1) & (width + 3 < lanes + 1);
    let one_here = (here == 1) & (width + 4 < lanes + 1) & !one_gone;
    let both_fit = (2 * width + 5 < lanes + 1) & !one_gone & !one_here;
    let two_gone = (gone == 2) & both_fit;
    let two_here = (here == 2) & both_fit & !two_gone;
    if (gone != 0) & !one_gone & !one_here & !two_gone & !two_here {
        return Code::new(1, 1).then(Code::new(compress(mask, base), lanes));
    }
    // Number of zeros before the first 1; 5 without a 1.
    let zeros = if gone == 0 { 1 } else { 2 + one_here as u32 + 2 * two_gone as u32 + 3 * two_here as u32 };
    let prefix = Code::new((1 << zeros) & 0b1_1111, if zeros < 5 { zeros + 1 } else { 5 });
    let few = if one_gone | two_gone { missing } else { mask };
    let first = if gone == 0 { Code::NONE } else { Code::new(rank(few.trailing_zeros(), base), width) };
    let second = Code::new(rank(31_u32.wrapping_sub(few.leading_zeros()), base), width);
    prefix.then(first).then(if two_gone | two_here { second } else { Code::NONE })
}

/// Returns the number of lanes of `base` below `lane`.
#[inline(always)]
const fn rank(lane: u32, base: u32) -> u32 {
    (base & ((1_u32 << (lane & 31)).wrapping_sub(1))).count_ones()
}

/// Returns the bits of `mask` at the lanes of `base`, moved together to the low end. Three steps compress all
/// bytes at once: each moves the bits with an odd number of remaining groups of absent lanes below them. Then
/// the bytes are joined. Source: Warren, "Hacker's Delight", 2nd edition, section 7-4.
#[inline(always)]
pub const fn compress(mask: u32, base: u32) -> u32 {
    let mut bits = mask & base;
    let mut places = base;
    // Bit i: parity of the absent lanes below i in its byte that are still to be skipped.
    let mut absent = !base << 1 & 0xfefe_fefe;
    let mut step = 0;
    while step < 3 {
        let mut odd = absent ^ (absent << 1 & 0xfefe_fefe);
        odd ^= odd << 2 & 0xfcfc_fcfc;
        odd ^= odd << 4 & 0xf0f0_f0f0;
        let moving = odd & places;
        places = (places ^ moving) | (moving >> (1 << step));
        let moved = bits & moving;
        bits = (bits ^ moved) | (moved >> (1 << step));
        absent &= !odd;
        step += 1;
    }
    let [first, second, third, fourth] = bits.to_le_bytes();
    first as u32
        | (second as u32) << (base & 0xff).count_ones()
        | (third as u32) << (base & 0xffff).count_ones()
        | (fourth as u32) << (base & 0xff_ffff).count_ones()
}

/// Moves the low bits of `bits` to the lanes of `base`. The inverse of [`compress`].
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

/// Returns the lane of `base` with this rank, as a mask, or `None` if `base` has too few lanes.
pub const fn lane(rank: u32, base: u32) -> Option<u32> {
    if rank >= base.count_ones() { None } else { Some(expand(1 << rank, base)) }
}
