//! N-body: every pair of bodies attracts. Direct summation in single precision, one thread for each body.
//!
//! A step has two launches. [`nbody_force`](fn@nbody_force) sums the accelerations and, from the second step
//! on, corrects the velocities. [`nbody_integrate`](fn@nbody_integrate) moves the bodies. No launch reads
//! results of its other threads.

use warptrace_device::math::{fma_f32, rsqrt_approx_f32};
use warptrace_device::{Global, simt};
use warptrace_macros::kernels;

pub use crate::float4::Float4;

/// Adds to `sum` the acceleration of a body at `here` by `other` (position and mass, G = 1).
///
/// The squared distance is increased by `softening_squared`, so a body's pull on itself is zero and needs no
/// branch. The order of operations and roundings is fixed, except for the last bits of the reciprocal square
/// root. `sum.w` does not change.
#[inline(always)]
pub fn attract(sum: Float4, here: Float4, other: Float4, softening_squared: f32) -> Float4 {
    let (dx, dy, dz) = (other.x - here.x, other.y - here.y, other.z - here.z);
    let distance_squared = fma_f32(dx, dx, fma_f32(dy, dy, fma_f32(dz, dz, softening_squared)));
    let inverse = rsqrt_approx_f32(distance_squared);
    let scale = (other.w * inverse) * (inverse * inverse);
    Float4 {
        x: fma_f32(dx, scale, sum.x),
        y: fma_f32(dy, scale, sum.y),
        z: fma_f32(dz, scale, sum.z),
        w: sum.w,
    }
}

/// Returns `base + (to - from) * factor` along x, y and z, with `base.w`.
#[inline(always)]
pub fn add_difference(base: Float4, to: Float4, from: Float4, factor: f32) -> Float4 {
    Float4 {
        x: fma_f32(to.x - from.x, factor, base.x),
        y: fma_f32(to.y - from.y, factor, base.y),
        z: fma_f32(to.z - from.z, factor, base.z),
        w: base.w,
    }
}

/// Returns `base + by * factor` along x, y and z, with `base.w`.
#[inline(always)]
pub fn add_scaled(base: Float4, by: Float4, factor: f32) -> Float4 {
    Float4 {
        x: fma_f32(by.x, factor, base.x),
        y: fma_f32(by.y, factor, base.y),
        z: fma_f32(by.z, factor, base.z),
        w: base.w,
    }
}

#[kernels(device = warptrace_device, only_marked, automatic = 1)]
mod kernels {
    use super::*;

    /// Sums into `accelerations[i]` the pull of the first `sources` of `bodies` (position and mass) on body
    /// i.
    ///
    /// From the second step on (`step` above 0), adds half a step's change of acceleration to
    /// `velocities[i]`. One-dimensional grid and block with at least as many threads as bodies. All three
    /// arrays have one element for each body. `sources` is at most the number of bodies.
    #[kernel]
    pub fn nbody_force(
        bodies: Global<Float4>,
        velocities: Global<Float4>,
        accelerations: Global<Float4>,
        sources: u32,
        step: u32,
        half_step: f32,
        softening_squared: f32,
    ) {
        trace!("FORCE_ENTER");
        let count = bodies.len() as u32;
        let index = simt::global_thread_x();
        if index >= count {
            trace!("FORCE_OUTSIDE");
            return;
        }
        let index = u64::from(index);
        // SAFETY: the index is below the length.
        let here = unsafe { bodies.get(index) };
        let mut sum = Float4::default();
        let whole = sources - sources % 8;
        let mut other = 0;
        let mut pulls = trace_loop!("INTERACT");
        // Eight bodies in an iteration, read in fours. A thread takes all eight or none, so their events are
        // recorded in one step.
        while other != whole {
            let first = u64::from(other);
            pulls.ticks::<8>();
            // SAFETY: below the length. This launch does not write positions.
            let near = unsafe { [0, 1, 2, 3].map(|next| bodies.get(first + next)) };
            sum = near.into_iter().fold(sum, |sum, body| attract(sum, here, body, softening_squared));
            // SAFETY: same as `near`.
            let far = unsafe { [4, 5, 6, 7].map(|next| bodies.get(first + next)) };
            sum = far.into_iter().fold(sum, |sum, body| attract(sum, here, body, softening_squared));
            other += 8;
        }
        let mut left = sources % 8;
        while left != 0 {
            pulls.tick();
            // SAFETY: same as `near`.
            sum = attract(sum, here, unsafe { bodies.get(u64::from(other)) }, softening_squared);
            other += 1;
            left -= 1;
        }
        drop(pulls);
        if step > 0 {
            trace!("LATER_STEP" = 5);
            // SAFETY: each thread has separate elements.
            unsafe {
                let before = accelerations.get(index);
                velocities.set(index, add_difference(velocities.get(index), sum, before, half_step));
            }
        } else {
            trace!("FIRST_STEP" = 4);
        }
        // SAFETY: each thread has a separate element.
        unsafe { accelerations.set(index, sum) };
    }

    /// Moves each body by one step: half of the velocity change, the position, the other half.
    ///
    /// One-dimensional grid and block with at least as many threads as bodies. All three arrays have one
    /// element for each body. `half_step` is half of `whole_step`.
    #[kernel]
    pub fn nbody_integrate(
        bodies: Global<Float4>,
        velocities: Global<Float4>,
        accelerations: Global<Float4>,
        whole_step: f32,
        half_step: f32,
    ) {
        trace!("MOVE_ENTER" = 6);
        let index = u64::from(simt::global_thread_x());
        if index >= bodies.len() {
            trace!("MOVE_OUTSIDE");
            return;
        }
        trace!("MOVE");
        // SAFETY: the index is below the length, and each thread has separate elements.
        unsafe {
            let acceleration = accelerations.get(index);
            let middle = add_scaled(velocities.get(index), acceleration, half_step);
            bodies.set(index, add_scaled(bodies.get(index), middle, whole_step));
            velocities.set(index, add_scaled(middle, acceleration, half_step));
        }
    }
}

pub use kernels::*;
