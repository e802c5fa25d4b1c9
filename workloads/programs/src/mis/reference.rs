//! CPU reference: the sequential greedy method.

use warptrace_kernels::mis::{IN, rank};

use super::average_degree;
use crate::check::mis::greedy;
use crate::inputs::Graph;

/// Returns the rank of each node. Ties are broken by node number. Nodes without neighbours rank highest.
pub fn priorities(graph: &Graph) -> Vec<u64> {
    let average = average_degree(graph);
    (0..graph.nodes())
        .map(|node| {
            let degree = graph.degree(node);
            let rank = if degree == 0 { IN } else { rank(node, degree, average) };
            u64::from(rank) << 32 | u64::from(node)
        })
        .collect()
}

/// Returns the set that [`run`](super::run) finds, deciding nodes from the highest rank to the lowest.
pub fn reference(graph: &Graph) -> Vec<bool> {
    greedy(graph, &priorities(graph))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::{ArcList, Cleaning};

    #[test]
    fn low_degrees_rank_above_high_ones() {
        // A star with a second, smaller star at its first ray.
        let mut list = ArcList::new(40, false);
        (1..30).for_each(|ray| list.push_edge(0, ray, 0));
        (30..35).for_each(|ray| list.push_edge(1, ray, 0));
        let (graph, _) = list.into_graph(&Cleaning::default()).unwrap();
        let ranks = priorities(&graph);
        assert!((2..30).all(|ray| ranks[ray] > ranks[1]));
        assert!(ranks[1] > ranks[0]);
        assert!((35..40).all(|alone| ranks[alone] >> 32 == u64::from(IN)));
        assert!((2..35).all(|ray| ranks[ray] >> 32 < u64::from(IN) && ranks[ray] >> 32 & 1 == 1));
    }

    #[test]
    fn ranks_of_equal_degrees_spread() {
        let mut list = ArcList::new(10_000, false);
        (0..10_000).for_each(|node| list.push_edge(node, (node + 1) % 10_000, 0));
        let (graph, _) = list.into_graph(&Cleaning::default()).unwrap();
        let mut ranks: Vec<u64> = priorities(&graph).iter().map(|rank| rank >> 32).collect();
        ranks.sort_unstable();
        ranks.dedup();
        assert!(ranks.len() > 9_900, "{} different ranks", ranks.len());
    }
}
