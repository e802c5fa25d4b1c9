//! A triangulation in the plane.

use super::geometry::{Point, coordinate_is_usable, orientation};
use super::topology::for_each_edge;
use thiserror::Error;

/// Marks an edge without a triangle across it in [`Mesh::adjacency`].
pub const BOUNDARY: u32 = u32::MAX;

/// A conforming triangulation.
///
/// Invariants, checked by [`Mesh::new`]:
/// * There is at least one triangle. The predicates are exact for all coordinates ([`coordinate_is_usable`]).
/// * Every triangle has three different points and turns counter-clockwise, with an area over 0.
/// * An edge belongs to one triangle, or to two on different sides of it.
/// * Every segment is an edge, and no segment occurs twice. Every edge of only one triangle is a segment. A
///   segment with triangles on both sides is a constraint inside the domain.
///
/// Points without a triangle are allowed. Overlaps of triangles without a common edge are not detected.
#[derive(Clone, Debug, PartialEq)]
pub struct Mesh {
    points: Vec<Point>,
    triangles: Vec<[u32; 3]>,
    segments: Vec<[u32; 2]>,
    adjacency: Vec<[u32; 3]>,
}

/// Borrowed parts of a mesh, not checked; for example, the output of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct MeshView<'a> {
    /// Coordinates.
    pub points: &'a [Point],
    /// Corners, counter-clockwise.
    pub triangles: &'a [[u32; 3]],
    /// Ends of the segments, in any order.
    pub segments: &'a [[u32; 2]],
}

/// Reason why parts are not a [`Mesh`]. Indices start at 0.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum MeshError {
    /// There are no triangles.
    #[error("the mesh has no triangles; a mesh needs at least one")]
    Empty,
    /// There are more points or triangles than 32-bit indices can number.
    #[error("the mesh has {found} {what}; at most {limit} are possible")]
    TooMany {
        /// Points or triangles.
        what: &'static str,
        /// Number of them.
        found: usize,
        /// Largest possible number.
        limit: usize,
    },
    /// The exact predicates do not support a coordinate.
    #[error("point {point} has the coordinate {value:e}; expected 0 or a magnitude from 2^-142 to 2^201")]
    Coordinate {
        /// Index of the point.
        point: usize,
        /// The coordinate.
        value: f64,
    },
    /// A triangle or segment names a point that does not exist.
    #[error("{what} {index} names point {point}, but the mesh has {points} points (0 to {})", points.saturating_sub(1))]
    PointOutOfRange {
        /// Triangle or segment.
        what: &'static str,
        /// Index of the triangle or segment.
        index: usize,
        /// Index of the missing point.
        point: u32,
        /// Number of points.
        points: usize,
    },
    /// A triangle or segment names one point twice.
    #[error("{what} {index} names point {point} twice; its points must differ")]
    RepeatedPoint {
        /// Triangle or segment.
        what: &'static str,
        /// Index of the triangle or segment.
        index: usize,
        /// Index of the repeated point.
        point: u32,
    },
    /// The three points of a triangle lie on a line.
    #[error("triangle {triangle} (points {corners:?}) has no area; remove it or move a point")]
    Degenerate {
        /// Index of the triangle.
        triangle: usize,
        /// Its points.
        corners: [u32; 3],
    },
    /// A triangle turns clockwise.
    #[error("triangle {triangle} (points {corners:?}) turns clockwise; exchange two of its points")]
    Clockwise {
        /// Index of the triangle.
        triangle: usize,
        /// Its points.
        corners: [u32; 3],
    },
    /// More than two triangles share an edge.
    #[error("edge {edge:?} belongs to {triangles} triangles; at most two may share an edge")]
    CrowdedEdge {
        /// Its points.
        edge: [u32; 2],
        /// Number of triangles that share it.
        triangles: usize,
    },
    /// Two triangles lie on the same side of their shared edge.
    #[error("triangles {triangles:?} overlap: both lie on the same side of edge {edge:?}")]
    Overlap {
        /// Points of the edge.
        edge: [u32; 2],
        /// The two triangles.
        triangles: [u32; 2],
    },
    /// A segment is not an edge of any triangle.
    #[error(
        "segment {segment} (points {ends:?}) is not an edge of any triangle; give the segments of this triangulation"
    )]
    SegmentNotAnEdge {
        /// Index of the segment.
        segment: usize,
        /// Its points.
        ends: [u32; 2],
    },
    /// A segment occurs twice.
    #[error("segment {segment} (points {ends:?}) is there twice")]
    DuplicateSegment {
        /// Index of the second one.
        segment: usize,
        /// Its points.
        ends: [u32; 2],
    },
    /// An edge with one triangle is not a segment.
    #[error("edge {edge:?} has a triangle on one side only but is not among the segments")]
    MissingSegment {
        /// Its points.
        edge: [u32; 2],
    },
}

impl Mesh {
    /// Creates a mesh from its parts. Takes time n log n and linear memory. The error is the first violated
    /// invariant.
    pub fn new(
        points: Vec<Point>,
        triangles: Vec<[u32; 3]>,
        segments: Vec<[u32; 2]>,
    ) -> Result<Self, MeshError> {
        check_points(&points)?;
        check_triangles(&points, &triangles)?;
        let sorted = check_segments(points.len(), &segments)?;
        let adjacency = check_edges(points.len(), &triangles, &sorted)?;
        Ok(Self { points, triangles, segments, adjacency })
    }

    /// Like [`new`](Self::new), but adds every edge with one triangle to the segments, instead of failing
    /// with [`MeshError::MissingSegment`]. Also returns the number of added segments.
    pub fn with_boundary(
        points: Vec<Point>,
        triangles: Vec<[u32; 3]>,
        mut segments: Vec<[u32; 2]>,
    ) -> Result<(Self, usize), MeshError> {
        check_points(&points)?;
        check_triangles(&points, &triangles)?;
        let sorted = check_segments(points.len(), &segments)?;
        let given = segments.len();
        for_each_edge(points.len(), &triangles, |edge, uses| {
            if uses.len() == 1 && find_segment(&sorted, edge).is_none() {
                // In the direction of the triangle: the domain lies to the left.
                segments.push(if uses[0].ascending { edge } else { [edge[1], edge[0]] });
            }
        });
        let added = segments.len() - given;
        Ok((Self::new(points, triangles, segments)?, added))
    }

    /// Coordinates.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Corners of each triangle, counter-clockwise.
    pub fn triangles(&self) -> &[[u32; 3]] {
        &self.triangles
    }

    /// Ends of each segment.
    pub fn segments(&self) -> &[[u32; 2]] {
        &self.segments
    }

    /// For each triangle, the one across the edge from corner `i` to `i + 1` (modulo 3), or [`BOUNDARY`].
    pub fn adjacency(&self) -> &[[u32; 3]] {
        &self.adjacency
    }

    /// Returns the coordinates of a triangle's corners. Panics if `triangle` is out of range.
    pub fn corners(&self, triangle: usize) -> [Point; 3] {
        self.triangles[triangle].map(|point| self.points[point as usize])
    }

    /// Returns the parts of the mesh for the checks.
    pub fn view(&self) -> MeshView<'_> {
        MeshView { points: &self.points, triangles: &self.triangles, segments: &self.segments }
    }

    /// Number of edges with one triangle.
    pub fn boundary_edges(&self) -> usize {
        self.adjacency.iter().flatten().filter(|across| **across == BOUNDARY).count()
    }

    /// Number of points without a triangle.
    pub fn unused_points(&self) -> usize {
        let mut used = vec![false; self.points.len()];
        self.triangles.iter().flatten().for_each(|point| used[*point as usize] = true);
        used.iter().filter(|used| !**used).count()
    }
}

fn check_points(points: &[Point]) -> Result<(), MeshError> {
    let limit = u32::MAX as usize;
    if points.len() > limit {
        return Err(MeshError::TooMany { what: "points", found: points.len(), limit });
    }
    for (point, coordinates) in points.iter().enumerate() {
        if let Some(&value) = coordinates.iter().find(|x| !coordinate_is_usable(**x)) {
            return Err(MeshError::Coordinate { point, value });
        }
    }
    Ok(())
}

fn check_triangles(points: &[Point], triangles: &[[u32; 3]]) -> Result<(), MeshError> {
    // Keeps `BOUNDARY` free as a marker.
    let limit = BOUNDARY as usize - 1;
    if triangles.is_empty() {
        return Err(MeshError::Empty);
    }
    if triangles.len() > limit {
        return Err(MeshError::TooMany { what: "triangles", found: triangles.len(), limit });
    }
    for (triangle, &corners) in triangles.iter().enumerate() {
        check_ends("triangle", triangle, &corners, points.len())?;
        let [a, b, c] = corners.map(|point| points[point as usize]);
        let turn = orientation(a, b, c);
        if turn == 0.0 {
            return Err(MeshError::Degenerate { triangle, corners });
        }
        if turn < 0.0 {
            return Err(MeshError::Clockwise { triangle, corners });
        }
    }
    Ok(())
}

pub(super) fn check_ends(
    what: &'static str,
    index: usize,
    ends: &[u32],
    points: usize,
) -> Result<(), MeshError> {
    for (position, &point) in ends.iter().enumerate() {
        if point as usize >= points {
            return Err(MeshError::PointOutOfRange { what, index, point, points });
        }
        if ends[..position].contains(&point) {
            return Err(MeshError::RepeatedPoint { what, index, point });
        }
    }
    Ok(())
}

/// A segment's points, lower first, and its index.
type SortedSegment = ([u32; 2], usize);

fn check_segments(points: usize, segments: &[[u32; 2]]) -> Result<Vec<SortedSegment>, MeshError> {
    let mut sorted = Vec::with_capacity(segments.len());
    for (segment, &[a, b]) in segments.iter().enumerate() {
        check_ends("segment", segment, &[a, b], points)?;
        sorted.push(([a.min(b), a.max(b)], segment));
    }
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let segment = pair[1].1;
        return Err(MeshError::DuplicateSegment { segment, ends: segments[segment] });
    }
    Ok(sorted)
}

fn find_segment(sorted: &[SortedSegment], edge: [u32; 2]) -> Option<usize> {
    sorted.binary_search_by_key(&edge, |(ends, _)| *ends).ok()
}

/// Checks the uses of each edge and returns each triangle's neighbours.
fn check_edges(
    points: usize,
    triangles: &[[u32; 3]],
    sorted: &[SortedSegment],
) -> Result<Vec<[u32; 3]>, MeshError> {
    let mut adjacency = vec![[BOUNDARY; 3]; triangles.len()];
    let mut is_edge = vec![false; sorted.len()];
    let mut first_error = None;
    for_each_edge(points, triangles, |edge, uses| {
        let segment = find_segment(sorted, edge);
        if let Some(position) = segment {
            is_edge[position] = true;
        }
        let error = match uses {
            [_] if segment.is_none() => Some(MeshError::MissingSegment { edge }),
            [_] => None,
            [a, b] if a.ascending == b.ascending => {
                Some(MeshError::Overlap { edge, triangles: [a.triangle, b.triangle] })
            }
            [a, b] => {
                adjacency[a.triangle as usize][a.slot as usize] = b.triangle;
                adjacency[b.triangle as usize][b.slot as usize] = a.triangle;
                None
            }
            _ => Some(MeshError::CrowdedEdge { edge, triangles: uses.len() }),
        };
        if first_error.is_none() {
            first_error = error;
        }
    });
    if let Some(error) = first_error {
        return Err(error);
    }
    if let Some(position) = is_edge.iter().position(|is_edge| !is_edge) {
        let ([a, b], segment) = sorted[position];
        return Err(MeshError::SegmentNotAnEdge { segment, ends: [a, b] });
    }
    Ok(adjacency)
}
