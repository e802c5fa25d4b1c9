//! Loops whose every iteration is an event.

use core::marker::PhantomData;

use crate::Location;

/// Traces the iterations of one loop; see [`trace_loop`].
#[derive(Debug)]
#[must_use = "the guard records the loop's iterations: keep it until the loop is over"]
pub struct LoopTrace<L: Location> {
    location: PhantomData<L>,
    #[cfg(not(target_arch = "nvptx64"))]
    iterations: host::Iterations,
}

/// Opens the trace of a loop whose iterations are events at `location`.
///
/// The loop calls [`LoopTrace::tick`] once an iteration, first thing, and holds no other trace point. The
/// guard is dropped where the loop is over, on whatever way: `break`, `return`, the end of its scope.
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
/// Each tick is an event, as with [`trace_loc`](crate::trace_loc). Where loops are counted (an option of the
/// recording), a tick adds one in a register, and the guard's drop records, for the lanes that drop it
/// together, the events of a loop in lock step: event k has the lanes that ticked at least k times, k from 1
/// to the most ticks of a lane. Each lane's own sequence of locations is the same either way. Where the lanes
/// run in lock step, which they do unless something inside the loop parts them for longer than an iteration,
/// the warp's events are the same too, in the same order. A lane counts up to 2^32 - 1 ticks; on
/// the simulator, more of them end the launch.
#[inline(always)]
pub fn trace_loop<L: Location>(location: L) -> LoopTrace<L> {
    LoopTrace::open(location, false)
}

impl<L: Location> LoopTrace<L> {
    /// As [`trace_loop`], for a loop that `#[warptrace::kernels]` traces.
    #[inline(always)]
    pub(crate) fn located(location: L) -> Self {
        Self::open(location, true)
    }

    #[inline(always)]
    fn open(location: L, located: bool) -> Self {
        let _ = (location, located);
        const { assert!(L::ID != 0, "location ids are 1 to 65,535") };
        #[cfg(all(target_arch = "nvptx64", not(feature = "no-markers")))]
        // SAFETY: a comment; see `trace_loc`.
        unsafe {
            core::arch::asm!("// warptrace.loop.enter {}", const L::ID, options(nomem, nostack, preserves_flags));
        }
        Self {
            location: PhantomData,
            #[cfg(not(target_arch = "nvptx64"))]
            iterations: host::Iterations::new(located),
        }
    }

    /// Traces the start of an iteration.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn tick(&mut self) {
        self.ticks::<1>();
    }

    /// Traces the start of `N` iterations that nothing separates: for the body of a loop that is unrolled by
    /// hand, in which no lane leaves between one iteration and the next. The events are those of `N` calls of
    /// [`tick`](Self::tick).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn ticks<const N: u16>(&mut self) {
        #[cfg(all(target_arch = "nvptx64", not(feature = "no-markers")))]
        // SAFETY: a comment; see `trace_loc`.
        unsafe {
            core::arch::asm!("// warptrace.loop.tick {} {}", const L::ID, const N,
                options(nomem, nostack, preserves_flags));
        }
        #[cfg(not(target_arch = "nvptx64"))]
        self.iterations.tick(L::ID, u32::from(N));
    }
}

impl<L: Location> Drop for LoopTrace<L> {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn drop(&mut self) {
        #[cfg(all(target_arch = "nvptx64", not(feature = "no-markers")))]
        // SAFETY: a comment; see `trace_loc`.
        unsafe {
            core::arch::asm!("// warptrace.loop.leave {}", const L::ID, options(nomem, nostack, preserves_flags));
        }
        #[cfg(not(target_arch = "nvptx64"))]
        self.iterations.leave(L::ID);
    }
}

/// Loops on the simulator.
#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use warptrace_format::Counting;

    use crate::simt::host::{Lane, Site, in_launch, with_lane};
    use crate::simt::{active_mask, ballot, located, rejoin, shuffle};
    use crate::trace::host::record;

    /// What a lane knows of a loop.
    #[derive(Debug)]
    pub(super) struct Iterations {
        counted: bool,
        /// Whether `#[warptrace::kernels]` traces the loop.
        located: bool,
        /// Iterations that the trace does not have yet.
        count: u32,
        /// Where the lane has ticked last.
        site: Option<Site>,
    }

    impl Iterations {
        pub(super) fn new(located: bool) -> Self {
            let counting = |lane: &dyn Lane| lane.recording().counting;
            // What loops do is known here when they have done it: recording each event says the same.
            let counted = (!located || in_launch()) && with_lane(counting) == Counting::All;
            Self { counted, located, count: 0, site: None }
        }

        #[track_caller]
        pub(super) fn tick(&mut self, location: u16, iterations: u32) {
            let site = core::panic::Location::caller();
            if self.located && !in_launch() {
                return;
            }
            if !self.counted {
                let mask = if self.located { located(location, site) } else { active_mask() };
                return record(location, mask, iterations);
            }
            self.count = self.count.checked_add(iterations).unwrap_or_else(|| {
                let message =
                    "the loop has gone through 2^32 iterations, more than a trace counts: does it end?";
                with_lane(|lane| lane.fail(message, site))
            });
            self.site = Some(site);
        }

        pub(super) fn leave(&mut self, location: u16) {
            // A lane that has not ticked has nothing to record. The simulator unwinds the lanes of a launch
            // that failed.
            if let Some(site) = self.site
                && !std::thread::panicking()
            {
                record_iterations(location, self.count, rejoin(site));
            }
        }
    }

    /// Records the loop of the lanes of `group`, which leave it together: one run for each number of
    /// iterations, from the smallest on.
    fn record_iterations(location: u16, iterations: u32, group: u32) {
        // SAFETY: the lanes of the group have just met, and go through this together.
        unsafe {
            let mut recorded = 0;
            let mut inside = ballot(group, iterations != 0);
            while inside != 0 {
                // The smallest number of those inside: from any of them down.
                let mut next = shuffle(group, iterations, inside.trailing_zeros());
                loop {
                    let below = ballot(group, iterations > recorded && iterations < next);
                    if below == 0 {
                        break;
                    }
                    next = shuffle(group, iterations, below.trailing_zeros());
                }
                if inside >> crate::simt::lane() & 1 != 0 {
                    record(location, inside, next - recorded);
                }
                recorded = next;
                inside = ballot(group, iterations > recorded);
            }
        }
    }
}
