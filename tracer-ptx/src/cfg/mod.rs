//! Control flow: basic blocks, edges, dominators and natural loops of a body.

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

/// The control flow of one body.
///
/// Block 0 is the entry. It has no predecessors: where a branch leads to the body's first label, block 0 ends
/// before that label and may hold no instruction. Blocks that nothing leads to are kept.
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
    /// Index of the first instruction's statement.
    pub first_instruction: Option<usize>,
    /// Offset where instructions can be inserted so that they are the block's first: behind its labels;
    /// before its first statement where no branch leads to it; behind the body's declarations for block 0.
    pub entry: usize,
    /// How the block ends.
    pub terminator: Terminator,
    /// Where control goes from here: the taken branch first, the next block last. Each block of a table once.
    pub successors: Vec<Edge>,
}

/// How a block ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Terminator {
    /// A label that branches lead to follows; the next block is the only successor.
    FallThrough,
    /// `bra`
    Branch {
        /// Whether a guard decides, so that control may also fall through.
        guarded: bool,
    },
    /// `brx.idx`
    Indexed {
        /// Whether a guard decides, so that control may also fall through.
        guarded: bool,
    },
    /// `ret`
    Return {
        /// Whether a guard decides, so that control may also fall through.
        guarded: bool,
    },
    /// `exit`
    Exit {
        /// Whether a guard decides, so that control may also fall through.
        guarded: bool,
    },
    /// `trap`
    Trap {
        /// Whether a guard decides, so that control may also fall through.
        guarded: bool,
    },
    /// The body's closing brace, which returns.
    End,
}

impl Terminator {
    /// Tells whether control may go on to the next block. A block that does is never the last.
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
    /// Index of the block.
    pub to: usize,
    /// What makes control take the edge.
    pub kind: EdgeKind,
}

/// What makes control take an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeKind {
    /// The branch that ends the block.
    Taken,
    /// An entry of the table of `brx.idx`.
    Indexed,
    /// No branch, or a branch whose guard does not hold.
    FallThrough,
}

/// Why control flow could not be found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CfgError {
    /// A branch leads to a label that the function does not have.
    #[error(
        "the branch at byte {} leads to `{label}`, which is no label of its function; \
         the text is incomplete, or the branch is of a kind that is not known",
        span.start
    )]
    UnknownLabel {
        /// The branch, or the table that names the label.
        span: Span,
        /// What it names.
        label: String,
    },
    /// A `brx.idx` names no `.branchtargets`.
    #[error("`brx.idx` at byte {} names `{table}`, which labels no `.branchtargets` of its function", span.start)]
    UnknownTable {
        /// The branch.
        span: Span,
        /// What it names.
        table: String,
    },
    /// The tables of `brx.idx` give more edges than any compiler makes.
    #[error("the function has more than {limit} edges between basic blocks: that is beyond what is analysed")]
    TooManyEdges {
        /// The limit.
        limit: usize,
    },
}

impl Cfg {
    /// Finds blocks, edges and loops of `body`.
    ///
    /// Blocks begin at labels that a branch or a table names, and behind `bra`, `brx`, `ret`, `exit` and
    /// `trap`; other labels (debug data has many) and calls end no block. A label is looked up from the
    /// branch's scope outwards; where no surrounding scope has it, the whole function is searched.
    ///
    /// # Errors
    ///
    /// [`CfgError`] where a branch leads nowhere.
    pub fn new(body: &Body<'_>) -> Result<Self, CfgError> {
        let targets = labels::resolve(body)?;
        let (blocks, block_of) = blocks::build(body, &targets)?;
        let mut predecessors = vec![Vec::new(); blocks.len()];
        for (from, block) in blocks.iter().enumerate() {
            for edge in &block.successors {
                let predecessors: &mut Vec<usize> = &mut predecessors[edge.to];
                // A branch to the next block makes two edges of one pair.
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

    /// Returns the block that holds a statement.
    ///
    /// # Panics
    ///
    /// If the body has no such statement.
    #[must_use]
    pub fn block_of(&self, statement: usize) -> usize {
        self.block_of[statement]
    }

    /// Returns the edges out of a block: [`Block::successors`].
    ///
    /// # Panics
    ///
    /// If there is no such block.
    #[must_use]
    pub fn successors(&self, block: usize) -> &[Edge] {
        &self.blocks[block].successors
    }

    /// Returns the blocks with an edge to `block`, each once, in text order.
    ///
    /// # Panics
    ///
    /// If there is no such block.
    #[must_use]
    pub fn predecessors(&self, block: usize) -> &[usize] {
        &self.predecessors[block]
    }

    /// Tells whether control can come from the entry to `block`.
    ///
    /// # Panics
    ///
    /// If there is no such block.
    #[must_use]
    pub fn is_reachable(&self, block: usize) -> bool {
        self.dominators.is_reachable(block)
    }

    /// Returns the closest block through which all ways from the entry to `block` lead; `None` for the entry
    /// and for blocks that cannot be reached.
    ///
    /// # Panics
    ///
    /// If there is no such block.
    #[must_use]
    pub fn immediate_dominator(&self, block: usize) -> Option<usize> {
        self.dominators.immediate(block)
    }

    /// Tells whether all ways from the entry to `block` lead through `dominator`; a block dominates itself.
    /// False where one of them cannot be reached.
    ///
    /// # Panics
    ///
    /// If there is no such block.
    #[must_use]
    pub fn dominates(&self, dominator: usize, block: usize) -> bool {
        self.dominators.dominates(dominator, block)
    }

    /// Returns the natural loops, in the text order of their headers. Cycles with two entries are none.
    #[must_use]
    pub fn loops(&self) -> &[Loop] {
        &self.loops
    }

    /// Returns the index in [`Cfg::loops`] of the innermost loop around `block`.
    ///
    /// # Panics
    ///
    /// If there is no such block.
    #[must_use]
    pub fn loop_of(&self, block: usize) -> Option<usize> {
        self.loop_of[block]
    }

    /// Returns how many loops surround `block`.
    ///
    /// # Panics
    ///
    /// If there is no such block.
    #[must_use]
    pub fn loop_depth(&self, block: usize) -> u32 {
        self.loop_of[block].map_or(0, |index| self.loops[index].depth)
    }

    /// Tells whether the loop with the index `outer`, or a loop within it, holds `block`.
    ///
    /// # Panics
    ///
    /// If there is no such block.
    #[must_use]
    pub fn loop_contains(&self, outer: usize, block: usize) -> bool {
        let around = std::iter::successors(self.loop_of[block], |index| self.loops[*index].parent);
        around.into_iter().any(|index| index == outer)
    }
}
