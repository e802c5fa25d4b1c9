//! Marker positions of blocks, and blocks that execute exactly when another block does.

use crate::splice::PARTING;
use crate::{Body, Cfg, Directive, Instruction, Label, StatementKind, Terminator};

pub(super) struct Blocks<'b> {
    pub(super) body: &'b Body<'b>,
    pub(super) flow: &'b Cfg,
}

impl<'b> Blocks<'b> {
    pub(super) fn new(body: &'b Body<'b>, flow: &'b Cfg) -> Self {
        Self { body, flow }
    }

    /// Returns the position of a marker that executes first in a block: after the `.loc` lines of its first
    /// instruction, and after a `.pragma`, which the assembler requires before the first instruction.
    pub(super) fn entry(&self, block: usize) -> usize {
        let block = &self.flow.blocks()[block];
        let mut at = block.entry;
        let statements = &self.body.statements[block.statements.clone()];
        for statement in statements.iter().skip_while(|statement| statement.span.start < block.entry) {
            match statement.kind {
                StatementKind::Directive(Directive::Loc(_) | Directive::Pragma(_)) => at = statement.span.end,
                StatementKind::Comment(_)
                | StatementKind::Empty
                | StatementKind::Label(Label { names_directive: false, .. }) => {}
                _ => break,
            }
        }
        at
    }

    /// Returns the position of a marker that lanes pass only on fall-through to the block: before its label.
    pub(super) fn before(&self, block: usize) -> usize {
        let first = self.body.statements.get(self.flow.blocks()[block].statements.start);
        first.map_or(self.body.close, |first| first.span.start)
    }

    /// Returns the position of a marker that lanes pass only if they continue after a guarded instruction.
    pub(super) fn behind(&self, statement: usize) -> usize {
        self.body.statements[statement].span.end
    }

    /// Returns the statement of the instruction that ends a block, if any.
    pub(super) fn terminator(&self, block: usize) -> Option<usize> {
        let block = &self.flow.blocks()[block];
        let ends = !matches!(block.terminator, Terminator::FallThrough | Terminator::End);
        let mut statements = block.statements.clone().filter(|_| ends).rev();
        statements.find(|statement| self.body.statements[*statement].instruction().is_some())
    }

    pub(super) fn instructions(&self, block: usize) -> impl Iterator<Item = &Instruction<'b>> {
        let statements = &self.body.statements[self.flow.blocks()[block].statements.clone()];
        statements.iter().filter_map(|statement| statement.instruction())
    }

    pub(super) fn reachable_predecessors(&self, block: usize) -> impl Iterator<Item = usize> {
        self.flow.predecessors(block).iter().copied().filter(|from| self.flow.is_reachable(*from))
    }

    /// Returns the block that always follows a block, with all of its lanes still in one group.
    fn always_next(&self, block: usize) -> Option<usize> {
        let [edge] = self.flow.successors(block) else { return None };
        let branches = match self.flow.blocks()[block].terminator {
            Terminator::FallThrough => 0,
            Terminator::Branch { guarded: false } => 1,
            _ => return None,
        };
        // Instructions that name lanes wait for them, so groups may join.
        let parts = |instruction: &&Instruction<'_>| {
            PARTING.contains(&instruction.name()) || instruction.has_modifier("sync")
        };
        (self.instructions(block).filter(parts).count() == branches).then_some(edge.to)
    }

    /// Finds the blocks that execute exactly when the block before them does, with the same groups of lanes.
    /// `has_site` returns true for blocks with a point.
    pub(super) fn chains(&self, has_site: impl Fn(usize) -> bool) -> Chains {
        let blocks = self.flow.blocks().len();
        let mut chains = Chains { next: vec![None; blocks], follows: vec![false; blocks] };
        for block in (0..blocks).filter(|block| self.flow.is_reachable(*block) && has_site(*block)) {
            let Some(next) = self.always_next(block).filter(|next| has_site(*next)) else { continue };
            // A block whose only predecessor is itself is unreachable.
            if self.reachable_predecessors(next).eq([block]) {
                chains.next[block] = Some(next);
                chains.follows[next] = true;
            }
        }
        chains
    }
}

/// Chains of blocks that always execute together.
pub(super) struct Chains {
    /// For each block, the next block of its chain.
    next: Vec<Option<usize>>,
    /// For each block, whether it continues another block's chain.
    follows: Vec<bool>,
}

impl Chains {
    pub(super) fn follows(&self, block: usize) -> bool {
        self.follows[block]
    }

    /// Returns the blocks that follow `block` in its chain, in order; none if it does not start the chain.
    pub(super) fn behind(&self, block: usize) -> impl Iterator<Item = usize> {
        let first = self.next[block].filter(|_| !self.follows[block]);
        std::iter::successors(first, |block| self.next[*block])
    }

    /// Returns the last block of the chain that starts at `block`, or `block` itself.
    pub(super) fn last(&self, block: usize) -> usize {
        self.behind(block).last().unwrap_or(block)
    }
}
