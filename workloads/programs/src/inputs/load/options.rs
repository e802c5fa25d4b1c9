//! Options and reports of loading.

use super::detect::GraphFormat;
use super::error::LoadProblem;
use super::source::Compression;
use crate::inputs::arcs::{ArcList, CleanReport, Cleaning};

/// Options of [`load_graph`](super::load_graph). Default: a simple undirected graph with the file's weights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// Format of the file; `None` detects it by content and name.
    pub format: Option<GraphFormat>,
    /// Treatment of self-loops, duplicates and missing twins.
    pub cleaning: Cleaning,
    /// Gives an unweighted graph. Otherwise, weights other than integers from 0 to 4,294,967,295 are errors.
    pub ignore_weights: bool,
    /// Renumbers a SNAP edge list's nodes by ascending id. Otherwise, the highest id plus one is their
    /// number.
    pub compact_ids: bool,
    /// Limits on the file.
    pub limits: Limits,
}

/// Limits for a hostile or damaged file. Loading a graph takes at most about `bytes + 80 * arcs + 24 * nodes`
/// bytes of memory, where all three are within these limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a file's content in bytes, after decompression; 2 GiB by default.
    pub bytes: u64,
    /// Maximum number of arcs, twins included; 2^28 by default.
    pub arcs: u64,
    /// Number of nodes accepted in excess of two per arc; 2^24 by default.
    pub isolated_nodes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 2 << 30, arcs: 1 << 28, isolated_nodes: 1 << 24 }
    }
}

/// Report of loading a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphReport {
    /// Format of the file.
    pub format: GraphFormat,
    /// Compression of the file.
    pub compression: Compression,
    /// Changes made by cleaning.
    pub clean: CleanReport,
}

/// Report of loading a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MeshReport {
    /// Number of the first point in the files, 0 or 1.
    pub first_index: u32,
    /// Number of clockwise triangles that were reversed.
    pub triangles_turned: usize,
    /// Number of edges with one triangle that were added as segments, because no `.poly` file lists them.
    pub segments_added: usize,
    /// Number of points without a triangle.
    pub unused_points: usize,
}

impl Limits {
    /// Returns an error if the list is full. An undirected edge may end one arc over the limit.
    pub(super) fn admit(&self, list: &ArcList) -> Result<(), LoadProblem> {
        if list.arcs.len() as u64 >= self.arcs {
            return Err(LoadProblem::TooManyArcs { limit: self.arcs });
        }
        Ok(())
    }
}
