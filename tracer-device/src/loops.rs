//! Loops whose every iteration is an event.

#[cfg(recording)]
use crate::simt;
#[cfg(recording)]
use crate::trace::trace_times;

/// Traces the iterations of one loop; see [`trace_loop`].
#[derive(Debug)]
#[must_use = "the guard records the loop's iterations: keep it until the loop is over"]
pub struct LoopTrace {
    #[cfg(recording)]
    location: u16,
    /// Iterations that are not recorded yet.
    #[cfg(recording)]
    iterations: u32,
    #[cfg(all(recording, not(target_arch = "nvptx64")))]
    counted: bool,
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
    #[cfg(not(recording))]
    let _ = location;
    LoopTrace {
        #[cfg(recording)]
        location,
        #[cfg(recording)]
        iterations: 0,
        #[cfg(all(recording, not(target_arch = "nvptx64")))]
        counted: simt::host::with_lane(|lane| lane.recording().counted),
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
        #[cfg(not(recording))]
        let _ = iterations;
        #[cfg(recording)]
        if self.is_counted() {
            self.iterations = self.iterations.wrapping_add(iterations);
        } else {
            trace_times(self.location, iterations);
        }
    }

    #[cfg(recording)]
    #[inline(always)]
    fn is_counted(&self) -> bool {
        #[cfg(target_arch = "nvptx64")]
        return cfg!(feature = "counted");
        #[cfg(not(target_arch = "nvptx64"))]
        self.counted
    }
}

impl Drop for LoopTrace {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn drop(&mut self) {
        #[cfg(all(recording, not(target_arch = "nvptx64")))]
        if std::thread::panicking() {
            // The simulator unwinds the lanes of a launch that failed.
            return;
        }
        #[cfg(recording)]
        if self.is_counted() {
            record_iterations(self.location, self.iterations, simt::active_mask());
        }
    }
}

/// Records the loop of the lanes of `group`, which all call it, each with its own number of iterations.
#[cfg(all(recording, any(not(target_arch = "nvptx64"), feature = "counted")))]
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
fn record_iterations(location: u16, iterations: u32, group: u32) {
    let (agree, first) = agree(iterations, group);
    if agree {
        if first != 0 {
            record_run(location, group, first);
        }
        return;
    }
    record_unequal(location, iterations, group);
}

/// Whether all lanes of `group`, which are here, have iterated equally often, and how often one of them has.
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
#[inline(always)]
fn agree(iterations: u32, group: u32) -> (bool, u32) {
    simt::agree_with(iterations, simt::highest(group))
}

/// The same on the simulator.
#[cfg(not(target_arch = "nvptx64"))]
#[track_caller]
fn agree(iterations: u32, group: u32) -> (bool, u32) {
    let first = simt::shuffle(group, iterations, group.trailing_zeros());
    (simt::ballot(group, iterations == first) == group, first)
}

/// Lanes that went through the loop differently often: one run for each number of iterations, from the smallest on.
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
#[inline(always)]
fn record_unequal(location: u16, iterations: u32, group: u32) {
    crate::event::record_counts(location, iterations, group);
}

/// Modules without counted loops never come here.
#[cfg(all(target_arch = "nvptx64", recording, not(feature = "counted")))]
fn record_iterations(_: u16, _: u32, _: u32) {}

/// As on the GPU, where the lanes take turns: they tell each other their counts by shuffles.
#[cfg(not(target_arch = "nvptx64"))]
#[track_caller]
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
        record_run(location, inside, next - recorded);
        recorded = next;
        inside = simt::ballot(group, iterations > recorded);
    }
}

/// Records that the lanes of `mask`, which are here, iterated so often.
#[cfg(all(recording, any(not(target_arch = "nvptx64"), feature = "counted")))]
#[inline(always)]
fn record_run(location: u16, mask: u32, count: u32) {
    #[cfg(target_arch = "nvptx64")]
    {
        let _ = mask;
        crate::event::record_here(location, count);
    }
    // Nobody runs before the leader has returned: there is no switch in between.
    #[cfg(not(target_arch = "nvptx64"))]
    if simt::is_leader(mask) {
        crate::event::record_run(location, mask, count);
    }
}
