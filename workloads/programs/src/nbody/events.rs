//! Exact event counts of a run.
//!
//! Given n bodies, the first m of them attract, s steps, and blocks of b threads, a launch has W = ceil(n /
//! b) * b / 32 warps. A = ceil(n / 32) warps have a lane with a body, and P = W - floor(n / 32) have a lane
//! without one (the last warp with bodies may have both). Except for the bounds check, all lanes of a warp
//! take the same path. So a step has
//!
//! ```text
//! nbody_force      W * FORCE_ENTER + P * FORCE_OUTSIDE + A * (m * INTERACT + FIRST_STEP or LATER_STEP)
//! nbody_integrate  W * MOVE_ENTER  + P * MOVE_OUTSIDE  + A * MOVE
//! ```
//!
//! and the run has s * (2 W + 2 P + A * (m + 2)) events.

use warptrace_kernels::nbody::at;

use super::NbodyOptions;

const WARP: u64 = 32;

/// Event counts of a run: in total, of each warp and of each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventCounts {
    bodies: u32,
    sources: u32,
    steps: u32,
    block: u32,
}

impl EventCounts {
    /// Returns the counts of a run with `bodies` bodies.
    pub fn new(bodies: u32, options: &NbodyOptions) -> Self {
        let NbodyOptions { steps, block, .. } = *options;
        Self { bodies, sources: options.sources_of(bodies), steps, block }
    }

    /// Number of events of the whole run. Panics if the block size is 0.
    pub fn total(&self) -> u64 {
        let (n, block) = (u64::from(self.bodies), u64::from(self.block));
        let warps = n.div_ceil(block) * block / WARP;
        let with = n.div_ceil(WARP);
        let without = warps - n / WARP;
        u64::from(self.steps) * (2 * warps + 2 * without + with * (u64::from(self.sources) + 2))
    }

    /// Number of events of warp `warp` (its index in the launch) in one launch of `nbody_force`.
    pub fn force_warp(&self, warp: u64) -> u64 {
        let (with, without) = self.lanes(warp);
        1 + u64::from(without) + if with { u64::from(self.sources) + 1 } else { 0 }
    }

    /// Number of events of warp `warp` (its index in the launch) in one launch of `nbody_integrate`.
    pub fn integrate_warp(&self, warp: u64) -> u64 {
        let (with, without) = self.lanes(warp);
        1 + u64::from(without) + u64::from(with)
    }

    /// Returns the locations of thread `thread` in `nbody_force` of step `step` (from 0), in order.
    pub fn force_lane(&self, step: u32, thread: u64) -> Vec<u16> {
        if thread >= u64::from(self.bodies) {
            return vec![at::FORCE_ENTER, at::FORCE_OUTSIDE];
        }
        let mut locations = vec![at::FORCE_ENTER];
        locations.resize(1 + self.sources as usize, at::INTERACT);
        locations.push(if step > 0 { at::LATER_STEP } else { at::FIRST_STEP });
        locations
    }

    /// Returns the locations of thread `thread` in a launch of `nbody_integrate`, in order.
    pub fn integrate_lane(&self, thread: u64) -> Vec<u16> {
        vec![at::MOVE_ENTER, if thread < u64::from(self.bodies) { at::MOVE } else { at::MOVE_OUTSIDE }]
    }

    fn lanes(&self, warp: u64) -> (bool, bool) {
        let bodies = u64::from(self.bodies);
        (warp * WARP < bodies, (warp + 1) * WARP > bodies)
    }
}

fn all_on_all(bodies: u32, steps: u32, block: u32) -> EventCounts {
    EventCounts { bodies, sources: bodies, steps, block }
}

/// [`EventCounts::force_warp`] if all bodies attract.
pub fn force_warp_events(bodies: u32, warp: u64) -> u64 {
    all_on_all(bodies, 1, 32).force_warp(warp)
}

/// [`EventCounts::integrate_warp`].
pub fn integrate_warp_events(bodies: u32, warp: u64) -> u64 {
    all_on_all(bodies, 1, 32).integrate_warp(warp)
}

/// [`EventCounts::total`] for blocks of `block` threads, if all bodies attract. Panics if `block` is 0.
pub fn expected_events(bodies: u32, steps: u32, block: u32) -> u64 {
    all_on_all(bodies, steps, block).total()
}

/// [`EventCounts::force_lane`] if all bodies attract.
pub fn force_lane_locations(bodies: u32, step: u32, thread: u64) -> Vec<u16> {
    all_on_all(bodies, 1, 32).force_lane(step, thread)
}

/// [`EventCounts::integrate_lane`].
pub fn integrate_lane_locations(bodies: u32, thread: u64) -> Vec<u16> {
    all_on_all(bodies, 1, 32).integrate_lane(thread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_the_sum_over_warps() {
        for (bodies, block) in [(1, 32), (31, 32), (32, 32), (33, 64), (100, 256), (1000, 128), (1024, 1024)]
        {
            for sources in [None, Some(1), Some(1 + bodies / 2)] {
                let options = NbodyOptions { sources, block, ..NbodyOptions::new(3) };
                let counts = EventCounts::new(bodies, &options);
                let warps = u64::from(u32::div_ceil(bodies, block) * block / 32);
                let step: u64 = (0..warps).map(|w| counts.force_warp(w) + counts.integrate_warp(w)).sum();
                assert_eq!(counts.total(), 3 * step, "{bodies} bodies in blocks of {block}, {sources:?}");
            }
        }
    }

    #[test]
    fn the_thesis_size_in_numbers() {
        // 391 blocks of 4 warps: 1,562 warps are full, one has 16 bodies, one has none.
        assert_eq!(expected_events(50_000, 2, 128), 2 * (2 * 1_564 + 2 * 2 + 1_563 * 50_002));
        assert_eq!(expected_events(50_000, 2, 128), 156_312_516);
    }

    #[test]
    fn many_bodies_and_few_sources_in_numbers() {
        // 2,112 blocks of 4 full warps.
        let options = NbodyOptions { sources: Some(16_384), ..NbodyOptions::new(1) };
        assert_eq!(EventCounts::new(270_336, &options).total(), 2 * 8_448 + 8_448 * (16_384 + 2));
    }
}
