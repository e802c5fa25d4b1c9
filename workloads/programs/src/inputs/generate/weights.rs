//! Seeded edge weights.

use super::error::{GenerateError, check_range};
use crate::inputs::graph::Graph;
use std::ops::RangeInclusive;

/// Range of the weights that this project gives to graphs without weights, such as the road network.
pub const THESIS_WEIGHTS: RangeInclusive<u32> = 1..=1000;

/// Returns the graph with a weight per edge, uniform in `range`. Fails with [`GenerateError::Parameter`] if
/// the range is empty.
///
/// The weight is a hash of the edge's two nodes, lower first, and the seed, so both arcs of an edge agree and
/// the order of the arcs has no effect. The hash is three rounds of SplitMix64's finaliser (Steele, Lea,
/// Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
pub fn random_weights(graph: Graph, range: RangeInclusive<u32>, seed: u64) -> Result<Graph, GenerateError> {
    let (low, high) = (*range.start(), *range.end());
    check_range("the end of the range of weights", high, low, u32::MAX)?;
    let width = u128::from(high - low) + 1;
    let weights = graph
        .iter_arcs()
        .map(|(_, u, v, _)| {
            let hash = mix(mix(mix(seed) ^ u64::from(u.min(v))) ^ u64::from(u.max(v)));
            // Scales the top bits; the bias is under 2^-32.
            low + ((u128::from(hash) * width) >> 64) as u32
        })
        .collect();
    Ok(graph.with_weights(Some(weights))?)
}

fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
