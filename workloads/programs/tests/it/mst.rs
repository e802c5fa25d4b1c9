//! MST on the simulator: Kruskal's forest with every interleaving, grid and codec.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::programs::{
    LaneCounts, RECORDINGS, assert_ids_are_unique, new_york, one_way, record, record_as, simulator,
    weighted_zoo, with_self_loop,
};
use warptrace_format::codec::CodecSpec;
use warptrace_host::Untraced;
use warptrace_kernels::mst::at;
use warptrace_workloads::check::mst::kruskal;
use warptrace_workloads::inputs::Graph;
use warptrace_workloads::mst::{self, MstOptions, MstOutcome};

fn on(grid: &str) -> MstOptions {
    MstOptions { grid: Some(grid.parse().unwrap()) }
}

fn untraced(graph: &Graph, seed: u64, options: &MstOptions) -> MstOutcome {
    mst::run(&mut Untraced(&mut simulator(seed)), graph, options).unwrap()
}

#[test]
fn trace_points_stand_at_one_place_each() {
    assert_ids_are_unique(&mst::PROGRAM);
}

#[test]
fn every_interleaving_finds_kruskals_forest() {
    for (name, graph) in weighted_zoo() {
        let expected = kruskal(&graph);
        for seed in 0..3 {
            for options in [on("4x64"), on("1x32"), MstOptions::default()] {
                let outcome = untraced(&graph, seed, &options);
                mst::check(&graph, &outcome.arcs, outcome.weight).unwrap();
                // Both break ties by the position of the arc, so the arcs agree as well.
                assert_eq!(outcome.arcs, expected.arcs, "{name}, seed {seed}, {options:?}");
                assert_eq!(outcome.weight, expected.weight, "{name}");
                let most = graph.nodes().next_power_of_two().ilog2();
                assert!(outcome.rounds <= most, "{name}: {} rounds", outcome.rounds);
            }
        }
    }
}

#[test]
fn the_thesis_grid_finds_the_same_forest() {
    let (_, graph) = weighted_zoo().swap_remove(0);
    let outcome = untraced(&graph, 1, &on("192x256"));
    assert_eq!(outcome.arcs, kruskal(&graph).arcs);
}

#[test]
fn self_loops_are_ignored() {
    let graph = with_self_loop();
    let outcome = untraced(&graph, 0, &MstOptions::default());
    assert_eq!(outcome.arcs, kruskal(&graph).arcs);
    assert_eq!(outcome.weight, 2);
}

#[test]
fn the_heaviest_weights_do_not_overflow() {
    let weights = vec![u32::MAX; 6];
    let graph = Graph::from_csr(vec![0, 2, 4, 6], vec![1, 2, 0, 2, 0, 1], Some(weights)).unwrap();
    let outcome = untraced(&graph, 0, &MstOptions::default());
    assert_eq!((outcome.weight, outcome.arcs), (2 * u64::from(u32::MAX), vec![0, 1]));
}

#[test]
fn a_path_of_rising_weights_does_not_degenerate() {
    // Every edge is the lightest edge of some node, so one round links everything. Trees still stay shallow.
    let nodes = 4_000;
    let weight = |node: u32| node + 1;
    let (mut offsets, mut neighbours, mut weights) = (vec![0], Vec::new(), Vec::new());
    for node in 0..nodes {
        if node > 0 {
            neighbours.push(node - 1);
            weights.push(weight(node - 1));
        }
        if node + 1 < nodes {
            neighbours.push(node + 1);
            weights.push(weight(node));
        }
        offsets.push(neighbours.len() as u32);
    }
    let graph = Graph::from_csr(offsets, neighbours, Some(weights)).unwrap();
    let (outcome, file) = record(&mut simulator(2), &mst::PROGRAM, CodecSpec::Raw, false, |launcher| {
        mst::run(launcher, &graph, &on("8x256")).unwrap()
    });
    assert_eq!((outcome.rounds, outcome.arcs.len()), (1, nodes as usize - 1));
    let lanes = LaneCounts::new(&file);
    let steps_an_edge = lanes.at(at::CLIMB) / lanes.at(at::CHOSEN);
    assert!(steps_an_edge < 20, "{steps_an_edge} steps an edge");
}

/// Records each graph in all ways, or each in one way if `is_part` is set.
fn check_traces(is_part: bool) {
    let mut passed = [0; 256];
    for (number, (name, graph)) in weighted_zoo().into_iter().enumerate() {
        let options = on("2x64");
        let expected = kruskal(&graph);
        let recordings =
            if is_part { &RECORDINGS[number % RECORDINGS.len()..][..1] } else { &RECORDINGS[..] };
        for recording in recordings {
            let (outcome, file) = record_as(&mut simulator(5), &mst::PROGRAM, recording, |launcher| {
                mst::run(launcher, &graph, &options).unwrap()
            });
            assert_eq!(outcome.arcs, expected.arcs, "{name} under {recording:?}");
            assert_eq!(file.launches().len(), outcome.launches as usize);
            let lanes = LaneCounts::new(&file);
            adds_up(&graph, &outcome, &lanes);
            (0..256).for_each(|location| passed[usize::from(location)] += lanes.at(location));
        }
    }
    for point in mst::PROGRAM.locations() {
        assert!(passed[usize::from(point.id)] > 0, "no graph leads to {}", point.name);
    }
}

#[test]
fn tracing_changes_nothing_and_the_trace_adds_up() {
    check_traces(true);
}

/// Checks lane counts that hold for every interleaving. `docs/evaluation/programs.md` lists them.
fn adds_up(graph: &Graph, outcome: &MstOutcome, lanes: &LaneCounts) {
    let edges = u64::from(graph.arcs() / 2);
    let forest = outcome.arcs.len() as u64;
    let threads = 2 * 64;
    let (lightest, merge) = (u64::from(outcome.launches - 1 - outcome.rounds), u64::from(outcome.rounds));

    assert_eq!((lanes.at(at::INIT_ENTER), lanes.at(at::INIT_DONE)), (threads, threads));
    assert_eq!(lanes.at(at::INIT_NODE), u64::from(graph.nodes()));
    assert_eq!(lanes.at(at::INIT_ARC), u64::from(graph.arcs()));
    assert_eq!(lanes.at(at::ARC_LISTED), edges);
    assert_eq!(lanes.at(at::ARC_SKIPPED), u64::from(graph.arcs()) - edges);

    assert_eq!(lanes.at(at::LIGHTEST_ENTER), threads * lightest);
    assert_eq!(lanes.at(at::LIGHTEST_DONE), threads * lightest);
    assert_eq!(lanes.at(at::LIGHTEST_EDGE), lanes.at(at::INSIDE) + lanes.at(at::BETWEEN));
    // Every edge ends up inside a tree and is dropped once.
    assert_eq!(lanes.at(at::INSIDE), edges);
    assert_eq!(lanes.at(at::LIGHTER_AT_FIRST) + lanes.at(at::HEAVIER_AT_FIRST), lanes.at(at::BETWEEN));
    assert_eq!(lanes.at(at::LIGHTER_AT_SECOND) + lanes.at(at::HEAVIER_AT_SECOND), lanes.at(at::BETWEEN));

    assert_eq!(lanes.at(at::MERGE_ENTER), threads * merge);
    assert_eq!(lanes.at(at::MERGE_DONE), threads * merge);
    assert_eq!(lanes.at(at::MERGE_EDGE), lanes.at(at::BETWEEN));
    assert_eq!(lanes.at(at::CHOSEN) + lanes.at(at::NOT_CHOSEN), lanes.at(at::MERGE_EDGE));
    assert_eq!((lanes.at(at::CHOSEN), lanes.at(at::LINKED)), (forest, forest));
    assert_eq!(lanes.at(at::AT_ROOTS), lanes.at(at::LINKED) + lanes.at(at::OVERTAKEN));
    assert_eq!(lanes.at(at::CLIMB), lanes.at(at::BELOW_ROOT) + lanes.at(at::AT_ROOTS));
}

#[test]
fn graphs_that_are_not_symmetric_are_refused() {
    let error = mst::run(&mut Untraced(&mut simulator(0)), &one_way(), &MstOptions::default()).unwrap_err();
    assert!(error.to_string().contains("no twin"), "{error}");
}

mod full {
    use super::*;

    #[test]
    fn tracing_changes_nothing_and_the_trace_adds_up() {
        check_traces(false);
    }

    #[test]
    fn the_road_network_of_new_york_gets_its_forest() {
        let Some(graph) = new_york("the_road_network_of_new_york_gets_its_forest") else { return };
        let outcome = untraced(&graph, 0, &MstOptions::default());
        let expected = kruskal(&graph);
        assert_eq!((outcome.weight, outcome.arcs), (expected.weight, expected.arcs));
    }
}
