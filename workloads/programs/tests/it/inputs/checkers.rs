//! Tests of the references and checkers of graph programs.

use proptest::prelude::*;
use warptrace_workloads::check::mis::{self, MisError};
use warptrace_workloads::check::mst::{self, MstError};
use warptrace_workloads::check::{DisjointSets, components};
use warptrace_workloads::inputs::{Arc, ArcList, Cleaning, Graph};

/// Two triangles joined by an edge, and an isolated node: 0-1-2, 3-4-5, 2-3; 6.
fn graph() -> Graph {
    let mut list = ArcList::new(7, true);
    for (u, v, weight) in [(0, 1, 4), (1, 2, 1), (0, 2, 2), (2, 3, 9), (3, 4, 5), (4, 5, 5), (3, 5, 6)] {
        list.push_edge(u, v, weight);
    }
    list.into_graph(&Cleaning::default()).unwrap().0
}

fn arc(graph: &Graph, u: u32, v: u32) -> u32 {
    graph.iter_arcs().find(|(_, from, to, _)| (*from, *to) == (u, v)).unwrap().0
}

#[test]
fn sets_are_judged() {
    let graph = graph();
    let check = |nodes: &[usize]| {
        let mut in_set = vec![false; 7];
        nodes.iter().for_each(|node| in_set[*node] = true);
        mis::check(&graph, &in_set)
    };
    assert_eq!(check(&[0, 3, 6]), Ok(()));
    assert_eq!(check(&[2, 5, 6]), Ok(()));
    assert_eq!(check(&[2, 3, 6]), Err(MisError::NotIndependent { u: 2, v: 3 }));
    assert_eq!(check(&[0, 3]), Err(MisError::NotMaximal { node: 6, degree: 0 }));
    assert_eq!(check(&[3, 6]), Err(MisError::NotMaximal { node: 0, degree: 2 }));
    assert_eq!(mis::check(&graph, &[true]), Err(MisError::Length { found: 1, nodes: 7 }));
}

#[test]
fn the_greedy_set_follows_priorities_and_then_numbers() {
    let graph = graph();
    assert_eq!(mis::greedy(&graph, &[0; 7]), [true, false, false, true, false, false, true]);
    assert_eq!(mis::greedy(&graph, &[0, 0, 9, 8, 0, 1, 0]), [false, false, true, false, false, true, true]);
}

#[test]
fn forests_are_judged() {
    let graph = graph();
    let forest = mst::kruskal(&graph);
    assert_eq!((forest.weight, forest.edges(), forest.components), (1 + 2 + 9 + 5 + 5, 5, 2));
    assert_eq!(mst::check(&graph, &forest.arcs), Ok(()));

    let at = |u, v| arc(&graph, u, v);
    // The opposite arc of each edge, in another order.
    let other = [at(5, 4), at(2, 1), at(3, 2), at(2, 0), at(4, 3)];
    assert_eq!(mst::check(&graph, &other), Ok(()));
    assert_eq!(
        mst::check(&graph, &[at(0, 1), at(1, 2), at(2, 3), at(3, 4), at(4, 5)]),
        Err(MstError::TooHeavy { found: 24, expected: 22 })
    );
    assert_eq!(mst::check(&graph, &other[1..]), Err(MstError::NotSpanning { found: 3, expected: 2 }));
    let twice = [at(1, 2), at(2, 1)];
    assert_eq!(mst::check(&graph, &twice), Err(MstError::Cycle { arc: twice[1], from: 2, to: 1 }));
    assert_eq!(mst::check(&graph, &[14]), Err(MstError::NoSuchArc { arc: 14, arcs: 14 }));
}

#[test]
fn disjoint_sets_count_themselves() {
    let mut sets = DisjointSets::new(4);
    assert!(sets.join(0, 1) && sets.join(2, 3) && !sets.join(1, 0));
    assert_eq!(sets.sets(), 2);
    assert!(sets.join(1, 3) && !sets.join(0, 2));
    assert_eq!((sets.sets(), sets.find(0) == sets.find(3)), (1, true));
}

fn random_graphs() -> impl Strategy<Value = Graph> {
    (1u32..9).prop_flat_map(|nodes| {
        let arc = (0..nodes, 0..nodes, 0u32..9).prop_map(|(from, to, weight)| Arc { from, to, weight });
        prop::collection::vec(arc, 0..16).prop_map(move |arcs| {
            let list = ArcList { nodes, weighted: true, arcs };
            list.into_graph(&Cleaning::default()).unwrap().0
        })
    })
}

proptest! {
    #[test]
    fn a_greedy_set_is_maximal_and_independent(graph in random_graphs(), seed in any::<u64>()) {
        let priorities: Vec<u64> = (0..u64::from(graph.nodes())).map(|v| (v ^ seed).wrapping_mul(seed | 1)).collect();
        let mut in_set = mis::greedy(&graph, &priorities);
        prop_assert_eq!(mis::check(&graph, &in_set), Ok(()));
        // Every change of one node must be detected.
        for node in 0..in_set.len() {
            in_set[node] ^= true;
            prop_assert!(mis::check(&graph, &in_set).is_err());
            in_set[node] ^= true;
        }
    }

    #[test]
    fn no_spanning_forest_is_lighter_than_kruskal_s(graph in random_graphs()) {
        let forest = mst::kruskal(&graph);
        prop_assert_eq!(forest.components, components(&graph));
        prop_assert_eq!(forest.edges() + forest.components, graph.nodes());
        // Every spanning subset of the edges, by brute force.
        let edges: Vec<_> = graph.iter_arcs().filter(|(_, u, v, _)| u < v).collect();
        prop_assume!(edges.len() <= 12);
        let lightest = (0u32..1 << edges.len())
            .filter_map(|chosen| {
                let mut sets = DisjointSets::new(graph.nodes());
                let mut weight = 0;
                for (_, &(_, u, v, w)) in edges.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1) {
                    sets.join(u, v);
                    weight += u64::from(w);
                }
                (sets.sets() == forest.components).then_some(weight)
            })
            .min();
        prop_assert_eq!(lightest, Some(forest.weight));
    }
}
