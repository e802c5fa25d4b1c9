//! Delaunay mesh refinement: triangles with an angle under 30 degrees are replaced until none is left.
//!
//! [`run`] refines on a device, [`reference()`] on the CPU, one triangle at a time and with exact predicates.
//! Both follow the same rules, so both results pass [`check::mesh`](crate::check::mesh); they differ in the
//! order of insertion, and therefore in their triangles. `docs/evaluation/programs.md` describes the rules
//! and the trace points.
//!
//! # When a triangle with a sharp angle stays
//! Refinement to 30 degrees has no proof of termination, and an input may demand sharper angles. Three rules,
//! each counted in [`Refined`]:
//! * every sharp angle of the triangle lies between two segments: the angle is the input's own;
//! * its shortest edge is under [`DmrOptions::floor`], or a segment would have to be split into halves under
//!   it;
//! * rounding leaves no cavity that is certainly star-shaped.

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

/// How to refine.
#[derive(Clone, Debug, PartialEq)]
pub struct DmrOptions {
    /// The angle that no triangle may be under, in degrees, over 0 and at most 34. Above about 33 most meshes
    /// are refined without end, down to the floor.
    pub angle_degrees: f64,
    /// Blocks and threads of a block. A round refines at most one triangle a thread, so the grid decides,
    /// together with the input, what the result is. `None`: a grid that fills the device, or has a thread a
    /// triangle.
    pub grid: Option<Grid>,
    /// Rounds after which to give up.
    pub max_rounds: u32,
    /// Triangles of a cavity for which there is room at first, at least 2. Larger ones wait until nothing
    /// else is left, and then are refined by fewer threads with more room each.
    pub cavity_bound: u32,
    /// Length under which edges are not refined any further. `None`: 1/256 of the input's smallest feature
    /// (shortest edge, or least distance of a segment from the corner across from it), but at least 2^-40 of
    /// its largest coordinate.
    pub floor: Option<f64>,
    /// Room on the device at first, in sizes of the input, at least 1. At 30 degrees a mesh of random points
    /// grows five times; where it is not enough the arrays are reallocated between rounds.
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
    /// The bound, after checking all options.
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

    /// Square of the floor for this mesh.
    fn floor_squared(&self, mesh: &Mesh) -> f64 {
        let floor = self.floor.unwrap_or_else(|| prepare::smallest_feature(mesh) / 256.0);
        floor * floor
    }
}
