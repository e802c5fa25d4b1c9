//! Loops whose every iteration is an event.

#[cfg(not(target_arch = "nvptx64"))]
use crate::simt::{
    self,
    host::{Site, Tracks, with_lane},
};
#[cfg(not(target_arch = "nvptx64"))]
use crate::trace::{record, trace_times};

/// Traces the iterations of one loop; see [`trace_loop`].
#[derive(Debug)]
#[must_use = "the guard records the loop's iterations: keep it until the loop is over"]
pub struct LoopTrace {
    #[cfg(not(target_arch = "nvptx64"))]
    location: u16,
    /// Iterations that are not recorded yet.
    #[cfg(not(target_arch = "nvptx64"))]
    iterations: u32,
    #[cfg(not(target_arch = "nvptx64"))]
    counted: bool,
    /// Where the lane has ticked last.
    #[cfg(not(target_arch = "nvptx64"))]
    site: Option<Site>,
}

/// Opens the trace of a loop whose iterations are events at `location`.
///
/// The loop calls [`LoopTrace::tick`] once an iteration, first thing, and holds no other trace point. The guard is dropped
/// where the loop is over, on whatever way: `break`, `return`, the end of its scope.
///
/// ```
/// # use warptrace_device::{Global, kernel, simt, trace_loop, trace_points};
/// # trace_points! { pub mod at in "lib.rs" { STEP = 1: "one more halving" } }
/// kernel! {
///     /// Counts how often each element can be halved.
///     pub fn halvings(data: Global<u32>) {
///         let i = u64::from(simt::global_thread_x());
///         if i < data.len() {
///             // SAFETY: `i` is below the length, and each thread has its own element.
///             let mut rest = unsafe { data.get(i) };
///             let mut count = 0;
///             let mut steps = trace_loop(at::STEP);
///             while rest > 1 {
///                 steps.tick();
///                 rest /= 2;
///                 count += 1;
///             }
///             drop(steps);
///             // SAFETY: as above.
///             unsafe { data.set(i, count) };
///         }
///     }
/// }
/// # let _call = halvings(Global::empty());
/// ```
///
/// # What is recorded
/// Without counted loops, each tick is [`trace_loc`](crate::trace_loc)`(location)`. With counted loops (a feature of the compiled
/// module, [`Recording::counted`](crate::simt::host::Recording) on the simulator) a tick adds one in a register, and the
/// guard's drop records, for the lanes that drop it together, the events of a loop in lock step: event k has the lanes that
/// ticked at least k times, k from 1 to the most ticks of a lane. Each lane's own sequence of locations is the same either way.
/// Where the lanes run in lock step, which they do unless something inside the loop lets them part for longer than an
/// iteration, the warp's events are the same too, in the same order. A lane counts up to 2^32 - 1 ticks.
#[inline(always)]
pub fn trace_loop(location: u16) -> LoopTrace {
    #[cfg(target_arch = "nvptx64")]
    let _ = location;
    LoopTrace {
        #[cfg(not(target_arch = "nvptx64"))]
        location,
        #[cfg(not(target_arch = "nvptx64"))]
        iterations: 0,
        #[cfg(not(target_arch = "nvptx64"))]
        counted: with_lane(|lane| lane.recording().counted),
        #[cfg(not(target_arch = "nvptx64"))]
        site: None,
    }
}

impl LoopTrace {
    /// One iteration starts.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn tick(&mut self) {
        self.ticks(1);
    }

    /// So many iterations start that nothing separates: for the body of an unrolled loop, in which no lane leaves between one
    /// iteration and the next. The events are those of as many calls of [`tick`](Self::tick), for the price of one.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn ticks(&mut self, iterations: u32) {
        #[cfg(target_arch = "nvptx64")]
        let _ = iterations;
        #[cfg(not(target_arch = "nvptx64"))]
        if !self.counted {
            trace_times(self.location, iterations);
        } else if iterations != 0 {
            self.iterations = self.iterations.wrapping_add(iterations);
            self.site = Some(core::panic::Location::caller());
            // The raw twin proves the counting, so it takes no part in it.
            if with_lane(|lane| lane.recording().dual) {
                record(Tracks::Twin, self.location, simt::active_mask(), iterations);
            }
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl Drop for LoopTrace {
    fn drop(&mut self) {
        // A lane that has not ticked has nothing to record. The simulator unwinds the lanes of a launch that failed.
        if let Some(site) = self.site
            && !std::thread::panicking()
        {
            record_iterations(self.location, self.iterations, simt::rejoin(site));
        }
    }
}

/// Records the loop of the lanes of `group`, which all call it, each with its own number of iterations.
#[cfg(not(target_arch = "nvptx64"))]
fn record_iterations(location: u16, iterations: u32, group: u32) {
    let first = simt::shuffle(group, iterations, group.trailing_zeros());
    if simt::ballot(group, iterations == first) != group {
        record_unequal(location, iterations, group);
    } else if first != 0 {
        record(Tracks::Trace, location, group, first);
    }
}

/// Records lanes that iterated differently often: one run for each number of iterations, from the smallest on.
#[cfg(not(target_arch = "nvptx64"))]
fn record_unequal(location: u16, iterations: u32, group: u32) {
    let mut recorded = 0;
    let mut inside = simt::ballot(group, iterations != 0);
    while inside != 0 {
        // The smallest number of those inside: from any of them down.
        let mut next = simt::shuffle(group, iterations, inside.trailing_zeros());
        loop {
            let below = simt::ballot(group, iterations > recorded && iterations < next);
            if below == 0 {
                break;
            }
            next = simt::shuffle(group, iterations, below.trailing_zeros());
        }
        record(Tracks::Trace, location, inside, next - recorded);
        recorded = next;
        inside = simt::ballot(group, iterations > recorded);
    }
}
