//! The graphs that MIS and MST share.

use std::path::{Path, PathBuf};

use anyhow::Context;
use warptrace_workloads::inputs::generate::{self, THESIS_WEIGHTS};
use warptrace_workloads::inputs::{Graph, LoadOptions, load_graph};

use super::SEED;

/// The road network of New York in `inputs` or its folder `graphs`, in any of the formats.
pub(super) fn road_ny_file(inputs: Option<&Path>) -> Option<PathBuf> {
    super::find(inputs?, "graphs", |name| name.starts_with("USA-road-d.NY") && name.contains(".gr"))
}

/// The road network with weights; random ones, from 1 to 1,000, if the file has none.
pub(super) fn road_ny(path: &Path) -> anyhow::Result<Graph> {
    let (graph, _) = load_graph(path, &LoadOptions::default()).context("cannot load the road network")?;
    if graph.weights().is_some() {
        Ok(graph)
    } else {
        Ok(generate::random_weights(graph, THESIS_WEIGHTS, SEED)?)
    }
}
