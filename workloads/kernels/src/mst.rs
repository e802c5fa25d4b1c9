//! A minimum spanning forest by Borůvka's rounds over a shrinking list of edges.
//!
//! A round has two launches. [`mst_lightest`](fn@mst_lightest) replaces each edge's ends by their trees'
//! roots, drops edges inside a tree, and finds for each tree the lightest edge that leaves it.
//! [`mst_merge`](fn@mst_merge) adds these edges to the forest, and links the trees with compare-and-swap. The
//! list with trees in place of nodes comes from Fallin, Gonzalez, Seo, Burtscher, "A High-Performance MST
//! Implementation for GPUs" (2023).
//!
//! - Edges are ordered by weight, then by number, so no two are equal. Therefore the forest is unique, and
//!   the chosen edges of a round form no cycle, in any order of the threads.
//! - A root is linked under a root with smaller [`scramble`], in effect a random order. This keeps trees
//!   shallow without path compression (Jayanti, Tarjan, "A Randomized Concurrent Algorithm for Disjoint Set
//!   Union", 2016). Node numbers would not do: on a path with rising weights they build one long chain.

use warptrace_device::{Global, atomic, simt};
use warptrace_macros::kernels;

use crate::hash::scramble;

/// The value for "no edge yet" in the table of lightest edges. Above every key.
pub const NO_EDGE: u64 = u64::MAX;

/// An edge of the list, accessed with one 16-byte access.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Edge {
    /// One end: a node; in later rounds the root of its tree.
    pub first: u32,
    /// The other end.
    pub second: u32,
    /// Weight.
    pub weight: u32,
    /// Number of the edge: the index of its arc from the lower node to the higher.
    pub arc: u32,
}

impl Edge {
    /// Returns a key that orders edges by weight, then by number. No two edges have the same key.
    #[inline(always)]
    pub fn key(&self) -> u64 {
        u64::from(self.weight) << 32 | u64::from(self.arc)
    }
}

/// Appends an edge. `ptxas` combines the atomics of active lanes into one.
///
/// # Safety
/// The list has room, `count[0]` is its length, and both are only accessed by appending.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn append(list: Global<Edge>, count: Global<u32>, edge: Edge) {
    // SAFETY: guaranteed by the caller. The counter assigns each place to one thread.
    unsafe {
        let place = atomic::add_u32(count.at(0), 1);
        list.set(u64::from(place), edge);
    }
}

#[kernels(device = warptrace_device, only_marked, automatic = 1)]
mod kernels {
    use super::*;

    /// Makes each node a tree, and lists each edge once.
    ///
    /// `offsets` (nodes + 1), `neighbours` and `weights` (one for each arc) are the rows of the symmetric
    /// graph. `parents` has one word for each node. `edges` has room for each arc to a higher node, and
    /// `edge_count[0]` is 0. The order of the list is not fixed. One-dimensional grid of any size; nodes +
    /// threads is at most 2^32 - 1.
    #[kernel]
    pub fn mst_init(
        offsets: Global<u32>,
        neighbours: Global<u32>,
        weights: Global<u32>,
        parents: Global<u32>,
        edges: Global<Edge>,
        edge_count: Global<u32>,
    ) {
        trace!("INIT_ENTER");
        let nodes = parents.len() as u32;
        let stride = simt::grid_threads_x();
        let mut node = simt::global_thread_x();
        while node < nodes {
            trace!("INIT_NODE");
            let row = u64::from(node);
            // SAFETY: each thread has separate nodes, and `offsets` has one element more than nodes.
            let (mut arc, end) = unsafe {
                parents.set(row, node);
                (offsets.get(row), offsets.get(row + 1))
            };
            while arc < end {
                trace!("INIT_ARC");
                // SAFETY: an arc of the row.
                let neighbour = unsafe { neighbours.get(u64::from(arc)) };
                if neighbour > node {
                    trace!("ARC_LISTED");
                    // SAFETY: an arc of the row. The list has room for all such arcs.
                    unsafe {
                        let weight = weights.get(u64::from(arc));
                        append(edges, edge_count, Edge { first: node, second: neighbour, weight, arc });
                    }
                } else {
                    trace!("ARC_SKIPPED");
                }
                arc += 1;
            }
            node += stride;
        }
        trace!("INIT_DONE");
    }

    /// Finds the lightest edge that leaves each tree, and the edges between trees.
    ///
    /// Reads the first `count` of `edges`. Adds those between two trees to `kept`, with the trees' roots as
    /// ends, and counts them in `kept_count[0]`, initially 0. `lightest` has one word for each node:
    /// initially `NO_EDGE` at each root that has an edge, finally the key of its lightest edge. The launch
    /// does not write `parents`. One-dimensional grid of any size; count + threads is at most 2^32 - 1.
    #[kernel]
    pub fn mst_lightest(
        edges: Global<Edge>,
        count: u32,
        parents: Global<u32>,
        lightest: Global<u64>,
        kept: Global<Edge>,
        kept_count: Global<u32>,
    ) {
        trace!("LIGHTEST_ENTER");
        let stride = simt::grid_threads_x();
        let mut index = simt::global_thread_x();
        while index < count {
            trace!("LIGHTEST_EDGE");
            // SAFETY: below the list's length. No thread writes the list.
            let mut edge = unsafe { edges.get(u64::from(index)) };
            // Follows both ends at once: two loads in flight instead of one.
            let mut walked = trace_loop!("WALK");
            loop {
                walked.tick();
                // SAFETY: ends and parents are nodes.
                let above =
                    unsafe { (parents.get(u64::from(edge.first)), parents.get(u64::from(edge.second))) };
                let arrived = (above.0 == edge.first) & (above.1 == edge.second);
                (edge.first, edge.second) = above;
                if arrived {
                    break;
                }
            }
            drop(walked);
            if edge.first == edge.second {
                trace!("INSIDE");
            } else {
                trace!("BETWEEN");
                // SAFETY: at most as many edges are kept as the list has.
                unsafe { append(kept, kept_count, edge) };
                let key = edge.key();
                let (first, second) =
                    (lightest.at(u64::from(edge.first)), lightest.at(u64::from(edge.second)));
                // Loading first saves most atomics. Keys only decrease: an old value is at worst too large.
                // SAFETY: roots are nodes. This kernel accesses the table only with atomics.
                if unsafe { atomic::load_u64(first) } > key {
                    trace!("LIGHTER_AT_FIRST");
                    // SAFETY: same as the load.
                    unsafe { atomic::min_u64(first, key) };
                } else {
                    trace!("HEAVIER_AT_FIRST");
                }
                // SAFETY: same as for `first`.
                if unsafe { atomic::load_u64(second) } > key {
                    trace!("LIGHTER_AT_SECOND");
                    // SAFETY: same as the load.
                    unsafe { atomic::min_u64(second, key) };
                } else {
                    trace!("HEAVIER_AT_SECOND");
                }
            }
            index += stride;
        }
        trace!("LIGHTEST_DONE");
    }

    /// Adds the trees' lightest edges to the forest, and links the trees.
    ///
    /// `edges` are the first `count` edges that `mst_lightest` kept, and `lightest` is its table. Sets
    /// `chosen[arc]` to 1 for each edge that joins the forest. Clears `next_lightest`, the next round's
    /// table, at the ends of all edges, which include the next round's roots. One-dimensional grid of any
    /// size; count + threads is at most 2^32 - 1.
    #[kernel]
    pub fn mst_merge(
        edges: Global<Edge>,
        count: u32,
        parents: Global<u32>,
        lightest: Global<u64>,
        next_lightest: Global<u64>,
        chosen: Global<u8>,
    ) {
        trace!("MERGE_ENTER");
        let stride = simt::grid_threads_x();
        let mut index = simt::global_thread_x();
        while index < count {
            trace!("MERGE_EDGE");
            // SAFETY: below the list's length. No thread writes the list.
            let edge = unsafe { edges.get(u64::from(index)) };
            let (mut first, mut second) = (edge.first, edge.second);
            let key = edge.key();
            // SAFETY: ends are nodes. No thread writes `lightest`; `next_lightest` is accessed with atomics.
            let is_lightest = unsafe {
                atomic::store_u64(next_lightest.at(u64::from(first)), NO_EDGE);
                atomic::store_u64(next_lightest.at(u64::from(second)), NO_EDGE);
                (lightest.get(u64::from(first)) == key) | (lightest.get(u64::from(second)) == key)
            };
            if is_lightest {
                trace!("CHOSEN" = 20);
                // SAFETY: each arc has a byte, and only this thread has this edge.
                unsafe { chosen.set(u64::from(edge.arc), 1) };
                loop {
                    trace!("CLIMB");
                    // SAFETY: ends and parents are nodes. This kernel accesses parents only with atomics.
                    let above = unsafe {
                        let first = atomic::load_u32(parents.at(u64::from(first)));
                        (first, atomic::load_u32(parents.at(u64::from(second))))
                    };
                    if (above.0 != first) | (above.1 != second) {
                        trace!("BELOW_ROOT");
                        (first, second) = above;
                        continue;
                    }
                    trace!("AT_ROOTS");
                    // Parents have smaller scrambles than their children, so links never form a cycle.
                    let (low, high) =
                        if scramble(first) < scramble(second) { (first, second) } else { (second, first) };
                    // SAFETY: same as the loads.
                    let before =
                        unsafe { atomic::compare_exchange_u32(parents.at(u64::from(high)), high, low) };
                    if before == high {
                        trace!("LINKED" = 25);
                        break;
                    }
                    trace!("OVERTAKEN" = 24);
                    (first, second) = (before, low);
                }
            } else {
                trace!("NOT_CHOSEN" = 19);
            }
            index += stride;
        }
        trace!("MERGE_DONE" = 26);
    }
}

pub use kernels::*;
