//! The trace point.

#[cfg(not(target_arch = "nvptx64"))]
use crate::simt::{
    self,
    host::{Tracks, with_lane},
};

/// Marks a control-flow decision: the lanes that come here together record one event, `(location, lanes)`.
///
/// `location` is a constant of the kernel's [`trace_points!`](crate::trace_points!), 1..=65,535 (255 with the codec
/// `ecl`), at one place in the source only. Never changes what the kernel computes.
///
/// # Panics
/// On the simulator, the id 0 ends the launch with an error.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn trace_loc(location: u16) {
    #[cfg(not(target_arch = "nvptx64"))]
    trace_times(location, 1);
    #[cfg(target_arch = "nvptx64")]
    let _ = location;
}

/// Records `count` events in a row, with nothing between them that could separate the lanes; none if `count` is 0.
#[cfg(not(target_arch = "nvptx64"))]
#[track_caller]
pub(crate) fn trace_times(location: u16, count: u32) {
    if location == 0 {
        let site = core::panic::Location::caller();
        with_lane(|lane| lane.fail("trace_loc(0): a location id is 1 to 65535", site));
    }
    if count != 0 {
        record(Tracks::Both, location, simt::active_mask(), count);
    }
}

/// Records that the lanes of `mask`, which all call this, came to `location` `count` times in a row.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn record(tracks: Tracks, location: u16, mask: u32, count: u32) {
    // The leader comes first, and nobody runs before it has returned.
    if simt::is_leader(mask) {
        with_lane(|lane| lane.record(tracks, location, mask, count));
    }
}
