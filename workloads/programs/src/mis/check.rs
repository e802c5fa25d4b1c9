//! Is a set the one that the ranks imply?

use std::fmt;

use super::reference;
use crate::check::mis::{self as checker, MisError};
use crate::inputs::Graph;
use crate::words::count;

/// What [`check()`] found of the right set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Nodes in the set.
    pub members: u64,
    /// Nodes of the graph.
    pub nodes: u32,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (members, nodes) = (count(self.members), count(self.nodes.into()));
        write!(f, "independent, maximal, as on the CPU: {members} of {nodes} nodes")
    }
}

/// Why a set is not the right one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// It is not a maximal independent set.
    #[error(transparent)]
    NotMaximalIndependent(#[from] MisError),
    /// It is one, but not that which every order of execution finds.
    #[error("independent and maximal, but not the set that the ranks imply")]
    NotOfRanks {
        /// The first node that is in one of the sets only.
        node: u32,
    },
}

/// Checks that no two neighbours are in the set, that no node could be added, and that the set is
/// [`reference()`]'s. The first two follow from the third, but do not rest on the ranks.
///
/// # Errors
/// The first of these that does not hold, and for which node.
pub fn check(graph: &Graph, in_set: &[bool]) -> Result<Finding, CheckError> {
    checker::check(graph, in_set)?;
    let expected = reference(graph);
    if let Some(node) = in_set.iter().zip(&expected).position(|(found, expected)| found != expected) {
        return Err(CheckError::NotOfRanks { node: node as u32 });
    }
    let members = in_set.iter().filter(|&&inside| inside).count() as u64;
    Ok(Finding { members, nodes: graph.nodes() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::{ArcList, Cleaning};

    #[test]
    fn sets_are_judged() {
        // A ring of four: two sets are maximal, one is right.
        let mut list = ArcList::new(4, false);
        (0..4).for_each(|node| list.push_edge(node, (node + 1) % 4, 0));
        let (graph, _) = list.into_graph(&Cleaning::default()).unwrap();
        let right = reference(&graph);
        let finding = check(&graph, &right).unwrap();
        assert_eq!(finding.to_string(), "independent, maximal, as on the CPU: 2 of 4 nodes");

        let other: Vec<bool> = right.iter().map(|inside| !inside).collect();
        let error = check(&graph, &other).unwrap_err();
        assert_eq!(error, CheckError::NotOfRanks { node: 0 });
        assert_eq!(error.to_string(), "independent and maximal, but not the set that the ranks imply");
        let none = check(&graph, &[false; 4]).unwrap_err();
        assert_eq!(none, CheckError::NotMaximalIndependent(MisError::NotMaximal { node: 0, degree: 2 }));
        assert!(none.to_string().starts_with("node 0 is not in the set"));
        assert!(check(&graph, &right[1..]).is_err());
    }
}
