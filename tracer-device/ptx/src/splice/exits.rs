//! Branches to where a kernel ends.
//!
//! The assembler makes `bra` to a block that only returns an `EXIT` of its own: where lanes leave is then no
//! place at which others wait for them. A mark or an epilogue makes that block long. The assembler then has
//! one, at which all ways out of the kernel meet, and moves the places before it at which lanes wait for each
//! other to there; what lies between is executed by each group of lanes on its own. So each such branch leads
//! to an end of its own where marks or epilogues stand.

use std::iter::successors;
use std::ops::Range;

use crate::{Body, Cfg, EdgeKind, Terminator};

/// The most branches of a kernel that are given an end of their own: each takes an epilogue.
const MOST_EXITS: usize = 64;

/// A branch to where a kernel only ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    /// Index of the branch's statement.
    pub(super) branch: usize,
    /// The statements of the blocks that it leads through: labels, markers and the like, and the end.
    pub(super) blocks: Vec<Range<usize>>,
}

/// Finds the branches of a kernel to where it only ends; none if they are very many.
pub(super) fn find(body: &Body<'_>, flow: &Cfg) -> Vec<Exit> {
    let next = ends(body, flow);
    let blocks = flow.blocks();
    let mut exits = Vec::new();
    for block in blocks {
        let to = block.successors.iter().find(|edge| edge.kind == EdgeKind::Taken).map(|edge| edge.to);
        let Some(to) = to.filter(|&to| next[to].is_some()) else { continue };
        let Some(branch) = block.statements.clone().last() else { continue };
        if exits.len() == MOST_EXITS {
            return Vec::new();
        }
        let way = successors(Some(to), |&at| next[at].filter(|&next| next != at));
        exits.push(Exit { branch, blocks: way.map(|at| blocks[at].statements.clone()).collect() });
    }
    exits
}

/// Of each block from which control leaves the kernel, with nothing done on the way, the block after it; the
/// last one itself.
fn ends(body: &Body<'_>, flow: &Cfg) -> Vec<Option<usize>> {
    let blocks = flow.blocks();
    let mut next = vec![None; blocks.len()];
    let mut work: Vec<usize> = (0..blocks.len()).collect();
    while let Some(index) = work.pop() {
        let block = &blocks[index];
        let to = match block.terminator {
            Terminator::Return { guarded: false } | Terminator::Exit { guarded: false } => Some((1, index)),
            Terminator::Branch { guarded: false } => Some((1, block.successors[0].to)),
            Terminator::FallThrough => Some((0, block.successors[0].to)),
            _ => None,
        };
        let Some((only, to)) = to.filter(|_| next[index].is_none()) else { continue };
        if !(to == index && block.successors.is_empty()) && next[to].is_none() {
            continue;
        }
        let does = block.statements.clone().filter(|&it| body.statements[it].instruction().is_some()).count();
        if does == only {
            next[index] = Some(to);
            work.extend(flow.predecessors(index));
        }
    }
    next
}
