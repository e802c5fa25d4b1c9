//! Delaunay triangulation of generated points, and meshes like the thesis's inputs.

use super::error::GenerateError;
use super::points::{points_in_square, points_in_triangle};
use crate::inputs::geometry::{Point, coordinate_is_usable};
use crate::inputs::mesh::{Mesh, MeshError};
use spade::{DelaunayTriangulation, HasPosition, Point2, Triangulation};

/// A point with its number, because spade reorders points.
struct Numbered {
    position: Point2<f64>,
    number: u32,
}

impl HasPosition for Numbered {
    type Scalar = f64;

    fn position(&self) -> Point2<f64> {
        self.position
    }
}

/// Computes the Delaunay triangulation of points as a mesh whose segments are the edges of the convex hull.
/// Point `i` of the mesh is `points[i]`. Triangles start with their lowest point and are sorted, so the mesh
/// depends only on the points if no four of them lie on an empty circle.
///
/// # Errors
/// [`GenerateError::Mesh`] if a coordinate is out of range or all points lie on a line;
/// [`GenerateError::SamePoint`] if two points are equal.
pub fn triangulate(points: Vec<Point>) -> Result<Mesh, GenerateError> {
    for (point, coordinates) in points.iter().enumerate() {
        if let Some(&value) = coordinates.iter().find(|x| !coordinate_is_usable(**x)) {
            return Err(MeshError::Coordinate { point, value }.into());
        }
    }
    check_different(&points)?;
    let numbered: Vec<_> = points
        .iter()
        .zip(0..)
        .map(|(&[x, y], number)| Numbered { position: Point2::new(x, y), number })
        .collect();
    let triangulation = DelaunayTriangulation::<Numbered>::bulk_load(numbered)
        .expect("the coordinates are in the range that spade takes");
    let mut triangles: Vec<[u32; 3]> = triangulation
        .inner_faces()
        .map(|face| {
            let mut corners = face.vertices().map(|vertex| vertex.data().number);
            let lowest = (0..3).min_by_key(|slot| corners[*slot]).unwrap_or(0);
            corners.rotate_left(lowest);
            corners
        })
        .collect();
    drop(triangulation);
    triangles.sort_unstable();
    Ok(Mesh::with_boundary(points, triangles, Vec::new())?.0)
}

/// Generates a mesh like LonestarGPU's `r1M` (`points` = 1,000,000) from [`points_in_triangle`]; same errors.
pub fn mesh_r1m_like(points: usize, seed: u64) -> Result<Mesh, GenerateError> {
    triangulate(points_in_triangle(points, seed)?)
}

/// Generates a mesh like LonestarGPU's `250k.2` (`interior` = 250,000) from [`points_in_square`] with a tenth
/// as many on the boundary; same errors.
pub fn mesh_250k_like(interior: usize, seed: u64) -> Result<Mesh, GenerateError> {
    let boundary = (interior / 10).max(4);
    triangulate(points_in_square(interior, boundary, seed)?)
}

fn check_different(points: &[Point]) -> Result<(), GenerateError> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    // Adding 0 turns -0 into 0: both are the same place, but the total order distinguishes them.
    let key = |i: usize| points[i].map(|x| x + 0.0);
    order.sort_unstable_by(|a, b| {
        let ([ax, ay], [bx, by]) = (key(*a), key(*b));
        ax.total_cmp(&bx).then(ay.total_cmp(&by)).then(a.cmp(b))
    });
    match order.windows(2).find(|pair| points[pair[0]] == points[pair[1]]) {
        Some(pair) => Err(GenerateError::SamePoint { first: pair[0], second: pair[1] }),
        None => Ok(()),
    }
}
