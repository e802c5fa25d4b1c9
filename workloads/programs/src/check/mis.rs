//! Checks of maximal independent sets.

use crate::inputs::Graph;
use thiserror::Error;

/// Reason why a set is not a maximal independent set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MisError {
    /// The set does not have one entry per node.
    #[error("the set has {found} entries for {nodes} nodes")]
    Length {
        /// Entries of the set.
        found: usize,
        /// Nodes of the graph.
        nodes: u32,
    },
    /// Two neighbours are in the set.
    #[error("nodes {u} and {v} are neighbours and both in the set")]
    NotIndependent {
        /// One of the two nodes.
        u: u32,
        /// The other node.
        v: u32,
    },
    /// A node can be added to the set.
    #[error("node {node} is not in the set, and neither is any of its {degree} neighbours")]
    NotMaximal {
        /// The node.
        node: u32,
        /// Number of its neighbours, without itself.
        degree: u32,
    },
}

/// Checks that no two neighbours are in the set and that every other node has a neighbour in it. Arcs count
/// in both directions; self-loops are ignored. Returns the first violation as the error.
pub fn check(graph: &Graph, in_set: &[bool]) -> Result<(), MisError> {
    if in_set.len() != graph.nodes() as usize {
        return Err(MisError::Length { found: in_set.len(), nodes: graph.nodes() });
    }
    let mut covered = in_set.to_vec();
    let mut degrees = vec![0; in_set.len()];
    for (_, u, v, _) in graph.iter_arcs().filter(|(_, u, v, _)| u != v) {
        if in_set[u as usize] && in_set[v as usize] {
            return Err(MisError::NotIndependent { u, v });
        }
        covered[u as usize] |= in_set[v as usize];
        covered[v as usize] |= in_set[u as usize];
        degrees[u as usize] += 1;
    }
    match covered.iter().position(|covered| !covered) {
        Some(node) => Err(MisError::NotMaximal { node: node as u32, degree: degrees[node] }),
        None => Ok(()),
    }
}

/// Returns the greedy set: visits nodes by descending priority, then ascending number, and adds each node
/// without a neighbour in the set.
///
/// An algorithm finds exactly this set in any order of its threads if it keeps two rules: a node joins after
/// all neighbours of higher priority are out, and is out after a neighbour joins (Blelloch, Fineman, Shun,
/// "Greedy Sequential Maximal Independent Set and Matching are Parallel on Average", 2012).
///
/// # Panics
/// If there is not one priority per node.
pub fn greedy(graph: &Graph, priorities: &[u64]) -> Vec<bool> {
    assert_eq!(priorities.len(), graph.nodes() as usize, "one priority a node");
    let mut order: Vec<u32> = (0..graph.nodes()).collect();
    order.sort_unstable_by_key(|node| (std::cmp::Reverse(priorities[*node as usize]), *node));
    let mut in_set = vec![false; priorities.len()];
    let mut out = vec![false; priorities.len()];
    for node in order {
        if !out[node as usize] {
            in_set[node as usize] = true;
            graph.neighbours_of(node).iter().for_each(|neighbour| out[*neighbour as usize] = true);
        }
    }
    in_set
}
