//! Loops with an event per iteration.

/// Traces the iterations of a loop. Returned by `trace_loop!`.
///
/// The loop calls [`tick`](Self::tick) once at the start of each iteration, and contains no other trace
/// point. The guard is dropped when the loop ends, by `break`, `return`, or the end of its scope.
///
/// # What is recorded
/// Each tick is an event, like an event of `trace!`. If loops are counted (an option of the recording), a
/// tick increments a register, and lanes that drop the guard together record the loop in lock step: event k
/// has the lanes that ticked at least k times. Each lane's sequence of locations is the same in both cases.
/// The warp's events are the same too, unless code inside the loop makes lanes diverge for longer than an
/// iteration. A lane counts up to 2^32 - 1 ticks. On the simulator, more ticks stop the launch.
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
        // SAFETY: emits a comment; see `trace::point`.
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

    /// Traces the start of `N` iterations, for unrolled loop bodies in which no lane leaves in between.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn ticks<const N: u16>(&mut self) {
        #[cfg(target_arch = "nvptx64")]
        // SAFETY: emits a comment; see `trace::point`.
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
        // SAFETY: emits a comment; see `trace::point`.
        unsafe {
            core::arch::asm!(warptrace_abi::marker!(leave), const ID, options(nomem, nostack, preserves_flags));
        }
        #[cfg(not(target_arch = "nvptx64"))]
        self.iterations.leave(ID);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use warptrace_format::Counting;

    use crate::simt::host::{Lane, Site, in_launch, with_lane};
    use crate::simt::{ballot, located, rejoin, shuffle};
    use crate::trace::host::record;

    /// A lane's state of a loop.
    #[derive(Debug)]
    pub(super) struct Iterations {
        counted: bool,
        /// Iterations that are not in the trace yet.
        count: u32,
        /// Position of the lane's last tick.
        site: Option<Site>,
    }

    impl Iterations {
        pub(super) fn new() -> Self {
            let counting = |lane: &dyn Lane| lane.recording().counting;
            // With other settings, each iteration is recorded as an event, which gives the same trace.
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
            // A lane without ticks has nothing to record. The simulator unwinds the lanes of a failed launch.
            if let Some(site) = self.site
                && !std::thread::panicking()
            {
                let group = rejoin(site);
                // Orders the operations in this file at the loop's position, as in a called function.
                with_lane(|lane| {
                    lane.calls(site);
                    lane.call(true);
                });
                record_iterations(location, self.count, group);
                with_lane(|lane| lane.call(false));
            }
        }
    }

    /// Records the loop for the lanes of `group`: one run per distinct number of iterations, ascending.
    fn record_iterations(location: u16, iterations: u32, group: u32) {
        // SAFETY: the lanes of the group have just converged and execute this together.
        unsafe {
            let mut recorded = 0;
            let mut inside = ballot(group, iterations != 0);
            while inside != 0 {
                // Starts at the count of any lane inside, and descends to the smallest.
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
