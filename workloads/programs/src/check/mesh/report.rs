//! Parameters and report of the mesh check.

use crate::inputs::geometry::{AngleBound, Point};
use std::fmt;
use thiserror::Error;

/// Requirements on a refined mesh.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Smallest allowed angle; 30 degrees by default.
    pub bound: AngleBound,
    /// Largest allowed depth of a point in a circle that must be empty: (r^2 - distance^2) / r^2. The test is
    /// exact, so 0 accepts only a Delaunay mesh. 1e-9 by default: refinement decides in plain floating point.
    pub circle_tolerance: f64,
    /// Largest allowed relative difference of the areas; 1e-9 by default: split points are rounded.
    pub area_tolerance: f64,
    /// Largest allowed distance of a split point from its segment, over the segment's length; 1e-9 by
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

/// A violation. Indices start at 0 and refer to the output unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum Problem {
    /// A triangle names a point that does not exist, or one point twice.
    #[error("triangle {triangle} has the points {corners:?}: out of range or repeated")]
    TriangleIndices { triangle: usize, corners: [u32; 3] },
    /// A segment names a point that does not exist, or one point twice.
    #[error("segment {segment} has the points {ends:?}: out of range or repeated")]
    SegmentIndices { segment: usize, ends: [u32; 2] },
    /// A coordinate is not a finite number.
    #[error("point {point} lies at {at:?}")]
    NotFinite { point: usize, at: Point },
    /// A point of the input is missing or has moved.
    #[error("point {point} of the input is not at its place in the output")]
    PointMoved { point: usize },
    /// A triangle turns clockwise or has no area.
    #[error("triangle {triangle} (points {corners:?}) {}", if *degenerate { "has no area" } else { "turns clockwise" })]
    Orientation { triangle: usize, corners: [u32; 3], degenerate: bool },
    /// A triangle has an angle under the bound that the input does not prescribe.
    #[error("triangle {triangle} (points {corners:?}) has an angle under the bound")]
    BadTriangle { triangle: usize, corners: [u32; 3] },
    /// An edge has one triangle but is not a segment: the mesh has a gap.
    #[error("edge {edge:?} has a triangle on one side only but is no segment")]
    OpenEdge { edge: [u32; 2] },
    /// More than two triangles share an edge.
    #[error("edge {edge:?} belongs to {triangles} triangles")]
    CrowdedEdge { edge: [u32; 2], triangles: usize },
    /// Two triangles lie on the same side of their shared edge.
    #[error("triangles {triangles:?} lie on the same side of edge {edge:?}")]
    Overlap { edge: [u32; 2], triangles: [u32; 2] },
    /// Some segments are not edges of any triangle.
    #[error("{segments} segments are not edges of any triangle")]
    SegmentsNotEdges { segments: usize },
    /// A segment occurs twice.
    #[error("segment {ends:?} is there more than once")]
    DuplicateSegment { ends: [u32; 2] },
    /// No chain of output segments covers a segment of the input.
    #[error("the input's segment {ends:?} is not covered by segments")]
    SegmentLost { ends: [u32; 2] },
    /// Output segments connect two input points without a segment in the input, or end at an added point.
    #[error("segments lead from point {from} to point {to}, where the input has none")]
    SegmentAdded { from: u32, to: u32 },
    /// A split point lies away from its segment, or out of order along it.
    #[error(
        "point {point} splits the input's segment {ends:?} but lies {off:e} of its length away, or out of order"
    )]
    SplitAway { point: u32, ends: [u32; 2], off: f64 },
    /// Some segments connect only added points.
    #[error("{segments} segments are connected to no point of the input")]
    SegmentsAdrift { segments: usize },
    /// A point lies inside a circle that must be empty.
    #[error("point {point} lies in the circle of one of the triangles {triangles:?}, at depth {depth:e}")]
    PointInCircle { triangles: [u32; 2], point: u32, depth: f64 },
    /// The Euler characteristic (points - edges + triangles) differs from the input's.
    #[error("points less edges plus triangles is {found}, the input has {expected}")]
    Euler { found: i64, expected: i64 },
    /// The area differs from the input's.
    #[error("the area is {found:e}, the input's is {expected:e}")]
    Area { found: f64, expected: f64 },
}

/// Result of a mesh check.
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
    /// Edges with one triangle.
    pub boundary_edges: usize,
    /// Triangles with an angle under the bound.
    pub bad_triangles: usize,
    /// Bad triangles whose small angles all lie between two input segments, and so are not violations.
    pub bad_between_segments: usize,
    /// Edges with a point of the neighbouring triangle inside the circle, tested exactly.
    pub points_in_circles: usize,
    /// Greatest depth of such a point: (r^2 - distance^2) / r^2.
    pub deepest_in_circle: f64,
    /// Area of the output.
    pub area: f64,
    /// The first violations, at most [`Report::SHOWN`].
    pub problems: Vec<Problem>,
    /// Number of all violations.
    pub problem_count: usize,
}

impl Report {
    /// Number of violations that a report keeps.
    pub const SHOWN: usize = 32;

    /// Returns true if there are no violations.
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
