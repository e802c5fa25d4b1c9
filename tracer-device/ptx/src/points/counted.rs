//! Loops whose iterations a recording can count.

use std::collections::{BTreeSet, HashMap};

use super::Points;
use super::blocks::{Blocks, Chains};
use crate::{EdgeKind, Terminator};

pub(super) struct Counted {
    /// Offsets that lanes pass only when they enter the loop.
    pub(super) enters: BTreeSet<usize>,
    /// Offsets that all lanes pass when they leave the loop, and only then.
    pub(super) leaves: BTreeSet<usize>,
}

impl Counted {
    /// Returns the marker positions of the loop with this header, or `None` if it cannot be counted. A
    /// counted loop has no other point, no inner loop and no call, its iterations all take one path, threads
    /// do not end in it, and markers can be placed on all edges into and out of it.
    pub(super) fn new(blocks: &Blocks<'_>, header: usize, points: Points, chains: &Chains) -> Option<Self> {
        let path = path(blocks, header)?;
        let calls = |block: &usize| blocks.instructions(*block).any(|instruction| instruction.is_call());
        if path.iter().any(calls) {
            return None;
        }
        let holds_points = path.last().is_some_and(|last| chains.last(header) != *last);
        if points == Points::Blocks && holds_points {
            return None;
        }
        Some(Self { enters: enters(blocks, header)?, leaves: leaves(blocks, &path)? })
    }
}

/// Returns the blocks of an iteration, from the header to the latch; `None` if several paths exist.
fn path(blocks: &Blocks<'_>, header: usize) -> Option<Vec<usize>> {
    let flow = blocks.flow;
    let this = flow.loop_of(header)?;
    if !flow.loops()[this].innermost || flow.loops()[this].header != header {
        return None;
    }
    let mut path = Vec::new();
    let mut block = header;
    loop {
        if !matches!(flow.blocks()[block].terminator, Terminator::FallThrough | Terminator::Branch { .. }) {
            return None;
        }
        path.push(block);
        let mut inside = flow.successors(block).iter().filter(|edge| flow.loop_of(edge.to) == Some(this));
        let next = inside.next()?.to;
        if inside.next().is_some() {
            return None;
        }
        if next == header {
            return Some(path);
        }
        block = next;
    }
}

/// Returns the offsets that lanes pass only when they enter the loop; `None` if an entry has no such offset.
pub(super) fn enters(blocks: &Blocks<'_>, header: usize) -> Option<BTreeSet<usize>> {
    let flow = blocks.flow;
    let this = flow.loop_of(header);
    let mut enters = BTreeSet::new();
    for from in blocks.reachable_predecessors(header).filter(|from| flow.loop_of(*from) != this) {
        let to_header = || flow.successors(from).iter().filter(|edge| edge.to == header);
        for edge in to_header() {
            let at = match (edge.kind, flow.blocks()[from].terminator) {
                (EdgeKind::FallThrough, _) => blocks.before(header),
                (_, Terminator::Branch { guarded: false }) => {
                    let branch = blocks.terminator(from)?;
                    blocks.body.statements[branch].span.start
                }
                _ => return None,
            };
            enters.insert(at);
        }
    }
    Some(enters)
}

/// Returns the offsets that lanes pass only when they leave the loop; `None` if an exit has no such offset.
pub(super) fn leaves(blocks: &Blocks<'_>, path: &[usize]) -> Option<BTreeSet<usize>> {
    let flow = blocks.flow;
    let this = flow.loop_of(*path.first()?);
    let mut leaves = BTreeSet::new();
    // For each block outside, whether all of its predecessors are in the loop.
    let mut reached_only: HashMap<usize, bool> = HashMap::new();
    for from in path {
        for edge in flow.successors(*from).iter().filter(|edge| flow.loop_of(edge.to) != this) {
            let only = *reached_only.entry(edge.to).or_insert_with(|| {
                blocks.reachable_predecessors(edge.to).all(|other| flow.loop_of(other) == this)
            });
            let at = if only {
                blocks.entry(edge.to)
            } else if edge.kind == EdgeKind::FallThrough {
                blocks.behind(blocks.terminator(*from)?)
            } else {
                return None;
            };
            leaves.insert(at);
        }
    }
    Some(leaves)
}
