//! Check of a spanning forest.

use crate::check::{Checked, mst as checker};
use crate::inputs::Graph;
use crate::words::count;

/// Checks that the arcs, one per edge, form a minimum spanning forest of weight `weight`. Returns an error of
/// [`check::mst::check`](checker::check), or a wrong weight.
pub fn check(graph: &Graph, arcs: &[u32], weight: u64) -> Checked {
    checker::check(graph, arcs).map_err(|error| error.to_string())?;
    // The check above proved that the arcs weigh as much as Kruskal's forest.
    let expected: u64 = arcs.iter().map(|&arc| u64::from(graph.weight(arc as usize))).sum();
    if weight != expected {
        return Err(format!("the weight is given as {weight}, Kruskal's forest weighs {expected}"));
    }
    Ok(format!("Kruskal's forest: {} edges, weight {}", count(arcs.len() as u64), count(weight)))
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
        assert_eq!(finding, "Kruskal's forest: 2 edges, weight 1,100");

        let error = check(&graph, &arcs, 1_101).unwrap_err();
        assert_eq!(error, "the weight is given as 1101, Kruskal's forest weighs 1100");
        let error = check(&graph, &arcs[1..], 600).unwrap_err();
        assert_eq!(error, checker::MstError::NotSpanning { found: 2, expected: 1 }.to_string());
    }
}
