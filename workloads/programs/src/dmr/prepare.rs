//! The kernels' records for an input mesh.

use std::collections::HashSet;

use warptrace_kernels::dmr::{ALIVE, NO_LINK, pack, pack_point};

use crate::inputs::geometry::{Point, distance, orientation};
use crate::inputs::{BOUNDARY, Mesh};

pub(super) struct Records {
    pub(super) points: Vec<u128>,
    pub(super) triangles: Vec<u128>,
    pub(super) links: Vec<u128>,
    pub(super) acute: Vec<u32>,
}

/// Returns a bit mask of segments per triangle: bit `e` is the edge from corner `e` to corner `e + 1`.
pub(super) fn segment_bits(mesh: &Mesh) -> Vec<u32> {
    let segments: HashSet<[u32; 2]> = mesh.segments().iter().map(|&[a, b]| [a.min(b), a.max(b)]).collect();
    let is_segment = |a: u32, b: u32| u32::from(segments.contains(&[a.min(b), a.max(b)]));
    mesh.triangles()
        .iter()
        .map(|&[a, b, c]| is_segment(a, b) | is_segment(b, c) << 1 | is_segment(c, a) << 2)
        .collect()
}

/// Returns, for each triangle and edge, `triangle << 2 | edge` of the neighbour, or [`NO_LINK`].
pub(super) fn links(mesh: &Mesh) -> Vec<[u32; 3]> {
    let triangles = mesh.triangles();
    let link = |slot: usize, edge: usize| {
        let across = mesh.adjacency()[slot][edge];
        if across == BOUNDARY {
            return NO_LINK;
        }
        let start = triangles[slot][(edge + 1) % 3];
        let back = triangles[across as usize].iter().position(|&corner| corner == start);
        across << 2 | back.expect("a mesh's neighbours share the edge") as u32
    };
    (0..triangles.len()).map(|slot| [0, 1, 2].map(|edge| link(slot, edge))).collect()
}

/// Returns one bit per point: set if two of its segments meet at under 60 degrees. Has at least one word.
pub(super) fn acute_points(mesh: &Mesh) -> Vec<u32> {
    let points = mesh.points();
    let mut legs: Vec<(u32, Point)> = Vec::with_capacity(2 * mesh.segments().len());
    for &[a, b] in mesh.segments() {
        let [from, to] = [points[a as usize], points[b as usize]];
        legs.push((a, [to[0] - from[0], to[1] - from[1]]));
        legs.push((b, [from[0] - to[0], from[1] - to[1]]));
    }
    legs.sort_by_key(|leg| leg.0);
    let mut acute = vec![0u32; points.len().div_ceil(32).max(1)];
    for group in legs.chunk_by(|a, b| a.0 == b.0) {
        let mut directions: Vec<f64> = group.iter().map(|(_, leg)| leg[1].atan2(leg[0])).collect();
        directions.sort_by(f64::total_cmp);
        let turn = directions.first().map(|first| first + 2.0 * std::f64::consts::PI);
        let following = directions.iter().copied().skip(1).chain(turn);
        let is_acute = directions.iter().zip(following).any(|(a, b)| (b - a).to_degrees() < 59.999);
        if is_acute {
            acute[group[0].0 as usize / 32] |= 1 << (group[0].0 % 32);
        }
    }
    acute
}

/// Returns the shortest edge, or the least distance of a segment from the opposite corner if that is shorter;
/// at least 2^-32 of the largest coordinate, because rounding hides on which side of an edge points lie.
pub(super) fn smallest_feature(mesh: &Mesh) -> f64 {
    let mut smallest = f64::INFINITY;
    for (slot, segments) in segment_bits(mesh).into_iter().enumerate() {
        let corners = mesh.corners(slot);
        let doubled_area = orientation(corners[0], corners[1], corners[2]);
        for edge in 0..3 {
            let length = distance(corners[edge], corners[(edge + 1) % 3]);
            let height = if segments >> edge & 1 != 0 { doubled_area / length } else { length };
            smallest = smallest.min(length).min(height);
        }
    }
    let largest = mesh.points().iter().flatten().fold(0.0f64, |largest, x| largest.max(x.abs()));
    smallest.max(largest / (1u64 << 32) as f64)
}

impl Records {
    pub(super) fn new(mesh: &Mesh) -> Self {
        let flags = segment_bits(mesh);
        let triangles = mesh.triangles().iter().zip(flags);
        Self {
            points: mesh.points().iter().map(|&point| pack_point(point)).collect(),
            triangles: triangles.map(|(&[a, b, c], segments)| pack([a, b, c, segments | ALIVE])).collect(),
            links: links(mesh).iter().map(|&[a, b, c]| pack([a, b, c, 0])).collect(),
            acute: acute_points(mesh),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A right triangle with angles of 90, 45 and 45 degrees, split at the right angle.
    fn halves() -> Mesh {
        let points = vec![[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [1.0, 1.0]];
        Mesh::with_boundary(points, vec![[0, 1, 3], [0, 3, 2]], vec![]).unwrap().0
    }

    #[test]
    fn links_name_the_triangle_and_its_edge() {
        assert_eq!(links(&halves()), [[NO_LINK, NO_LINK, 1 << 2], [2, NO_LINK, NO_LINK]]);
        assert_eq!(segment_bits(&halves()), [0b011, 0b110]);
    }

    #[test]
    fn the_smallest_feature_is_an_edge_or_a_height() {
        assert!((smallest_feature(&halves()) - 1.0).abs() < 1e-12);
        let flat = vec![[0.0, 0.0], [2.0, 0.0], [1.0, 0.25]];
        assert!(
            (smallest_feature(&Mesh::with_boundary(flat, vec![[0, 1, 2]], vec![]).unwrap().0) - 0.25).abs()
                < 1e-12
        );
    }

    #[test]
    fn corners_under_60_degrees_are_found() {
        // Points 1 and 2 only: the other two corners have 90 and 180 degrees.
        assert_eq!(acute_points(&halves()), [0b0110]);
    }
}
