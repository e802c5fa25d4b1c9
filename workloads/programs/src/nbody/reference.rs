//! CPU reference in plain loops: bit-exact in single precision, and in double precision to measure errors.

use std::fmt;

use rayon::prelude::*;
use warptrace_kernels::nbody::{add_difference, add_scaled, attract};

use super::{Bodies, Float4, NbodyOptions};

/// Moves `bodies` with the kernels' arithmetic. Returns the bodies and the last accelerations. They equal the
/// simulator's bit for bit; a GPU's differ in the last bits of its reciprocal square root.
pub fn reference(bodies: &Bodies, options: &NbodyOptions) -> (Bodies, Vec<Float4>) {
    let Bodies { mut positions, mut velocities } = bodies.clone();
    let (half, softening) = (options.half_step(), options.softening_squared());
    let sources = options.sources_of(positions.len() as u32) as usize;
    let mut accelerations = vec![Float4::default(); positions.len()];
    for step in 0..options.steps {
        let sums: Vec<Float4> = positions
            .par_iter()
            .map(|&here| {
                let pull = |sum, &other| attract(sum, here, other, softening);
                positions[..sources].iter().fold(Float4::default(), pull)
            })
            .collect();
        if step > 0 {
            for ((velocity, &sum), &before) in velocities.iter_mut().zip(&sums).zip(&accelerations) {
                *velocity = add_difference(*velocity, sum, before, half);
            }
        }
        accelerations = sums;
        for ((position, velocity), &acceleration) in
            positions.iter_mut().zip(&mut velocities).zip(&accelerations)
        {
            let middle = add_scaled(*velocity, acceleration, half);
            *position = add_scaled(*position, middle, options.time_step);
            *velocity = add_scaled(middle, acceleration, half);
        }
    }
    (Bodies { positions, velocities }, accelerations)
}

/// Deviation of a result from double precision: the largest difference of a body, divided by the length of
/// the true vector or by the root mean square of all such lengths, whichever is larger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deviation {
    /// Deviation of the positions.
    pub position: f64,
    /// Deviation of the velocities.
    pub velocity: f64,
    /// Deviation of the last step's accelerations.
    pub acceleration: f64,
}

impl Deviation {
    /// Tolerance for single precision: rounding errors, which grow with the length of the sums.
    pub const TOLERANCE: f64 = 1e-4;

    /// Returns true if all three are within [`TOLERANCE`](Self::TOLERANCE).
    pub fn is_small(&self) -> bool {
        // False if a value is NaN.
        [self.position, self.velocity, self.acceleration].iter().all(|d| *d <= Self::TOLERANCE)
    }
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { position, velocity, acceleration } = self;
        write!(
            f,
            "from double precision: positions {position:.1e}, velocities {velocity:.1e}, accelerations {acceleration:.1e}"
        )
    }
}

/// Compares the moved bodies with the same steps in double precision: time is steps times bodies times
/// sources. Panics if the number of results differs from the bodies', or `options.sources` exceeds it.
pub fn deviation(
    bodies: &Bodies,
    options: &NbodyOptions,
    moved: &Bodies,
    accelerations: &[Float4],
) -> Deviation {
    let masses: Vec<f64> = bodies.positions.iter().map(|p| f64::from(p.w)).collect();
    let mut positions: Vec<[f64; 3]> = bodies.positions.iter().map(wide).collect();
    let mut velocities: Vec<[f64; 3]> = bodies.velocities.iter().map(wide).collect();
    let (whole, softening) = (f64::from(options.time_step), f64::from(options.softening));
    let mut last = vec![[0.0; 3]; positions.len()];
    let sources = options.sources_of(positions.len() as u32) as usize;
    for step in 0..options.steps {
        let attract = |here| pull(here, &positions[..sources], &masses, softening * softening);
        let sums: Vec<[f64; 3]> = positions.par_iter().map(attract).collect();
        for (body, sum) in sums.iter().enumerate() {
            for axis in 0..3 {
                let velocity = &mut velocities[body][axis];
                if step > 0 {
                    *velocity += (sum[axis] - last[body][axis]) * 0.5 * whole;
                }
                let middle = *velocity + sum[axis] * 0.5 * whole;
                positions[body][axis] += middle * whole;
                *velocity = middle + sum[axis] * 0.5 * whole;
            }
        }
        last = sums;
    }
    Deviation {
        position: largest(&positions, &moved.positions),
        velocity: largest(&velocities, &moved.velocities),
        acceleration: largest(&last, accelerations),
    }
}

fn wide(v: &Float4) -> [f64; 3] {
    [f64::from(v.x), f64::from(v.y), f64::from(v.z)]
}

fn pull(here: &[f64; 3], positions: &[[f64; 3]], masses: &[f64], softening_squared: f64) -> [f64; 3] {
    let mut sum = [0.0; 3];
    for (there, mass) in positions.iter().zip(masses) {
        let d = [there[0] - here[0], there[1] - here[1], there[2] - here[2]];
        let square = length_squared(&d) + softening_squared;
        let scale = mass / (square * square.sqrt());
        for axis in 0..3 {
            sum[axis] += d[axis] * scale;
        }
    }
    sum
}

fn length_squared(v: &[f64; 3]) -> f64 {
    v.iter().map(|x| x * x).sum()
}

fn largest(truth: &[[f64; 3]], found: &[Float4]) -> f64 {
    assert_eq!(truth.len(), found.len(), "one result a body");
    let mean = truth.iter().map(length_squared).sum::<f64>() / truth.len().max(1) as f64;
    let one = |(truth, found): (&[f64; 3], &Float4)| {
        let found = wide(found);
        let difference = [found[0] - truth[0], found[1] - truth[1], found[2] - truth[2]];
        let scale = length_squared(truth).max(mean);
        if scale == 0.0 { length_squared(&difference) } else { (length_squared(&difference) / scale).sqrt() }
    };
    // `f64::max` ignores NaN.
    truth.iter().zip(found).map(one).fold(0.0, |a, b| if b > a || b.is_nan() { b } else { a })
}
