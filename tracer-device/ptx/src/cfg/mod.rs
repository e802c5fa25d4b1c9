//! Control flow of a body: basic blocks, edges, dominators and natural loops.

mod blocks;
pub(crate) mod dominators;
pub(crate) mod labels;
mod loops;

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::body::Body;
use crate::span::Span;
use dominators::Dominators;

pub use loops::Loop;

/// Control-flow graph of one body. Methods panic if a block or a statement is out of range.
///
/// Block 0 is the entry and has no predecessors: if a branch leads to the body's first label, block 0 ends
/// before that label and may hold no instruction. Unreachable blocks are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cfg {
    blocks: Vec<Block>,
    block_of: Vec<usize>,
    predecessors: Vec<Vec<usize>>,
    dominators: Dominators,
    loops: Vec<Loop>,
    loop_of: Vec<Option<usize>>,
}

/// A basic block: control enters at its start and leaves at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Indices of the block's statements. May be empty for the first and the last block.
    pub statements: Range<usize>,
    /// Index of the statement of the first instruction, if the block has one.
    pub first_instruction: Option<usize>,
    /// Offset where inserted instructions execute first in the block: after the labels to which branches
    /// lead; before its first statement if no branch leads to it; after the body's declarations for block 0.
    pub entry: usize,
    /// How the block ends.
    pub terminator: Terminator,
    /// Successors: targets of the branch first, the next block last. Blocks of a table occur once.
    pub successors: Vec<Edge>,
}

/// How a block ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Terminator {
    /// A branch target follows; the next block is the only successor.
    FallThrough,
    /// `bra`
    Branch {
        /// Whether a guard exists, so that control may also fall through.
        guarded: bool,
    },
    /// `brx.idx`
    Indexed {
        /// Whether a guard exists, so that control may also fall through.
        guarded: bool,
    },
    /// `ret`
    Return {
        /// Whether a guard exists, so that control may also fall through.
        guarded: bool,
    },
    /// `exit`
    Exit {
        /// Whether a guard exists, so that control may also fall through.
        guarded: bool,
    },
    /// `trap`
    Trap {
        /// Whether a guard exists, so that control may also fall through.
        guarded: bool,
    },
    /// The body's closing brace, which returns.
    End,
}

impl Terminator {
    /// Returns true if control may fall through to the next block. Such a block is never the last.
    #[must_use]
    pub fn falls_through(self) -> bool {
        match self {
            Self::FallThrough => true,
            Self::End => false,
            Self::Branch { guarded }
            | Self::Indexed { guarded }
            | Self::Return { guarded }
            | Self::Exit { guarded }
            | Self::Trap { guarded } => guarded,
        }
    }
}

/// An edge to a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Index of the target block.
    pub to: usize,
    /// Kind of the edge.
    pub kind: EdgeKind,
}

/// Kind of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeKind {
    /// The branch at the block's end is taken.
    Taken,
    /// An entry of the table of `brx.idx` is selected.
    Indexed,
    /// Control falls through: no branch or other terminator ends the block, or its guard does not hold.
    FallThrough,
}

/// Reasons why control flow cannot be analysed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CfgError {
    /// The label of a branch or table is unknown: not in a scope around it, and not unique in the function.
    #[error(
        "the branch at byte {} leads to `{label}`, which is no label of its function; \
         the text is incomplete, or the branch is of a kind that is not known",
        span.start
    )]
    UnknownLabel {
        /// The branch, or the table that names the label.
        span: Span,
        /// Name of the label.
        label: String,
    },
    /// A `brx.idx` does not name a `.branchtargets`.
    #[error("`brx.idx` at byte {} names `{table}`, which labels no `.branchtargets` of its function", span.start)]
    UnknownTable {
        /// The branch.
        span: Span,
        /// Name of the table.
        table: String,
    },
    /// The function has too many edges, far more than compilers produce.
    #[error("the function has more than {limit} edges between basic blocks: that is beyond what is analysed")]
    TooManyEdges {
        /// The limit.
        limit: usize,
    },
}

impl Cfg {
    /// Builds the control-flow graph of `body`. Blocks begin at labels that a branch or a table names, and
    /// after `bra`, `brx`, `ret`, `exit` and `trap`. Other labels (debug data has many) and calls do not end
    /// a block. Labels are looked up from the branch's scope outwards, then in the whole function.
    ///
    /// # Errors
    /// Returns a [`CfgError`] if a target is unknown or the function has too many edges.
    pub fn new(body: &Body<'_>) -> Result<Self, CfgError> {
        let targets = labels::resolve(body)?;
        let (blocks, block_of) = blocks::build(body, &targets)?;
        let mut predecessors = vec![Vec::new(); blocks.len()];
        for (from, block) in blocks.iter().enumerate() {
            for edge in &block.successors {
                let predecessors: &mut Vec<usize> = &mut predecessors[edge.to];
                // A conditional branch to the next block makes two edges of one pair.
                if predecessors.last() != Some(&from) {
                    predecessors.push(from);
                }
            }
        }
        let dominators = Dominators::new(&predecessors, |block, nth| {
            blocks[block].successors.get(nth).map(|edge| edge.to)
        });
        let (loops, loop_of) = loops::find(&predecessors, &dominators);
        Ok(Self { blocks, block_of, predecessors, dominators, loops, loop_of })
    }

    /// Returns the blocks, in text order.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns the block of a statement.
    #[must_use]
    pub fn block_of(&self, statement: usize) -> usize {
        self.block_of[statement]
    }

    /// Returns the edges out of a block. Same as [`Block::successors`].
    #[must_use]
    pub fn successors(&self, block: usize) -> &[Edge] {
        &self.blocks[block].successors
    }

    /// Returns the blocks with an edge to `block`, without duplicates, in text order.
    #[must_use]
    pub fn predecessors(&self, block: usize) -> &[usize] {
        &self.predecessors[block]
    }

    /// Returns true if `block` is reachable from the entry.
    #[must_use]
    pub fn is_reachable(&self, block: usize) -> bool {
        self.dominators.is_reachable(block)
    }

    /// Returns the closest strict dominator of `block`; `None` for the entry and for unreachable blocks.
    #[must_use]
    pub fn immediate_dominator(&self, block: usize) -> Option<usize> {
        self.dominators.immediate(block)
    }

    /// Returns true if all paths from the entry to `block` pass `dominator`. False if either is unreachable.
    #[must_use]
    pub fn dominates(&self, dominator: usize, block: usize) -> bool {
        self.dominators.dominates(dominator, block)
    }

    /// Returns the natural loops in the text order of their headers, without cycles that have two entries.
    #[must_use]
    pub fn loops(&self) -> &[Loop] {
        &self.loops
    }

    /// Returns the index in [`Cfg::loops`] of the innermost loop around `block`.
    #[must_use]
    pub fn loop_of(&self, block: usize) -> Option<usize> {
        self.loop_of[block]
    }

    /// Returns the number of loops around `block`.
    #[must_use]
    pub fn loop_depth(&self, block: usize) -> u32 {
        self.loop_of[block].map_or(0, |index| self.loops[index].depth)
    }

    /// Returns true if the loop with the index `outer`, or a loop within it, contains `block`.
    #[must_use]
    pub fn loop_contains(&self, outer: usize, block: usize) -> bool {
        let around = std::iter::successors(self.loop_of[block], |index| self.loops[*index].parent);
        around.into_iter().any(|index| index == outer)
    }
}
