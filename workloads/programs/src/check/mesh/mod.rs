//! Checks of refined meshes.
//!
//! [`check`] takes bare arrays, because a wrong kernel's output may not form a [`Mesh`]. It continues after a
//! violation, so that the report shows the extent of the damage.
//!
//! An empty report proves: all triangles are counter-clockwise and have an area; each edge belongs to two
//! triangles on different sides of it, or to one triangle and lies on a segment of the input; the areas
//! agree. So the triangles cover the input's domain exactly once. The in-circle tests then show that the mesh
//! is Delaunay, constrained by its segments (Lee and Lin, "Generalized Delaunay Triangulation for Planar
//! Graphs", 1986).

mod report;
mod segments;

pub use report::{Parameters, Problem, Report};

use crate::inputs::geometry::{AngleBound, Point, circumradius, in_circle, orientation};
use crate::inputs::{Mesh, MeshView, for_each_edge};
use std::collections::HashSet;

/// Counts triangles with an angle under the bound. Panics if a triangle names a point that does not exist.
pub fn count_bad(mesh: MeshView<'_>, bound: AngleBound) -> usize {
    mesh.triangles.iter().filter(|corners| bound.is_bad(corners_of(mesh, **corners))).count()
}

/// Checks a refined mesh against its input mesh. The output must list the input's points first, and its
/// segments must be the input's or pieces of them. Takes linear time except for small sorts, and about 60
/// bytes of memory per triangle.
pub fn check(output: MeshView<'_>, input: &Mesh, parameters: &Parameters) -> Report {
    let mut report = Report {
        points: output.points.len(),
        triangles: output.triangles.len(),
        segments: output.segments.len(),
        ..Report::default()
    };
    check_indices(output, &mut report);
    if !report.is_ok() {
        // The other checks would follow the wrong indices.
        return report;
    }
    check_points(output, input, &mut report);
    segments::check(output, input, parameters, &mut report);
    check_triangles(output, &mut report);
    let segments: HashSet<[u32; 2]> = output.segments.iter().map(|ends| sorted(*ends)).collect();
    check_bad_triangles(output, &segments, parameters, &mut report);
    check_edges(output, &segments, parameters, &mut report);
    check_euler(output, input, &mut report);
    check_area(output, input, parameters, &mut report);
    report
}

fn sorted([a, b]: [u32; 2]) -> [u32; 2] {
    [a.min(b), a.max(b)]
}

fn corners_of(mesh: MeshView<'_>, corners: [u32; 3]) -> [Point; 3] {
    corners.map(|corner| mesh.points[corner as usize])
}

fn check_indices(output: MeshView<'_>, report: &mut Report) {
    let wrong = |ends: &[u32]| {
        ends.iter()
            .enumerate()
            .any(|(i, point)| *point as usize >= output.points.len() || ends[..i].contains(point))
    };
    for (triangle, corners) in output.triangles.iter().enumerate().filter(|(_, corners)| wrong(*corners)) {
        report.add(Problem::TriangleIndices { triangle, corners: *corners });
    }
    for (segment, ends) in output.segments.iter().enumerate().filter(|(_, ends)| wrong(*ends)) {
        report.add(Problem::SegmentIndices { segment, ends: *ends });
    }
    for (point, at) in output.points.iter().enumerate().filter(|(_, at)| !at.iter().all(|x| x.is_finite())) {
        report.add(Problem::NotFinite { point, at: *at });
    }
}

fn check_points(output: MeshView<'_>, input: &Mesh, report: &mut Report) {
    let same = |a: &Point, b: &Point| a.map(f64::to_bits) == b.map(f64::to_bits);
    for (point, at) in input.points().iter().enumerate() {
        if output.points.get(point).is_none_or(|now| !same(at, now)) {
            report.add(Problem::PointMoved { point });
        }
    }
}

fn check_triangles(output: MeshView<'_>, report: &mut Report) {
    for (triangle, corners) in output.triangles.iter().enumerate() {
        let [a, b, c] = corners_of(output, *corners);
        let turn = orientation(a, b, c);
        if turn.is_nan() || turn <= 0.0 {
            report.add(Problem::Orientation { triangle, corners: *corners, degenerate: turn == 0.0 });
        }
    }
}

fn check_bad_triangles(
    output: MeshView<'_>,
    segments: &HashSet<[u32; 2]>,
    parameters: &Parameters,
    report: &mut Report,
) {
    for (triangle, corners) in output.triangles.iter().enumerate() {
        let at = corners_of(output, *corners);
        if !parameters.bound.is_bad(at) {
            continue;
        }
        report.bad_triangles += 1;
        // The input prescribes an angle between two segments; refinement cannot remove it.
        let is_segment = |i: usize, j: usize| segments.contains(&sorted([corners[i % 3], corners[j % 3]]));
        let forced = (0..3)
            .filter(|i| parameters.bound.is_sharp(at, *i))
            .all(|i| is_segment(i, i + 1) && is_segment(i, i + 2));
        if forced {
            report.bad_between_segments += 1;
        } else {
            report.add(Problem::BadTriangle { triangle, corners: *corners });
        }
    }
}

fn check_edges(
    output: MeshView<'_>,
    segments: &HashSet<[u32; 2]>,
    parameters: &Parameters,
    report: &mut Report,
) {
    let mut segments_met = 0;
    for_each_edge(output.points.len(), output.triangles, |edge, uses| {
        report.edges += 1;
        let is_segment = segments.contains(&edge);
        segments_met += usize::from(is_segment);
        match uses {
            [_] => {
                report.boundary_edges += 1;
                if !is_segment {
                    report.add(Problem::OpenEdge { edge });
                }
            }
            [a, b] if a.ascending == b.ascending => {
                report.add(Problem::Overlap { edge, triangles: [a.triangle, b.triangle] });
            }
            [a, b] if !is_segment => {
                let corners = output.triangles[a.triangle as usize];
                let other = output.triangles[b.triangle as usize];
                let apex = other[(b.slot as usize + 2) % 3];
                check_circle(output, [a.triangle, b.triangle], corners, apex, parameters, report);
            }
            [_, _] => {}
            _ => report.add(Problem::CrowdedEdge { edge, triangles: uses.len() }),
        }
    });
    if segments_met != segments.len() {
        report.add(Problem::SegmentsNotEdges { segments: segments.len() - segments_met });
    }
}

/// Tests the point across an edge against the circumcircle of the triangle on this side.
fn check_circle(
    output: MeshView<'_>,
    triangles: [u32; 2],
    corners: [u32; 3],
    apex: u32,
    parameters: &Parameters,
    report: &mut Report,
) {
    let [a, b, c] = corners_of(output, corners);
    let d = output.points[apex as usize];
    let inside = in_circle(a, b, c, d);
    if inside <= 0.0 {
        return;
    }
    report.points_in_circles += 1;
    // in_circle is the doubled area times (r^2 - distance^2). A flat triangle has an infinite circle.
    let radius = circumradius(a, b, c);
    let depth = inside / orientation(a, b, c) / radius / radius;
    let depth = if depth.is_finite() { depth } else { 0.0 };
    report.deepest_in_circle = report.deepest_in_circle.max(depth);
    if depth > parameters.circle_tolerance {
        report.add(Problem::PointInCircle { triangles, point: apex, depth });
    }
}

/// Returns the Euler characteristic: points in use - edges + triangles, which is connected pieces - holes.
fn euler(points: usize, triangles: &[[u32; 3]], edges: usize) -> i64 {
    let mut used = vec![false; points];
    triangles.iter().flatten().for_each(|point| used[*point as usize] = true);
    let used = used.iter().filter(|used| **used).count();
    used as i64 - edges as i64 + triangles.len() as i64
}

fn check_euler(output: MeshView<'_>, input: &Mesh, report: &mut Report) {
    let input_edges = (input.triangles().len() * 3 + input.boundary_edges()) / 2;
    let expected = euler(input.points().len(), input.triangles(), input_edges);
    let found = euler(output.points.len(), output.triangles, report.edges);
    if found != expected {
        report.add(Problem::Euler { found, expected });
    }
}

fn check_area(output: MeshView<'_>, input: &Mesh, parameters: &Parameters, report: &mut Report) {
    let expected = area(input.view());
    report.area = area(output);
    let error = ((report.area - expected) / expected).abs();
    if error.is_nan() || error > parameters.area_tolerance {
        report.add(Problem::Area { found: report.area, expected });
    }
}

/// Sums the signed areas. Neumaier's compensation keeps millions of small terms accurate.
pub fn area(mesh: MeshView<'_>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0f64);
    for corners in mesh.triangles {
        let [a, b, c] = corners_of(mesh, *corners);
        let term = orientation(a, b, c) / 2.0;
        let next = sum + term;
        lost += if sum.abs() >= term.abs() { (sum - next) + term } else { (term - next) + sum };
        sum = next;
    }
    sum + lost
}
