//! Random points.

use super::error::{GenerateError, check_range};
use super::random::{Purpose, Random};
use crate::inputs::geometry::{Point, orientation};

const MOST_POINTS: usize = 1 << 28;

/// Generates `count` points (at least 3) in Z-order, so that points with close numbers are close to each
/// other: the corners (0, 0), (1, 0) and (0.5, 0.866...) of a triangle, and uniform points inside it. Their
/// Delaunay triangulation has exactly three points on its hull and `2 * count - 5` triangles. Fails with
/// [`GenerateError::Parameter`] if the count is out of range.
pub fn points_in_triangle(count: usize, seed: u64) -> Result<Vec<Point>, GenerateError> {
    check_range("count", count, 3, MOST_POINTS)?;
    // Square root of 3/4; IEEE 754 makes it the same on every machine.
    let corners = [[0.0, 0.0], [1.0, 0.0], [0.5, 0.75f64.sqrt()]];
    let inside = |p: Point| (0..3).all(|i| orientation(corners[i], corners[(i + 1) % 3], p) > 0.0);
    let mut random = Random::new(seed, Purpose::PointsInTriangle);
    let mut points = corners.to_vec();
    while points.len() < count {
        let point = [random.unit(), random.unit() * corners[2][1]];
        if inside(point) {
            points.push(point);
        }
    }
    Ok(in_z_order(points))
}

/// Generates `interior` uniform points inside the unit square and `boundary` points (at least 4) on its
/// sides: the corners, and one at a random place in each of equal sections of the sides, all in Z-order.
/// Their Delaunay triangulation has exactly the boundary points on its hull. Fails with
/// [`GenerateError::Parameter`] if a count is out of range.
pub fn points_in_square(interior: usize, boundary: usize, seed: u64) -> Result<Vec<Point>, GenerateError> {
    check_range("interior", interior, 0, MOST_POINTS)?;
    check_range("boundary", boundary, 4, MOST_POINTS)?;
    let mut random = Random::new(seed, Purpose::PointsInSquare);
    let mut points = Vec::new();
    for side in 0..4 {
        // The first sides take the remainder of the division by four. Section 0 of a side starts at a corner.
        let stretches = (boundary - side).div_ceil(4);
        for stretch in 0..stretches {
            // In the middle half of a section, so that no two points are arbitrarily close.
            let offset = if stretch == 0 { 0.0 } else { 0.25 + random.unit() / 2.0 };
            let t = (stretch as f64 + offset) / stretches as f64;
            points.push([[t, 0.0], [1.0, t], [1.0 - t, 1.0], [0.0, 1.0 - t]][side]);
        }
    }
    while points.len() < boundary + interior {
        let point = [random.unit(), random.unit()];
        if point.iter().all(|x| *x > 0.0) {
            points.push(point);
        }
    }
    Ok(in_z_order(points))
}

/// Sorts points of the unit square along a Morton curve with 16 bits per coordinate.
fn in_z_order(mut points: Vec<Point>) -> Vec<Point> {
    let cell = |x: f64| ((x * 65536.0) as u32).min(65535);
    points.sort_by_cached_key(|[x, y]| (spread(cell(*x)) | spread(cell(*y)) << 1, x.to_bits(), y.to_bits()));
    points
}

/// Inserts a zero bit before each of the low 16 bits.
fn spread(value: u32) -> u32 {
    let mut x = value & 0xffff;
    x = (x | x << 8) & 0x00ff_00ff;
    x = (x | x << 4) & 0x0f0f_0f0f;
    x = (x | x << 2) & 0x3333_3333;
    (x | x << 1) & 0x5555_5555
}
