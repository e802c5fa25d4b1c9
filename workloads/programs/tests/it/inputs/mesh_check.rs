//! Tests of the checker of refined meshes and of its geometry.

use warptrace_workloads::check::mesh::{Parameters, Problem, Report, area, check, count_bad};
use warptrace_workloads::inputs::generate::{mesh_250k_like, mesh_r1m_like};
use warptrace_workloads::inputs::geometry::{
    AngleBound, MAX_COORDINATE, MIN_COORDINATE, Point, circumradius, in_circle, orientation,
    smallest_angle_degrees,
};
use warptrace_workloads::inputs::{Mesh, MeshView};

const ANY_ANGLE: f64 = 0.0;

#[derive(Clone)]
struct Parts {
    points: Vec<Point>,
    triangles: Vec<[u32; 3]>,
    segments: Vec<[u32; 2]>,
}

impl Parts {
    fn report(&self, input: &Mesh, degrees: f64) -> Report {
        let view = MeshView { points: &self.points, triangles: &self.triangles, segments: &self.segments };
        let bound = AngleBound::from_degrees(degrees).unwrap();
        check(view, input, &Parameters { bound, ..Parameters::default() })
    }

    fn problems(&self, change: impl FnOnce(&mut Self)) -> Vec<Problem> {
        let mut changed = self.clone();
        change(&mut changed);
        changed.report(&input(), ANY_ANGLE).problems
    }
}

fn input() -> Mesh {
    let points = vec![[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]];
    Mesh::new(points, vec![[0, 1, 2], [0, 2, 3]], vec![[0, 1], [1, 2], [2, 3], [3, 0]]).unwrap()
}

/// The refined square: with its centre (4) and the middle of its lower side (5).
fn refined() -> Parts {
    let mut points = input().points().to_vec();
    points.extend([[0.5, 0.5], [0.5, 0.0]]);
    Parts {
        points,
        triangles: vec![[0, 5, 4], [5, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]],
        segments: vec![[5, 1], [0, 5], [1, 2], [2, 3], [0, 3]],
    }
}

#[test]
fn a_right_refinement_passes() {
    let report = refined().report(&input(), 30.0);
    assert!(report.is_ok(), "{report}");
    assert_eq!((report.points, report.triangles, report.edges, report.boundary_edges), (6, 5, 10, 5));
    assert_eq!((report.bad_triangles, report.points_in_circles, report.area), (0, 0, 1.0));
    // The input is a refinement of itself, although all its points lie on one circle.
    let report = check(input().view(), &input(), &Parameters::default());
    assert!(report.is_ok() && report.to_string().contains("no problems"), "{report}");
}

#[test]
fn bad_triangles_are_found_and_those_between_segments_told_apart() {
    let report = refined().report(&input(), 50.0);
    assert_eq!((report.bad_triangles, report.bad_between_segments, report.problem_count), (5, 0, 5));
    assert!(matches!(report.problems[0], Problem::BadTriangle { triangle: 0, corners: [0, 5, 4] }));
    // A needle whose small angle is prescribed by the domain.
    let needle = vec![[0.0, 0.0], [1.0, 0.0], [1.0, 0.1]];
    let needle = Mesh::new(needle, vec![[0, 1, 2]], vec![[0, 1], [1, 2], [2, 0]]).unwrap();
    let report = check(needle.view(), &needle, &Parameters::default());
    assert!(report.is_ok(), "{report}");
    assert_eq!((report.bad_triangles, report.bad_between_segments), (1, 1));
}

#[test]
fn each_kind_of_damage_is_reported() {
    let good = refined();
    let has = |problems: &[Problem], wanted: fn(&Problem) -> bool| problems.iter().any(wanted);

    let p = good.problems(|m| m.triangles[0][0] = 6);
    assert_eq!(p, [Problem::TriangleIndices { triangle: 0, corners: [6, 5, 4] }]);
    let p = good.problems(|m| m.segments[0] = [1, 1]);
    assert_eq!(p, [Problem::SegmentIndices { segment: 0, ends: [1, 1] }]);
    let p = good.problems(|m| m.points[4][0] = f64::NAN);
    assert!(matches!(p[..], [Problem::NotFinite { point: 4, .. }]), "{p:?}");
    let p = good.problems(|m| m.points[0][0] = -0.25);
    assert!(has(&p, |p| matches!(p, Problem::PointMoved { point: 0 })), "{p:?}");
    let p = good.problems(|m| m.points.truncate(0));
    assert!(!p.is_empty());

    let p = good.problems(|m| m.triangles[0].swap(0, 1));
    assert!(has(&p, |p| matches!(p, Problem::Orientation { triangle: 0, degenerate: false, .. })), "{p:?}");
    assert!(has(&p, |p| matches!(p, Problem::Overlap { .. })), "{p:?}");
    let p = good.problems(|m| m.points[4] = [0.5, 0.0]);
    assert!(has(&p, |p| matches!(p, Problem::Orientation { degenerate: true, .. })), "{p:?}");

    // A missing triangle: a gap and a smaller area.
    let p = good.problems(|m| _ = m.triangles.remove(2));
    assert!(has(&p, |p| matches!(p, Problem::OpenEdge { edge: [1, 4] })), "{p:?}");
    assert!(has(&p, |p| matches!(p, Problem::SegmentsNotEdges { segments: 1 })), "{p:?}");
    assert!(has(&p, |p| matches!(p, Problem::Area { .. })), "{p:?}");
    let p = good.problems(|m| m.triangles.push([1, 2, 4]));
    assert!(has(&p, |p| matches!(p, Problem::CrowdedEdge { triangles: 3, .. })), "{p:?}");
    assert!(has(&p, |p| matches!(p, Problem::Euler { .. })), "{p:?}");

    let p = good.problems(|m| _ = m.segments.remove(0));
    assert!(has(&p, |p| matches!(p, Problem::SegmentLost { ends: [0, 1] })), "{p:?}");
    assert!(has(&p, |p| matches!(p, Problem::SegmentAdded { from: 0, to: 5 })), "{p:?}");
    assert!(has(&p, |p| matches!(p, Problem::OpenEdge { edge: [1, 5] })), "{p:?}");
    let p = good.problems(|m| m.segments.push([2, 1]));
    assert!(has(&p, |p| matches!(p, Problem::DuplicateSegment { ends: [2, 1] })), "{p:?}");
    let p = good.problems(|m| m.segments.push([1, 4]));
    assert!(has(&p, |p| matches!(p, Problem::SegmentAdded { from: 1, to: 4 })), "{p:?}");
    let p = good.problems(|m| m.segments.push([4, 5]));
    assert!(!p.is_empty(), "a branch of a chain");

    // The split point away from its side, and beyond the side's end.
    let p = good.problems(|m| m.points[5] = [0.5, -0.01]);
    assert!(has(&p, |p| matches!(p, Problem::SplitAway { point: 5, ends: [0, 1], .. })), "{p:?}");
    let p = good.problems(|m| m.points[5] = [1.5, 0.0]);
    assert!(has(&p, |p| matches!(p, Problem::SplitAway { point: 5, .. })), "{p:?}");
}

#[test]
fn segments_among_added_points_only_are_adrift() {
    let mut mesh = refined();
    mesh.points.extend([[0.5, 0.7], [0.6, 0.9]]);
    mesh.segments.push([6, 7]);
    let report = mesh.report(&input(), ANY_ANGLE);
    assert!(report.problems.contains(&Problem::SegmentsAdrift { segments: 1 }), "{report}");
}

#[test]
fn a_mesh_that_is_not_delaunay_is_told_how_far() {
    // The short diagonal of a kite is Delaunay, the long one is not.
    let points = vec![[0.0, 0.0], [2.0, -0.5], [4.0, 0.0], [2.0, 0.5]];
    let outline = vec![[0, 1], [1, 2], [2, 3], [3, 0]];
    let long = Mesh::new(points.clone(), vec![[0, 1, 2], [0, 2, 3]], outline.clone()).unwrap();
    let short = Mesh::new(points, vec![[0, 1, 3], [1, 2, 3]], outline).unwrap();
    let parameters = Parameters { bound: AngleBound::from_degrees(0.0).unwrap(), ..Parameters::default() };
    assert!(check(short.view(), &short, &parameters).is_ok());
    let report = check(long.view(), &long, &parameters);
    assert_eq!(report.points_in_circles, 1);
    let Problem::PointInCircle { point: 3, depth, .. } = report.problems[0] else { panic!("{report}") };
    // The circle through (0, 0), (2, -0.5), (4, 0) has its centre at (2, 3.75) and radius 4.25.
    let expected = 1.0 - (3.25f64 / 4.25).powi(2);
    assert!((depth - expected).abs() < 1e-12, "{depth} {expected}");
    let lenient = Parameters { circle_tolerance: 0.5, ..parameters };
    assert!(check(long.view(), &long, &lenient).is_ok());
    // The long diagonal may stay if it is a segment.
    let mut segments = long.segments().to_vec();
    segments.push([0, 2]);
    let constrained = Mesh::new(long.points().to_vec(), long.triangles().to_vec(), segments).unwrap();
    assert!(check(constrained.view(), &constrained, &parameters).is_ok());
}

#[test]
fn a_hole_is_kept() {
    // A square ring: 8 points, 8 triangles.
    let ring = |r: f64| [[-r, -r], [r, -r], [r, r], [-r, r]];
    let points: Vec<Point> = [ring(3.0), ring(1.0)].concat();
    let triangles: Vec<[u32; 3]> = (0..4)
        .flat_map(|i| {
            let j = (i + 1) % 4;
            [[i, j, j + 4], [i, j + 4, i + 4]]
        })
        .collect();
    let (mesh, added) = Mesh::with_boundary(points, triangles, Vec::new()).unwrap();
    assert_eq!((added, area(mesh.view())), (8, 32.0));
    let parameters = Parameters { bound: AngleBound::from_degrees(15.0).unwrap(), ..Parameters::default() };
    let report = check(mesh.view(), &mesh, &parameters);
    assert!(report.is_ok(), "{report}");
}

#[test]
fn a_report_shows_the_first_problems_and_counts_all() {
    let mesh = mesh_r1m_like(200, 1).unwrap();
    let bound = AngleBound::from_degrees(60.0).unwrap();
    let report = check(mesh.view(), &mesh, &Parameters { bound, ..Parameters::default() });
    assert_eq!(report.bad_triangles, mesh.triangles().len());
    assert_eq!(report.problems.len(), Report::SHOWN);
    let hidden = format!("and {} more", report.problem_count - Report::SHOWN);
    assert!(report.to_string().ends_with(&hidden), "{report}");
}

#[test]
fn generated_meshes_are_delaunay_to_the_last_bit() {
    let exact = Parameters {
        bound: AngleBound::from_degrees(0.0).unwrap(),
        circle_tolerance: 0.0,
        area_tolerance: 1e-12,
        ..Parameters::default()
    };
    for mesh in [mesh_r1m_like(3000, 5).unwrap(), mesh_250k_like(3000, 5).unwrap()] {
        let report = check(mesh.view(), &mesh, &exact);
        assert!(report.is_ok() && report.points_in_circles == 0, "{report}");
    }
}

#[test]
fn the_angle_test_agrees_with_angles() {
    let corner = |degrees: f64| {
        let (sin, cos) = degrees.to_radians().sin_cos();
        [[0.0, 0.0], [1.0, 0.0], [cos, sin]]
    };
    for bound in [20.7, 30.0, 33.0] {
        let test = AngleBound::from_degrees(bound).unwrap();
        for degrees in [1.0, bound - 1e-6, bound + 1e-6, 60.0, 90.0, 179.0 - 2.0 * bound] {
            let corners = corner(degrees);
            assert_eq!(test.is_bad(corners), smallest_angle_degrees(corners) < bound, "{bound} {degrees}");
        }
    }
    assert_eq!(AngleBound::from_degrees(30.0), Some(AngleBound::THIRTY_DEGREES));
    assert!([f64::NAN, -1.0, 60.1].iter().all(|degrees| AngleBound::from_degrees(*degrees).is_none()));
    // A corner of 45 degrees is not under the bound of 30; one of 26.6 is.
    let right = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]];
    assert!(!AngleBound::THIRTY_DEGREES.is_bad(right));
    assert!(AngleBound::THIRTY_DEGREES.is_bad([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]]));
    let view = refined();
    let view = MeshView { points: &view.points, triangles: &view.triangles, segments: &view.segments };
    assert_eq!(count_bad(view, AngleBound::from_degrees(50.0).unwrap()), 5);
}

#[test]
fn predicates_are_exact_at_the_ends_of_the_range() {
    for scale in [MIN_COORDINATE, 1.0, MAX_COORDINATE / 2.0] {
        let at = |x: f64, y: f64| [x * scale, y * scale];
        let (a, b, c) = (at(1.0, 1.0), at(2.0, 1.0), at(2.0, 2.0));
        assert!(orientation(a, b, c) > 0.0 && orientation(a, c, b) < 0.0);
        assert_eq!(orientation(a, at(2.0, 2.0), at(1.5, 1.5)), 0.0);
        assert_eq!(in_circle(a, b, c, at(1.0, 2.0)), 0.0);
        assert!(in_circle(a, b, c, at(1.0, 2.0 - f64::EPSILON)) > 0.0);
        assert!(in_circle(a, b, c, at(1.0, 2.0 + 2.0 * f64::EPSILON)) < 0.0);
    }
    let radius = circumradius([0.0, 0.0], [2.0, 0.0], [0.0, 2.0]);
    assert!((radius - 2f64.sqrt()).abs() < 1e-15);
}
