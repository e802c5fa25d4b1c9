//! Checks of minimum spanning forests.

use super::components::DisjointSets;
use crate::inputs::Graph;
use thiserror::Error;

/// A minimum spanning forest. Its edges may not be unique; its weight and number of components are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forest {
    /// Sum of the edges' weights.
    pub weight: u64,
    /// One arc per edge: positions in [`Graph::neighbours`], ascending.
    pub arcs: Vec<u32>,
    /// Number of trees, single nodes included.
    pub components: u32,
}

impl Forest {
    /// Number of edges: nodes - components.
    pub fn edges(&self) -> u32 {
        self.arcs.len() as u32
    }
}

/// Reason why a set of arcs is not a minimum spanning forest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MstError {
    /// A chosen arc does not exist.
    #[error("chosen arc {arc} does not exist; the graph has {arcs} arcs")]
    NoSuchArc {
        /// The arc.
        arc: u32,
        /// Arcs of the graph.
        arcs: u32,
    },
    /// An edge closes a cycle with edges chosen before it, or is chosen twice.
    #[error("chosen arc {arc} ({from} to {to}) closes a cycle, or its edge is chosen twice")]
    Cycle {
        /// The arc.
        arc: u32,
        /// Its source.
        from: u32,
        /// Its target.
        to: u32,
    },
    /// The forest does not connect nodes that are connected in the graph.
    #[error("the forest has {found} trees, the graph has {expected} components")]
    NotSpanning {
        /// Trees of the forest.
        found: u32,
        /// Components of the graph.
        expected: u32,
    },
    /// A lighter forest exists.
    #[error("the forest weighs {found}, a minimum spanning forest weighs {expected}")]
    TooHeavy {
        /// Weight of the forest.
        found: u64,
        /// Minimum weight.
        expected: u64,
    },
}

/// Computes a minimum spanning forest ("On the Shortest Spanning Subtree of a Graph", 1956). Arcs count as
/// undirected edges, of weight 1 if the graph is unweighted. Equal weights are ordered by position.
pub fn kruskal(graph: &Graph) -> Forest {
    let sources = graph.sources();
    // The list has both arcs of each edge; the second one finds its ends already joined.
    let mut order: Vec<(u32, u32)> = graph.iter_arcs().map(|(arc, _, _, weight)| (weight, arc)).collect();
    order.sort_unstable();
    let mut sets = DisjointSets::new(graph.nodes());
    let mut forest = Forest { weight: 0, arcs: Vec::new(), components: 0 };
    for (weight, arc) in order {
        if sets.join(sources[arc as usize], graph.neighbours()[arc as usize]) {
            forest.weight += u64::from(weight);
            forest.arcs.push(arc);
        }
    }
    forest.arcs.sort_unstable();
    forest.components = sets.sets();
    forest
}

/// Checks that the chosen arcs, one per edge, form a minimum spanning forest, by comparison with
/// [`kruskal`]'s. The error is the first of: an arc that does not exist or closes a cycle, trees that are not
/// joined, a weight over the minimum.
pub fn check(graph: &Graph, chosen: &[u32]) -> Result<(), MstError> {
    let sources = graph.sources();
    let mut sets = DisjointSets::new(graph.nodes());
    let mut weight = 0;
    for &arc in chosen {
        if arc >= graph.arcs() {
            return Err(MstError::NoSuchArc { arc, arcs: graph.arcs() });
        }
        let (from, to) = (sources[arc as usize], graph.neighbours()[arc as usize]);
        if !sets.join(from, to) {
            return Err(MstError::Cycle { arc, from, to });
        }
        weight += u64::from(graph.weight(arc as usize));
    }
    let expected = kruskal(graph);
    if sets.sets() != expected.components {
        return Err(MstError::NotSpanning { found: sets.sets(), expected: expected.components });
    }
    if weight != expected.weight {
        return Err(MstError::TooHeavy { found: weight, expected: expected.weight });
    }
    Ok(())
}
