//! What the lanes of a whole warp find out together.

use crate::simt;

/// All lanes of a warp.
pub(super) const ALL: u32 = u32::MAX;
/// Later than any time, and more than any number.
pub(super) const NEVER: u32 = u32::MAX;

/// What the first lane does for all of the warp; its answer to all.
#[inline(always)]
pub(super) fn by_first(act: impl FnOnce() -> u32) -> u32 {
    let mut value = 0;
    if simt::lane() == 0 {
        value = act();
    }
    simt::shuffle(ALL, value, 0)
}

/// What the lane and all lower ones have together; the most there is, if that is more than a word can say.
#[inline(always)]
pub(super) fn sum_up_to(mut value: u32) -> u32 {
    let lane = simt::lane();
    let mut step = 1;
    while step < simt::WARP_LANES {
        let before = simt::shuffle_up(ALL, value, step);
        value = value.saturating_add(if lane >= step { before } else { 0 });
        step *= 2;
    }
    value
}

/// Sum over the lanes of the warp.
#[inline(always)]
pub(super) fn sum(mut value: u32) -> u32 {
    let mut step = 1;
    while step < simt::WARP_LANES {
        value += simt::shuffle_xor(ALL, value, step);
        step *= 2;
    }
    value
}

/// Sum of numbers of 64 bits over the lanes of the warp.
#[inline(always)]
pub(super) fn sum_of_events(mut value: u64) -> u64 {
    let mut step = 1;
    while step < simt::WARP_LANES {
        let low = simt::shuffle_xor(ALL, value as u32, step);
        let high = simt::shuffle_xor(ALL, (value >> 32) as u32, step);
        value += u64::from(low) | u64::from(high) << 32;
        step *= 2;
    }
    value
}

/// Least over the lanes of the warp.
#[inline(always)]
pub(super) fn least(mut value: u32) -> u32 {
    let mut step = 1;
    while step < simt::WARP_LANES {
        value = value.min(simt::shuffle_xor(ALL, value, step));
        step *= 2;
    }
    value
}

/// The earliest time of the lanes that have one.
#[inline(always)]
pub(super) fn earliest(time: Option<u32>) -> Option<u32> {
    let owners = simt::ballot(ALL, time.is_some());
    if owners == 0 {
        return None;
    }
    let base = simt::shuffle(ALL, time.unwrap_or(0), owners.trailing_zeros()).wrapping_sub(1 << 31);
    let after = time.map_or(NEVER, |time| time.wrapping_sub(base));
    Some(base.wrapping_add(least(after)))
}
