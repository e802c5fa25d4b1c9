//! Chooses the points of a function.

use std::ops::Range;

use super::blocks::Blocks;
use super::named::name_of;
use super::{PointKind, Points, waits};
use crate::{Edge, Terminator};

#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) kind: PointKind,
    pub(super) block: usize,
    pub(super) statements: Range<usize>,
    /// Several if a loop can be left or entered in several ways.
    pub(super) at: Vec<usize>,
}

impl Candidate {
    pub(super) fn begins_block(&self) -> bool {
        !matches!(self.kind, PointKind::Branch | PointKind::Taken | PointKind::NotTaken) && !self.interrupts()
    }

    /// Returns true if the point may lie between any two instructions.
    pub(super) fn interrupts(&self) -> bool {
        matches!(self.kind, PointKind::Named | PointKind::Barrier | PointKind::Wait | PointKind::Waited)
    }
}

/// Returns a function's points in text order, each after the points of the loops around it. Points that the
/// source names come last, then waits.
pub(super) fn choose(blocks: &Blocks<'_>, points: Points, with_waits: bool) -> Vec<Candidate> {
    let flow = blocks.flow;
    let begins = |block: usize| {
        let kind = match flow.loop_of(block).map(|inner| &flow.loops()[inner]) {
            _ if block == 0 => PointKind::Entry,
            Some(inner) if inner.header == block => PointKind::LoopBody,
            _ => PointKind::Block,
        };
        Candidate {
            kind,
            block,
            statements: flow.blocks()[block].statements.clone(),
            at: vec![blocks.entry(block)],
        }
    };
    let mut candidates = Vec::new();
    // For each block, whether its start has a point.
    let mut chosen = vec![false; flow.blocks().len()];
    for block in (0..flow.blocks().len()).filter(|block| flow.is_reachable(*block)) {
        let candidate = begins(block);
        let is_chosen = match (points, candidate.kind) {
            (_, PointKind::Entry) => true,
            (Points::Blocks | Points::Loops, PointKind::LoopBody) => true,
            (Points::Blocks, _) => flow.blocks()[block].first_instruction.is_some(),
            _ => false,
        };
        if is_chosen && !chosen[block] {
            let mut outer = Vec::new();
            let mut around = flow.loop_of(block);
            while let Some(inner) = around.map(|index| &flow.loops()[index]) {
                if chosen[inner.header] {
                    break;
                }
                if inner.header != block {
                    outer.push(inner.header);
                }
                around = inner.parent;
            }
            for header in outer.into_iter().rev() {
                chosen[header] = true;
                candidates.push(begins(header));
            }
            chosen[block] = true;
            candidates.push(candidate);
        }
        if points == Points::Branches {
            sides(blocks, block, &mut candidates);
        }
    }
    let statements = blocks.body.statements.iter().enumerate();
    for (index, statement) in statements.filter(|(_, statement)| name_of(statement).is_some()) {
        let block = flow.block_of(index);
        if flow.is_reachable(block) {
            let (kind, at) = (PointKind::Named, vec![statement.span.start]);
            candidates.push(Candidate { kind, block, statements: index..index + 1, at });
        }
    }
    let waits = if with_waits || points == Points::Waits { waits::find(blocks) } else { Vec::new() };
    for wait in waits {
        let (block, statements) = (wait.block, wait.statement..wait.statement + 1);
        let begins = if wait.is_barrier { PointKind::Barrier } else { PointKind::Wait };
        for (kind, at) in [(begins, wait.begins), (PointKind::Waited, wait.ends)] {
            candidates.push(Candidate { kind, block, statements: statements.clone(), at });
        }
    }
    candidates
}

/// Adds the sides of the branch that ends a block. If the block of the taken side has other predecessors, the
/// branch itself gets a point instead: its lanes that do not reach `NotTaken` took the branch.
fn sides(blocks: &Blocks<'_>, block: usize, candidates: &mut Vec<Candidate>) {
    let flow = blocks.flow;
    let Some(branch) = blocks.terminator(block) else { return };
    let mut add = |kind, at| {
        candidates.push(Candidate { kind, block, statements: branch..branch + 1, at: vec![at] });
    };
    let before = blocks.body.statements[branch].span.start;
    match flow.blocks()[block].terminator {
        Terminator::Branch { guarded: true } => {
            let [Edge { to: taken, .. }, Edge { to: other, .. }] = flow.successors(block) else { return };
            if taken == other || !blocks.reachable_predecessors(*taken).eq([block]) {
                add(PointKind::Branch, before);
            } else {
                add(PointKind::Taken, blocks.entry(*taken));
            }
            add(PointKind::NotTaken, blocks.behind(branch));
        }
        Terminator::Return { guarded: true }
        | Terminator::Exit { guarded: true }
        | Terminator::Trap { guarded: true } => {
            add(PointKind::Branch, before);
            add(PointKind::NotTaken, blocks.behind(branch));
        }
        _ => {}
    }
}
