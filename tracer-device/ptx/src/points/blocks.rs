//! Where markers may stand, and which blocks are executed exactly when another is.

use crate::splice::PARTING;
use crate::{Body, Cfg, Directive, Instruction, Label, StatementKind, Terminator};

/// A body with its control flow.
pub(super) struct Blocks<'b> {
    pub(super) body: &'b Body<'b>,
    pub(super) flow: &'b Cfg,
}

impl<'b> Blocks<'b> {
    pub(super) fn new(body: &'b Body<'b>, flow: &'b Cfg) -> Self {
        Self { body, flow }
    }

    /// Returns where a marker stands that a block executes first: behind the `.loc` lines that speak of its
    /// instructions, and behind a `.pragma`, which the assembler wants before the first instruction.
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

    /// Returns where a marker stands that lanes pass only if they fall into a block from the one before it in
    /// the text: before its label.
    pub(super) fn before(&self, block: usize) -> usize {
        let first = self.body.statements.get(self.flow.blocks()[block].statements.start);
        first.map_or(self.body.close, |first| first.span.start)
    }

    /// Returns where a marker stands that lanes pass only if they continue behind a guarded instruction.
    pub(super) fn behind(&self, statement: usize) -> usize {
        self.body.statements[statement].span.end
    }

    /// Returns the statement of the instruction that ends a block, if one does.
    pub(super) fn terminator(&self, block: usize) -> Option<usize> {
        let block = &self.flow.blocks()[block];
        let ends = !matches!(block.terminator, Terminator::FallThrough | Terminator::End);
        let mut statements = block.statements.clone().filter(|_| ends).rev();
        statements.find(|statement| self.body.statements[*statement].instruction().is_some())
    }

    /// Returns a block's instructions.
    pub(super) fn instructions(&self, block: usize) -> impl Iterator<Item = &Instruction<'b>> {
        let statements = &self.body.statements[self.flow.blocks()[block].statements.clone()];
        statements.iter().filter_map(|statement| statement.instruction())
    }

    /// Returns the predecessors of a block that can be reached.
    pub(super) fn reachable_predecessors(&self, block: usize) -> impl Iterator<Item = usize> {
        self.flow.predecessors(block).iter().copied().filter(|from| self.flow.is_reachable(*from))
    }

    /// Returns the block that a block always goes on to, if all of its lanes do so in one group.
    fn always_next(&self, block: usize) -> Option<usize> {
        let [edge] = self.flow.successors(block) else { return None };
        let branches = match self.flow.blocks()[block].terminator {
            Terminator::FallThrough => 0,
            Terminator::Branch { guarded: false } => 1,
            _ => return None,
        };
        // Instructions that name their lanes wait for them, so that groups may join.
        let parts = |instruction: &&Instruction<'_>| {
            PARTING.contains(&instruction.name()) || instruction.has_modifier("sync")
        };
        (self.instructions(block).filter(parts).count() == branches).then_some(edge.to)
    }

    /// Finds the blocks that are executed exactly when the block before them is, by the same groups of lanes;
    /// `has_site` tells which blocks have a point.
    pub(super) fn chains(&self, has_site: impl Fn(usize) -> bool) -> Chains {
        let blocks = self.flow.blocks().len();
        let mut chains = Chains { next: vec![None; blocks], follows: vec![false; blocks] };
        for block in (0..blocks).filter(|block| self.flow.is_reachable(*block) && has_site(*block)) {
            let Some(next) = self.always_next(block).filter(|next| has_site(*next)) else { continue };
            // A block that only leads to itself cannot be reached.
            if self.reachable_predecessors(next).eq([block]) {
                chains.next[block] = Some(next);
                chains.follows[next] = true;
            }
        }
        chains
    }
}

/// Blocks that follow one another without a choice.
pub(super) struct Chains {
    /// Of each block, the one whose executions follow from its own.
    next: Vec<Option<usize>>,
    /// Of each block, whether its executions follow from another's.
    follows: Vec<bool>,
}

impl Chains {
    /// Whether the block's executions follow from another's.
    pub(super) fn follows(&self, block: usize) -> bool {
        self.follows[block]
    }

    /// Returns the blocks whose executions follow from the executions of `block`, in their order; none if
    /// `block` follows another itself.
    pub(super) fn behind(&self, block: usize) -> impl Iterator<Item = usize> {
        let first = self.next[block].filter(|_| !self.follows[block]);
        std::iter::successors(first, |block| self.next[*block])
    }

    /// Returns the last block that follows `block`, or itself.
    pub(super) fn last(&self, block: usize) -> usize {
        self.behind(block).last().unwrap_or(block)
    }
}
