//! MIS on the simulator: the greedy set with every interleaving, grid and codec.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::programs::{
    LaneCounts, RECORDINGS, assert_ids_are_unique, new_york, one_way, record_as, simulator, with_self_loop,
    zoo,
};
use warptrace_host::Untraced;
use warptrace_kernels::mis::at;
use warptrace_workloads::inputs::Graph;
use warptrace_workloads::mis::{self, MisOptions, MisOutcome};

fn on(grid: &str) -> MisOptions {
    MisOptions { grid: Some(grid.parse().unwrap()), ..MisOptions::default() }
}

fn untraced(graph: &Graph, seed: u64, options: &MisOptions) -> MisOutcome {
    mis::run(&mut Untraced(&mut simulator(seed)), graph, options).unwrap()
}

#[test]
fn trace_points_stand_at_one_place_each() {
    assert_ids_are_unique(&mis::PROGRAM);
}

#[test]
fn every_interleaving_finds_the_greedy_set() {
    for (name, graph) in zoo() {
        let expected = mis::reference(&graph);
        mis::check(&graph, &expected).unwrap();
        for seed in 0..4 {
            for options in [on("4x64"), on("1x32"), MisOptions::default()] {
                let outcome = untraced(&graph, seed, &options);
                assert_eq!(outcome.in_set, expected, "{name}, seed {seed}, {options:?}");
                assert_eq!(outcome.launches, 2, "{name}");
            }
        }
    }
}

#[test]
fn the_thesis_grid_finds_the_same_set() {
    let (_, graph) = zoo().swap_remove(0);
    assert_eq!(untraced(&graph, 1, &on("192x256")).in_set, mis::reference(&graph));
}

#[test]
fn threads_that_give_up_leave_the_rest_to_another_launch() {
    let mut launches = 0;
    for (name, graph) in zoo() {
        let options = MisOptions { patience: 0, ..on("4x64") };
        let outcome = untraced(&graph, 3, &options);
        assert_eq!(outcome.in_set, mis::reference(&graph), "{name}");
        launches = launches.max(outcome.launches);
    }
    assert!(launches > 2, "no thread gave up");
}

/// Records each graph in all ways, or each in one way if `is_part` is set.
fn check_traces(is_part: bool) {
    let mut passed = [0; 256];
    for (number, (name, graph)) in zoo().into_iter().enumerate() {
        let options = on("2x64");
        let expected = mis::reference(&graph);
        let recordings =
            if is_part { &RECORDINGS[number % RECORDINGS.len()..][..1] } else { &RECORDINGS[..] };
        for recording in recordings {
            let (outcome, file) = record_as(&mut simulator(5), &mis::PROGRAM, recording, |launcher| {
                mis::run(launcher, &graph, &options).unwrap()
            });
            assert_eq!(outcome.in_set, expected, "{name} under {recording:?}");
            let lanes = LaneCounts::new(&file);
            adds_up(&graph, &outcome, &lanes);
            (0..256).for_each(|location| passed[usize::from(location)] += lanes.at(location));
        }
    }
    for point in mis::PROGRAM.locations().filter(|point| point.id != at::GAVE_UP) {
        assert!(passed[usize::from(point.id)] > 0, "no graph leads to {}", point.name);
    }
}

#[test]
fn tracing_changes_nothing_and_the_trace_adds_up() {
    check_traces(true);
}

/// Checks lane counts that hold for every interleaving. `docs/evaluation/programs.md` lists them.
fn adds_up(graph: &Graph, outcome: &MisOutcome, lanes: &LaneCounts) {
    let nodes = u64::from(graph.nodes());
    let isolated = (0..graph.nodes()).filter(|&node| graph.degree(node) == 0).count() as u64;
    let members = || (0..graph.nodes()).filter(|&node| outcome.in_set[node as usize]);
    let threads = 2 * 64;
    let finds = u64::from(outcome.launches - 1);

    assert_eq!(lanes.at(at::INIT_ENTER), threads);
    assert_eq!(lanes.at(at::INIT_DONE), threads);
    assert_eq!(lanes.at(at::INIT_NODE), nodes);
    assert_eq!(lanes.at(at::INIT_ISOLATED), isolated);
    assert_eq!(lanes.at(at::INIT_RANKED), nodes - isolated);

    assert_eq!(lanes.at(at::FIND_ENTER), threads * finds);
    assert_eq!(lanes.at(at::FINISHED) + lanes.at(at::GAVE_UP), threads * finds);
    assert_eq!(lanes.at(at::PASS), threads * finds + lanes.at(at::AGAIN));
    assert_eq!(lanes.at(at::NODE), lanes.at(at::DECIDED) + lanes.at(at::UNDECIDED));
    assert_eq!(lanes.at(at::UNDECIDED), lanes.at(at::BLOCKED) + lanes.at(at::JOINS));
    assert_eq!(lanes.at(at::JOINS), members().count() as u64 - isolated);
    assert_eq!(lanes.at(at::JOINED), lanes.at(at::JOINS));
    assert_eq!(lanes.at(at::REMOVE), members().map(|node| u64::from(graph.degree(node))).sum::<u64>());
    // A node that joins has compared itself with all its neighbours. A blocked node has compared itself with
    // at least one.
    assert!(lanes.at(at::COMPARE) >= lanes.at(at::REMOVE) + lanes.at(at::BLOCKED));
}

#[test]
fn graphs_that_have_no_answer_are_refused() {
    let mut device = simulator(0);
    let mut refusal = |graph: &Graph| {
        mis::run(&mut Untraced(&mut device), graph, &MisOptions::default()).unwrap_err().to_string()
    };
    assert!(refusal(&one_way()).contains("no twin"));
    assert!(refusal(&with_self_loop()).contains("1 nodes are their own neighbours"));
}

mod full {
    use super::*;

    #[test]
    fn tracing_changes_nothing_and_the_trace_adds_up() {
        check_traces(false);
    }

    #[test]
    fn the_road_network_of_new_york_gets_its_greedy_set() {
        let Some(graph) = new_york("the_road_network_of_new_york_gets_its_greedy_set") else { return };
        let outcome = untraced(&graph, 0, &MisOptions::default());
        assert_eq!(outcome.in_set, mis::reference(&graph));
        mis::check(&graph, &outcome.in_set).unwrap();
    }
}
