//! Loops whose iterations a recording can count.

use std::collections::{BTreeSet, HashMap};

use super::Points;
use super::blocks::{Blocks, Chains};
use crate::{EdgeKind, Terminator};

/// Where the markers of a counted loop stand, beside its tick.
pub(super) struct Counted {
    /// Offsets that lanes pass when they enter it, and no lane that is in it.
    pub(super) enters: BTreeSet<usize>,
    /// Offsets that all pass who leave it, and nothing else.
    pub(super) leaves: BTreeSet<usize>,
}

impl Counted {
    /// Tells how to count the loop with this header, if it can be counted: it holds no other point, no loop
    /// and no call, its iterations all take one path, threads do not end in it, and markers can stand on all
    /// edges that lead in and out.
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

/// Returns the blocks of a loop from its header to where it leads back, if there is one way only.
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

/// Returns the offsets that lanes pass when they enter the loop, and nothing else; `None` if there are none.
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

/// Returns the offsets that lanes pass when they leave the loop with these blocks, and nothing else; `None`
/// if there are none.
pub(super) fn leaves(blocks: &Blocks<'_>, path: &[usize]) -> Option<BTreeSet<usize>> {
    let flow = blocks.flow;
    let this = flow.loop_of(*path.first()?);
    let mut leaves = BTreeSet::new();
    // Of each block outside, whether it is reached from the loop only.
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
