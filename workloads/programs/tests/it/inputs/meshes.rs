//! Tests of mesh files and of the mesh's invariants.

use super::support::{gzip, xz};
use warptrace_workloads::inputs::{
    BOUNDARY, Limits, LoadError, LoadProblem, Mesh, MeshBytes, MeshError, MeshReport, load_mesh,
    load_mesh_bytes,
};

/// A square with one diagonal, numbered from 1, with attributes, comments and markers.
const NODE: &str = "# corners\n4 2 1 1\n1 0 0 9.5 1\n 2 1.0 0 9.5 1 # end\n3 1 1e0 9.5 1\n4 0 1 9.5 1\n";
const ELE: &str = "2 3 1\n1 1 2 3 0.5\n2 1 4 3 0.5\n# the second turns clockwise\n";
const POLY: &str = "0 2 0 1\n4 1\n1 1 2 1\n2 2 3 1\n3 3 4 1\n4 4 1 1\n1\n1 5 5\n";

fn from_zero(text: &str) -> String {
    // The same mesh, with item numbers and point numbers from 0.
    match text {
        NODE => "4 2 0 0\n0 0 0\n1 1 0\n2 1 1\n3 0 1\n".to_owned(),
        ELE => "2 3 0\n0 0 1 2\n1 0 3 2\n".to_owned(),
        _ => "0 2 0 0\n4 0\n0 0 1\n1 1 2\n2 2 3\n3 3 0\n0\n".to_owned(),
    }
}

fn load(node: &[u8], ele: &[u8], poly: Option<&[u8]>) -> Result<(Mesh, MeshReport), LoadError> {
    let files = MeshBytes { node: Some(node), ele: Some(ele), poly };
    load_mesh_bytes("dir/m.1", files, &Limits::default())
}

fn square() -> Mesh {
    let points = vec![[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]];
    Mesh::new(points, vec![[0, 1, 2], [0, 2, 3]], vec![[0, 1], [1, 2], [2, 3], [3, 0]]).unwrap()
}

#[test]
fn files_from_zero_and_from_one_plain_and_compressed_give_one_mesh() {
    for zero in [false, true] {
        let [node, ele, poly] =
            [NODE, ELE, POLY].map(|text| if zero { from_zero(text) } else { text.to_owned() }.into_bytes());
        for pack in [<[u8]>::to_vec, gzip, xz] {
            let (mesh, report) = load(&pack(&node), &pack(&ele), Some(&pack(&poly))).unwrap();
            assert_eq!(mesh, square());
            assert_eq!((report.first_index, report.triangles_turned), (u32::from(!zero), 1));
            assert_eq!((report.segments_added, report.unused_points), (0, 0));
        }
    }
}

#[test]
fn without_segments_the_boundary_is_found() {
    let (mesh, report) = load(NODE.as_bytes(), ELE.as_bytes(), None).unwrap();
    assert_eq!(report.segments_added, 4);
    assert_eq!(mesh.segments(), [[0, 1], [3, 0], [1, 2], [2, 3]], "each with the domain on its left");
    assert_eq!(mesh.adjacency(), [[BOUNDARY, BOUNDARY, 1], [0, BOUNDARY, BOUNDARY]]);
    assert_eq!(mesh.boundary_edges(), 4);
}

#[test]
fn points_may_stand_in_the_poly_file() {
    let poly = "4 2 0 0\n1 0 0\n2 1 0\n3 1 1\n4 0 1\n5 0\n1 1 2\n2 2 3\n3 3 4\n4 4 1\n5 3 1\n0\n";
    let files = MeshBytes { node: None, ele: Some(ELE.as_bytes()), poly: Some(poly.as_bytes()) };
    let (mesh, _) = load_mesh_bytes("m", files, &Limits::default()).unwrap();
    assert_eq!(mesh.segments().len(), 5, "the diagonal is a segment inside");
}

#[test]
fn a_mesh_is_found_by_its_stem_or_any_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("m.1.node"), NODE).unwrap();
    std::fs::write(at("m.1.ele.gz"), gzip(ELE.as_bytes())).unwrap();
    std::fs::write(at("m.1.poly.xz"), POLY).unwrap();
    for name in ["m.1", "m.1.ele", "m.1.ele.gz", "m.1.node", "m.1.poly.xz"] {
        assert_eq!(load_mesh(at(name), &Limits::default()).unwrap().0, square(), "{name}");
    }
    let error = load_mesh(at("m.2"), &Limits::default()).unwrap_err();
    assert!(matches!(error.problem, LoadProblem::MissingFile { extension: "ele", .. }), "{error}");
    std::fs::remove_file(at("m.1.node")).unwrap();
    let error = load_mesh(at("m.1"), &Limits::default()).unwrap_err();
    assert!(matches!(error.problem, LoadProblem::MissingFile { extension: "node", .. }), "{error}");
}

#[test]
fn errors_name_the_file_and_the_place() {
    let cases: [(&str, &str, &str, &[&str]); 31] = [
        ("", ELE, POLY, &["m.1.node", "is empty"]),
        ("# x\n", ELE, POLY, &["m.1.node", "line 1", "end of the file", "POINTS 2"]),
        ("0 2 0 0\n", ELE, POLY, &["m.1.node", "line 1", "\"0\"", "number of points"]),
        ("3 3 0 0\n", ELE, POLY, &["m.1.node", "line 1", "\"3\"", "the dimension from 2 to 2"]),
        ("3 2 0 2\n", ELE, POLY, &["m.1.node", "line 1", "markers from 0 to 1"]),
        ("-3 2 0 0\n", ELE, POLY, &["m.1.node", "\"-3\""]),
        ("4000000000 2 0 0\n1 0 0\n", ELE, POLY, &["promises 4000000000 points", "holds 1"]),
        ("3 2 4000000000 0\n1 0 0\n", ELE, POLY, &["m.1.node", "line 2", "an attribute"]),
        ("1 2 0 0\n2 0 0\n", ELE, POLY, &["line 2", "\"2\"", "number from 0 to 1"]),
        ("2 2 0 0\n1 0 0\n3 1 1\n", ELE, POLY, &["line 3", "\"3\"", "point number from 2 to 2"]),
        ("1 2 0 0\n1 nan 0\n", ELE, POLY, &["line 2", "\"nan\"", "x, a finite number"]),
        ("1 2 0 0\n1 0 1e999\n", ELE, POLY, &["line 2", "\"1e999\"", "y, a finite number"]),
        ("1 2 0 0\n1 0 1e200\n", ELE, POLY, &["m.1.node", "point 0", "1e200", "2^201"]),
        ("1 2 0 0\n1 1e-200 0\n", ELE, POLY, &["m.1.node", "point 0", "1e-200"]),
        ("1 2 0 0\n1 0 0\n2 1 1\n", ELE, POLY, &["promises 1 points", "holds 2"]),
        (NODE, "", POLY, &["m.1.ele", "is empty"]),
        (NODE, "0 3 0\n", POLY, &["m.1.ele", "\"0\"", "number of triangles"]),
        (NODE, "1 6 0\n", POLY, &["m.1.ele", "\"6\"", "points per triangle"]),
        (NODE, "2 3 0\n1 1 2 3\n", POLY, &["m.1.ele", "promises 2 triangles", "holds 1"]),
        (NODE, "1 3 0\n1 1 2 3\n2 1 3 4\n", POLY, &["m.1.ele", "promises 1 triangles"]),
        (NODE, "1 3 0\n1 0 2 3\n", POLY, &["m.1.ele", "line 2", "\"0\"", "a point from 1 to 4"]),
        (NODE, "1 3 0\n1 1 2 5\n", POLY, &["m.1.ele", "line 2", "\"5\"", "a point from 1 to 4"]),
        (NODE, "1 3 0\n1 1 2 2\n", POLY, &["m.1.ele", "triangle 0", "point 1 twice"]),
        (NODE, "1 3 0\n1 1 2\n", POLY, &["m.1.ele", "line 2", "end of the line"]),
        (NODE, ELE, "0 2 0 1\n", &["m.1.poly", "end of the file", "SEGMENTS MARKERS"]),
        (NODE, ELE, "0 2 0 1\n2 0\n1 1 2\n", &["m.1.poly", "line 2 promises 2 segments"]),
        (NODE, ELE, "0 2 0 1\n1 0\n1 1 9\n0\n", &["m.1.poly", "line 3", "\"9\"", "a point"]),
        (NODE, ELE, "0 2 0 1\n1 0\n1 1 2\n", &["m.1.poly", "the number of holes"]),
        (NODE, ELE, "0 2 0 1\n1 0\n1 2 2\n0\n", &["m.1:", "segment 0", "point 1 twice"]),
        (NODE, ELE, "0 2 0 1\n1 0\n1 2 4\n0\n", &["m.1:", "segment 0", "not an edge", "indices from 0"]),
        (NODE, ELE, "0 2 0 1\n2 0\n1 1 2\n2 2 1\n0\n", &["m.1:", "segment 1", "there twice"]),
    ];
    for (node, ele, poly, parts) in cases {
        let message = load(node.as_bytes(), ele.as_bytes(), Some(poly.as_bytes())).unwrap_err().to_string();
        for part in parts {
            assert!(
                message.contains(part),
                "{node:?} {ele:?} {poly:?} gave {message:?}, which lacks {part:?}"
            );
        }
    }
    let line = "3 2 0 0\n1 0 0\n2 1 1\n3 2 2\n";
    let message = load(line.as_bytes(), b"1 3 0\n1 1 2 3\n", None).unwrap_err().to_string();
    assert!(message.contains("triangle 0") && message.contains("no area"), "{message}");
}

#[test]
fn files_cut_at_any_length_and_flipped_bits_give_an_error_or_a_mesh() {
    let files = [NODE, ELE, POLY].map(|text| text.as_bytes().to_vec());
    for which in 0..3 {
        let try_with = |content: &[u8]| {
            let mut changed = files.clone();
            changed[which] = content.to_vec();
            load(&changed[0], &changed[1], Some(&changed[2])).is_ok()
        };
        let length = files[which].len();
        let accepted = (0..length).filter(|cut| try_with(&files[which][..*cut])).count();
        // Comments at the end of .node and .ele, and the last line end, may be lost.
        assert!(accepted <= 36, "file {which}: {accepted} of {length} cuts went unnoticed");
        for packed in [gzip(&files[which]), xz(&files[which])] {
            assert!((0..packed.len()).all(|cut| !try_with(&packed[..cut])), "file {which}");
        }
        for bit in 0..length * 8 {
            let mut damaged = files[which].clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            try_with(&damaged);
        }
    }
}

#[test]
fn parts_that_are_no_mesh_are_refused() {
    let points = || vec![[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.5, 0.5]];
    let mesh = |triangles: &[[u32; 3]], segments: &[[u32; 2]]| {
        Mesh::new(points(), triangles.to_vec(), segments.to_vec()).unwrap_err()
    };
    assert_eq!(mesh(&[], &[]), MeshError::Empty);
    let out_of_range = MeshError::PointOutOfRange { what: "triangle", index: 1, point: 5, points: 5 };
    assert_eq!(mesh(&[[0, 1, 2], [0, 2, 5]], &[]), out_of_range);
    assert_eq!(mesh(&[[0, 1, 1]], &[]), MeshError::RepeatedPoint { what: "triangle", index: 0, point: 1 });
    assert_eq!(mesh(&[[0, 4, 2]], &[]), MeshError::Degenerate { triangle: 0, corners: [0, 4, 2] });
    assert_eq!(mesh(&[[0, 2, 1]], &[]), MeshError::Clockwise { triangle: 0, corners: [0, 2, 1] });
    let fan = [[0, 1, 2], [0, 2, 3], [0, 1, 4]];
    assert!(matches!(mesh(&fan[..1], &[[0, 1], [1, 2]]), MeshError::MissingSegment { edge: [0, 2] }));
    let overlap = MeshError::Overlap { edge: [0, 1], triangles: [0, 2] };
    assert_eq!(mesh(&fan, &[[1, 2], [2, 3], [0, 3], [0, 4], [1, 4]]), overlap);
    let crowd = [[0, 1, 2], [0, 1, 3], [0, 1, 4]];
    assert_eq!(mesh(&crowd, &[]), MeshError::CrowdedEdge { edge: [0, 1], triangles: 3 });
    let outline = [[0, 1], [1, 2], [2, 0]];
    assert_eq!(
        mesh(&fan[..1], &[&outline[..], &[[3, 4]]].concat()),
        MeshError::SegmentNotAnEdge { segment: 3, ends: [3, 4] }
    );
    assert_eq!(
        mesh(&fan[..1], &[&outline[..], &[[1, 0]]].concat()),
        MeshError::DuplicateSegment { segment: 3, ends: [1, 0] }
    );
    for bad in [f64::NAN, f64::INFINITY, -1e300, 1e-300] {
        let error = Mesh::new(vec![[0.0, 0.0], [1.0, bad]], vec![[0, 1, 0]], vec![]).unwrap_err();
        assert!(matches!(error, MeshError::Coordinate { point: 1, .. }), "{error}");
    }
}
