//! The trace point.

/// Largest location id that the codecs `raw` and `ecl` carry.
#[cfg(recording)]
const MAX_LOCATION: u16 = 255;

/// Marks a control-flow decision: the lanes that come here together record one event, `(location, lanes)`.
///
/// `location` is a constant of the kernel's [`trace_points!`](crate::trace_points!), 1..=255, at one place in the
/// source only. Never changes what the kernel computes. Compiled to nothing where no codec is compiled in.
///
/// # Panics
/// On the simulator, an id outside 1..=255 ends the launch with an error. On the GPU such a trace point records
/// nothing.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn trace_loc(location: u16) {
    #[cfg(recording)]
    trace_times(location, 1);
    #[cfg(not(recording))]
    let _ = location;
}

/// `count` events in a row, with nothing between them that could part the lanes; none if `count` is 0.
#[cfg(recording)]
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) fn trace_times(location: u16, count: u32) {
    #[cfg(not(target_arch = "nvptx64"))]
    if location == 0 || location > MAX_LOCATION {
        let site = core::panic::Location::caller();
        crate::simt::host::with_lane(|lane| {
            lane.fail(&format!("trace_loc({location}): a location id is 1 to {MAX_LOCATION}"), site)
        });
    }
    if location == 0 || location > MAX_LOCATION || count == 0 {
        return;
    }
    #[cfg(target_arch = "nvptx64")]
    crate::event::record_here(location, count);
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let mask = crate::simt::active_mask();
        // The leader comes first, and nobody runs before it has returned.
        if crate::simt::is_leader(mask) {
            crate::event::record_run(location, mask, count);
        }
    }
}
