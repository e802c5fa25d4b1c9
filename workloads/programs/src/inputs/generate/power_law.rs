//! Internet-like graphs.

use super::error::{GenerateError, check_range};
use super::random::{Purpose, Random};
use crate::inputs::arcs::{ArcList, Cleaning};
use crate::inputs::graph::Graph;

/// Generates a connected, undirected, unweighted graph whose degrees follow a power law (Barabasi and Albert,
/// "Emergence of Scaling in Random Networks", 1999).
///
/// Nodes join one after another, each with at least one edge and with `edges_per_node` edges on average. Each
/// edge leads to the end of a uniformly drawn earlier arc, so to a node with probability proportional to its
/// degree. Repeats are merged, so the graph has slightly fewer edges.
///
/// # Errors
/// [`GenerateError::Parameter`] unless `nodes` is 2 to 2^28 and `edges_per_node` 1 to 64.
pub fn preferential_attachment(nodes: u32, edges_per_node: f64, seed: u64) -> Result<Graph, GenerateError> {
    check_range("nodes", nodes, 2, 1 << 28)?;
    check_range("edges_per_node", edges_per_node, 1.0, 64.0)?;
    let wanted = edges_per_node * f64::from(nodes);
    check_range("nodes * edges_per_node", wanted, 2.0, (Graph::MAX_ARCS / 2) as f64)?;
    let mut random = Random::new(seed, Purpose::PowerLaw);
    let mut list = ArcList::new(nodes, false);
    list.push_edge(0, 1, 0);
    let (sure, chance) = (edges_per_node.floor() as u32, edges_per_node.fract());
    for node in 2..nodes {
        let edges = sure + u32::from(random.unit() < chance);
        // Draws only from arcs of earlier nodes, so that the node does not draw itself.
        let older = list.arcs.len() as u64;
        for _ in 0..edges {
            let target = list.arcs[random.below(older) as usize].to;
            list.push_edge(node, target, 0);
        }
    }
    Ok(list.into_graph(&Cleaning::default())?.0)
}
