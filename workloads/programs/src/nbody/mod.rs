//! N-body: gravity of all bodies (or of the first ones) on all bodies, by direct summation in single
//! precision, one thread per body.
//!
//! Each step launches `nbody_force` and `nbody_integrate`. The control flow does not depend on the numbers,
//! so [`expected_events`] is exact.

mod check;
mod events;
mod plummer;
mod reference;

use std::time::Duration;

use warptrace_host::{Buffer, LaunchShape, Launcher};
use warptrace_kernels::nbody::{nbody_force, nbody_integrate};

pub use self::check::check;
pub use self::events::{
    EventCounts, expected_events, force_lane_locations, force_warp_events, integrate_lane_locations,
    integrate_warp_events,
};
pub use self::plummer::plummer;
pub use self::reference::{Deviation, deviation, reference};
use crate::run::ProgramRun;
use crate::{ProgramInfo, WorkloadError};
pub use warptrace_kernels::nbody::Float4;

/// The program's kernels and trace points.
pub const PROGRAM: ProgramInfo = ProgramInfo {
    name: "nbody",
    modules: &[warptrace_kernels::nbody::MODULE],
    automatic: &[warptrace_kernels::nbody::automatic::MODULE],
};

/// Maximum number of bodies: thread numbers have 32 bits.
pub const MAX_BODIES: usize = 1 << 30;

/// Positions, masses and velocities of bodies. G = 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bodies {
    /// Position (x, y, z) and mass (w) of each body.
    pub positions: Vec<Float4>,
    /// Velocity of each body; w is 0.
    pub velocities: Vec<Float4>,
}

/// Options of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NbodyOptions {
    /// Number of steps, at least 1.
    pub steps: u32,
    /// Length of a step in time units.
    pub time_step: f32,
    /// Softening length, which limits the attraction of close bodies; 1e-6 to 1e6.
    pub softening: f32,
    /// Threads per block: a multiple of 32, at most 1,024.
    pub block: u32,
    /// Number of bodies that attract, the first ones: 1 to the number of bodies. `None`: all.
    pub sources: Option<u32>,
}

impl NbodyOptions {
    /// Creates options with steps of 0.025, a softening of 0.05 and blocks of 128: 132 multiprocessors share
    /// the 391 blocks of 50,000 bodies more evenly than 196 blocks of 256.
    pub const fn new(steps: u32) -> Self {
        Self { steps, time_step: 0.025, softening: 0.05, block: 128, sources: None }
    }

    /// Returns the number of attracting bodies among `bodies` bodies.
    pub fn sources_of(&self, bodies: u32) -> u32 {
        self.sources.unwrap_or(bodies)
    }

    fn softening_squared(&self) -> f32 {
        self.softening * self.softening
    }

    fn half_step(&self) -> f32 {
        0.5 * self.time_step
    }

    fn check(&self, bodies: &Bodies) -> Result<(), WorkloadError> {
        let error = |option, value: String, allowed| Err(WorkloadError::Option { option, value, allowed });
        let count = bodies.positions.len();
        if count == 0 || count > MAX_BODIES {
            return error("bodies", count.to_string(), "there are 1 to 2^30 bodies");
        }
        if bodies.velocities.len() != count {
            let problem =
                format!("{} velocities for {count} bodies; give one a body", bodies.velocities.len());
            return Err(WorkloadError::Input { program: PROGRAM.name, problem });
        }
        if self.sources.is_some_and(|sources| sources == 0 || sources as usize > count) {
            let sources = self.sources_of(count as u32);
            return error(
                "sources",
                sources.to_string(),
                "as many bodies attract as there are, or fewer, but one",
            );
        }
        if self.steps == 0 {
            return error("steps", self.steps.to_string(), "there is at least 1 step");
        }
        if self.block == 0 || self.block > 1024 || !self.block.is_multiple_of(32) {
            return error(
                "block",
                self.block.to_string(),
                "a block has 32 to 1,024 threads, a multiple of 32",
            );
        }
        if !self.time_step.is_finite() {
            return error("time step", self.time_step.to_string(), "a time step is finite");
        }
        if !(1e-6..=1e6).contains(&self.softening) {
            return error("softening", self.softening.to_string(), "the softening length is 1e-6 to 1e6");
        }
        Ok(())
    }
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct NbodyOutcome {
    /// Bodies after the last step.
    pub bodies: Bodies,
    /// Accelerations of the last step; w is 0.
    pub accelerations: Vec<Float4>,
    /// Total kernel time.
    pub kernel: Duration,
    /// Number of launches: two per step.
    pub launches: u32,
}

/// Moves the bodies. Fails if an option is out of range, or the device or the recording fails.
pub fn run(
    launcher: &mut dyn Launcher,
    bodies: &Bodies,
    options: &NbodyOptions,
) -> Result<NbodyOutcome, WorkloadError> {
    options.check(bodies)?;
    let mut run = ProgramRun::new(launcher);
    let count = bodies.positions.len();
    let positions = Buffer::upload(run.device(), &bodies.positions)?;
    let velocities = Buffer::upload(run.device(), &bodies.velocities)?;
    let accelerations = Buffer::<Float4>::filled(run.device(), count, 0)?;
    let arrays = (positions.global(), velocities.global(), accelerations.global());
    let shape = LaunchShape::linear(count as u64, options.block);
    let (sources, half_step) = (options.sources_of(count as u32), options.half_step());
    for step in 0..options.steps {
        let softening = options.softening_squared();
        let force = nbody_force(arrays.0, arrays.1, arrays.2, sources, step, half_step, softening);
        let integrate = nbody_integrate(arrays.0, arrays.1, arrays.2, options.time_step, half_step);
        // SAFETY: the three arrays have one element per body and outlive the launches; the shape has at least
        // one thread per body; there are no more sources than bodies.
        unsafe {
            run.launch(&force, &shape)?;
            run.launch(&integrate, &shape)?;
        }
    }
    let moved = Bodies {
        positions: positions.download(run.device())?,
        velocities: velocities.download(run.device())?,
    };
    let outcome = NbodyOutcome {
        bodies: moved,
        accelerations: accelerations.download(run.device())?,
        kernel: run.kernel,
        launches: run.launches,
    };
    positions.free(run.device())?;
    velocities.free(run.device())?;
    accelerations.free(run.device())?;
    Ok(outcome)
}
