//! What the check of a mesh is told and what it tells.

use crate::inputs::geometry::{AngleBound, Point};
use std::fmt;
use thiserror::Error;

/// What a refined mesh has to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The angle that no triangle may be under. 30 degrees by default.
    pub bound: AngleBound,
    /// How deep a point may lie in a circle that should be empty: (r^2 - distance^2) / r^2. The test's sign
    /// is exact, so 0 accepts only a Delaunay mesh; refinement decides in plain floating point, so 1e-9 by
    /// default.
    pub circle_tolerance: f64,
    /// Relative difference of the areas that is accepted. Split points of slanted segments are rounded, so
    /// 1e-9 by default.
    pub area_tolerance: f64,
    /// Distance of a split point from its segment that is accepted, in lengths of the segment. 1e-9 by
    /// default.
    pub split_tolerance: f64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            bound: AngleBound::THIRTY_DEGREES,
            circle_tolerance: 1e-9,
            area_tolerance: 1e-9,
            split_tolerance: 1e-9,
        }
    }
}

/// One violation. Indices count from 0 and are the output's unless said otherwise.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum Problem {
    /// A triangle names a point that does not exist, or one twice.
    #[error("triangle {triangle} has the points {corners:?}: out of range or repeated")]
    TriangleIndices { triangle: usize, corners: [u32; 3] },
    /// A segment names a point that does not exist, or one twice.
    #[error("segment {segment} has the points {ends:?}: out of range or repeated")]
    SegmentIndices { segment: usize, ends: [u32; 2] },
    /// A coordinate that is no number.
    #[error("point {point} lies at {at:?}")]
    NotFinite { point: usize, at: Point },
    /// A point of the input is gone or elsewhere.
    #[error("point {point} of the input is not at its place in the output")]
    PointMoved { point: usize },
    /// A triangle turns clockwise or has no area.
    #[error("triangle {triangle} (points {corners:?}) {}", if *degenerate { "has no area" } else { "turns clockwise" })]
    Orientation { triangle: usize, corners: [u32; 3], degenerate: bool },
    /// A triangle has an angle under the bound that is not the input's own.
    #[error("triangle {triangle} (points {corners:?}) has an angle under the bound")]
    BadTriangle { triangle: usize, corners: [u32; 3] },
    /// An edge of one triangle that is no segment: the mesh has a gap.
    #[error("edge {edge:?} has a triangle on one side only but is no segment")]
    OpenEdge { edge: [u32; 2] },
    /// More than two triangles share an edge.
    #[error("edge {edge:?} belongs to {triangles} triangles")]
    CrowdedEdge { edge: [u32; 2], triangles: usize },
    /// Two triangles lie on the same side of the edge they share.
    #[error("triangles {triangles:?} lie on the same side of edge {edge:?}")]
    Overlap { edge: [u32; 2], triangles: [u32; 2] },
    /// Segments that no triangle has as an edge.
    #[error("{segments} segments are not edges of any triangle")]
    SegmentsNotEdges { segments: usize },
    /// A segment that is there twice.
    #[error("segment {ends:?} is there more than once")]
    DuplicateSegment { ends: [u32; 2] },
    /// A segment of the input that no chain of the output's segments covers.
    #[error("the input's segment {ends:?} is not covered by segments")]
    SegmentLost { ends: [u32; 2] },
    /// Segments of the output that lead from one input point to another where the input has no segment, or
    /// end at a point that was added.
    #[error("segments lead from point {from} to point {to}, where the input has none")]
    SegmentAdded { from: u32, to: u32 },
    /// A split point away from its segment, or out of order along it.
    #[error(
        "point {point} splits the input's segment {ends:?} but lies {off:e} of its length away, or out of order"
    )]
    SplitAway { point: u32, ends: [u32; 2], off: f64 },
    /// Segments among added points only.
    #[error("{segments} segments are connected to no point of the input")]
    SegmentsAdrift { segments: usize },
    /// A circle that should be empty is not.
    #[error("point {point} lies in the circle of one of the triangles {triangles:?}, at depth {depth:e}")]
    PointInCircle { triangles: [u32; 2], point: u32, depth: f64 },
    /// Points less edges plus triangles is not what the input has.
    #[error("points less edges plus triangles is {found}, the input has {expected}")]
    Euler { found: i64, expected: i64 },
    /// The area is not the input's.
    #[error("the area is {found:e}, the input's is {expected:e}")]
    Area { found: f64, expected: f64 },
}

/// What the check of a mesh found.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Points of the output.
    pub points: usize,
    /// Triangles of the output.
    pub triangles: usize,
    /// Segments of the output.
    pub segments: usize,
    /// Edges of the output.
    pub edges: usize,
    /// Edges with a triangle on one side only.
    pub boundary_edges: usize,
    /// Triangles with an angle under the bound.
    pub bad_triangles: usize,
    /// Of those, triangles whose small angles all lie between two segments. They are no problem: such an
    /// angle is the input's own.
    pub bad_between_segments: usize,
    /// Edges across which a point lies inside the circle, exactly tested, however little.
    pub points_in_circles: usize,
    /// The greatest depth of such a point: (r^2 - distance^2) / r^2.
    pub deepest_in_circle: f64,
    /// Area of the output.
    pub area: f64,
    /// The first violations, at most [`Report::SHOWN`].
    pub problems: Vec<Problem>,
    /// All violations.
    pub problem_count: usize,
}

impl Report {
    /// How many violations a report keeps.
    pub const SHOWN: usize = 32;

    /// Whether there is no violation.
    pub fn is_ok(&self) -> bool {
        self.problem_count == 0
    }

    pub(super) fn add(&mut self, problem: Problem) {
        self.problem_count += 1;
        if self.problems.len() < Self::SHOWN {
            self.problems.push(problem);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} points, {} triangles, {} segments; {} bad triangles, {} of them between segments; ",
            self.points, self.triangles, self.segments, self.bad_triangles, self.bad_between_segments
        )?;
        if self.is_ok() {
            return f.write_str("no problems");
        }
        write!(f, "{} problems:", self.problem_count)?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))?;
        let hidden = self.problem_count - self.problems.len();
        if hidden > 0 { write!(f, "\n  and {hidden} more") } else { Ok(()) }
    }
}
