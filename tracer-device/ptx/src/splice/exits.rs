//! Branches to the end of a kernel. The assembler turns a `bra` to a block that only returns into a separate
//! `EXIT`, so lanes do not wait for each other there. A mark or an epilogue makes the block long. Then the
//! assembler keeps one shared block where all exits reconverge, and moves earlier reconvergence points to it;
//! each group of lanes executes the code in between separately. To avoid this, each such branch gets a
//! separate end if the end has marks or epilogues.

use std::iter::successors;
use std::ops::Range;

use crate::{Body, Cfg, EdgeKind, Terminator};

/// Maximum number of branches of a kernel with separate ends. Each end takes an epilogue.
const MOST_EXITS: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) branch: usize,
    /// Statements of the blocks on the way: labels, markers and the like, and the end.
    pub(super) blocks: Vec<Range<usize>>,
}

/// Finds the branches of a kernel to its end. Empty if there are more than [`MOST_EXITS`].
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

/// Returns the next block (the last: itself) for each block from which control only leaves the kernel.
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
