//! What the lanes of a whole warp find out by shuffles and votes.

use warptrace_device::simt;

use crate::lane_log::is_later;

/// All lanes of a warp.
pub(crate) const ALL: u32 = u32::MAX;
/// Later than any time, and more than any number.
pub(crate) const NEVER: u32 = u32::MAX;

/// Votes and exchanges of a whole warp. The kernels of this crate branch on what is the same in all lanes of
/// a warp wherever they call these.
macro_rules! by_all {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $kind:ty),*) $(-> $answer:ty)?
        = $operation:ident($($passed:expr),*);)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        #[track_caller]
        pub(crate) fn $name($($argument: $kind),*) $(-> $answer)? {
            // SAFETY: all lanes of the warp, or threads of the block, come here: see above.
            unsafe { simt::$operation($($passed),*) }
        }
    )*};
}

by_all! {
    /// The lanes whose predicate holds.
    ballot(predicate: bool) -> u32 = ballot(ALL, predicate);
    /// The value of lane `source`.
    shuffle(value: u32, source: u32) -> u32 = shuffle(ALL, value, source);
    /// The value of the lane `delta` below; lanes without one keep their own.
    shuffle_up(value: u32, delta: u32) -> u32 = shuffle_up_all(value, delta);
    /// The value of the lane whose number differs by the bits of `lanes`.
    shuffle_xor(value: u32, lanes: u32) -> u32 = shuffle_xor(ALL, value, lanes);
    /// Waits for the warp's lanes.
    sync_warp() = sync_warp(ALL);
    /// Waits for the block's threads.
    sync_threads() = sync_threads();
}

/// Has the first lane run `act`; broadcasts its answer.
#[inline(always)]
pub(crate) fn by_first(act: impl FnOnce() -> u32) -> u32 {
    let mut value = 0;
    if simt::lane() == 0 {
        value = act();
    }
    shuffle(value, 0)
}

/// Sum over the lane and all lower ones; 2^32 - 1 if it is larger than that.
#[inline(always)]
pub(crate) fn sum_up_to(mut value: u32) -> u32 {
    let lane = simt::lane();
    let mut step = 1;
    while step < simt::WARP_LANES {
        let before = shuffle_up(value, step);
        value = value.saturating_add(if lane >= step { before } else { 0 });
        step *= 2;
    }
    value
}

/// Sum over the lanes of the warp, modulo 2^32.
#[inline(always)]
pub(crate) fn sum(mut value: u32) -> u32 {
    let mut step = 1;
    while step < simt::WARP_LANES {
        value = value.wrapping_add(shuffle_xor(value, step));
        step *= 2;
    }
    value
}

/// Sum of numbers of 64 bits over the lanes of the warp.
#[inline(always)]
pub(crate) fn sum_of_events(mut value: u64) -> u64 {
    let mut step = 1;
    while step < simt::WARP_LANES {
        let low = shuffle_xor(value as u32, step);
        let high = shuffle_xor((value >> 32) as u32, step);
        value = value.wrapping_add(u64::from(low) | u64::from(high) << 32);
        step *= 2;
    }
    value
}

/// Sum of numbers of 64 bits over the lane and all lower ones.
#[inline(always)]
pub(crate) fn sum_of_events_up_to(mut value: u64) -> u64 {
    let lane = simt::lane();
    let mut step = 1;
    while step < simt::WARP_LANES {
        let low = shuffle_up(value as u32, step);
        let high = shuffle_up((value >> 32) as u32, step);
        let before = u64::from(low) | u64::from(high) << 32;
        value = value.wrapping_add(if lane >= step { before } else { 0 });
        step *= 2;
    }
    value
}

/// Minimum over the lanes of the warp.
#[inline(always)]
pub(crate) fn minimum(mut value: u32) -> u32 {
    let mut step = 1;
    while step < simt::WARP_LANES {
        value = value.min(shuffle_xor(value, step));
        step *= 2;
    }
    value
}

/// Maximum over the lanes of the warp.
#[inline(always)]
pub(crate) fn maximum(value: u32) -> u32 {
    !minimum(!value)
}

/// The latest clock of the lanes that have one.
#[inline(always)]
pub(crate) fn latest(clock: Option<u64>) -> Option<u64> {
    let owners = ballot(clock.is_some());
    if owners == 0 {
        return None;
    }
    let from = |clock: u64, lane: u32| {
        let [low, high] = [clock as u32, (clock >> 32) as u32].map(|half| shuffle(half, lane));
        u64::from(low) | u64::from(high) << 32
    };
    let mut latest = from(clock.unwrap_or(0), owners.trailing_zeros());
    let mut others = owners & (owners - 1);
    while others != 0 {
        let other = from(clock.unwrap_or(0), others.trailing_zeros());
        latest = if is_later(other, latest) { other } else { latest };
        others &= others - 1;
    }
    Some(latest)
}

/// The earliest time of the lanes that have one. Times are compared with that of the lowest lane, so they may
/// wrap.
#[inline(always)]
pub(crate) fn earliest(time: Option<u32>) -> Option<u32> {
    let owners = ballot(time.is_some());
    if owners == 0 {
        return None;
    }
    let base = shuffle(time.unwrap_or(0), owners.trailing_zeros()).wrapping_sub(1 << 31);
    let since = time.map_or(NEVER, |time| time.wrapping_sub(base));
    Some(base.wrapping_add(minimum(since)))
}
