//! Shuffles, votes, scans and reductions of a whole warp.

use warptrace_device::simt;

use crate::lane_log::is_later;

pub(crate) const ALL: u32 = u32::MAX;
/// Later than any time, and greater than any index.
pub(crate) const NEVER: u32 = u32::MAX;

/// Votes and exchanges of a whole warp, called only where control flow is uniform across the warp.
macro_rules! by_all {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $kind:ty),*) $(-> $answer:ty)?
        = $operation:ident($($passed:expr),*);)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        #[track_caller]
        pub(crate) fn $name($($argument: $kind),*) $(-> $answer)? {
            // SAFETY: all lanes of the warp, or threads of the block for `sync_threads`, reach this call.
            unsafe { simt::$operation($($passed),*) }
        }
    )*};
}

by_all! {
    ballot(predicate: bool) -> u32 = ballot(ALL, predicate);
    shuffle(value: u32, source: u32) -> u32 = shuffle(ALL, value, source);
    /// Returns the value of the lane `delta` below. The lowest `delta` lanes keep their own value.
    shuffle_up(value: u32, delta: u32) -> u32 = shuffle_up_all(value, delta);
    /// Returns the value of the lane whose number is this lane's, XOR `lanes`.
    shuffle_xor(value: u32, lanes: u32) -> u32 = shuffle_xor(ALL, value, lanes);
    sync_warp() = sync_warp(ALL);
    sync_threads() = sync_threads();
}

/// Runs `act` on lane 0 and broadcasts its result.
#[inline(always)]
pub(crate) fn by_first(act: impl FnOnce() -> u32) -> u32 {
    let mut value = 0;
    if simt::lane() == 0 {
        value = act();
    }
    shuffle(value, 0)
}

/// Returns the sum over this lane and all lower ones, saturating at 2^32 - 1.
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

#[inline(always)]
pub(crate) fn sum(mut value: u32) -> u32 {
    let mut step = 1;
    while step < simt::WARP_LANES {
        value = value.wrapping_add(shuffle_xor(value, step));
        step *= 2;
    }
    value
}

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

/// Modulo 2^64.
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

#[inline(always)]
pub(crate) fn minimum(mut value: u32) -> u32 {
    let mut step = 1;
    while step < simt::WARP_LANES {
        value = value.min(shuffle_xor(value, step));
        step *= 2;
    }
    value
}

#[inline(always)]
pub(crate) fn maximum(value: u32) -> u32 {
    !minimum(!value)
}

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

/// Returns the earliest of the lanes' times. They may wrap: they are compared relative to the lowest lane's.
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
