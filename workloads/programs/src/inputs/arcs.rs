//! Builds a [`Graph`] from a list of arcs in any order; handles self-loops, duplicates and missing twins.

use super::graph::{Graph, GraphError};

/// An arc of an [`ArcList`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arc {
    /// Source node.
    pub from: u32,
    /// Target node.
    pub to: u32,
    /// Weight; meaningless in an unweighted list.
    pub weight: u32,
}

/// Cleaning steps of [`ArcList::into_graph`]. The default gives a simple undirected graph: it drops
/// self-loops, merges duplicates and adds missing twins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleaning {
    /// Drops arcs from a node to itself.
    pub drop_self_loops: bool,
    /// Merges arcs with the same source and target; keeps the smallest weight.
    pub merge_duplicates: bool,
    /// Adds the twin of each arc that lacks one. With `merge_duplicates`, both arcs of a pair get the smaller
    /// of their weights; without it, a pair with different weights becomes two pairs.
    pub symmetrize: bool,
}

impl Default for Cleaning {
    fn default() -> Self {
        Self { drop_self_loops: true, merge_duplicates: true, symmetrize: true }
    }
}

impl Cleaning {
    /// Keeps every arc unchanged.
    pub const NONE: Self = Self { drop_self_loops: false, merge_duplicates: false, symmetrize: false };
}

/// Changes made by cleaning, counted in arcs. An undirected edge has two arcs, an undirected self-loop one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CleanReport {
    /// Dropped self-loops.
    pub self_loops_dropped: u64,
    /// Arcs merged into another arc with the same source and target.
    pub duplicates_merged: u64,
    /// Added twins.
    pub twins_added: u64,
    /// Arcs that took the smaller weight of their twin.
    pub weights_lowered: u64,
}

impl CleanReport {
    /// Returns true if cleaning changed nothing.
    pub fn is_clean(&self) -> bool {
        *self == Self::default()
    }
}

/// Arcs in any order, input of a [`Graph`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArcList {
    /// Number of nodes.
    pub nodes: u32,
    /// Whether the arcs have weights.
    pub weighted: bool,
    /// The arcs.
    pub arcs: Vec<Arc>,
}

impl ArcList {
    /// Creates an empty list.
    pub fn new(nodes: u32, weighted: bool) -> Self {
        Self { nodes, weighted, arcs: Vec::new() }
    }

    /// Adds an undirected edge: two arcs, or one for a self-loop.
    pub fn push_edge(&mut self, u: u32, v: u32, weight: u32) {
        self.arcs.push(Arc { from: u, to: v, weight });
        if u != v {
            self.arcs.push(Arc { from: v, to: u, weight });
        }
    }

    /// Cleans the arcs, sorts them into rows and builds the graph. Fails with [`GraphError::Empty`],
    /// [`GraphError::SourceOutOfRange`], [`GraphError::NeighbourOutOfRange`] or [`GraphError::TooManyArcs`].
    pub fn into_graph(self, cleaning: &Cleaning) -> Result<(Graph, CleanReport), GraphError> {
        let Self { nodes, weighted, mut arcs } = self;
        let mut report = CleanReport::default();
        check_ends(nodes, &arcs)?;
        if !weighted {
            // Stray weights in an unweighted list must not make equal arcs differ.
            arcs.iter_mut().for_each(|arc| arc.weight = 0);
        }
        if cleaning.drop_self_loops {
            let before = arcs.len();
            arcs.retain(|arc| arc.from != arc.to);
            report.self_loops_dropped = (before - arcs.len()) as u64;
        }
        let mut rows = Rows::sorted(nodes, arcs);
        if cleaning.merge_duplicates {
            report.duplicates_merged = rows.merge_duplicates();
        }
        if cleaning.symmetrize {
            let merged = rows.union(&rows.transposed(), cleaning.merge_duplicates);
            (rows, report.twins_added, report.weights_lowered) = merged;
        }
        Ok((rows.into_graph(weighted)?, report))
    }
}

fn check_ends(nodes: u32, arcs: &[Arc]) -> Result<(), GraphError> {
    if nodes == 0 {
        return Err(GraphError::Empty);
    }
    for (position, arc) in arcs.iter().enumerate() {
        if arc.from >= nodes {
            return Err(GraphError::SourceOutOfRange { node: arc.from, nodes });
        }
        if arc.to >= nodes {
            return Err(GraphError::NeighbourOutOfRange {
                node: arc.from,
                arc: position,
                neighbour: arc.to,
                nodes,
            });
        }
    }
    Ok(())
}

/// Target and weight of an arc in its source's row.
type Entry = (u32, u32);

/// Rows under construction. Offsets are `u64`, so that they cannot overflow before the size check.
struct Rows {
    starts: Vec<usize>,
    entries: Vec<Entry>,
}

impl Rows {
    /// Sorts arcs by source with a counting sort, then sorts each row.
    fn sorted(nodes: u32, arcs: Vec<Arc>) -> Self {
        let mut rows = Self::placed(nodes, arcs.iter().map(|arc| (arc.from, (arc.to, arc.weight))));
        drop(arcs);
        for node in 0..nodes as usize {
            let row = rows.starts[node]..rows.starts[node + 1];
            rows.entries[row].sort_unstable();
        }
        rows
    }

    /// Places entries in their rows, each row in the order of the iterator.
    fn placed(nodes: u32, entries: impl Iterator<Item = (u32, Entry)> + Clone) -> Self {
        let mut starts = vec![0usize; nodes as usize + 1];
        for (source, _) in entries.clone() {
            starts[source as usize + 1] += 1;
        }
        for node in 0..nodes as usize {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut placed = vec![(0, 0); starts[nodes as usize]];
        for (source, entry) in entries {
            placed[next[source as usize]] = entry;
            next[source as usize] += 1;
        }
        Self { starts, entries: placed }
    }

    fn nodes(&self) -> u32 {
        (self.starts.len() - 1) as u32
    }

    fn row(&self, node: u32) -> &[Entry] {
        &self.entries[self.starts[node as usize]..self.starts[node as usize + 1]]
    }

    /// Keeps the first (lightest) of equal targets in each row. Returns the number of removed entries.
    fn merge_duplicates(&mut self) -> u64 {
        let before = self.entries.len();
        let mut kept = 0;
        for node in 0..self.nodes() as usize {
            let (start, end) = (self.starts[node], self.starts[node + 1]);
            self.starts[node] = kept;
            for position in start..end {
                let entry = self.entries[position];
                // Entries only move down, so the previous entry is still in its place.
                if position == start || self.entries[position - 1].0 != entry.0 {
                    self.entries[kept] = entry;
                    kept += 1;
                }
            }
        }
        let last = self.starts.len() - 1;
        self.starts[last] = kept;
        self.entries.truncate(kept);
        (before - kept) as u64
    }

    fn transposed(&self) -> Self {
        Self::placed(
            self.nodes(),
            (0..self.nodes())
                .flat_map(|node| self.row(node).iter().map(move |&(to, weight)| (to, (node, weight)))),
        )
    }

    /// Merges two sets of rows; the second is the transpose of the first. Also returns how many entries only
    /// the transpose had, and how many entries got a lower weight.
    fn union(&self, twins: &Self, by_target: bool) -> (Self, u64, u64) {
        let mut starts = Vec::with_capacity(self.starts.len());
        let mut entries = Vec::with_capacity(self.entries.len());
        let (mut added, mut lowered) = (0, 0);
        for node in 0..self.nodes() {
            starts.push(entries.len());
            let (mut own, mut twin) = (self.row(node), twins.row(node));
            loop {
                match (own, twin) {
                    ([], []) => break,
                    ([a, rest_own @ ..], [b, rest_twin @ ..]) if a == b || (by_target && a.0 == b.0) => {
                        entries.push((a.0, a.1.min(b.1)));
                        lowered += u64::from(b.1 < a.1);
                        (own, twin) = (rest_own, rest_twin);
                    }
                    ([a, rest @ ..], other) if other.first().is_none_or(|b| a < b) => {
                        entries.push(*a);
                        own = rest;
                    }
                    (_, [b, rest @ ..]) => {
                        entries.push(*b);
                        added += 1;
                        twin = rest;
                    }
                    (_, []) => unreachable!("the arm above takes every entry that has no twin left to meet"),
                }
            }
        }
        starts.push(entries.len());
        (Self { starts, entries }, added, lowered)
    }

    fn into_graph(self, weighted: bool) -> Result<Graph, GraphError> {
        if self.entries.len() as u64 > Graph::MAX_ARCS {
            return Err(GraphError::TooManyArcs { arcs: self.entries.len() as u64, limit: Graph::MAX_ARCS });
        }
        let offsets = self.starts.iter().map(|&start| start as u32).collect();
        let weights = weighted.then(|| self.entries.iter().map(|entry| entry.1).collect());
        let neighbours = self.entries.iter().map(|entry| entry.0).collect();
        Graph::from_csr(offsets, neighbours, weights)
    }
}
