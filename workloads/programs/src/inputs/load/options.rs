//! How to load, and what loading did.

use super::detect::GraphFormat;
use super::error::LoadProblem;
use super::source::Compression;
use crate::inputs::arcs::{ArcList, CleanReport, Cleaning};

/// How [`load_graph`](super::load_graph) treats a file. The default gives a simple undirected graph with the
/// file's weights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// The format, where content and name should not decide.
    pub format: Option<GraphFormat>,
    /// What to do with self-loops, duplicates and missing twins.
    pub cleaning: Cleaning,
    /// Leave weights out; the graph is then unweighted. Without it a weight that is not an integer from 0 to
    /// 4,294,967,295 is an error.
    pub ignore_weights: bool,
    /// Renumber the nodes of a SNAP edge list by ascending id, leaving out ids that no edge names. Without it
    /// the graph has the highest id plus one nodes.
    pub compact_ids: bool,
    /// What to refuse.
    pub limits: Limits,
}

/// What to refuse, so that a hostile or damaged file costs bounded time and memory.
///
/// Loading a graph takes at most about `bytes + 80 * arcs + 24 * nodes` bytes of memory, where all three are
/// under these limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of a file's content, after decompression. 2 GiB by default.
    pub bytes: u64,
    /// Most arcs read, twins included. 2^28 by default.
    pub arcs: u64,
    /// Nodes accepted beyond two per arc read. 2^24 by default.
    pub isolated_nodes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 2 << 30, arcs: 1 << 28, isolated_nodes: 1 << 24 }
    }
}

/// What loading a graph found and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphReport {
    /// The format read.
    pub format: GraphFormat,
    /// How the file was compressed.
    pub compression: Compression,
    /// What cleaning changed.
    pub clean: CleanReport,
}

/// What loading a mesh found and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MeshReport {
    /// Number of the first point in the files: 0 or 1.
    pub first_index: u32,
    /// Clockwise triangles that were turned around.
    pub triangles_turned: usize,
    /// Segments added because no `.poly` names them: edges with a triangle on one side only.
    pub segments_added: usize,
    /// Points that no triangle uses.
    pub unused_points: usize,
}

impl Limits {
    /// Whether one more edge may join the list. A little late by design: the list may end one arc over.
    pub(super) fn admit(&self, list: &ArcList) -> Result<(), LoadProblem> {
        if list.arcs.len() as u64 >= self.arcs {
            return Err(LoadProblem::TooManyArcs { limit: self.arcs });
        }
        Ok(())
    }
}
