//! Tests that loaders read back what the writers wrote.

use proptest::prelude::*;
use warptrace_workloads::inputs::generate::{Rmat, points_in_square, rmat, triangulate};
use warptrace_workloads::inputs::{
    Arc, ArcList, Cleaning, Graph, Limits, LoadOptions, Mesh, WriteError, load_graph, load_mesh, write_egr,
    write_mesh,
};

/// Arcs among up to 19 nodes, with self-loops and repeats.
fn arc_lists() -> impl Strategy<Value = ArcList> {
    (1u32..20, any::<bool>()).prop_flat_map(|(nodes, weighted)| {
        let arc = (0..nodes, 0..nodes, 0u32..8).prop_map(|(from, to, weight)| Arc { from, to, weight });
        prop::collection::vec(arc, 0..60).prop_map(move |arcs| ArcList { nodes, weighted, arcs })
    })
}

/// Computes the cleaned arcs by definition, slowly.
fn model(list: &ArcList) -> Vec<(u32, u32, u32)> {
    let mut arcs = std::collections::BTreeMap::new();
    for arc in list.arcs.iter().filter(|arc| arc.from != arc.to) {
        let weight = if list.weighted { arc.weight } else { 1 };
        for ends in [(arc.from, arc.to), (arc.to, arc.from)] {
            let entry = arcs.entry(ends).or_insert(weight);
            *entry = weight.min(*entry);
        }
    }
    arcs.into_iter().map(|((from, to), weight)| (from, to, weight)).collect()
}

proptest! {
    #[test]
    fn cleaning_equals_its_definition(list in arc_lists()) {
        let expected = model(&list);
        let (kept, twins, loops) = (list.arcs.len() as u64, expected.len() as u64,
            list.arcs.iter().filter(|arc| arc.from == arc.to).count() as u64);
        let (graph, report) = list.into_graph(&Cleaning::default()).unwrap();
        let found: Vec<_> = graph.iter_arcs().map(|(_, from, to, weight)| (from, to, weight)).collect();
        prop_assert_eq!(found, expected);
        prop_assert!(graph.is_symmetric() && graph.is_simple());
        prop_assert_eq!(report.self_loops_dropped, loops);
        prop_assert_eq!(kept - loops - report.duplicates_merged + report.twins_added, twins);
    }

    #[test]
    fn an_uncleaned_graph_has_the_list_s_arcs(list in arc_lists()) {
        let mut expected: Vec<_> =
            list.arcs.iter().map(|arc| (arc.from, arc.to, if list.weighted { arc.weight } else { 1 })).collect();
        expected.sort_unstable();
        let (graph, report) = list.into_graph(&Cleaning::NONE).unwrap();
        let found: Vec<_> = graph.iter_arcs().map(|(_, from, to, weight)| (from, to, weight)).collect();
        prop_assert_eq!(&found, &expected);
        prop_assert!(report.is_clean());
        let mut twins: Vec<_> = found.iter().map(|(from, to, weight)| (*to, *from, *weight)).collect();
        twins.sort_unstable();
        prop_assert_eq!(graph.is_symmetric(), twins == expected);
    }

    #[test]
    fn egr_round_trips(list in arc_lists(), clean in any::<bool>()) {
        let cleaning = if clean { Cleaning::default() } else { Cleaning::NONE };
        let (graph, _) = list.into_graph(&cleaning).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g");
        write_egr(&path, &graph).unwrap();
        let options = LoadOptions { cleaning, ..LoadOptions::default() };
        let (read, report) = load_graph(&path, &options).unwrap();
        prop_assert!(report.clean.is_clean());
        // Without arcs, the format cannot represent that the graph is weighted.
        let expected = if graph.arcs() == 0 { graph.with_weights(None).unwrap() } else { graph };
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn text_of_any_format_round_trips(list in arc_lists()) {
        let (graph, _) = list.clone().into_graph(&Cleaning::NONE).unwrap();
        let options = LoadOptions { cleaning: Cleaning::NONE, ..LoadOptions::default() };
        let arcs: Vec<_> = graph.iter_arcs().collect();
        let mut dimacs = format!("p sp {} {}\n", graph.nodes(), arcs.len());
        let mut market = format!("%%MatrixMarket matrix coordinate integer general\n{0} {0} {1}\n", graph.nodes(), arcs.len());
        for (_, from, to, weight) in &arcs {
            dimacs += &format!("a {} {} {weight}\n", from + 1, to + 1);
            market += &format!("{} {} {weight}\n", from + 1, to + 1);
        }
        let weighted = graph.clone().with_weights(Some(arcs.iter().map(|arc| arc.3).collect())).unwrap();
        for text in [dimacs, market] {
            let (read, _) =
                warptrace_workloads::inputs::load_graph_bytes("g", text.as_bytes(), &options).unwrap();
            prop_assert_eq!(&read, &weighted);
        }
    }

    #[test]
    fn meshes_round_trip(interior in 0usize..60, boundary in 4usize..30, seed in any::<u64>(), scale in -100i32..100) {
        let scale = 2f64.powi(scale) / 3.0;
        let mut points = points_in_square(interior, boundary, seed).unwrap();
        points.iter_mut().flatten().for_each(|x| *x *= scale);
        let mesh = triangulate(points).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let stem = folder.path().join("m.1");
        write_mesh(&stem, &mesh).unwrap();
        let (read, report) = load_mesh(&stem, &Limits::default()).unwrap();
        prop_assert_eq!(read, mesh);
        prop_assert_eq!((report.triangles_turned, report.segments_added, report.unused_points), (0, 0, 0));
    }
}

#[test]
fn what_does_not_fit_egr_is_refused() {
    let graph = Graph::from_csr(vec![0, 1, 2], vec![1, 0], Some(vec![1 << 31, 1 << 31])).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let error = write_egr(folder.path().join("g"), &graph).unwrap_err();
    assert!(matches!(error, WriteError::DoesNotFit { what: "weight", value: 0x8000_0000, .. }), "{error}");
    let graph = rmat(&Rmat { scale: 3, edges: 5, a: 0.25, b: 0.25, c: 0.25, d: 0.25 }, 1).unwrap();
    let error = write_egr(folder.path().join("no/such/folder"), &graph).unwrap_err();
    assert!(matches!(error, WriteError::Io { .. }), "{error}");
}

#[test]
fn mesh_files_have_the_bytes_that_triangle_writes() {
    let mesh =
        Mesh::new(vec![[0.0, 0.0], [0.1, 0.0], [0.0, 1.0]], vec![[0, 1, 2]], vec![[0, 1], [1, 2], [2, 0]])
            .unwrap();
    let folder = tempfile::tempdir().unwrap();
    write_mesh(folder.path().join("m"), &mesh).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("m.node"), "3 2 0 1\n1 0 0 1\n2 0.1 0 1\n3 0 1 1\n");
    assert_eq!(read("m.ele"), "1 3 0\n1 1 2 3\n");
    assert_eq!(read("m.poly"), "0 2 0 1\n3 1\n1 1 2 1\n2 2 3 1\n3 3 1 1\n0\n");
}
