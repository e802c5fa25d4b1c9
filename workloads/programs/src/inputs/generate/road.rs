//! Road-like graphs.

use super::error::{GenerateError, check_range};
use super::random::{Purpose, Random};
use crate::inputs::arcs::{ArcList, Cleaning};
use crate::inputs::graph::Graph;

/// Parameters of a road-like grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoadGrid {
    /// Nodes per row; at least 1.
    pub width: u32,
    /// Number of rows; at least 1. `width * height` is at most 2^28.
    pub height: u32,
    /// Requested arcs per node (two per edge): from a tree's number to the full grid's, which is nearly 6.
    /// Road networks have 2 to 3.
    pub arcs_per_node: f64,
}

/// Generates a connected, planar, undirected, unweighted graph of degree at most 8, like a road network.
///
/// Shuffles the grid's horizontal and vertical edges and one diagonal of random direction per cell. Those
/// that join two components form a spanning tree; the first of the others complete the requested number of
/// edges. Nodes are numbered row by row.
///
/// # Errors
/// [`GenerateError::Parameter`] if a parameter is out of range.
pub fn road_grid(parameters: &RoadGrid, seed: u64) -> Result<Graph, GenerateError> {
    let RoadGrid { width, height, arcs_per_node } = *parameters;
    check_range("width", width, 1, 1 << 28)?;
    check_range("height", height, 1, (1 << 28) / width)?;
    let nodes = width * height;

    let mut random = Random::new(seed, Purpose::Road);
    let mut candidates = candidates(width, height, &mut random);
    let tree_edges = u64::from(nodes) - 1;
    let per_node = |edges: u64| 2.0 * edges as f64 / f64::from(nodes);
    // A tree has slightly less than 2.0 arcs per node, so 2.0 means a tree and one more edge.
    check_range("arcs_per_node", arcs_per_node, per_node(tree_edges), per_node(candidates.len() as u64))?;
    let wanted = (f64::from(nodes) * arcs_per_node / 2.0).round() as u64;

    random.shuffle(&mut candidates);
    let mut parents: Vec<u32> = (0..nodes).collect();
    let mut list = ArcList::new(nodes, false);
    let mut rest = Vec::new();
    for (u, v) in candidates {
        let (root_u, root_v) = (root(&mut parents, u), root(&mut parents, v));
        if root_u == root_v {
            rest.push((u, v));
        } else {
            parents[root_u.max(root_v) as usize] = root_u.min(root_v);
            list.push_edge(u, v, 0);
        }
    }
    let extra = wanted.saturating_sub(tree_edges) as usize;
    rest.iter().take(extra).for_each(|&(u, v)| list.push_edge(u, v, 0));
    Ok(list.into_graph(&Cleaning::NONE)?.0)
}

fn candidates(width: u32, height: u32, random: &mut Random) -> Vec<(u32, u32)> {
    let mut candidates = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let here = y * width + x;
            if x + 1 < width {
                candidates.push((here, here + 1));
            }
            if y + 1 < height {
                candidates.push((here, here + width));
            }
            if x + 1 < width && y + 1 < height {
                let falling = random.below(2) == 0;
                candidates.push(if falling { (here, here + width + 1) } else { (here + 1, here + width) });
            }
        }
    }
    candidates
}

/// Returns the root of a node's tree, with path halving.
fn root(parents: &mut [u32], mut node: u32) -> u32 {
    while parents[node as usize] != node {
        let grandparent = parents[parents[node as usize] as usize];
        parents[node as usize] = grandparent;
        node = grandparent;
    }
    node
}
