//! The kernel of stress as `workloads/kernels/src/stress.rs` has it, with the trace points of the macro instead
//! of those placed by hand. What the lanes note of their way (`pass`) names the latter.

#[warptrace_macros::kernels(device = warptrace_device)]
pub(crate) mod automatic {
    use warptrace_device::{Global, Location, atomic, shared_arrays, simt};
    use warptrace_kernels::stress::{BINS, CLIMB_STEPS, COUNTERS, at, draw, key, mix};

    /// Which counter holds the number of threads that have left.
    const LEFT: u32 = COUNTERS;

    shared_arrays! {
        /// The block's counters, and the number of its threads that have left.
        fn stress_counters() -> [u32; COUNTERS + 1];
    }

    /// A lane on its way.
    struct Walk {
        key: u32,
        draws: u32,
        sum: u32,
        passed: u32,
    }

    impl Walk {
        /// The next decision, uniform in 32 bits.
        #[inline(always)]
        fn draw(&mut self) -> u32 {
            self.draws += 1;
            draw(self.key, self.draws)
        }

        /// Notes that the lane has passed a trace point. So the result alone shows whether it went the right way.
        #[inline(always)]
        fn pass<L: Location>(&mut self, _: L) {
            self.passed += 1;
            self.sum = mix(self.sum, u32::from(L::ID));
        }
    }

    /// Counts in global memory.
    ///
    /// # Safety
    /// `bins` has [`BINS`] elements, reached by atomics only.
    #[inline(always)]
    unsafe fn count(bins: Global<u32>, number: u32) {
        // SAFETY: the caller's promise.
        unsafe { atomic::add_u32(bins.at(u64::from(number % BINS)), 1) };
    }

    /// Halves a number, or triples it and adds 1, until it is 1 (Collatz). Answers where it ended.
    #[inline(always)]
    fn climb(walk: &mut Walk) -> u32 {
        let mut number = walk.draw() % 64 + 1;
        let mut left = CLIMB_STEPS;
        while number != 1 {
            walk.pass(at::CLIMB);
            if left == 0 {
                walk.pass(at::CLIMB_LONG);
                return number;
            }
            left -= 1;
            if number % 2 == 1 {
                walk.pass(at::CLIMB_ODD);
                number = 3 * number + 1;
            } else {
                walk.pass(at::CLIMB_EVEN);
                number /= 2;
            }
        }
        walk.pass(at::CLIMB_TOP);
        number
    }

    /// Rows of cells; the lane may leave both loops from any cell.
    ///
    /// # Safety
    /// As for [`count`].
    #[inline(always)]
    unsafe fn cross(walk: &mut Walk, bins: Global<u32>) {
        let mut rows = walk.draw() % 4;
        while rows != 0 {
            walk.pass(at::ROW);
            let mut cells = walk.draw() % 5;
            while cells != 0 {
                walk.pass(at::CELL);
                let way = walk.draw();
                if way & 1 == 0 {
                    walk.pass(at::CELL_LEFT);
                } else {
                    walk.pass(at::CELL_RIGHT);
                    // SAFETY: the caller's promise.
                    unsafe { count(bins, way >> 8) };
                }
                if way >> 1 & 15 == 0 {
                    walk.pass(at::CUT);
                    return;
                }
                cells -= 1;
            }
            rows -= 1;
        }
    }

    /// One of eight ways.
    ///
    /// # Safety
    /// As for [`count`]; the block's counters are cleared.
    #[inline(always)]
    unsafe fn fan_out(walk: &mut Walk, bins: Global<u32>) {
        let way = walk.draw();
        match way % 8 {
            0 => {
                walk.pass(at::FAN_0);
            }
            1 => {
                walk.pass(at::FAN_1);
            }
            2 => {
                walk.pass(at::FAN_2);
                // SAFETY: the caller's promise.
                unsafe { count(bins, way >> 8) };
            }
            3 => {
                walk.pass(at::FAN_3);
            }
            4 => {
                walk.pass(at::FAN_4);
                // SAFETY: below the number of counters; reached by atomics only.
                unsafe { stress_counters().fetch_add(way >> 8 & (COUNTERS - 1), 1) };
            }
            5 => {
                walk.pass(at::FAN_5);
            }
            6 => {
                walk.pass(at::FAN_6);
            }
            _ => {
                walk.pass(at::FAN_7);
            }
        }
    }

    /// The two sides of a warp: lanes of one side wait for each other and for nobody else. `lanes` still walk.
    ///
    /// # Safety
    /// All `lanes` come here; the block's counters are cleared.
    #[inline(always)]
    unsafe fn take_sides(walk: &mut Walk, lanes: u32) {
        let way = walk.draw();
        let near = simt::ballot(lanes, way & 1 == 0);
        let mut steps = way >> 8 & 7;
        if way & 1 == 0 {
            walk.pass(at::NEAR);
            while steps != 0 {
                walk.pass(at::NEAR_STEP);
                // SAFETY: below the number of counters; reached by atomics only.
                unsafe { stress_counters().fetch_add(steps, 1) };
                steps -= 1;
            }
            simt::sync_warp(near);
            trace!("near side met");
            walk.pass(at::NEAR_MET);
        } else {
            walk.pass(at::FAR);
            while steps != 0 {
                walk.pass(at::FAR_STEP);
                if way >> 16 & steps != 0 {
                    walk.pass(at::FAR_COUNTED);
                    // SAFETY: as above.
                    unsafe { stress_counters().fetch_add(0, steps) };
                } else {
                    walk.pass(at::FAR_PASSED);
                }
                steps -= 1;
            }
            simt::sync_warp(lanes & !near);
            trace!("far side met");
            walk.pass(at::FAR_MET);
        }
        walk.sum = mix(walk.sum, near);
    }

    /// The thread leaves. The last one of a block writes its counters to `counts`.
    ///
    /// No trace point says who is last: that depends on the order in which threads run, and nothing traced here
    /// does.
    ///
    /// # Safety
    /// `counts` has [`COUNTERS`] elements a block, and each thread of the block comes here once.
    #[untraced]
    #[inline(always)]
    unsafe fn leave(counts: Global<u32>) {
        let counters = stress_counters();
        atomic::fence_device();
        // SAFETY: the caller's promise; counters are reached by atomics only.
        unsafe {
            if counters.fetch_add(LEFT, 1) + 1 == simt::block_threads() {
                atomic::fence_device();
                let first = u64::from(simt::linear_block()) * u64::from(COUNTERS);
                let mut counter = 0;
                while counter < COUNTERS {
                    counts.set(first + u64::from(counter), counters.fetch_add(counter, 0));
                    counter += 1;
                }
            }
        }
    }

    /// Walks: thread i draws its way from `seed`, for at most `rounds` rounds, of which there is at least
    /// one.
    ///
    /// Writes each walk's checksum to `sums` and the number of trace points that the thread passed to
    /// `passed`; there are as many walks as `sums` has elements. `bins` ([`BINS`] counters, any values) is
    /// added to, `counts` ([`COUNTERS`] a block) is written. One-dimensional grid and block of whole warps,
    /// at least as many threads as walks.
    #[kernel]
    pub fn stress(
        sums: Global<u32>,
        passed: Global<u32>,
        bins: Global<u32>,
        counts: Global<u32>,
        seed: u32,
        rounds: u32,
    ) {
        let thread = simt::global_thread_x();
        let mut walk = Walk { key: key(seed, thread), draws: 0, sum: 0, passed: 0 };
        walk.pass(at::ENTER);
        if simt::linear_thread() <= LEFT {
            walk.pass(at::CLEAR);
            // SAFETY: one thread a counter, before the barrier.
            unsafe { stress_counters().set(simt::linear_thread(), 0) };
        } else {
            walk.pass(at::CLEAR_NOT);
        }
        simt::sync_threads();
        let place = u64::from(thread);
        let mut lanes = simt::ballot(u32::MAX, place < sums.len());
        if place >= sums.len() {
            // at::OUTSIDE
            // SAFETY: each thread leaves once.
            unsafe { leave(counts) };
            return;
        }
        // `max` rules the division by 0 out for the compiler.
        let mut left = walk.draw() % rounds.max(1) + 1;
        loop {
            walk.pass(at::ROUND);
            let mut turns = walk.draw() % 12;
            while turns != 0 {
                walk.pass(at::SPIN);
                // SAFETY: the kernel's arguments are as its documentation says.
                unsafe { count(bins, walk.sum) };
                turns -= 1;
            }
            // SAFETY: as above; the lanes that still walk all come here.
            unsafe {
                cross(&mut walk, bins);
                let top = climb(&mut walk);
                walk.sum = mix(walk.sum, top);
                fan_out(&mut walk, bins);
                take_sides(&mut walk, lanes);
            }
            left -= 1;
            let quits = walk.draw().is_multiple_of(128);
            lanes = simt::ballot(lanes, !quits & (left != 0));
            if quits {
                walk.pass(at::QUIT);
                // SAFETY: each thread has its own elements, and leaves once.
                unsafe {
                    sums.set(place, walk.sum);
                    passed.set(place, walk.passed);
                    leave(counts);
                }
                return;
            }
            if left == 0 {
                walk.pass(at::DONE);
                break;
            }
            walk.pass(at::AGAIN);
        }
        // SAFETY: as above.
        unsafe {
            sums.set(place, walk.sum);
            passed.set(place, walk.passed);
            leave(counts);
        }
    }
}
