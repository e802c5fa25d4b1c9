//! Hand-written files of each graph format.

use super::support::{gzip, load, words, xz};
use warptrace_workloads::inputs::{
    CleanReport, Cleaning, Compression, Graph, GraphFormat, LoadOptions, load_graph, load_graph_bytes,
};

/// The path 0 - 1 - 2 with the weights 5 and 7, and the isolated node 3.
fn path_graph() -> Graph {
    Graph::from_csr(vec![0, 1, 3, 4, 4], vec![1, 0, 2, 1], Some(vec![5, 5, 7, 7])).unwrap()
}

fn unweighted(graph: Graph) -> Graph {
    graph.with_weights(None).unwrap()
}

const DIMACS: &str = "c a comment\nc\np sp 4 4\na 1 2 5\na 2 1 5\n\nc between\na 2 3 7\na 3 2 7\n";
const PACE: &str = "c roads\np tw 4 2\n1 2\n2 3\n";
const SNAP: &str = "# Directed graph\n# Nodes: 4 Edges: 3\n0\t1\n1 2\r\n3 3\n";
const PATTERN: &str = "%%MatrixMarket matrix coordinate pattern symmetric\n% comment\n4 4 2\n2 1\n3 2\n";
const REAL: &str = "%%matrixmarket MATRIX Coordinate Real General\n4 4 3\n1 2 5.0\n2 1 5\n3 2 0.7e1\n";
const INTEGER: &str = "%%MatrixMarket matrix coordinate integer symmetric\n4 4 3\n2 1 5\n3 2 7\n1 1 9\n";

fn egr() -> Vec<u8> {
    words(&[4, 4, 0, 1, 3, 4, 4, 1, 0, 2, 1, 5, 5, 7, 7])
}

#[test]
fn every_format_is_found_by_content_under_a_name_that_says_nothing() {
    let cases: [(&[u8], GraphFormat, Graph); 7] = [
        (&egr(), GraphFormat::Egr, path_graph()),
        (DIMACS.as_bytes(), GraphFormat::Dimacs, path_graph()),
        (PACE.as_bytes(), GraphFormat::Pace, unweighted(path_graph())),
        (SNAP.as_bytes(), GraphFormat::Snap, unweighted(path_graph())),
        (PATTERN.as_bytes(), GraphFormat::MatrixMarket, unweighted(path_graph())),
        (REAL.as_bytes(), GraphFormat::MatrixMarket, path_graph()),
        (INTEGER.as_bytes(), GraphFormat::MatrixMarket, path_graph()),
    ];
    for (bytes, format, expected) in cases {
        for (content, compression) in [
            (bytes.to_vec(), Compression::None),
            (gzip(bytes), Compression::Gzip),
            (xz(bytes), Compression::Xz),
        ] {
            // The names state a wrong compression or nothing.
            for name in ["data", "data.gz", "data.bin.xz"] {
                let (graph, report) = load(name, &content).unwrap();
                assert_eq!(graph, expected, "{format}, {compression}, {name}");
                assert_eq!((report.format, report.compression), (format, compression));
                assert!(graph.is_symmetric() && graph.is_simple());
            }
        }
    }
}

#[test]
fn an_unweighted_egr_is_told_from_a_weighted_one_by_its_length() {
    let (graph, report) = load("g.egr", words(&[4, 4, 0, 1, 3, 4, 4, 1, 0, 2, 1])).unwrap();
    assert_eq!(graph, unweighted(path_graph()));
    assert!(report.clean.is_clean());
}

#[test]
fn members_and_streams_that_follow_each_other_are_one_file() {
    let (first, second) = PACE.as_bytes().split_at(9);
    for compress in [gzip, xz] {
        let both = [compress(first), compress(second)].concat();
        assert_eq!(load("g", both).unwrap().0, unweighted(path_graph()));
    }
}

#[test]
fn cleaning_counts_what_it_changes() {
    // A self-loop, the arc 0 to 1 three times, a lighter arc 1 to 0, and an arc 2 to 0 without a twin.
    let text = "p sp 3 6\na 1 1 4\na 1 2 9\na 1 2 6\na 1 2 8\na 2 1 5\na 3 1 1\n";
    let (graph, report) = load("g.gr", text).unwrap();
    assert_eq!(
        report.clean,
        CleanReport { self_loops_dropped: 1, duplicates_merged: 2, twins_added: 1, weights_lowered: 1 }
    );
    assert_eq!(graph, Graph::from_csr(vec![0, 2, 3, 4], vec![1, 2, 0, 0], Some(vec![5, 1, 5, 1])).unwrap());
    assert!(graph.is_symmetric() && graph.is_simple());
}

#[test]
fn nothing_is_cleaned_where_nothing_should_be() {
    let text = "p sp 3 6\na 1 1 4\na 1 2 9\na 1 2 6\na 1 2 8\na 2 1 5\na 3 1 1\n";
    let options = LoadOptions { cleaning: Cleaning::NONE, ..LoadOptions::default() };
    let (graph, report) = load_graph_bytes("g", text.as_bytes(), &options).unwrap();
    assert!(report.clean.is_clean());
    let expected = Graph::from_csr(vec![0, 4, 5, 6], vec![0, 1, 1, 1, 0, 0], Some(vec![4, 6, 8, 9, 5, 1]));
    assert_eq!(graph, expected.unwrap());
    assert_eq!((graph.self_loops(), graph.duplicates()), (1, 2));
    assert!(!graph.is_symmetric() && !graph.is_simple());
}

#[test]
fn duplicates_that_are_kept_get_their_own_twins() {
    let cleaning = Cleaning { merge_duplicates: false, ..Cleaning::default() };
    let options = LoadOptions { cleaning, ..LoadOptions::default() };
    let text = "p sp 2 3\na 1 2 9\na 1 2 6\na 2 1 6\n";
    let (graph, report) = load_graph_bytes("g", text.as_bytes(), &options).unwrap();
    assert_eq!(report.clean, CleanReport { twins_added: 1, ..CleanReport::default() });
    let expected = Graph::from_csr(vec![0, 2, 4], vec![1, 1, 0, 0], Some(vec![6, 9, 6, 9])).unwrap();
    assert_eq!(graph, expected);
    assert!(graph.is_symmetric());
}

#[test]
fn weights_can_be_left_out() {
    let options = LoadOptions { ignore_weights: true, ..LoadOptions::default() };
    let negative = "%%MatrixMarket matrix coordinate real general\n4 4 3\n1 2 -0.5\n2 1 nan\n3 2 1e99\n";
    for text in [DIMACS, "0 1 x y\n1 2\n3 3 -1\n", negative] {
        let (graph, _) = load_graph_bytes("g", text.as_bytes(), &options).unwrap();
        assert_eq!(graph, unweighted(path_graph()));
    }
    let mut bytes = egr();
    let last = bytes.len() - 4;
    bytes[last..].copy_from_slice(&(-1i32).to_le_bytes());
    assert_eq!(load_graph_bytes("g", &bytes, &options).unwrap().0, unweighted(path_graph()));
}

#[test]
fn snap_ids_may_have_gaps_and_weights() {
    let text = "% konect\n10 7000000000 3\n7000000000 12 4\n";
    let options = LoadOptions { compact_ids: true, ..LoadOptions::default() };
    let (graph, _) = load_graph_bytes("g", text.as_bytes(), &options).unwrap();
    let expected = Graph::from_csr(vec![0, 1, 2, 4], vec![2, 2, 0, 1], Some(vec![3, 4, 3, 4])).unwrap();
    assert_eq!(graph, expected);
}

#[test]
fn the_extension_decides_only_what_content_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.mtx.gz");
    std::fs::write(&path, PACE).unwrap();
    assert_eq!(load_graph(&path, &LoadOptions::default()).unwrap().1.format, GraphFormat::Pace);
    std::fs::write(&path, "% no banner\n1 1 0\n").unwrap();
    let error = load_graph(&path, &LoadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("MatrixMarket") && error.contains("line 1"), "{error}");
}

#[test]
fn the_largest_numbers_are_read() {
    let (graph, _) = load("g", "p sp 2 1\na 1 2 4294967295\n").unwrap();
    assert_eq!(graph.weights(), Some(&[u32::MAX, u32::MAX][..]));
    let (graph, _) =
        load("g", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 4294967295.0\n").unwrap();
    assert_eq!(graph.weights(), Some(&[u32::MAX, u32::MAX][..]));
}
