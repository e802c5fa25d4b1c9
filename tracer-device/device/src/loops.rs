//! Loops whose every iteration is an event.

/// Traces the iterations of one loop: what `trace_loop!` returns.
///
/// The loop calls [`tick`](Self::tick) once an iteration, first thing, and holds no other trace point. The
/// guard is dropped where the loop is over, on whatever way: `break`, `return`, the end of its scope.
///
/// # What is recorded
/// Each tick is an event, as `trace!` makes one. Where loops are counted (an option of the
/// recording), a tick adds one in a register, and the guard's drop records, for the lanes that drop it
/// together, the events of a loop in lock step: event k has the lanes that ticked at least k times, k from 1
/// to the most ticks of a lane. Each lane's own sequence of locations is the same either way. Where the lanes
/// run in lock step, which they do unless something inside the loop parts them for longer than an iteration,
/// the warp's events are the same too, in the same order. A lane counts up to 2^32 - 1 ticks; on
/// the simulator, more of them end the launch.
#[derive(Debug)]
#[must_use = "the guard records the loop's iterations: keep it until the loop is over"]
pub struct LoopTrace<const ID: u16> {
    #[cfg(not(target_arch = "nvptx64"))]
    iterations: host::Iterations,
    #[cfg(target_arch = "nvptx64")]
    _private: (),
}

impl<const ID: u16> LoopTrace<ID> {
    /// Opens the trace of a loop whose iterations are events at location `ID`.
    #[doc(hidden)]
    #[inline(always)]
    pub fn open() -> Self {
        const { assert!(ID != 0, "location ids are 1 to 65,535") };
        #[cfg(target_arch = "nvptx64")]
        // SAFETY: a comment; see `trace::point`.
        unsafe {
            core::arch::asm!(warptrace_abi::marker!(enter), const ID, options(nomem, nostack, preserves_flags));
        }
        Self {
            #[cfg(not(target_arch = "nvptx64"))]
            iterations: host::Iterations::new(),
            #[cfg(target_arch = "nvptx64")]
            _private: (),
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
        #[cfg(target_arch = "nvptx64")]
        // SAFETY: a comment; see `trace::point`.
        unsafe {
            core::arch::asm!(warptrace_abi::marker!(tick), const ID, const N,
                options(nomem, nostack, preserves_flags));
        }
        #[cfg(not(target_arch = "nvptx64"))]
        self.iterations.tick(ID, u32::from(N));
    }
}

impl<const ID: u16> Drop for LoopTrace<ID> {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn drop(&mut self) {
        #[cfg(target_arch = "nvptx64")]
        // SAFETY: a comment; see `trace::point`.
        unsafe {
            core::arch::asm!(warptrace_abi::marker!(leave), const ID, options(nomem, nostack, preserves_flags));
        }
        #[cfg(not(target_arch = "nvptx64"))]
        self.iterations.leave(ID);
    }
}

/// Loops on the simulator.
#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use warptrace_format::Counting;

    use crate::simt::host::{Lane, Site, in_launch, with_lane};
    use crate::simt::{ballot, located, rejoin, shuffle};
    use crate::trace::host::record;

    /// What a lane knows of a loop.
    #[derive(Debug)]
    pub(super) struct Iterations {
        counted: bool,
        /// Iterations that the trace does not have yet.
        count: u32,
        /// Where the lane has ticked last.
        site: Option<Site>,
    }

    impl Iterations {
        pub(super) fn new() -> Self {
            let counting = |lane: &dyn Lane| lane.recording().counting;
            // What loops do is known here when they have done it: recording each event says the same.
            let counted = in_launch() && with_lane(counting) == Counting::All;
            Self { counted, count: 0, site: None }
        }

        #[track_caller]
        pub(super) fn tick(&mut self, location: u16, iterations: u32) {
            let site = core::panic::Location::caller();
            if !in_launch() {
                return;
            }
            if !self.counted {
                return record(location, located(location, site), iterations);
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
                let group = rejoin(site);
                // The operations of recording stand in this file: they come where the loop is, as those of a
                // function.
                with_lane(|lane| {
                    lane.calls(site);
                    lane.call(true);
                });
                record_iterations(location, self.count, group);
                with_lane(|lane| lane.call(false));
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
