//! Tests with the real inputs, if they exist.

use super::support::real_inputs;
use warptrace_workloads::check::mesh::{Parameters, area, check, count_bad};
use warptrace_workloads::check::{components, mis, mst};
use warptrace_workloads::inputs::generate::{THESIS_WEIGHTS, random_weights};
use warptrace_workloads::inputs::geometry::AngleBound;
use warptrace_workloads::inputs::{
    Compression, GraphFormat, Limits, LoadOptions, load_graph, load_mesh, write_egr, write_mesh,
};

#[test]
fn the_road_network_of_new_york_has_the_thesis_s_counts() {
    let Some(folder) = real_inputs("road network") else { return };
    let (graph, report) =
        load_graph(folder.join("graphs/USA-road-d.NY.pace.gr.xz"), &LoadOptions::default()).unwrap();
    assert_eq!((report.format, report.compression), (GraphFormat::Pace, Compression::Xz));
    assert!(report.clean.is_clean() && graph.is_symmetric() && graph.is_simple());
    assert_eq!((graph.nodes(), graph.arcs(), graph.max_degree()), (264_346, 730_100, 8));
    assert_eq!(components(&graph), 1);

    let priorities: Vec<u64> = (0..graph.nodes()).map(|node| u64::from(graph.degree(node)) ^ 7).collect();
    assert_eq!(mis::check(&graph, &mis::greedy(&graph, &priorities)), Ok(()));

    let graph = random_weights(graph, THESIS_WEIGHTS, 1).unwrap();
    let forest = mst::kruskal(&graph);
    assert_eq!((forest.edges(), forest.components), (264_345, 1));
    assert_eq!(mst::check(&graph, &forest.arcs), Ok(()));

    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("ny.egr");
    write_egr(&path, &graph).unwrap();
    assert_eq!(load_graph(&path, &LoadOptions::default()).unwrap().0, graph);
}

/// Name, points, triangles, segments, triangles with an angle under 30 degrees.
const MESHES: [(&str, usize, usize, usize, usize); 6] = [
    ("spiral.2", 15, 15, 13, 12),
    ("dots.2", 100, 187, 11, 115),
    ("ladder.2", 128, 126, 128, 126),
    ("633.2", 633, 1248, 16, 742),
    ("ttimeu10000.2", 10_000, 19_975, 23, 9673),
    ("ttimeu100000.2", 100_000, 199_968, 30, 95_348),
];

#[test]
fn the_real_meshes_have_their_counts_and_are_delaunay() {
    let Some(folder) = real_inputs("meshes") else { return };
    for (name, points, triangles, segments, bad) in MESHES {
        let (mesh, report) = load_mesh(folder.join("meshes").join(name), &Limits::default()).unwrap();
        assert_eq!(
            (mesh.points().len(), mesh.triangles().len(), mesh.segments().len()),
            (points, triangles, segments),
            "{name}"
        );
        assert_eq!((report.first_index, report.triangles_turned, report.unused_points), (1, 0, 0), "{name}");
        assert_eq!(report.segments_added, 0, "{name}");
        assert_eq!(count_bad(mesh.view(), AngleBound::THIRTY_DEGREES), bad, "{name}");
        assert!(area(mesh.view()) > 0.0);

        let any_angle = AngleBound::from_degrees(0.0).unwrap();
        let result = check(mesh.view(), &mesh, &Parameters { bound: any_angle, ..Parameters::default() });
        assert!(result.is_ok(), "{name}: {result}");
        println!("{name}: deepest point in a circle {:e}", result.deepest_in_circle);

        let scratch = tempfile::tempdir().unwrap();
        write_mesh(scratch.path().join(name), &mesh).unwrap();
        assert_eq!(load_mesh(scratch.path().join(name), &Limits::default()).unwrap().0, mesh);
    }
}
