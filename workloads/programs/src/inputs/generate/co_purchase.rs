//! Graphs of items that are often bought together.

use super::error::{GenerateError, check_range};
use super::random::{Purpose, Random};
use crate::inputs::arcs::{Arc, ArcList, Cleaning};
use crate::inputs::graph::Graph;

const FEWEST_LINKS: u64 = 4;
const MOST_LINKS: u64 = 8;
/// Maximum distance of a local link, in ids.
const SURROUNDINGS: u64 = 64;

/// Generates an undirected, unweighted graph like the co-purchase graph of a shop: clustered, with some very
/// popular items. Makes it symmetric and merges repeats, which leaves about 11.5 arcs per node.
///
/// Each item links to 4 to 8 others. Three in four links lead to an item within 64 ids (similar items). Of
/// the others, three in five copy the target of an earlier such link, so that popular items become more
/// popular, and two in five choose any item (Simon, "On a Class of Skew Distribution Functions", 1955).
///
/// # Errors
/// [`GenerateError::Parameter`] unless `nodes` is 2 to 2^27.
pub fn co_purchase(nodes: u32, seed: u64) -> Result<Graph, GenerateError> {
    check_range("nodes", nodes, 2, 1 << 27)?;
    let mut random = Random::new(seed, Purpose::CoPurchase);
    let mut list = ArcList::new(nodes, false);
    let mut popular: Vec<u32> = Vec::new();
    for from in 0..nodes {
        let links = FEWEST_LINKS + random.below(MOST_LINKS - FEWEST_LINKS + 1);
        for _ in 0..links {
            let to = if random.below(4) > 0 {
                nearby(&mut random, from, nodes)
            } else {
                let item = if random.below(5) < 3 && !popular.is_empty() {
                    popular[random.below(popular.len() as u64) as usize]
                } else {
                    random.below(u64::from(nodes)) as u32
                };
                popular.push(item);
                item
            };
            list.arcs.push(Arc { from, to, weight: 0 });
        }
    }
    Ok(list.into_graph(&Cleaning::default())?.0)
}

/// Returns another id, at most [`SURROUNDINGS`] away, wrapping around at the ends.
fn nearby(random: &mut Random, from: u32, nodes: u32) -> u32 {
    let step = 1 + random.below(SURROUNDINGS.min(u64::from(nodes) - 1));
    let forward = random.below(2) == 0;
    let nodes = u64::from(nodes);
    let shift = if forward { step } else { nodes - step };
    ((u64::from(from) + shift) % nodes) as u32
}
