//! The trace point.

/// A declared place of a kernel: the unit type that [`trace_points!`](crate::trace_points!) makes for each.
pub trait Location: Copy {
    /// The id, 1 to 65,535, unique in the program.
    const ID: u16;
}

/// Marks a control-flow decision: the lanes that come here together make one event, `(location, lanes)`.
///
/// `location` is one of the kernel's [`trace_points!`](crate::trace_points!). Never changes what the kernel
/// computes.
///
/// # On the GPU
/// The compiled kernel holds a comment here, `// warptrace.loc 3`, and no instruction. When a trace is
/// wanted, `warptrace-ptx` puts the instructions that record in its place, after the optimiser has done its
/// work. So the traced kernel is the one that runs untraced. The optimiser may copy the comment with the code
/// around it (a loop that is unrolled has it several times); it neither drops it, nor moves it over a branch,
/// nor merges two of them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn trace_loc<L: Location>(location: L) {
    let _ = location;
    marker::<L>();
    #[cfg(not(target_arch = "nvptx64"))]
    host::trace(L::ID);
}

/// The comment that stands for a trace point in the compiled kernel.
#[inline(always)]
pub(crate) fn marker<L: Location>() {
    const { assert!(L::ID != 0, "location ids are 1 to 65,535") };
    #[cfg(all(target_arch = "nvptx64", not(feature = "no-markers")))]
    // SAFETY: a comment. With a side effect, as far as the compiler knows, so that it stays where it is.
    unsafe {
        core::arch::asm!(warptrace_abi::marker!(loc), const L::ID, options(nomem, nostack, preserves_flags));
    }
}

/// Trace points on the simulator.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host {
    use crate::simt::host::with_lane;
    use crate::simt::{active_mask, is_leader};

    /// Records that the lanes that are here came to a location.
    #[track_caller]
    pub(crate) fn trace(location: u16) {
        record(location, active_mask(), 1);
    }

    /// Records `count` events of the lanes of `mask`, which are all here and call this.
    #[track_caller]
    pub(crate) fn record(location: u16, mask: u32, count: u32) {
        // The leader comes first, and nobody runs before it has returned.
        if count != 0 && is_leader(mask) {
            with_lane(|lane| lane.record(location, mask, count));
        }
    }
}
