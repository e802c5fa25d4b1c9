//! Generators for the families of the thesis's inputs; those with a size also generate small test graphs.

use super::co_purchase::co_purchase;
use super::error::GenerateError;
use super::power_law::preferential_attachment;
use super::rmat::{Rmat, rmat};
use super::road::{RoadGrid, road_grid};
use super::weights::{THESIS_WEIGHTS, random_weights};
use crate::inputs::graph::Graph;

/// Generates a weighted graph like LonestarGPU's `rmat12.sym`, with the same 4,096 nodes and 59,320 arcs.
/// That file's quadrant probabilities are not published. 0.5, 0.15, 0.15 and 0.2 give 143 to 158 components;
/// the file has 154 (0.45, 0.15, 0.15 and 0.25 give about 20; Graph 500's 0.57, 0.19, 0.19 and 0.05 about
/// 1,050). Weights are 1 to 1000; the file's are larger. These parameters cause no error.
pub fn rmat12(seed: u64) -> Result<Graph, GenerateError> {
    let graph = rmat(&Rmat { scale: 12, edges: 29_660, a: 0.5, b: 0.15, c: 0.15, d: 0.2 }, seed)?;
    random_weights(graph, THESIS_WEIGHTS, seed)
}

/// Generates a weighted graph like `USA-road-d.NY` (264,346 nodes, 730,100 arcs, connected, degree at most
/// 8): a square grid of about `nodes` nodes with 2.762 arcs per node. Fails with [`GenerateError::Parameter`]
/// if `nodes` is under 16 or over 2^28.
pub fn usa_road_ny_like(nodes: u32, seed: u64) -> Result<Graph, GenerateError> {
    super::error::check_range("nodes", nodes, 16, 1 << 28)?;
    let side = f64::from(nodes).sqrt().round() as u32;
    let graph = road_grid(&RoadGrid { width: side, height: side, arcs_per_node: 2.762 }, seed)?;
    random_weights(graph, THESIS_WEIGHTS, seed)
}

/// Generates an unweighted graph like `internet` (124,651 nodes, 387,240 arcs): power law, 1.5534 edges per
/// node, hubs with several hundred neighbours. Fails like [`preferential_attachment`].
pub fn internet_like(nodes: u32, seed: u64) -> Result<Graph, GenerateError> {
    preferential_attachment(nodes, 1.5534, seed)
}

/// Generates an unweighted graph like `amazon0312` (400,727 nodes). Fails like [`co_purchase`].
pub fn amazon0312_like(nodes: u32, seed: u64) -> Result<Graph, GenerateError> {
    co_purchase(nodes, seed)
}
