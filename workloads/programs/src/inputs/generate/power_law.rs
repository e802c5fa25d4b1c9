//! Internet-like graphs.

use super::error::{GenerateError, check_range};
use super::random::{Purpose, Random};
use crate::inputs::arcs::{ArcList, Cleaning};
use crate::inputs::graph::Graph;

/// A connected, undirected, unweighted graph whose degrees follow a power law (Barabasi and Albert,
/// "Emergence of Scaling in Random Networks", 1999).
///
/// Nodes join one after the other, each with one edge, and with further ones so that there are
/// `edges_per_node` on average; each edge leads to the end of an arc drawn uniformly among those there are,
/// so that a node is met in proportion to its degree. A repeated edge is merged, so the graph has slightly
/// fewer.
///
/// `nodes` is 2 to 2^28, `edges_per_node` 1 to 64.
///
/// # Errors
/// [`GenerateError::Parameter`] for a parameter out of range.
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
        // Only arcs that were there before this node: it must not draw itself.
        let older = list.arcs.len() as u64;
        for _ in 0..edges {
            let target = list.arcs[random.below(older) as usize].to;
            list.push_edge(node, target, 0);
        }
    }
    Ok(list.into_graph(&Cleaning::default())?.0)
}
