//! Delaunay mesh refinement: replaces triangles with an angle under 30 degrees until none remains.
//!
//! [`run`] refines on a device. [`reference()`] refines on the CPU, one triangle at a time and with exact
//! predicates. Both follow the same rules, so both results pass [`check::mesh`](crate::check::mesh), but they
//! insert points in different orders and get different triangles. `docs/evaluation/programs.md` describes the
//! rules and the trace points.
//!
//! # Triangles with a sharp angle that stay
//! Refinement to 30 degrees is not proved to terminate, and an input may prescribe sharper angles. So a
//! triangle stays for one of three reasons, each counted in [`Refined`]:
//! * Every sharp angle of the triangle lies between two segments, so the input prescribes it.
//! * Its shortest edge is under [`DmrOptions::floor`], or refinement would split a segment into halves under
//!   it.
//! * Rounding leaves no cavity that is certainly star-shaped.

mod arrays;
mod check;
mod error;
mod outcome;
mod prepare;
mod reference;
mod rounds;

pub use check::check;
pub use error::DmrError;
pub use outcome::{DmrOutcome, Refined, RoundReport};
pub use reference::reference;
pub use rounds::run;

use crate::grid::Grid;
use crate::inputs::Mesh;
use crate::inputs::geometry::AngleBound;
use crate::{ProgramInfo, WorkloadError};

/// The program's kernels and trace points.
pub const PROGRAM: ProgramInfo = ProgramInfo {
    name: "dmr",
    modules: &warptrace_kernels::dmr::MODULES,
    automatic: &warptrace_kernels::dmr::AUTOMATIC,
};

/// Options of the refinement.
#[derive(Clone, Debug, PartialEq)]
pub struct DmrOptions {
    /// Smallest allowed angle in degrees: over 0, at most 34. Above about 33, mostly only the floor ends
    /// refinement.
    pub angle_degrees: f64,
    /// Grid; `None` fills the device or has one thread per triangle. A round refines at most one triangle per
    /// thread, so the result depends on the grid.
    pub grid: Option<Grid>,
    /// Maximum number of rounds.
    pub max_rounds: u32,
    /// Initial scratch per cavity, in triangles; at least 2. Triangles with larger cavities wait until no
    /// others are left; then fewer threads, with more scratch each, refine them.
    pub cavity_bound: u32,
    /// Edge length under which refinement stops. `None`: 1/256 of the input's smallest feature (shortest
    /// edge, or least distance of a segment from the opposite corner), at least 2^-40 of its largest
    /// coordinate.
    pub floor: Option<f64>,
    /// Initial size of the device arrays, in sizes of the input; at least 1. A mesh of random points grows
    /// about five times at 30 degrees. Arrays grow between rounds if they are too small.
    pub room: f64,
}

impl Default for DmrOptions {
    fn default() -> Self {
        Self {
            angle_degrees: 30.0,
            grid: None,
            max_rounds: 100_000,
            cavity_bound: 32,
            floor: None,
            room: 6.0,
        }
    }
}

impl DmrOptions {
    fn check(&self) -> Result<AngleBound, WorkloadError> {
        let error = |option, value, allowed| Err(WorkloadError::Option { option, value, allowed });
        if !(2..=1 << 20).contains(&self.cavity_bound) {
            return error("cavity bound", self.cavity_bound.to_string(), "2 to 1,048,576 triangles");
        }
        if let Some(floor) = self.floor.filter(|floor| !(floor.is_finite() && *floor >= 0.0)) {
            return error("floor", floor.to_string(), "a length, 0 or more");
        }
        if !(1.0..=1e6).contains(&self.room) {
            return error("room", self.room.to_string(), "1 to 1,000,000 sizes of the input");
        }
        let allowed = "over 0 and at most 34 degrees";
        match AngleBound::from_degrees(self.angle_degrees) {
            Some(bound) if bound.degrees() > 0.0 && bound.degrees() <= 34.0 => Ok(bound),
            _ => error("angle", self.angle_degrees.to_string(), allowed),
        }
    }

    fn floor_squared(&self, mesh: &Mesh) -> f64 {
        let floor = self.floor.unwrap_or_else(|| prepare::smallest_feature(mesh) / 256.0);
        floor * floor
    }
}
