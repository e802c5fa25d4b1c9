//! Tests of the generators: documented properties, and fingerprints that freeze their outputs.

use super::support::{fingerprint, graph_fingerprint};
use warptrace_workloads::check::{components, mst};
use warptrace_workloads::inputs::generate::{
    GenerateError, Rmat, RoadGrid, amazon0312_like, co_purchase, internet_like, mesh_250k_like,
    mesh_r1m_like, points_in_square, points_in_triangle, preferential_attachment, random_weights, rmat,
    rmat12, road_grid, triangulate, usa_road_ny_like,
};
use warptrace_workloads::inputs::{Graph, Mesh, MeshError};

fn mesh_fingerprint(mesh: &Mesh) -> u64 {
    let points = mesh.points().iter().flatten().map(|x| x.to_bits());
    let indices = mesh.triangles().iter().flatten().chain(mesh.segments().iter().flatten());
    fingerprint(points.chain(indices.map(|index| u64::from(*index))))
}

/// A failure means that seeds no longer give the inputs of earlier releases, so results are not comparable.
#[test]
fn outputs_are_frozen() {
    let graphs = [
        ("rmat12", rmat12(1).unwrap(), 0x9d80_6c73_9558_cd48),
        ("road", usa_road_ny_like(1000, 1).unwrap(), 0xf825_cb02_affc_33fb),
        ("internet", internet_like(1000, 1).unwrap(), 0x7b09_a2e1_1afa_5765),
        ("amazon", amazon0312_like(1000, 1).unwrap(), 0x648c_e60b_f1df_734c),
    ];
    let meshes = [
        ("triangle", mesh_r1m_like(1000, 1).unwrap(), 0xc9e1_241e_7f79_91e1),
        ("square", mesh_250k_like(1000, 1).unwrap(), 0xd78e_63bf_bc6f_7030),
    ];
    let found = graphs.iter().map(|(name, graph, expected)| (*name, graph_fingerprint(graph), *expected));
    let found =
        found.chain(meshes.iter().map(|(name, mesh, expected)| (*name, mesh_fingerprint(mesh), *expected)));
    let wrong: Vec<_> = found
        .filter(|(_, found, expected)| found != expected)
        .map(|(name, found, _)| format!("{name}: {found:#018x}"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_seed_decides_and_another_seed_differs() {
    let all = |seed| {
        let graphs =
            [rmat12(seed), usa_road_ny_like(400, seed), internet_like(400, seed), amazon0312_like(400, seed)];
        let meshes = [mesh_r1m_like(400, seed), mesh_250k_like(400, seed)];
        let graphs = graphs.map(|graph| graph_fingerprint(&graph.unwrap())).to_vec();
        [graphs, meshes.map(|mesh| mesh_fingerprint(&mesh.unwrap())).to_vec()].concat()
    };
    let (first, again, other) = (all(7), all(7), all(8));
    assert_eq!(first, again);
    assert!(first.iter().zip(&other).all(|(a, b)| a != b));
}

fn expect_undirected(graph: &Graph) {
    assert!(graph.is_symmetric() && graph.is_simple());
}

#[test]
fn rmat12_has_the_counts_of_lonestargpu_s_file() {
    for seed in 0..3 {
        let graph = rmat12(seed).unwrap();
        expect_undirected(&graph);
        assert_eq!((graph.nodes(), graph.arcs()), (4096, 59_320));
        let forest = mst::kruskal(&graph);
        println!(
            "rmat12 seed {seed}: {} components, weight {}, degree {}",
            forest.components,
            forest.weight,
            graph.max_degree()
        );
        assert!(
            (140..170).contains(&forest.components),
            "{} components; the file has 154",
            forest.components
        );
    }
}

#[test]
fn rmat_skews_towards_its_first_quadrant() {
    let flat = Rmat { scale: 8, edges: 1000, a: 0.25, b: 0.25, c: 0.25, d: 0.25 };
    let graph = rmat(&flat, 3).unwrap();
    expect_undirected(&graph);
    assert!(graph.max_degree() < 30, "{}", graph.max_degree());
    let skewed = rmat(&Rmat { a: 0.7, b: 0.1, c: 0.1, d: 0.1, ..flat }, 3).unwrap();
    assert!(skewed.degree(0) > 60, "{}", skewed.degree(0));
    let full = rmat(&Rmat { scale: 3, edges: 28, ..flat }, 1).unwrap();
    assert!((0..8).all(|node| full.degree(node) == 7));
    let empty = rmat(&Rmat { edges: 0, ..flat }, 1).unwrap();
    assert_eq!((empty.nodes(), empty.arcs()), (256, 0));
}

#[test]
fn roads_are_connected_sparse_and_of_small_degree() {
    let graph = usa_road_ny_like(10_000, 2).unwrap();
    expect_undirected(&graph);
    assert_eq!((graph.nodes(), components(&graph)), (10_000, 1));
    assert_eq!(graph.arcs(), 27_620);
    assert!((4..=8).contains(&graph.max_degree()));
    // A tree, and a full grid.
    let tree = road_grid(&RoadGrid { width: 7, height: 3, arcs_per_node: 40.0 / 21.0 }, 1).unwrap();
    assert_eq!((tree.arcs(), components(&tree)), (40, 1));
    let full = 2.0 * (6.0 * 3.0 + 7.0 * 2.0 + 6.0 * 2.0) / 21.0;
    let full = road_grid(&RoadGrid { width: 7, height: 3, arcs_per_node: full }, 1).unwrap();
    assert_eq!(full.arcs(), 88);
    assert_eq!(road_grid(&RoadGrid { width: 1, height: 1, arcs_per_node: 0.0 }, 1).unwrap().nodes(), 1);
}

#[test]
fn the_internet_is_connected_and_has_hubs() {
    let graph = internet_like(20_000, 4).unwrap();
    expect_undirected(&graph);
    assert_eq!((graph.nodes(), components(&graph)), (20_000, 1));
    let average = f64::from(graph.arcs()) / 20_000.0;
    assert!((3.0..3.12).contains(&average), "{average}");
    assert!(graph.max_degree() > 100, "{}", graph.max_degree());
    assert_eq!(preferential_attachment(2, 1.0, 0).unwrap().arcs(), 2);
}

#[test]
fn co_purchases_have_the_density_of_amazon0312() {
    let graph = amazon0312_like(20_000, 4).unwrap();
    expect_undirected(&graph);
    let average = f64::from(graph.arcs()) / 20_000.0;
    assert!((11.0..12.0).contains(&average), "{average}");
    assert!(graph.max_degree() > 100, "{}", graph.max_degree());
    assert_eq!(co_purchase(2, 0).unwrap().arcs(), 2);
}

#[test]
fn weights_are_uniform_and_the_same_in_both_directions() {
    let graph = usa_road_ny_like(40_000, 9).unwrap();
    assert!(graph.is_symmetric(), "the constructor compares the weights of twins");
    let weights = graph.weights().unwrap();
    assert!(weights.iter().all(|weight| (1..=1000).contains(weight)));
    let mut tenths = [0u32; 10];
    weights.iter().for_each(|weight| tenths[(*weight as usize - 1) / 100] += 1);
    let expected = weights.len() as f64 / 10.0;
    let chi_squared: f64 = tenths.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
    // Twice the 99.9th percentile for nine degrees of freedom, because each edge counts twice.
    assert!(chi_squared < 56.0, "{chi_squared}");
    // A weight does not depend on the rest of the graph.
    let single = Graph::from_csr(vec![0, 1, 2], vec![1, 0], None).unwrap();
    let single = random_weights(single, 1..=1000, 5).unwrap();
    let triple = Graph::from_csr(vec![0, 2, 4, 6], vec![1, 2, 0, 2, 0, 1], None).unwrap();
    let triple = random_weights(triple, 1..=1000, 5).unwrap();
    assert_eq!(single.weight(0), triple.weight(0));
    let all = random_weights(triple, 0..=u32::MAX, 5).unwrap();
    assert!(all.is_symmetric() && all.weights().unwrap().iter().any(|weight| *weight > 1000));
}

#[test]
fn hulls_are_what_was_asked_for() {
    for (mesh, points, hull) in [
        (mesh_r1m_like(3, 1).unwrap(), 3, 3),
        (mesh_r1m_like(5000, 1).unwrap(), 5000, 3),
        (mesh_250k_like(5000, 1).unwrap(), 5500, 500),
        (triangulate(points_in_square(0, 4, 1).unwrap()).unwrap(), 4, 4),
        (triangulate(points_in_square(10, 7, 1).unwrap()).unwrap(), 17, 7),
    ] {
        assert_eq!((mesh.points().len(), mesh.unused_points()), (points, 0));
        assert_eq!((mesh.boundary_edges(), mesh.segments().len()), (hull, hull));
        assert_eq!(mesh.triangles().len(), 2 * points - 2 - hull);
    }
}

#[test]
fn meshes_are_those_of_slow_insertion() {
    for points in [points_in_triangle(200, 1).unwrap(), points_in_square(200, 30, 1).unwrap()] {
        assert_eq!(triangulate(points.clone()).unwrap(), crate::programs::triangulate(points));
    }
}

#[test]
fn parameters_out_of_range_are_refused() {
    let flat = Rmat { scale: 3, edges: 5, a: 0.25, b: 0.25, c: 0.25, d: 0.25 };
    let name = |error: GenerateError| match error {
        GenerateError::Parameter { name, .. } => name,
        other => panic!("{other}"),
    };
    assert_eq!(name(rmat(&Rmat { scale: 0, ..flat }, 1).unwrap_err()), "scale");
    assert_eq!(name(rmat(&Rmat { scale: 31, ..flat }, 1).unwrap_err()), "scale");
    assert_eq!(name(rmat(&Rmat { edges: 29, ..flat }, 1).unwrap_err()), "edges");
    assert_eq!(name(rmat(&Rmat { a: f64::NAN, ..flat }, 1).unwrap_err()), "a");
    assert_eq!(name(rmat(&Rmat { d: -0.25, ..flat }, 1).unwrap_err()), "d");
    assert_eq!(name(rmat(&Rmat { d: 0.5, ..flat }, 1).unwrap_err()), "a + b + c + d");
    let corner = Rmat { a: 1.0, b: 0.0, c: 0.0, d: 0.0, ..flat };
    let error = rmat(&corner, 1).unwrap_err();
    assert!(matches!(error, GenerateError::TooDense { wanted: 5, found: 0, draws: 1000 }), "{error}");

    let road = RoadGrid { width: 10, height: 10, arcs_per_node: 2.5 };
    assert_eq!(name(road_grid(&RoadGrid { width: 0, ..road }, 1).unwrap_err()), "width");
    assert_eq!(name(road_grid(&RoadGrid { height: u32::MAX, ..road }, 1).unwrap_err()), "height");
    for arcs_per_node in [1.0, 6.0, f64::NAN] {
        let error = road_grid(&RoadGrid { arcs_per_node, ..road }, 1).unwrap_err();
        assert_eq!(name(error), "arcs_per_node");
    }
    assert_eq!(name(usa_road_ny_like(3, 1).unwrap_err()), "nodes");
    assert_eq!(name(internet_like(1, 1).unwrap_err()), "nodes");
    assert_eq!(name(preferential_attachment(9, f64::INFINITY, 1).unwrap_err()), "edges_per_node");
    assert_eq!(name(amazon0312_like(1, 1).unwrap_err()), "nodes");
    assert_eq!(name(points_in_triangle(2, 1).unwrap_err()), "count");
    assert_eq!(name(points_in_square(9, 3, 1).unwrap_err()), "boundary");
    let graph = rmat(&flat, 1).unwrap();
    #[expect(clippy::reversed_empty_ranges, reason = "the mistake under test")]
    let reversed = 5..=4;
    assert_eq!(name(random_weights(graph, reversed, 1).unwrap_err()), "the end of the range of weights");

    let same = triangulate(vec![[0.0, 1.0], [1.0, 0.0], [-0.0, 1.0], [0.0, 0.5]]).unwrap_err();
    assert_eq!(same, GenerateError::SamePoint { first: 0, second: 2 });
    let line = triangulate(vec![[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]).unwrap_err();
    assert_eq!(line, GenerateError::Mesh(MeshError::Empty));
    let nan = triangulate(vec![[0.0, f64::NAN]]).unwrap_err();
    assert!(matches!(nan, GenerateError::Mesh(MeshError::Coordinate { point: 0, .. })), "{nan}");
    assert_eq!(triangulate(Vec::new()).unwrap_err(), GenerateError::Mesh(MeshError::Empty));
}
