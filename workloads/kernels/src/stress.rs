//! Walks that diverge: every lane has its own path and its own loop lengths, drawn from a hash.
//!
//! The program computes nothing useful. The lanes of a warp diverge in all ways that kernels know:
//! loops of different lengths, loops in loops that are left from inside, a function with several returns, a
//! branch of eight ways, two sides of a warp that wait for their own lanes only, atomics on shared and global
//! memory, and early ends. The path of a lane depends only on its own draws, so its sequence of trace points
//! is known in advance, in whatever order the groups of a warp run.

use warptrace_device::{Global, atomic, shared_arrays, simt};
use warptrace_macros::kernels;

use crate::hash::scramble;

/// Counters of a block, in shared memory.
pub const COUNTERS: u32 = 8;
/// Counters in global memory.
pub const BINS: u32 = 256;
/// Steps after which a climb is given up.
pub const CLIMB_STEPS: u32 = 24;

/// Which counter holds the number of threads that have left.
const LEFT: u32 = COUNTERS;

shared_arrays! {
    /// The block's counters, and the number of its threads that have left.
    fn stress_counters() -> [u32; COUNTERS + 1];
}

/// Returns the key from which a thread draws its decisions. Different threads have different keys.
#[inline(always)]
pub fn key(seed: u32, thread: u32) -> u32 {
    scramble(seed ^ scramble(thread))
}

/// Draw number `draw` of the thread with `key`.
#[inline(always)]
pub fn draw(key: u32, draw: u32) -> u32 {
    scramble(key.wrapping_add(draw.wrapping_mul(0x9e37_79b9)))
}

/// Adds a number to a checksum. The order counts.
#[inline(always)]
pub fn mix(sum: u32, number: u32) -> u32 {
    (sum.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b1)
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
    fn pass(&mut self, point: u16) {
        self.passed += 1;
        self.sum = mix(self.sum, u32::from(point));
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

/// The thread leaves. The last one of a block writes its counters to `counts`.
///
/// No trace point says who is last: that depends on the order in which threads run, and nothing traced here
/// does.
///
/// # Safety
/// `counts` has [`COUNTERS`] elements a block, and each thread of the block comes here once.
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

#[kernels(device = warptrace_device, only_marked, first_id = 12, automatic = 1)]
mod kernels {
    use super::*;

    /// Halves a number, or triples it and adds 1, until it is 1 (Collatz). Returns where it ended.
    #[inline(always)]
    fn climb(walk: &mut Walk) -> u32 {
        let mut number = walk.draw() % 64 + 1;
        let mut left = CLIMB_STEPS;
        while number != 1 {
            trace!("CLIMB");
            walk.pass(at::CLIMB);
            if left == 0 {
                trace!("CLIMB_LONG");
                walk.pass(at::CLIMB_LONG);
                return number;
            }
            left -= 1;
            if number % 2 == 1 {
                trace!("CLIMB_ODD");
                walk.pass(at::CLIMB_ODD);
                number = 3 * number + 1;
            } else {
                trace!("CLIMB_EVEN");
                walk.pass(at::CLIMB_EVEN);
                number /= 2;
            }
        }
        trace!("CLIMB_TOP");
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
            trace!("ROW" = 7);
            walk.pass(at::ROW);
            let mut cells = walk.draw() % 5;
            while cells != 0 {
                trace!("CELL");
                walk.pass(at::CELL);
                let way = walk.draw();
                if way & 1 == 0 {
                    trace!("CELL_LEFT");
                    walk.pass(at::CELL_LEFT);
                } else {
                    trace!("CELL_RIGHT");
                    walk.pass(at::CELL_RIGHT);
                    // SAFETY: the caller's promise.
                    unsafe { count(bins, way >> 8) };
                }
                if way >> 1 & 15 == 0 {
                    trace!("CUT");
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
                trace!("FAN_0" = 17);
                walk.pass(at::FAN_0);
            }
            1 => {
                trace!("FAN_1");
                walk.pass(at::FAN_1);
            }
            2 => {
                trace!("FAN_2");
                walk.pass(at::FAN_2);
                // SAFETY: the caller's promise.
                unsafe { count(bins, way >> 8) };
            }
            3 => {
                trace!("FAN_3");
                walk.pass(at::FAN_3);
            }
            4 => {
                trace!("FAN_4");
                walk.pass(at::FAN_4);
                // SAFETY: below the number of counters; reached by atomics only.
                unsafe { stress_counters().fetch_add(way >> 8 & (COUNTERS - 1), 1) };
            }
            5 => {
                trace!("FAN_5");
                walk.pass(at::FAN_5);
            }
            6 => {
                trace!("FAN_6");
                walk.pass(at::FAN_6);
            }
            _ => {
                trace!("FAN_7");
                walk.pass(at::FAN_7);
            }
        }
    }

    /// The two sides of a warp: lanes of one side wait for each other and for no others. `lanes` still walk.
    ///
    /// # Safety
    /// All `lanes` come here; the block's counters are cleared.
    #[inline(always)]
    unsafe fn take_sides(walk: &mut Walk, lanes: u32) {
        let way = walk.draw();
        // SAFETY: the caller's promise.
        let near = unsafe { simt::ballot(lanes, way & 1 == 0) };
        let mut steps = way >> 8 & 7;
        if way & 1 == 0 {
            trace!("NEAR");
            walk.pass(at::NEAR);
            let mut taken = trace_loop!("NEAR_STEP");
            while steps != 0 {
                taken.tick();
                walk.pass(at::NEAR_STEP);
                // SAFETY: below the number of counters; reached by atomics only.
                unsafe { stress_counters().fetch_add(steps, 1) };
                steps -= 1;
            }
            drop(taken);
            // SAFETY: all lanes of `near` are here.
            unsafe { simt::sync_warp(near) };
            trace!("NEAR_MET");
            walk.pass(at::NEAR_MET);
        } else {
            trace!("FAR");
            walk.pass(at::FAR);
            while steps != 0 {
                trace!("FAR_STEP");
                walk.pass(at::FAR_STEP);
                if way >> 16 & steps != 0 {
                    trace!("FAR_COUNTED");
                    walk.pass(at::FAR_COUNTED);
                    // SAFETY: as above.
                    unsafe { stress_counters().fetch_add(0, steps) };
                } else {
                    trace!("FAR_PASSED");
                    walk.pass(at::FAR_PASSED);
                }
                steps -= 1;
            }
            // SAFETY: the other lanes are here.
            unsafe { simt::sync_warp(lanes & !near) };
            trace!("FAR_MET");
            walk.pass(at::FAR_MET);
        }
        walk.sum = mix(walk.sum, near);
    }

    /// Walks: thread i draws its path from `seed`, for at most `rounds` rounds. Each walk has at least one
    /// round.
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
        trace!("ENTER" = 1);
        let thread = simt::global_thread_x();
        let mut walk = Walk { key: key(seed, thread), draws: 0, sum: 0, passed: 0 };
        walk.pass(at::ENTER);
        if simt::linear_thread() <= LEFT {
            trace!("CLEAR");
            walk.pass(at::CLEAR);
            // SAFETY: one thread a counter, before the barrier.
            unsafe { stress_counters().set(simt::linear_thread(), 0) };
        } else {
            trace!("CLEAR_NOT");
            walk.pass(at::CLEAR_NOT);
        }
        // SAFETY: all threads of the block come here.
        unsafe { simt::sync_threads() };
        let place = u64::from(thread);
        // SAFETY: all lanes of the warp do.
        let mut lanes = unsafe { simt::ballot(u32::MAX, place < sums.len()) };
        if place >= sums.len() {
            trace!("OUTSIDE");
            // SAFETY: each thread leaves once.
            unsafe { leave(counts) };
            return;
        }
        // `max` rules the division by 0 out for the compiler.
        let mut left = walk.draw() % rounds.max(1) + 1;
        loop {
            trace!("ROUND");
            walk.pass(at::ROUND);
            let mut turns = walk.draw() % 12;
            let mut spun = trace_loop!("SPIN");
            while turns != 0 {
                spun.tick();
                walk.pass(at::SPIN);
                // SAFETY: the kernel's arguments are as its documentation says.
                unsafe { count(bins, walk.sum) };
                turns -= 1;
            }
            drop(spun);
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
            // SAFETY: those lanes are here that went on after the last round.
            lanes = unsafe { simt::ballot(lanes, !quits & (left != 0)) };
            if quits {
                trace!("QUIT" = 33);
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
                trace!("DONE");
                walk.pass(at::DONE);
                break;
            }
            trace!("AGAIN");
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

pub use kernels::*;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_of_a_thread_are_spread() {
        let mut ways = [0u32; 8];
        for number in 0..8_000 {
            ways[(draw(key(1, 77), number) % 8) as usize] += 1;
        }
        assert!(ways.iter().all(|ways| (800..1200).contains(ways)), "{ways:?}");
        assert_ne!(draw(key(1, 0), 1), draw(key(1, 1), 1));
        assert_ne!(draw(key(1, 0), 1), draw(key(2, 0), 1));
    }

    #[test]
    fn the_order_counts_in_a_checksum() {
        assert_ne!(mix(mix(0, 1), 2), mix(mix(0, 2), 1));
        // By hand: 0 rotated is 0, 0 ^ 3 = 3, times 0x9e3779b1 without the carry.
        assert_eq!(mix(0, 3), 0xdaa6_6d13);
    }
}
