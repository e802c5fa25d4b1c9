//! Is a forest as light as Kruskal's?

use std::fmt;

use crate::check::mst::{self as checker, MstError};
use crate::inputs::Graph;
use crate::words::count;

/// What [`check()`] found of a minimum spanning forest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Edges of the forest.
    pub edges: u64,
    /// Sum of their weights.
    pub weight: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if f.alternate() { "as heavy as Kruskal's" } else { "Kruskal's forest" };
        write!(f, "{what}: {} edges, weight {}", count(self.edges), count(self.weight))
    }
}

/// Why a result is not a minimum spanning forest and its weight.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The arcs are no such forest.
    #[error(transparent)]
    Forest(#[from] MstError),
    /// They are one, but its weight is wrong.
    #[error("the weight is given as {found}, Kruskal's forest weighs {expected}")]
    Weight {
        /// The weight given.
        found: u64,
        /// That of the forest.
        expected: u64,
    },
}

/// Checks that the arcs, one an edge, are a spanning forest that weighs what Kruskal's does, and that
/// `weight` says so.
///
/// # Errors
/// What [`check::mst::check`](checker::check) finds wrong with the arcs, or a wrong weight.
pub fn check(graph: &Graph, arcs: &[u32], weight: u64) -> Result<Finding, CheckError> {
    checker::check(graph, arcs)?;
    // The arcs have just been found to weigh what Kruskal's forest does.
    let expected = arcs.iter().map(|&arc| u64::from(graph.weight(arc as usize))).sum();
    if weight != expected {
        return Err(CheckError::Weight { found: weight, expected });
    }
    Ok(Finding { edges: arcs.len() as u64, weight })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::{ArcList, Cleaning};

    #[test]
    fn forests_are_judged() {
        let mut list = ArcList::new(3, true);
        for (u, v, weight) in [(0, 1, 500), (1, 2, 600), (2, 0, 700)] {
            list.push_edge(u, v, weight);
        }
        let (graph, _) = list.into_graph(&Cleaning::default()).unwrap();
        let arcs = checker::kruskal(&graph).arcs;
        let finding = check(&graph, &arcs, 1_100).unwrap();
        assert_eq!(finding.to_string(), "Kruskal's forest: 2 edges, weight 1,100");
        assert_eq!(format!("{finding:#}"), "as heavy as Kruskal's: 2 edges, weight 1,100");

        let error = check(&graph, &arcs, 1_101).unwrap_err();
        assert_eq!(error.to_string(), "the weight is given as 1101, Kruskal's forest weighs 1100");
        let error = check(&graph, &arcs[1..], 600).unwrap_err();
        assert_eq!(error, CheckError::Forest(MstError::NotSpanning { found: 2, expected: 1 }));
    }
}
