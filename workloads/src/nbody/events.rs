//! How many events a run has, exactly.
//!
//! With n bodies, s steps and blocks of b threads a launch has W = ceil(n / b) * b / 32 warps. Of these
//! A = ceil(n / 32) have a body, and P = W - floor(n / 32) have a lane without one (the last with bodies may have
//! both). All lanes of a warp take the same path but for the bounds check, so a step has
//!
//! ```text
//! nbody_force      W * FORCE_ENTER + P * FORCE_OUTSIDE + A * (n * INTERACT + FIRST_STEP or LATER_STEP)
//! nbody_integrate  W * MOVE_ENTER  + P * MOVE_OUTSIDE  + A * MOVE
//! ```
//!
//! and the run s * (2 W + 2 P + A * (n + 2)) events.

use warptrace_kernels::nbody::at;

const WARP: u64 = 32;

/// Whether warp `warp` has lanes with a body, and lanes without.
fn lanes(bodies: u32, warp: u64) -> (bool, bool) {
    (warp * WARP < u64::from(bodies), (warp + 1) * WARP > u64::from(bodies))
}

/// Events of warp `warp` (its index in the launch) in one launch of `nbody_force`.
pub fn force_warp_events(bodies: u32, warp: u64) -> u64 {
    let (with, without) = lanes(bodies, warp);
    1 + u64::from(without) + if with { u64::from(bodies) + 1 } else { 0 }
}

/// Events of warp `warp` (its index in the launch) in one launch of `nbody_integrate`.
pub fn integrate_warp_events(bodies: u32, warp: u64) -> u64 {
    let (with, without) = lanes(bodies, warp);
    1 + u64::from(without) + u64::from(with)
}

/// Events of a run: `bodies` bodies, `steps` steps, blocks of `block` threads.
///
/// # Panics
/// If `block` is 0.
pub fn expected_events(bodies: u32, steps: u32, block: u32) -> u64 {
    let (n, block) = (u64::from(bodies), u64::from(block));
    let warps = n.div_ceil(block) * block / WARP;
    let with = n.div_ceil(WARP);
    let without = warps - n / WARP;
    u64::from(steps) * (2 * warps + 2 * without + with * (n + 2))
}

/// The locations that thread `thread` passes in the launch of `nbody_force` of step `step` (from 0), in order.
pub fn force_lane_locations(bodies: u32, step: u32, thread: u64) -> Vec<u16> {
    if thread >= u64::from(bodies) {
        return vec![at::FORCE_ENTER, at::FORCE_OUTSIDE];
    }
    let mut locations = vec![at::FORCE_ENTER];
    locations.resize(1 + bodies as usize, at::INTERACT);
    locations.push(if step > 0 { at::LATER_STEP } else { at::FIRST_STEP });
    locations
}

/// The locations that thread `thread` passes in a launch of `nbody_integrate`, in order.
pub fn integrate_lane_locations(bodies: u32, thread: u64) -> Vec<u16> {
    vec![at::MOVE_ENTER, if thread < u64::from(bodies) { at::MOVE } else { at::MOVE_OUTSIDE }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_the_sum_over_warps() {
        for (bodies, block) in [(1, 32), (31, 32), (32, 32), (33, 64), (100, 256), (1000, 128), (1024, 1024)]
        {
            let warps = u64::from(u32::div_ceil(bodies, block) * block / 32);
            let step: u64 =
                (0..warps).map(|w| force_warp_events(bodies, w) + integrate_warp_events(bodies, w)).sum();
            assert_eq!(expected_events(bodies, 3, block), 3 * step, "{bodies} bodies in blocks of {block}");
        }
    }

    #[test]
    fn the_thesis_size_in_numbers() {
        // 391 blocks of 4 warps; 1,562 warps are full, one has 16 bodies, one none.
        assert_eq!(expected_events(50_000, 2, 128), 2 * (2 * 1_564 + 2 * 2 + 1_563 * 50_002));
        assert_eq!(expected_events(50_000, 2, 128), 156_312_516);
    }
}
