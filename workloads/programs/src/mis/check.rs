//! Check of an independent set.

use super::reference;
use crate::check::{Checked, mis as checker};
use crate::inputs::Graph;
use crate::words::count;

/// Checks that no two neighbours are in the set, that no node can be added, and that the set equals
/// [`reference()`]'s. The last check implies the others, but depends on the ranks. Returns the first failure.
pub fn check(graph: &Graph, in_set: &[bool]) -> Checked {
    checker::check(graph, in_set).map_err(|error| error.to_string())?;
    if in_set != reference(graph) {
        return Err("independent and maximal, but not the set that the ranks imply".to_owned());
    }
    let members = count(in_set.iter().filter(|&&inside| inside).count() as u64);
    Ok(format!("independent, maximal, as on the CPU: {members} of {} nodes", count(graph.nodes().into())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::{ArcList, Cleaning};

    #[test]
    fn sets_are_judged() {
        // A ring of four nodes has two maximal sets; one is the reference.
        let mut list = ArcList::new(4, false);
        (0..4).for_each(|node| list.push_edge(node, (node + 1) % 4, 0));
        let (graph, _) = list.into_graph(&Cleaning::default()).unwrap();
        let right = reference(&graph);
        let finding = check(&graph, &right).unwrap();
        assert_eq!(finding, "independent, maximal, as on the CPU: 2 of 4 nodes");

        let other: Vec<bool> = right.iter().map(|inside| !inside).collect();
        let error = check(&graph, &other).unwrap_err();
        assert_eq!(error, "independent and maximal, but not the set that the ranks imply");
        let none = check(&graph, &[false; 4]).unwrap_err();
        assert!(none.starts_with("node 0 is not in the set"));
        assert!(check(&graph, &right[1..]).is_err());
    }
}
