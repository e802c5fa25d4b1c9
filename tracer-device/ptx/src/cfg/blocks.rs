//! Splits a body into basic blocks and connects them by edges.

use super::labels::Targets;
use super::{Block, CfgError, Edge, EdgeKind, Terminator};
use crate::body::{Body, StatementKind};
use crate::instruction::Instruction;

/// Maximum number of edges of one function. Far above compiler output, and small enough to fit in memory.
const MAX_EDGES: usize = 1 << 22;

struct Open {
    start: usize,
    first_instruction: Option<usize>,
    /// Whether it holds an instruction or a comment: a branch to a label skips a marker before the label.
    has_code: bool,
    /// End of the last label that is a branch target.
    label_end: Option<usize>,
}

impl Open {
    fn at(start: usize) -> Self {
        Self { start, first_instruction: None, has_code: false, label_end: None }
    }

    /// Returns true if the open block holds only closing braces, comments and the like after a terminator
    /// without fall-through. They belong to the terminator's block.
    fn is_leftover(&self, last: Option<&Block>) -> bool {
        let closed = last.is_some_and(|last| !last.terminator.falls_through());
        closed && self.first_instruction.is_none() && self.label_end.is_none()
    }

    fn close(self, body: &Body<'_>, end: usize, terminator: Terminator) -> Block {
        let start = match body.statements.get(self.start) {
            // The first block can hold the body's declarations.
            _ if self.start == 0 => body.declarations_end(),
            Some(first) => first.span.start,
            None => body.close,
        };
        Block {
            statements: self.start..end,
            first_instruction: self.first_instruction,
            entry: self.label_end.unwrap_or(start),
            terminator,
            successors: Vec::new(),
        }
    }
}

/// Returns the blocks of `body`, and for each statement the index of its block.
pub(super) fn build(body: &Body<'_>, targets: &Targets) -> Result<(Vec<Block>, Vec<usize>), CfgError> {
    let mut blocks = cut(body, targets);
    let mut block_of = vec![0; body.statements.len()];
    for (index, block) in blocks.iter().enumerate() {
        block_of[block.statements.clone()].fill(index);
    }
    connect(&mut blocks, &block_of, targets)?;
    Ok((blocks, block_of))
}

fn cut(body: &Body<'_>, targets: &Targets) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = Open::at(0);
    for (index, statement) in body.statements.iter().enumerate() {
        match &statement.kind {
            StatementKind::Label(_) if targets.is_target[index] => {
                // The first block ends here even if it is empty, so that the entry has no predecessors.
                if open.is_leftover(blocks.last()) {
                    extend_last(&mut blocks, index);
                    open = Open::at(index);
                } else if open.has_code || blocks.is_empty() {
                    let full = std::mem::replace(&mut open, Open::at(index));
                    blocks.push(full.close(body, index, Terminator::FallThrough));
                }
                open.label_end = Some(statement.span.end);
            }
            StatementKind::Comment(_) => open.has_code = true,
            StatementKind::Instruction(instruction) => {
                open.has_code = true;
                open.first_instruction.get_or_insert(index);
                if let Some(terminator) = terminator(instruction) {
                    let full = std::mem::replace(&mut open, Open::at(index + 1));
                    blocks.push(full.close(body, index + 1, terminator));
                }
            }
            _ => {}
        }
    }
    let end = body.statements.len();
    if open.is_leftover(blocks.last()) {
        extend_last(&mut blocks, end);
    } else {
        blocks.push(open.close(body, end, Terminator::End));
    }
    blocks
}

fn extend_last(blocks: &mut [Block], end: usize) {
    if let Some(last) = blocks.last_mut() {
        last.statements.end = end;
    }
}

fn connect(blocks: &mut [Block], block_of: &[usize], targets: &Targets) -> Result<(), CfgError> {
    let mut edges = 0;
    for (index, block) in blocks.iter_mut().enumerate() {
        let taken = match block.terminator {
            Terminator::Branch { .. } => branch(block, &targets.branches).map(std::slice::from_ref),
            Terminator::Indexed { .. } => {
                branch(block, &targets.indexed).and_then(|table| targets.tables.get(table)).map(Vec::as_slice)
            }
            _ => None,
        };
        let kind = match block.terminator {
            Terminator::Indexed { .. } => EdgeKind::Indexed,
            _ => EdgeKind::Taken,
        };
        let taken = taken.unwrap_or_default();
        edges += taken.len() + 1;
        if edges > MAX_EDGES {
            return Err(CfgError::TooManyEdges { limit: MAX_EDGES });
        }
        let mut successors: Vec<Edge> =
            taken.iter().map(|label| Edge { to: block_of[*label], kind }).collect();
        if kind == EdgeKind::Indexed {
            // Several labels may belong to one block.
            successors.sort_by_key(|edge| edge.to);
            successors.dedup();
        }
        if block.terminator.falls_through() {
            successors.push(Edge { to: index + 1, kind: EdgeKind::FallThrough });
        }
        block.successors = successors;
    }
    Ok(())
}

fn branch<'m>(block: &Block, map: &'m std::collections::HashMap<usize, usize>) -> Option<&'m usize> {
    block.statements.clone().rev().find_map(|statement| map.get(&statement))
}

fn terminator(instruction: &Instruction<'_>) -> Option<Terminator> {
    let guarded = instruction.guard.is_some();
    match instruction.name() {
        "bra" => Some(Terminator::Branch { guarded }),
        "brx" => Some(Terminator::Indexed { guarded }),
        "ret" => Some(Terminator::Return { guarded }),
        "exit" => Some(Terminator::Exit { guarded }),
        "trap" => Some(Terminator::Trap { guarded }),
        _ => None,
    }
}
