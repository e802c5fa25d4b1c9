//! Wrong, damaged and hostile graph files: each gives an error that states the problem and its place, and
//! never a panic.

use super::support::{gzip, load, load_error, words, xz};
use proptest::prelude::*;
use warptrace_workloads::inputs::{
    Graph, GraphError, GraphFormat, Limits, LoadOptions, LoadProblem, MeshBytes, load_graph,
    load_graph_bytes, load_mesh_bytes,
};

#[track_caller]
fn expect_errors(cases: &[(&str, &[&str])]) {
    for (text, parts) in cases {
        let message = load_error("dir/file", text);
        assert!(message.starts_with("dir/file: "), "{message}");
        for part in *parts {
            assert!(message.contains(part), "{text:?} gave {message:?}, which lacks {part:?}");
        }
    }
}

#[test]
fn dimacs_errors_name_line_found_and_expected() {
    expect_errors(&[
        ("a 1 2 3\n", &["line 1", "\"a 1 2 3\"", "p sp NODES ARCS"]),
        ("p sp 0 0\n", &["line 1", "\"0\"", "number of nodes from 1"]),
        ("p sp 2\n", &["line 1", "end of the line", "number of edges"]),
        ("p sp 2 1 9\na 1 2 3\n", &["line 1", "\"9\"", "end of the line"]),
        ("p sp -2 1\n", &["line 1", "\"-2\""]),
        ("p sp 4294967296 1\n", &["line 1", "\"4294967296\""]),
        ("p max 2 1\na 1 2 3\n", &["line 1", "problem \"max\"", "p sp"]),
        ("p sp 2 1\ne 1 2 3\n", &["line 2", "\"e 1 2 3\"", "a FROM TO WEIGHT"]),
        ("p sp 2 1\na 0 2 3\n", &["line 2", "\"0\"", "a node from 1 to 2"]),
        ("p sp 2 1\n\nc\na 1 3 3\n", &["line 4", "\"3\"", "a node from 1 to 2"]),
        ("p sp 2 1\na 1 2 -3\n", &["line 2", "\"-3\"", "a weight, an integer from 0"]),
        ("p sp 2 1\na 1 2 2.5\n", &["line 2", "\"2.5\"", "a weight"]),
        ("p sp 2 1\na 1 2 nan\n", &["line 2", "\"nan\"", "a weight"]),
        ("p sp 2 1\na 1 2\n", &["line 2", "end of the line", "a weight"]),
        ("p sp 2 1\na 1 2 3 4\n", &["line 2", "\"4\"", "end of the line"]),
        ("p sp 2 2\na 1 2 3\n", &["line 1 promises 2 arcs", "holds 1", "cut short"]),
        ("p sp 2 1\na 1 2 3\na 2 1 3\n", &["line 1 promises 1 arcs", "holds 2"]),
        ("p sp 2 18446744073709551615\na 1 2 3\n", &["promises 18446744073709551615", "holds 1"]),
        ("p sp 4294967294 1\na 1 2 3\n", &["4294967294 nodes", "1 arcs", "isolated"]),
    ]);
}

#[test]
fn pace_errors_name_line_found_and_expected() {
    expect_errors(&[
        ("p tw 2 1\n1 3\n", &["line 2", "\"3\"", "a node from 1 to 2"]),
        ("p tw 2 1\n1\n", &["line 2", "end of the line", "a node"]),
        ("p tw 2 1\n1 2 7\n", &["line 2", "\"7\"", "end of the line"]),
        ("p tw 2 2\n1 2\n", &["line 1 promises 2 edges", "holds 1"]),
        ("p tw x 2\n1 2\n", &["line 1", "\"x\"", "number of nodes"]),
    ]);
}

#[test]
fn snap_errors_name_line_found_and_expected() {
    expect_errors(&[
        ("0 1\n2\n", &["line 2", "end of the line", "a node id"]),
        ("0 1\n2 -1\n", &["line 2", "\"-1\"", "a node id"]),
        ("0 1\n1 2 3\n", &["line 2", "\"1 2 3\"", "two numbers"]),
        ("0 1 3\n1 2\n", &["line 2", "\"1 2\"", "three numbers"]),
        ("0 1 3 4\n", &["line 1", "\"4\"", "end of the line"]),
        ("0 1 -3\n", &["line 1", "\"-3\"", "a weight"]),
        ("# Edges: 3\n0 1\n1 2\n", &["line 1 promises 3 edges", "holds 2", "cut short"]),
        ("# nothing\n", &["no nodes"]),
        ("0 99999999999\n", &["100000000000 nodes", "compact the ids"]),
        ("0 18446744073709551615\n", &["18446744073709551615 nodes"]),
        ("0 18446744073709551616\n", &["line 1", "a node id"]),
        ("0 4000000000\n", &["4000000001 nodes", "compact the ids"]),
    ]);
}

#[test]
fn matrix_market_errors_name_line_found_and_expected() {
    const BANNER: &str = "%%MatrixMarket matrix coordinate";
    let cases: [(&str, &[&str]); 13] = [
        ("", &["line 2", "end of the file", "ROWS COLUMNS ENTRIES"]),
        ("% only comments\n", &["line 3", "end of the file"]),
        ("2 3 1\n1 1 1\n", &["line 2", "2 rows and 3 columns", "square"]),
        ("0 0 0\n", &["line 2", "\"0\"", "number of rows"]),
        ("2 2 1\n0 1 1\n", &["line 3", "\"0\"", "a row from 1 to 2"]),
        ("2 2 1\n1 3 1\n", &["line 3", "\"3\"", "a column from 1 to 2"]),
        ("2 2 1\n1 2\n", &["line 3", "end of the line", "a weight"]),
        ("2 2 1\n1 2 inf\n", &["line 3", "\"inf\"", "a weight"]),
        ("2 2 1\n1 2 NaN\n", &["line 3", "\"NaN\"", "a weight"]),
        ("2 2 1\n1 2 -1e0\n", &["line 3", "\"-1e0\"", "ignoring this column"]),
        ("2 2 1\n1 2 4294967296\n", &["line 3", "\"4294967296\""]),
        ("2 2 2\n1 2 1\n", &["line 2 promises 2 entries", "holds 1"]),
        ("2 2 1\n1 2 1\n2 1 1\n", &["line 2 promises 1 entries", "holds 2"]),
    ];
    for (rest, parts) in cases {
        expect_errors(&[(&format!("{BANNER} real general\n{rest}"), parts)]);
    }
    expect_errors(&[
        ("%%MatrixMark", &["line 1", "%%MatrixMarket matrix coordinate"]),
        ("%%MatrixMarket vector coordinate real general\n", &["line 1", "expected"]),
        ("%%MatrixMarket matrix array real general\n", &["line 1", "\"array\" is not supported"]),
        ("%%MatrixMarket matrix coordinate complex general\n", &["\"complex\" is not supported"]),
        ("%%MatrixMarket matrix coordinate real skew-symmetric\n", &["\"skew-symmetric\" is not supported"]),
        ("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2 5\n", &["line 3", "\"5\""]),
    ]);
}

#[test]
fn egr_errors_name_offset_field_and_expected() {
    let good = [3, 2, 0, 1, 2, 2, 1, 0, 6, 6];
    assert!(load("g", words(&good)).is_ok());
    let cases: [(usize, i32, &[&str]); 10] = [
        (0, 0, &["byte 0", "nodes is 0", "at least 1"]),
        (0, -3, &["byte 0", "nodes is -3"]),
        (0, i32::MAX, &["byte 40", "end of file", "2147483647 nodes"]),
        (1, -1, &["byte 4", "edges is -1"]),
        (1, i32::MAX, &["byte 40", "end of file", "2147483647 edges"]),
        (2, 1, &["byte 8", "nindex[0] is 1", "expected 0"]),
        (4, 0, &["byte 16", "nindex[2] is 0", "from 1 to 2"]),
        (5, 3, &["byte 20", "nindex[3] is 3", "from 2 to 2"]),
        (6, 3, &["byte 24", "nlist[0]", "node 0", "is 3", "from 0 to 2"]),
        (9, -6, &["byte 36", "eweight[1] is -6", "not negative"]),
    ];
    for (index, value, parts) in cases {
        let mut bad = good;
        bad[index] = value;
        let message = load_error("g.egr", words(&bad));
        for part in parts {
            assert!(message.contains(part), "word {index} = {value} gave {message:?}, which lacks {part:?}");
        }
    }
    let message = load_error("g.egr", words(&[3, 2, 0, 0, 0, 1, 1, 0]));
    assert!(message.contains("byte 20: nindex[3] is 1, expected 2"), "{message}");
    assert!(load_error("g.egr", [1, 2, 3]).contains("byte 0: header is 3 bytes"));
}

#[test]
fn files_that_are_no_graph_are_told_so() {
    expect_errors(&[
        ("", &["is empty"]),
        ("hello world\n", &["format not recognised", "\"hello world\\n\"", "SNAP"]),
        ("\n\n", &["format not recognised"]),
        ("c only comments\n", &["format not recognised"]),
        ("p\n", &["line 1", "problem \"\""]),
    ]);
    let long = load_error("g", vec![0xffu8; 4096]);
    assert!(long.contains("\\xff...\"") && long.len() < 500, "{long}");
    assert!(load_error("g", gzip(b"")).contains("is empty"));
    assert!(load_error("g.gr", "hello").contains("p sp NODES ARCS"));
    // Only one layer of compression is opened.
    assert!(load_error("g", gzip(&xz(b"0 1\n"))).contains("format not recognised"));

    let missing = load_graph("no/such/file.gr", &LoadOptions::default()).unwrap_err();
    assert!(matches!(missing.problem, LoadProblem::Io(_)), "{missing}");
    let folder = tempfile::tempdir().unwrap();
    let error = load_graph(folder.path(), &LoadOptions::default()).unwrap_err();
    assert!(matches!(error.problem, LoadProblem::Io(_)), "{error}");
}

#[test]
fn a_small_file_cannot_unpack_into_a_large_one() {
    let zeros = vec![b'\n'; 1 << 22];
    let limits = Limits { bytes: 1 << 20, ..Limits::default() };
    let options = LoadOptions { limits, ..LoadOptions::default() };
    for bytes in [gzip(&zeros), xz(&zeros), zeros] {
        let error = load_graph_bytes("bomb", &bytes, &options).unwrap_err();
        assert!(matches!(error.problem, LoadProblem::TooLarge { limit: 0x10_0000, .. }), "{error}");
    }
    let limits = Limits { bytes: 4, ..Limits::default() };
    let options = LoadOptions { limits, ..LoadOptions::default() };
    assert!(load_graph_bytes("g", b"0 1\n", &options).is_ok());
    assert!(load_graph_bytes("g", &gzip(b"0 1\n"), &options).is_ok());
    assert!(load_graph_bytes("g", b"0 12\n", &options).is_err());
}

#[test]
fn limits_hold_for_arcs_and_nodes() {
    let with = |arcs, isolated_nodes| LoadOptions {
        limits: Limits { arcs, isolated_nodes, ..Limits::default() },
        ..LoadOptions::default()
    };
    let inputs = [
        "p sp 9 2\na 1 2 3\na 2 3 4\n",
        "p tw 9 2\n1 2\n2 3\n",
        "0 1\n1 8\n",
        "%%MatrixMarket matrix coordinate pattern general\n9 9 2\n1 2\n2 3\n",
    ];
    for text in inputs {
        let error = load_graph_bytes("g", text.as_bytes(), &with(1, 9)).unwrap_err();
        assert!(matches!(error.problem, LoadProblem::TooManyArcs { limit: 1 }), "{error}");
        assert!(load_graph_bytes("g", text.as_bytes(), &with(4, 9)).is_ok());
    }
    let error = load_graph_bytes("g", inputs[0].as_bytes(), &with(4, 4)).unwrap_err();
    assert!(matches!(error.problem, LoadProblem::TooManyNodes { nodes: 9, arcs: 2, limit: 8 }), "{error}");
    let egr = words(&[3, 2, 0, 1, 2, 2, 1, 0]);
    assert!(matches!(
        load_graph_bytes("g", &egr, &with(1, 9)).unwrap_err().problem,
        LoadProblem::TooManyArcs { limit: 1 }
    ));
}

/// One small file of each format, with an extension that selects its parser if the content is damaged.
fn samples() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("g.egr", words(&[3, 2, 0, 1, 2, 2, 1, 0, 6, 6])),
        ("g.gr", b"c x\np sp 3 3\na 1 2 10\na 2 1 10\na 3 3 7\n".to_vec()),
        ("g.gr", b"c x\np tw 3 2\n1 2\n2 3\n".to_vec()),
        ("g.txt", b"# Nodes: 3 Edges: 2\n0 1 11\n1 2 12\n".to_vec()),
        ("g.mtx", b"%%MatrixMarket matrix coordinate real symmetric\n%\n3 3 2\n2 1 1.5e1\n3 1 2\n".to_vec()),
    ]
}

#[test]
fn a_file_cut_at_any_length_gives_an_error_or_a_graph() {
    for (name, bytes) in samples() {
        load(name, &bytes).unwrap();
        let mut errors = 0;
        for length in 0..bytes.len() {
            for format in [
                None,
                Some(GraphFormat::Egr),
                Some(GraphFormat::Dimacs),
                Some(GraphFormat::Pace),
                Some(GraphFormat::Snap),
                Some(GraphFormat::MatrixMarket),
            ] {
                let options = LoadOptions { format, ..LoadOptions::default() };
                let outcome = load_graph_bytes(name, &bytes[..length], &options);
                errors += u32::from(format.is_none() && outcome.is_err());
            }
        }
        // Only a cut in the last number or the line end after it can go unnoticed.
        assert!(errors as usize >= bytes.len() - 3, "{name}: {errors} errors for {} lengths", bytes.len());
        for compressed in [gzip(&bytes), xz(&bytes)] {
            for length in 0..compressed.len() {
                let error = load(name, &compressed[..length]).expect_err("compressed files notice any cut");
                let expected = matches!(
                    error.problem,
                    LoadProblem::Decompress { .. }
                        | LoadProblem::Empty
                        | LoadProblem::UnknownFormat { .. }
                        | LoadProblem::Field { .. }
                        | LoadProblem::Syntax { .. }
                );
                assert!(expected, "{name} cut at {length}: {error}");
            }
        }
    }
}

#[test]
fn a_flipped_bit_gives_an_error_or_a_graph() {
    for (name, bytes) in samples() {
        for content in [bytes.clone(), gzip(&bytes), xz(&bytes)] {
            for bit in 0..content.len() * 8 {
                let mut damaged = content.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                // The loader must not allocate nodes that only a damaged header claims.
                let limits = Limits { isolated_nodes: 1000, ..Limits::default() };
                let options = LoadOptions { limits, ..LoadOptions::default() };
                if let Ok((graph, _)) = load_graph_bytes(name, &damaged, &options) {
                    assert!(graph.nodes() >= 1 && graph.is_symmetric());
                }
            }
        }
    }
}

#[test]
fn arrays_that_are_no_graph_are_refused() {
    let csr =
        |offsets: &[u32], neighbours: &[u32]| Graph::from_csr(offsets.to_vec(), neighbours.to_vec(), None);
    assert_eq!(csr(&[], &[]), Err(GraphError::Empty));
    assert_eq!(csr(&[0], &[]), Err(GraphError::Empty));
    assert!(csr(&[0, 0], &[]).is_ok());
    assert!(matches!(csr(&[1, 1], &[0]), Err(GraphError::Offset { index: 0, found: 1, .. })));
    assert!(matches!(csr(&[0, 2, 1], &[0, 0]), Err(GraphError::Offset { index: 2, found: 1, .. })));
    assert!(matches!(csr(&[0, 1], &[0, 0]), Err(GraphError::Offset { index: 1, found: 1, .. })));
    assert_eq!(
        csr(&[0, 1, 2], &[1, 2]),
        Err(GraphError::NeighbourOutOfRange { node: 1, arc: 1, neighbour: 2, nodes: 2 })
    );
    assert_eq!(csr(&[0, 2, 2], &[1, 0]), Err(GraphError::Unsorted { node: 0, arc: 1 }));
    let weights = Graph::from_csr(vec![0, 1, 2], vec![1, 0], Some(vec![1]));
    assert_eq!(weights, Err(GraphError::WeightCount { found: 1, expected: 2 }));
    let unsorted = Graph::from_csr(vec![0, 2], vec![0, 0], Some(vec![2, 1]));
    assert_eq!(unsorted, Err(GraphError::Unsorted { node: 0, arc: 1 }));
}

#[test]
fn symmetry_is_found_not_believed() {
    let csr = |offsets: &[u32], neighbours: &[u32], weights: &[u32]| {
        Graph::from_csr(offsets.to_vec(), neighbours.to_vec(), Some(weights.to_vec())).unwrap().is_symmetric()
    };
    assert!(csr(&[0, 1, 2], &[1, 0], &[3, 3]));
    assert!(!csr(&[0, 1, 2], &[1, 0], &[3, 4]), "weights differ");
    assert!(!csr(&[0, 1, 1], &[1], &[3]), "no twin");
    assert!(!csr(&[0, 2, 3], &[1, 1, 0], &[3, 3, 3]), "one twin for two arcs");
    assert!(csr(&[0, 1, 1], &[0], &[3]), "a loop is its own twin");
    // A cycle of three one-way arcs: each node has as many incoming as outgoing arcs.
    assert!(!csr(&[0, 1, 2, 3], &[1, 2, 0], &[1, 1, 1]));
}

/// Bytes that get far into a text parser: the start of a format, then characters that occur in the formats.
fn near_misses() -> impl Strategy<Value = Vec<u8>> {
    let start = prop::sample::select(vec![
        "",
        "p sp 3 2\n",
        "p tw 3 2\n",
        "# x\n",
        "%%MatrixMarket matrix coordinate real general\n3 3 2\n",
        "3 2 0 0\n1 ",
        "2 3 0\n1 ",
        "0 2 0 0\n",
    ]);
    let rest =
        prop::collection::vec(prop::sample::select(b"0123456789 \n\t.-+eapcnifNT#%\r\xff".to_vec()), 0..60);
    (start, rest).prop_map(|(start, rest)| [start.as_bytes(), &rest].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_bytes_make_a_loader_panic(
        near in near_misses(),
        random in prop::collection::vec(any::<u8>(), 0..80),
        words in prop::collection::vec(-2i32..5, 0..20),
    ) {
        let words: Vec<u8> = words.into_iter().flat_map(i32::to_le_bytes).collect();
        let limits = Limits { isolated_nodes: 1000, ..Limits::default() };
        for bytes in [&near, &random, &words] {
            for (name, compact_ids) in [("g.egr", false), ("g.gr", true), ("g.mtx", false)] {
                let options = LoadOptions { compact_ids, limits, ..LoadOptions::default() };
                if let Ok((graph, _)) = load_graph_bytes(name, bytes, &options) {
                    prop_assert!(graph.is_symmetric() && graph.is_simple());
                }
            }
            let node: &[u8] = b"3 2 0 0\n1 0 0\n2 1 0\n3 0 1\n";
            let ele: &[u8] = b"1 3 0\n1 1 2 3\n";
            for (node, ele, poly) in [(&bytes[..], ele, None), (node, &bytes[..], None), (node, ele, Some(&bytes[..]))] {
                let files = MeshBytes { node: Some(node), ele: Some(ele), poly };
                if let Ok((mesh, _)) = load_mesh_bytes("m", files, &limits) {
                    prop_assert!(!mesh.triangles().is_empty());
                }
            }
        }
    }
}
