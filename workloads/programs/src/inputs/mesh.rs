//! A triangulation in the plane.

use super::geometry::{Point, coordinate_is_usable, orientation};
use super::topology::for_each_edge;
use thiserror::Error;

/// In [`Mesh::adjacency`]: no triangle lies across this edge.
pub const BOUNDARY: u32 = u32::MAX;

/// A conforming triangulation.
///
/// Invariants, checked by [`Mesh::new`]:
/// * at least one triangle; coordinates are in the range where the predicates are exact
///   ([`coordinate_is_usable`]);
/// * every triangle has three different points and turns counter-clockwise, with an area over 0;
/// * an edge belongs to one triangle or to two, which then lie on different sides of it;
/// * every segment is an edge, none is there twice, and every edge of one triangle is a segment. A segment
///   with triangles on both sides is a constraint inside the domain.
///
/// Points that no triangle uses are allowed.
#[derive(Clone, Debug, PartialEq)]
pub struct Mesh {
    points: Vec<Point>,
    triangles: Vec<[u32; 3]>,
    segments: Vec<[u32; 2]>,
    adjacency: Vec<[u32; 3]>,
}

/// The parts of a mesh, borrowed and not checked: what a kernel wrote, for example.
#[derive(Clone, Copy, Debug)]
pub struct MeshView<'a> {
    /// Coordinates.
    pub points: &'a [Point],
    /// Corners, counter-clockwise.
    pub triangles: &'a [[u32; 3]],
    /// Ends of the segments, in no order.
    pub segments: &'a [[u32; 2]],
}

/// Why parts are not a [`Mesh`]. Indices count from 0.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum MeshError {
    /// No triangles.
    #[error("the mesh has no triangles; a mesh needs at least one")]
    Empty,
    /// More of something than 32-bit indices can name.
    #[error("the mesh has {found} {what}; at most {limit} are possible")]
    TooMany {
        /// Points or triangles.
        what: &'static str,
        /// How many.
        found: usize,
        /// Most that are possible.
        limit: usize,
    },
    /// A coordinate that the exact predicates cannot take.
    #[error("point {point} has the coordinate {value:e}; expected 0 or a magnitude from 2^-142 to 2^201")]
    Coordinate {
        /// The point.
        point: usize,
        /// Its bad coordinate.
        value: f64,
    },
    /// A triangle or segment names a point that does not exist.
    #[error("{what} {index} names point {point}, but the mesh has {points} points (0 to {})", points.saturating_sub(1))]
    PointOutOfRange {
        /// Triangle or segment.
        what: &'static str,
        /// Which one.
        index: usize,
        /// The point it names.
        point: u32,
        /// Points there are.
        points: usize,
    },
    /// A triangle or segment names one point twice.
    #[error("{what} {index} names point {point} twice; its points must differ")]
    RepeatedPoint {
        /// Triangle or segment.
        what: &'static str,
        /// Which one.
        index: usize,
        /// The point it names twice.
        point: u32,
    },
    /// The three points of a triangle lie on a line.
    #[error("triangle {triangle} (points {corners:?}) has no area; remove it or move a point")]
    Degenerate {
        /// The triangle.
        triangle: usize,
        /// Its points.
        corners: [u32; 3],
    },
    /// A triangle turns clockwise.
    #[error("triangle {triangle} (points {corners:?}) turns clockwise; exchange two of its points")]
    Clockwise {
        /// The triangle.
        triangle: usize,
        /// Its points.
        corners: [u32; 3],
    },
    /// More than two triangles share an edge.
    #[error("edge {edge:?} belongs to {triangles} triangles; at most two may share an edge")]
    CrowdedEdge {
        /// Its points.
        edge: [u32; 2],
        /// How many share it.
        triangles: usize,
    },
    /// Two triangles lie on the same side of the edge they share.
    #[error("triangles {triangles:?} overlap: both lie on the same side of edge {edge:?}")]
    Overlap {
        /// Points of the edge.
        edge: [u32; 2],
        /// The two triangles.
        triangles: [u32; 2],
    },
    /// A segment that no triangle has as an edge.
    #[error(
        "segment {segment} (points {ends:?}) is not an edge of any triangle; give the segments of this triangulation"
    )]
    SegmentNotAnEdge {
        /// The segment.
        segment: usize,
        /// Its points.
        ends: [u32; 2],
    },
    /// A segment that is there twice.
    #[error("segment {segment} (points {ends:?}) is there twice")]
    DuplicateSegment {
        /// The later of the two.
        segment: usize,
        /// Its points.
        ends: [u32; 2],
    },
    /// An edge with a triangle on one side only that is no segment.
    #[error("edge {edge:?} has a triangle on one side only but is not among the segments")]
    MissingSegment {
        /// Its points.
        edge: [u32; 2],
    },
}

impl Mesh {
    /// Checks the invariants and takes the parts over. Time and extra memory are linear.
    ///
    /// # Errors
    /// The first invariant that does not hold, with its place.
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

    /// As [`new`](Self::new), with every edge that has a triangle on one side only added to the segments.
    /// Returns the number of segments added.
    ///
    /// # Errors
    /// As for `new`, [`MeshError::MissingSegment`] excepted.
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
                // In the triangle's direction: the domain lies to the left.
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

    /// For each triangle, the triangle across the edge from corner `i` to corner `i + 1` (modulo 3), or
    /// [`BOUNDARY`].
    pub fn adjacency(&self) -> &[[u32; 3]] {
        &self.adjacency
    }

    /// The coordinates of a triangle's corners.
    ///
    /// # Panics
    /// If there is no such triangle.
    pub fn corners(&self, triangle: usize) -> [Point; 3] {
        self.triangles[triangle].map(|point| self.points[point as usize])
    }

    /// The mesh's parts, as the checks take them.
    pub fn view(&self) -> MeshView<'_> {
        MeshView { points: &self.points, triangles: &self.triangles, segments: &self.segments }
    }

    /// Number of edges with a triangle on one side only.
    pub fn boundary_edges(&self) -> usize {
        self.adjacency.iter().flatten().filter(|across| **across == BOUNDARY).count()
    }

    /// Number of points that no triangle uses.
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
    // One less than the marker BOUNDARY.
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

/// Checks that points exist and differ.
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

/// Checks the uses of each edge and finds each triangle's neighbours.
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
